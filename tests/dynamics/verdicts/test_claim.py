"""The runner of claims: each rule of it has a case here that fails without it."""

from math import isnan, nan

import numpy as np
import pytest

from dynamics.verdicts.cases import flow_to
from dynamics.verdicts.claim import Also, Growth, Literal, Picture, claim
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


@pytest.mark.parametrize(
    ("data", "word", "measured"),
    [
        ({"in_part": True}, "holds in part", 16),
        ({"in_part": True, "laws": LAWS[:2]}, "holds", 12),
        ({"in_part": True, "laws": LAWS[2:]}, "does not hold here", 32),
        ({"exists": True}, "holds", 8),
        ({"exists": True, "laws": LAWS[2:]}, "does not hold here", 16),
    ],
)
def test_one_law_decides_otherwise_of_an_asymptotic_hypothesis_and_of_existence(
    system, data, word, measured
):
    finding = run(system, **data)
    assert (finding.word, finding.measured) == (word, measured)


def test_parameters_of_a_user_replace_the_grid_and_images_have_none(system):
    user = Protocol(system.Parameters(D=12, C=3))
    finding = run(system, protocol=user)
    assert (finding.holds, finding.evidence["parameters"]) == (True, {"D": 12, "C": 3, "q": 0.5})
    finding = run(system, lambda case: {"value": 1.0, "holds": case.parameters is None}, laws=None)
    assert (finding.holds, finding.evidence["parameters"]) == (True, {})
    finding = run(system, laws=None, protocol=user)
    assert finding.holds is None
    assert "without Parameters" in finding.reason


def few(case_or_law, missing="law"):
    law = getattr(case_or_law, "parameters", case_or_law)
    if law.D > 12:
        raise Undecided("too many patches", missing)
    return {"value": law.D}


def test_a_law_outside_of_the_hypothesis_decides_nothing(system):
    finding = run(system, require=few)
    assert (finding.holds, finding.word) == (None, "not decidable under this law")
    assert "not decidable at D=16" in finding.reason
    assert "too many patches" in finding.reason


@pytest.mark.parametrize(
    ("measure", "holds", "missing", "measured"),
    [
        (lambda case: few(case, "time"), None, ("time",), nan),
        (lambda _: {"value": 1.0, "holds": None}, None, ("size",), 1.0),
        (lambda _: {"value": 16.0, "open": "time"}, None, ("time",), 16.0),
        (lambda _: {"value": 1.0, "other": 24.0}, False, ("size",), 24.0),
    ],
)
def test_every_requirement_is_to_be_measured_and_met(system, measure, holds, missing, measured):
    also = (Also("other", "<", 20.0, "another"),)
    finding = run(system, lambda case: {"other": 0.0} | measure(case), also=also, laws=LAWS[2:3])
    assert (finding.holds, finding.missing) == (holds, missing)
    assert finding.measured == pytest.approx(measured, nan_ok=True)
    assert finding.quantity == ("patches" if holds is None else "another")


def test_a_contradiction_is_measured_again_and_stops_where_it_is_not_repeated(system):
    seen = []

    def measure(case):
        seen.append((case.repeat.eta_factor, case.seed, case.steps(100)))
        return {"value": 20.0 if case.repeat.eta_factor > 0.5 else 1.0}

    finding = run(system, measure, varies=("step size", "seed"), laws=LAWS[:1])
    assert seen == [(1.0, 0, 100), (0.5, 0, 200)]
    assert finding.single == ("step size", "seed")
    assert "repeated with eta times 0.5: 1" in finding.reason
    for again, thorough, single in ((True, False, ()), ("thorough", False, ("seed",)),
                                    ("thorough", True, ())):  # fmt: skip
        finding = run(
            system, lambda case: {"value": 20.0}, varies=("seed",), laws=LAWS[:1],
            protocol=Protocol(thorough=thorough), again=again,
        )  # fmt: skip
        assert (finding.holds, finding.single) == (False, single)


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
        few(case, "time")
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


def test_a_value_that_is_no_number_is_infinitely_far_from_its_bound(system):
    assert run(system, lambda case: {"value": nan}).measured == np.inf
    assert isnan(run(system, lambda case: {"value": nan, "open": "time"}).measured)


def test_curves_and_levels_become_the_picture(system):
    def measure(case):
        D = case.parameters.D
        curves = {case.label: ([1, 2], [3, 4]), "size": ([D], [2 * D], [0.1])}
        return {"value": 1, "curves": curves}

    plot = run(system, measure, picture=Picture("step", "size", {"limit": 1.0})).evidence["plot"]
    assert {"label": "D=12", "x": [1, 2], "y": [3, 4]} in plot["curves"]
    size = {"label": "size", "x": [8, 12, 16], "y": [16, 24, 32], "errors": [0.1] * 3}
    assert size in plot["curves"]
    assert plot["lines"] == [{"label": "limit", "y": 1.0}]
    assert plot["parameters"] == {"C": 2, "q": 0.5}


@pytest.mark.parametrize(("value", "runs"), [(1.0, 5), (20.0, 2)])
def test_rounding_is_looked_for_only_where_something_is_decided(system, value, runs):
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
