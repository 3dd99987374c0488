"""The runner of claims: each rule of it has a case here that fails without it."""

from math import isnan, nan

import numpy as np
import pytest

from dynamics.verdicts.cases import flow_to
from dynamics.verdicts.claim import Also, Growth, Literal, Picture, checks_of, claim
from dynamics.verdicts.findings import Protocol, Undecided

LAWS = tuple({"D": D, "C": 2} for D in (8, 12, 16, 32))


def run(system, measure=None, protocol=None, **data):
    """Finding of a claim of D <= 12 by default."""
    data = {"laws": LAWS[:3], "shown": ("D", "C", "q")} | data
    check = claim("A claim", "patches", "<=", 12.0, **data)
    measure = measure or (lambda case: {"value": case.parameters.D})
    return check(measure)(system, protocol or Protocol())


def test_one_law_against_its_bound_contradicts_and_the_grid_is_the_evidence(system):
    finding = run(system)
    assert (finding.holds, finding.measured, finding.bound) == (False, 16, 12.0)
    assert finding.reason.startswith("at C=2, q=0.5")
    assert "holds at D=8, 12; not at D=16" in finding.reason
    assert finding.evidence["parameters"] == {"D": [8, 12, 16], "C": 2, "q": 0.5}
    assert [row["value"] for row in finding.evidence["table"]] == [8, 12, 16]


def test_one_law_decides_otherwise_of_an_asymptotic_hypothesis_and_of_existence(system):
    assert run(system, in_part=True).holds is None
    for laws, word in ((3, "holds in part"), (2, "holds")):
        assert run(system, in_part=True, laws=LAWS[:laws]).word == word
    assert run(system, in_part=True, laws=LAWS[2:]).word == "does not hold here"
    finding = run(system, exists=True)
    assert (finding.holds, finding.measured) == (True, 8)
    assert run(system, exists=True, laws=LAWS[2:]).holds is False


def test_parameters_of_a_user_replace_the_grid_and_images_have_none(system):
    user = Protocol(system.Parameters(D=12, C=3))
    finding = run(system, protocol=user)
    assert finding.holds
    assert finding.evidence["parameters"] == {"D": 12, "C": 3, "q": 0.5}
    finding = run(system, lambda case: {"value": 1.0, "holds": case.parameters is None}, laws=None)
    assert (finding.holds, finding.evidence["parameters"]) == (True, {})
    finding = run(system, laws=None, protocol=user)
    assert finding.holds is None
    assert "without Parameters" in finding.reason


def test_a_law_outside_of_the_hypothesis_decides_nothing(system):
    def small(law):
        if law.D > 12:
            raise Undecided("too many patches", "law")

    finding = run(system, require=small)
    assert (finding.holds, finding.word) == (None, "not decidable under this law")
    assert "not decidable at D=16" in finding.reason
    assert "too many patches" in finding.reason


def test_what_was_not_measured_or_is_open_decides_nothing(system):
    def measure(case):
        raise Undecided("no such event", "time")

    finding = run(system, measure, also=(Also("other", "<", 1.0, "another"),))
    assert (finding.holds, finding.missing, finding.quantity) == (None, ("time",), "patches")
    assert isnan(finding.measured)
    finding = run(system, lambda case: {"value": 1.0, "holds": None})
    assert (finding.holds, finding.missing, finding.measured) == (None, ("size",), 1.0)
    finding = run(system, lambda case: {"value": case.parameters.D, "open": "time"})
    assert (finding.word, finding.measured) == ("not decidable to this time", 16)


def test_every_requirement_has_to_be_met(system):
    also = (Also("twice", "<", 20.0, "twice the patches"),)
    measure = lambda case: {"value": 1.0, "twice": 2 * case.parameters.D}  # noqa: E731
    finding = run(system, measure, also=also, laws=LAWS[:2])
    assert (finding.holds, finding.quantity, finding.measured) == (False, "twice the patches", 24)


def test_a_contradiction_is_measured_again_and_stops_where_it_is_not_repeated(system):
    seen = []

    def measure(case):
        seen.append((case.repeat.eta_factor, case.seed, case.steps(100)))
        return {"value": 20.0 if case.repeat.eta_factor > 0.5 else 1.0}

    finding = run(system, measure, varies=("step size", "seed"), laws=LAWS[:1])
    assert seen == [(1.0, 0, 100), (0.5, 0, 200)]
    assert finding.single == ("step size", "seed")
    assert "repeated with eta times 0.5: 1" in finding.reason
    finding = run(system, lambda case: {"value": 20.0}, varies=("seed",), laws=LAWS[:1])
    assert (finding.holds, finding.single) == (False, ())


@pytest.mark.parametrize("thorough", [False, True])
def test_costly_claims_are_measured_again_in_thorough_requests_alone(system, thorough):
    finding = run(
        system, lambda case: {"value": 20.0}, varies=("seed",), laws=LAWS[:1], again="thorough",
        protocol=Protocol(thorough=thorough),
    )  # fmt: skip
    assert ("repeated with" in finding.reason) == thorough
    assert finding.single == (() if thorough else ("seed",))


def test_seeds_are_rows_and_a_share_of_them_has_an_interval(system):
    finding = run(
        system, lambda case: {"value": case.seed, "holds": case.seed < 3}, laws=LAWS[:1],
        seeds=(4, 8), share=True,
    )  # fmt: skip
    assert finding.measured == 0.75
    assert "75 % (95 %: 19 to 99) of 4 cases" in finding.reason
    assert [row["seed"] for row in finding.evidence["table"]] == [0, 1, 2, 3]


