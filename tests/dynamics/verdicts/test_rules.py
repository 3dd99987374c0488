"""Each rule has a case here that fails without it."""

from math import nan

import numpy as np
import pytest

import dynamics
from dynamics.verdicts.claim import claim as measured_by
from dynamics.verdicts.findings import Finding, Protocol, Undecided
from dynamics.verdicts.rules import applied, growth, repeats
from dynamics.verdicts.verify import checks
from theory.claims import Claim

SYSTEMS = ("positional_attention", "masked_image_modeling", "shallow_vit")


def claim(**changed):
    return Claim("Lemma", "a statement", "a hypothesis", "an observation", **changed)


def finding(holds=False, relation="<=", measured=2.0, bound=1.0, **changed):
    return Finding(holds, "time", measured, bound, "measured", relation=relation, **changed)


# 1. the hypothesis


def test_the_protocol_of_a_check_is_screened_like_the_sizes_of_a_user(system):
    def many(law):
        if law.D < 100:
            raise Undecided("too few patches: needs D near 100")

    @measured_by("A claim", "D", ">", 0.0, require=many, laws=({"D": 16, "C": 4},))
    def check(case):
        return {"value": case.parameters.D}

    small = check(system, Protocol())
    assert small.holds is None
    assert "too few patches: needs D near 100" in small.reason
    assert check(system, Protocol(system.Parameters(D=16, C=4))).holds is None
    assert check(system, Protocol(system.Parameters(D=196, C=14))).holds


@pytest.mark.parametrize("name", SYSTEMS)
def test_no_protocol_lies_outside_of_its_hypothesis(name):
    system, outside = dynamics.load_system(name), set()
    for source, check in checks(system).items():
        for law in check.laws or ():
            try:
                if check.require is not None:
                    check.require(system.Parameters(**law))
            except Undecided:
                outside.add(source)
    assert outside == set()


# 2. bounds and sufficient conditions


@pytest.mark.parametrize(("relation", "measured"), [("<=", 0.5), ("<", 0.5), (">=", 2.0)])
def test_better_than_a_bound_does_not_contradict_it(relation, measured):
    better = finding(relation=relation, measured=measured)
    assert applied(claim(one_sided=True), better).holds is True
    assert applied(claim(), better).holds is False


@pytest.mark.parametrize(("relation", "measured"), [("<=", 2.0), (">=", 0.5), ("==", 1.0)])
def test_worse_than_a_bound_contradicts_it(relation, measured):
    assert applied(claim(one_sided=True), finding(False, relation, measured)).holds is False


# 3. formulas that are recalled


def test_a_formula_that_was_lost_is_not_contradicted():
    lost = claim(recalled=True)
    verdict = dynamics.Verdict(lost, applied(lost, finding()))
    assert verdict.holds is None
    assert verdict.word == "not decidable without the lost formula, as recalled here"
    assert applied(lost, finding(holds=True)).holds is True


# what is missing


@pytest.mark.parametrize(
    ("single", "word"),
    [
        (("time",), "not decidable to this time"),
        (("step size",), "not decidable at this step size"),
        (("seed", "time"), "not decidable with this seed and to this time"),
    ],
)
def test_what_was_tried_only_once_is_what_is_missing(single, word):
    verdict = dynamics.Verdict(claim(), applied(claim(), finding(single=single)))
    assert (verdict.word, verdict.document()["missing"]) == (word, list(single))


def test_a_check_says_whether_the_law_the_time_or_the_size_is_missing(system):
    words = {}
    for source, changed in [("Theorem 3.1", {"random_sets": "mixed"}), ("Zero error", {})]:
        (verdict,) = dynamics.verify(system, system.Parameters(D=8, C=2, **changed), [source])
        words[source] = verdict.document()["verdict"]
    assert set(words.values()) == {"not decidable under this law"}


def test_of_literal_words_that_nothing_was_measured_of_a_measurement_is_missing():
    read = claim(reading="off the diagonal")
    literal = dynamics.Verdict(read, applied(read, finding(True))).document()["literal"]
    assert literal["verdict"] == "not decidable without a measurement"
    parted = applied(read, finding(None, in_part=True))
    assert parted.literal.word == "not decidable without a measurement"


# 4. readings


