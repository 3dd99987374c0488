"""The runner of claims: each rule of it has a case here that fails without it."""

from math import isnan, nan

import numpy as np
import pytest

from dynamics.verdicts.claim import Also, Growth, Literal, Picture, checks_of, claim, flow_to
from dynamics.verdicts.findings import Protocol, Undecided

LAWS = ({"D": 8, "C": 2}, {"D": 12, "C": 2}, {"D": 16, "C": 2})


def run(system, measure=None, protocol=None, **data):
    """Finding of a claim of D <= 12 by default."""
    data = {"laws": LAWS, "shown": ("D", "C", "q")} | data
    check = claim("A claim", "patches", "<=", 12.0, **data)
    return check(measure or (lambda case: {"value": case.parameters.D}))(
        system, protocol or Protocol()
    )


def test_one_law_against_its_bound_contradicts_and_is_shown(system):
    finding = run(system)
    assert (finding.holds, finding.measured, finding.bound) == (False, 16, 12.0)
    assert "holds at D=8, 12; not at D=16" in finding.reason
    assert finding.reason.startswith("at C=2, q=0.5")


def test_of_an_asymptotic_hypothesis_it_holds_in_part(system):
    finding = run(system, in_part=True)
    assert (finding.holds, finding.word) == (None, "holds in part")
    assert run(system, in_part=True, laws=LAWS[:2]).word == "holds"
    assert run(system, in_part=True, laws=LAWS[2:]).word == "does not hold here"


def test_one_law_is_enough_where_the_claim_is_of_existence(system):
    finding = run(system, exists=True)
    assert (finding.holds, finding.measured) == (True, 8)
    assert run(system, exists=True, laws=LAWS[2:]).holds is False


def test_parameters_of_a_user_replace_the_grid(system):
    finding = run(system, protocol=Protocol(system.Parameters(D=12, C=3)))
    assert finding.holds
    assert finding.evidence["parameters"] == {"D": 12, "C": 3, "q": 0.5}


def test_the_grid_and_the_table_are_the_evidence(system):
    evidence = run(system).evidence
    assert evidence["parameters"] == {"D": [8, 12, 16], "C": 2, "q": 0.5}
    assert [row["value"] for row in evidence["table"]] == [8, 12, 16]


def test_a_law_outside_of_the_hypothesis_decides_nothing(system):
    def small(law):
        if law.D > 12:
            raise Undecided("too many patches", "law")

    finding = run(system, require=small)
    assert (finding.holds, finding.word) == (None, "not decidable under this law")
    assert "not decidable at D=16" in finding.reason
    assert "too many patches" in finding.reason


def test_nothing_is_required_of_what_was_not_measured(system):
    def measure(case):
        raise Undecided("no such event", "time")

    finding = run(system, measure, also=(Also("other", "<", 1.0, "another"),))
    assert (finding.holds, finding.missing, finding.quantity) == (None, ("time",), "patches")
    assert isnan(finding.measured)


def test_a_row_may_decide_nothing_by_itself(system):
    finding = run(system, lambda case: {"value": 1.0, "holds": None})
    assert (finding.holds, finding.missing, finding.measured) == (None, ("size",), 1.0)


def test_a_bound_that_may_still_be_met_decides_nothing(system):
    finding = run(system, lambda case: {"value": case.parameters.D, "open": "time"})
    assert finding.word == "not decidable to this time"
    assert finding.measured == 16


def test_every_requirement_has_to_be_met(system):
    also = (Also("twice", "<", 20.0, "twice the patches"),)
    finding = run(
        system,
        lambda case: {"value": 1.0, "twice": 2 * case.parameters.D},
        also=also,
        laws=LAWS[:2],
    )
    assert (finding.holds, finding.quantity, finding.measured) == (False, "twice the patches", 24)


def test_a_contradiction_is_measured_again_and_stops_where_it_is_not_repeated(system):
    seen = []

    def measure(case):
        seen.append((case.repeat.eta_factor, case.seed, case.steps(100)))
        return {"value": 20.0 if case.repeat.eta_factor > 0.5 else 1.0}

    finding = run(system, measure, varies=("step size", "seed"), laws=LAWS[:1])
    assert seen == [(1.0, 0, 100), (0.5, 0, 200)]
    assert finding.single == ("step size", "seed")
    assert "again with eta times 0.5: 1" in finding.reason


def test_a_contradiction_by_every_repetition_is_no_single_one(system):
    finding = run(system, lambda case: {"value": 20.0}, varies=("seed",), laws=LAWS[:1])
    assert (finding.holds, finding.single) == (False, ())


def test_seeds_are_rows_and_a_share_of_them_has_an_interval(system):
    finding = run(
        system, lambda case: {"value": case.seed, "holds": case.seed < 3}, laws=LAWS[:1],
        seeds=(4, 8), share=True,
    )  # fmt: skip
    assert finding.measured == 0.75
    assert "75 % (95 %: 19 to 99) of 4 cases" in finding.reason
    assert [row["seed"] for row in finding.evidence["table"]] == [0, 1, 2, 3]


def test_a_growth_law_is_held_against_its_exponent(system):
    square = {"growth": Growth("D", 2.0), "laws": ({"D": 8, "C": 2}, *LAWS[1:], {"D": 32, "C": 2})}
    assert run(system, lambda case: {"value": case.parameters.D**2.0}, **square).holds
    finding = run(system, lambda case: {"value": float(case.parameters.D)}, **square)
    assert finding.holds is False
    assert finding.measured == pytest.approx(1.0)