@pytest.mark.parametrize(("power", "holds"), [(2.0, True), (1.0, False)])
def test_a_growth_law_is_held_against_its_exponent(system, power, holds):
    measure = lambda case: {"value": case.parameters.D**power}  # noqa: E731
    finding = run(system, measure, growth=Growth("D", 2.0), laws=LAWS)
    assert finding.holds is holds
    assert finding.measured == pytest.approx(power)


def test_a_growth_law_takes_the_errors_of_its_values_and_leaves_out_what_has_none(system):
    """The last value is far off: with a large error it counts little, with none not at all."""

    def square(error):
        def measure(case):
            D, last = case.parameters.D, case.parameters.D == 32
            return {"value": 1.0 if last else D**2.0, "error": error if last else 1e-3}

        growth = Growth("D", 2.0, errors="error")
        return run(system, measure, growth=growth, laws=LAWS[::-1]).measured

    assert square(np.inf) == pytest.approx(2.0)
    assert square(1e-3) < 1.0


def test_a_growth_law_is_that_of_the_rows_that_were_measured(system):
    def measure(case):
        if case.parameters.D > 12:
            raise Undecided("too many patches", "time")
        return {"value": case.parameters.D**2.0, "along": case.parameters.D}

    growth = Growth("along", 2.0)
    finding = run(system, measure, growth=growth)
    assert (finding.holds, finding.missing) == (None, ("time",))
    assert finding.measured == pytest.approx(2.0)
    assert run(system, measure, growth=growth, laws=LAWS[2:3]).holds is None


def test_a_law_of_the_grid_may_stand_for_a_family(system):
    def family(law):
        if law.D < 10:
            raise Undecided("no whole numbers", "law")
        return [system.Parameters(D=law.D, C=2, q=q) for q in (0.5, 0.7)]

    measure = lambda case: {"value": case.parameters.q, "holds": True}  # noqa: E731
    found = run(system, measure, family=family, laws=LAWS[1:2]).evidence["parameters"]
    assert found == {"D": 12, "C": 2, "q": [0.5, 0.7]}
    finding = run(system, measure, family=family)
    assert finding.word == "not decidable under this law"
    assert finding.reason == "no whole numbers"


def test_literal_words_have_a_finding_of_their_own_which_may_need_what_is_not_there(system):
    measure = lambda case: {"value": 1.0, "literal": 2.0}  # noqa: E731
    finding = run(system, measure, literal=Literal("literal", "<=", 1.0, "words", "of {D} patches"))
    assert (finding.holds, finding.literal.holds) == (True, False)
    assert finding.literal.reason == "of 8 patches; of 12 patches; of 16 patches"
    literal = Literal("literal", "<=", 1.0, "words", "", "time")
    finding = run(system, measure, literal=literal)
    assert (finding.literal.holds, finding.literal.missing) == (None, ("time",))
    assert run(system, lambda case: {"value": 1.0, "literal": 1.0}, literal=literal).literal.holds


def test_many_rows_are_told_by_their_extremes(system):
    laws = tuple({"D": 2 * k, "C": 2} for k in range(2, 12))
    finding = run(system, laws=laws, words="{value} patches")
    assert "4 patches (D=4); 22 patches (D=22)" in finding.reason
    assert "10 patches" not in finding.reason


def test_a_value_that_is_no_number_is_infinitely_far_from_its_bound(system):
    assert run(system, lambda case: {"value": nan}).measured == np.inf
    assert isnan(run(system, lambda case: {"value": nan, "open": "time"}).measured)


def test_curves_and_levels_become_the_picture(system):
    """Points of rows with one label are one curve."""
    picture = Picture("step", "size", {"limit": 1.0})
    measure = lambda case: {"value": 1, "curves": {case.label: ([1, 2], [3, 4])}}  # noqa: E731
    plot = run(system, measure, picture=picture).evidence["plot"]
    assert [curve["label"] for curve in plot["curves"]] == ["D=8", "D=12", "D=16"]
    assert plot["lines"] == [{"label": "limit", "y": 1.0}]
    assert plot["parameters"] == {"C": 2, "q": 0.5}

    def measure(case):
        D = case.parameters.D
        return {"value": 1, "curves": {"size": ([D], [2 * D], [0.1])}}

    (curve,) = run(system, measure, picture=picture).evidence["plot"]["curves"]
    assert curve == {"label": "size", "x": [8, 12, 16], "y": [16, 24, 32], "errors": [0.1] * 3}


@pytest.mark.parametrize(("value", "runs"), [(1.0, 5), (20.0, 2)])
def test_rounding_is_looked_for_only_where_something_is_decided(system, value, runs):
    """Five with perturbed starts; two where the second seed does not repeat the first."""
    seen = []

    def measure(case):
        seen.append(case)
        return {"value": value if case.repeat.seed == 0 else 1.0}

    run(system, measure, varies=("seed",), laws=LAWS[:1], near_limit=True)
    assert len(seen) == runs


def test_claims_share_their_runs(system):
    runs = []
    for _ in range(2):
        measure = lambda case: runs.append(case.run) or {"value": 1}  # noqa: E731
        run(system, measure, run=flow_to(1.0), laws=LAWS[:1])
    assert runs[0] is runs[1]


def test_the_checks_of_a_module_are_found_by_the_claims_they_are_of():
    from dynamics.verdicts.positional_attention import phases

    assert "Lemma D.2" in checks_of(phases)