def test_a_reading_is_named_and_the_literal_words_stand_beside_it():
    read = claim(reading="off the diagonal")
    verdict = dynamics.Verdict(read, applied(read, finding(True, literal=finding(False))))
    document = verdict.document()
    assert document["verdict"] == "holds, as read here"
    assert document["reading"] == "off the diagonal"
    assert "off the diagonal" in document["evidence"]["reason"]
    assert document["literal"]["holds"] is False
    assert (document["literal"]["relation"], document["literal"]["bound"]) == ("<=", 1.0)
    assert "literal" not in dynamics.Verdict(claim(), finding()).document()


def test_where_nothing_is_measured_of_the_literal_words_it_is_said():
    read = claim(reading="off the diagonal", recalled=True)
    verdict = dynamics.Verdict(read, applied(read, finding(True)))
    assert verdict.word == "holds, as recalled and read here"
    assert verdict.finding.literal.holds is None
    assert "nothing is measured" in verdict.finding.literal.reason


def test_literal_words_follow_the_rules_too():
    once = finding(False, single=("seed",))
    read = applied(claim(reading="off the diagonal"), finding(True, literal=once))
    assert read.literal.holds is None
    assert "one seed" in read.literal.reason
    lost = claim(reading="off the diagonal", recalled=True)
    assert applied(lost, finding(True, literal=finding(False))).literal.holds is None
    again = finding(True, literal=finding(False))
    assert applied(claim(reading="mean"), again).literal.holds is False


# 5. one step size, one seed, one time


def test_what_was_seen_once_says_so_and_contradicts_nothing():
    once = applied(claim(), finding(single=("step size", "seed")))
    assert once.holds is None
    assert "one step size and one seed" in once.reason
    assert "a quarter of the step size, three seeds" in once.reason
    held = applied(claim(), finding(holds=True, single=("time",)))
    assert held.holds is True
    assert "one time" in held.reason
    assert applied(claim(), finding(measured=nan, single=("time",))).reason == "measured"


def test_repeats_are_of_half_and_a_quarter_of_the_step_of_three_seeds_and_later():
    tried = list(repeats("step size", "seed", "time"))
    assert {repeat.eta_factor for repeat in tried} == {1.0, 0.5, 0.25}
    assert {repeat.seed for repeat in tried} == {0, 1, 2}
    assert max(repeat.time_factor for repeat in tried) == 2.0


# 6. growth

SIZES = np.array([8.0, 16.0, 32.0, 64.0])


@pytest.mark.parametrize(
    ("measured", "claimed", "holds"),
    [
        (0.25, 0.25, True),
        (0.26, 0.25, True),
        (0.22, 0.25, False),
        (0.0, 0.0, True),
        (2.0, 0.0, False),
        (0.1, 0.0, False),
        (1.05, 1.0, True),
        (1.15, 1.0, False),
    ],
)
def test_an_exponent_is_held_to_a_tenth(measured, claimed, holds):
    assert growth(SIZES, 7.0 * SIZES**measured, claimed).holds is holds


def test_a_factor_hides_nothing_and_corrections_that_vanish_decide_nothing():
    assert growth(SIZES, 1e6 * SIZES, 1.0).holds is True
    assert growth(SIZES, SIZES + 3 * np.sqrt(SIZES), 1.0).holds is None  # comes nearer
    assert growth(SIZES, SIZES * (1 + 0.2 * SIZES), 1.0).holds is False  # goes away


def test_an_upper_bound_holds_where_growth_is_slower():
    assert growth(SIZES, SIZES, 2.0, upper=True).holds is True
    assert growth(SIZES, SIZES, 2.0).holds is False
    assert growth(SIZES, SIZES**3, 2.0, upper=True).holds is False


def test_an_interval_that_reaches_far_decides_nothing():
    values = SIZES * np.array([1.0, 1.5, 0.7, 1.05])
    assert abs(growth(SIZES, values, 1.0).fit.exponent - 1.0) < 0.1
    assert growth(SIZES, values, 1.0).holds is None


def test_an_interval_that_reaches_into_the_tenth_contradicts_nothing():
    wide = growth(SIZES, SIZES**1.12, 1.0, errors=np.full(4, 0.01))
    assert wide.fit.intervals[0][0] < 1.1 < wide.fit.exponent
    assert wide.holds is None


def test_errors_of_the_values_leave_an_exponent_undecided():
    assert growth(SIZES, SIZES**1.6, 2.0, errors=np.full(4, 0.05)).holds is False
    assert growth(SIZES, SIZES**1.6, 2.0, errors=np.full(4, 0.5)).holds is None
    assert growth(SIZES[:2], SIZES[:2], 1.0).holds is None