def test_a_growth_law_takes_the_errors_of_its_values_and_leaves_out_what_has_none(system):
    """The last value is far off: with a large error it counts little, with none not at all."""
    laws = ({"D": 8, "C": 2}, *LAWS[1:], {"D": 32, "C": 2})

    def square(error):
        def measure(case):
            D, last = case.parameters.D, case.parameters.D == 32
            return {"value": 1.0 if last else D**2.0, "error": error if last else 1e-3}

        growth = Growth("D", 2.0, errors="error")
        return run(system, measure, growth=growth, laws=laws[::-1]).measured

    assert square(np.inf) == pytest.approx(2.0)
    assert square(1e-3) < 1.0


def test_a_law_of_the_grid_may_stand_for_a_family(system):
    def family(law):
        if law.D < 10:
            raise Undecided("no whole numbers", "law")
        return [system.Parameters(D=law.D, C=2, q=q) for q in (0.5, 0.7)]

    def measure(case):
        return {"value": case.parameters.q, "holds": True}

    assert run(system, measure, family=family, laws=LAWS[1:2]).evidence["parameters"] == {
        "D": 12, "C": 2, "q": [0.5, 0.7],
    }  # fmt: skip
    finding = run(system, measure, family=family)
    assert (finding.holds, finding.word) == (None, "not decidable under this law")
    assert finding.reason == "no whole numbers"


def test_a_claim_of_images_has_no_parameters(system):
    finding = run(system, lambda case: {"value": 1.0, "holds": case.parameters is None}, laws=None)
    assert (finding.holds, finding.evidence["parameters"]) == (True, {})
    finding = run(system, laws=None, protocol=Protocol(system.Parameters(D=12, C=3)))
    assert finding.holds is None
    assert "without such parameters" in finding.reason


@pytest.mark.parametrize("thorough", [False, True])
def test_costly_claims_are_measured_again_in_thorough_requests_alone(system, thorough):
    finding = run(
        system, lambda case: {"value": 20.0}, varies=("seed",), laws=LAWS[:1], again="thorough",
        protocol=Protocol(thorough=thorough),
    )  # fmt: skip
    assert ("again with" in finding.reason) == thorough
    assert finding.single == (() if thorough else ("seed",))


def test_a_growth_law_is_that_of_the_rows_that_were_measured(system):
    def measure(case):
        if case.parameters.D > 12:
            raise Undecided("too many patches", "time")
        return {"value": case.parameters.D**2.0, "along": case.parameters.D}

    growth = Growth("along", 2.0)
    finding = run(system, measure, growth=growth)
    assert (finding.holds, finding.missing) == (None, ("time",))
    assert finding.measured == pytest.approx(2.0)
    assert run(system, measure, growth=growth, laws=LAWS[2:]).holds is None


def test_literal_words_may_need_what_is_not_there(system):
    literal = Literal("literal", "<=", 1.0, "literally", "", "time")
    finding = run(system, lambda case: {"value": 1.0, "literal": 2.0}, literal=literal)
    assert (finding.literal.holds, finding.literal.missing) == (None, ("time",))
    assert run(system, lambda case: {"value": 1.0, "literal": 1.0}, literal=literal).literal.holds


def test_literal_words_have_a_finding_of_their_own(system):
    literal = Literal("literal", "<=", 1.0, "literally", "of {D} patches")
    finding = run(system, lambda case: {"value": 1.0, "literal": 2.0}, literal=literal)
    assert finding.holds
    assert finding.literal.holds is False
    assert finding.literal.reason == "of 8 patches; of 12 patches; of 16 patches"


def test_many_rows_are_told_by_their_extremes(system):
    laws = tuple({"D": 2 * k, "C": 2} for k in range(2, 12))
    finding = run(system, laws=laws, words="{value} patches")
    assert "4 patches (D=4); 22 patches (D=22)" in finding.reason
    assert "10 patches" not in finding.reason


def test_a_value_that_is_no_number_is_infinitely_far_from_its_bound(system):
    assert run(system, lambda case: {"value": nan}).measured == np.inf
    assert isnan(run(system, lambda case: {"value": nan, "open": "time"}).measured)


def test_curves_and_levels_become_the_picture(system):
    picture = Picture("step", "size", {"limit": 1.0})
    finding = run(
        system, lambda case: {"value": 1, "curves": {case.label: ([1, 2], [3, 4])}}, picture=picture
    )
    plot = finding.evidence["plot"]
    assert [curve["label"] for curve in plot["curves"]] == ["D=8", "D=12", "D=16"]
    assert plot["lines"] == [{"label": "limit", "y": 1.0}]
    assert plot["parameters"] == {"C": 2, "q": 0.5}


def test_rounding_is_looked_for_only_where_something_is_decided(system):
    """Each run counts: one of a claim that holds and its perturbed starts; none after a doubt."""

    def runs_of(value):
        seen = []

        def measure(case):
            seen.append(case)
            return {"value": value if case.repeat.seed == 0 else 1.0}

        run(system, measure, varies=("seed",), laws=LAWS[:1], near_limit=True)
        return len(seen)

    assert runs_of(1.0) == 5
    assert runs_of(20.0) == 2  # the second seed does not contradict it


def test_points_of_rows_with_one_label_are_one_curve(system):
    def measure(case):
        D = case.parameters.D
        return {"value": 1, "curves": {"size": ([D], [2 * D], [0.1])}}

    (curve,) = run(system, measure, picture=Picture("D", "size")).evidence["plot"]["curves"]
    assert curve == {"label": "size", "x": [8, 12, 16], "y": [16, 24, 32], "errors": [0.1] * 3}


def test_claims_share_their_runs(system):
    runs = []
    for _ in range(2):
        run(system, lambda case: runs.append(case.run) or {"value": 1}, run=flow_to(10.0))
    assert runs[0] is runs[3]


def test_the_checks_of_a_module_are_found_by_the_claims_they_are_of():
    from dynamics.verdicts.positional_attention import phases

    assert "Lemma D.2" in checks_of(phases)
