"""Each rule has a case here that fails without it."""

from math import comb, nan

import numpy as np
import pytest

import dynamics
from dynamics.verdicts.claim import claim as measured_by
from dynamics.verdicts.findings import Finding, Protocol, Undecided
from dynamics.verdicts.rules import applied, growth
from dynamics.verdicts.verify import checks
from dynamics.verdicts.wording import counted, in_percent, listed, share_of
from theory.claims import Claim

SYSTEMS = ("positional_attention", "masked_image_modeling", "shallow_vit")


def claim(**changed):
    return Claim("Lemma", "a statement", "a hypothesis", "an observation", **changed)


READ = {"reading": "mean"}


def finding(holds=False, relation="<=", measured=2.0, bound=1.0, **changed):
    return Finding(holds, "time", measured, bound, "measured", relation=relation, **changed)


def test_the_protocol_of_a_check_is_screened_like_the_sizes_of_a_user(system):
    def many(law):
        if law.D < 100:
            raise Undecided("too few patches: needs D near 100")

    @measured_by("A claim", "D", ">", 0.0, require=many, laws=({"D": 16, "C": 4},))
    def check(case):
        return {"value": case.parameters.D}

    for law in (None, system.Parameters(D=16, C=4)):
        small = check(system, Protocol(law))
        assert small.holds is None
        assert "too few patches: needs D near 100" in small.reason
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


@pytest.mark.parametrize(
    ("relation", "measured", "holds"),
    [("<=", 0.5, True), ("<", 0.5, True), (">=", 2.0, True),
     ("<=", 2.0, False), (">=", 0.5, False), ("==", 1.0, False)],
)  # fmt: skip
def test_better_than_a_bound_does_not_contradict_it_and_worse_does(relation, measured, holds):
    found = finding(relation=relation, measured=measured)
    assert applied(claim(one_sided=True), found).holds is holds
    assert applied(claim(), found).holds is False


@pytest.mark.parametrize(
    ("said", "seen", "word"),
    [
        ({"recalled": True}, {}, "not decidable without the lost formula, as recalled here"),
        ({}, {"single": ("time",)}, "not decidable to this time"),
        ({}, {"single": ("step size",)}, "not decidable at this step size"),
        ({}, {"single": ("seed", "time")}, "not decidable with this seed and to this time"),
        ({}, {"holds": True, "single": ("time",)}, "holds"),
        (READ, {"holds": True}, "holds, as read here"),
        ({"recalled": True} | READ, {"holds": True}, "holds, as recalled and read here"),
    ],
)
def test_what_was_lost_or_tried_only_once_is_what_is_missing(said, seen, word):
    made = claim(**said)
    verdict = dynamics.Verdict(made, applied(made, finding(**seen)))
    assert verdict.word == word
    if "single" in seen:
        assert f"one {seen['single'][0]}" in verdict.finding.reason
        assert verdict.holds or verdict.finding.missing == seen["single"]


@pytest.mark.parametrize(
    ("said", "literal", "holds"),
    [
        ({}, finding(False), False),
        ({}, finding(False, single=("seed",)), None),
        ({"recalled": True}, finding(False), None),
        ({}, None, None),
    ],
)
def test_literal_words_stand_beside_a_reading_and_follow_the_rules(said, literal, holds):
    read = claim(reading="off the diagonal", **said)
    document = dynamics.Verdict(read, applied(read, finding(True, literal=literal))).document()
    assert document["reading"] == "off the diagonal"
    assert "off the diagonal" in document["evidence"]["reason"]
    assert document["literal"]["holds"] is holds
    assert ("are not measured" in str(document["literal"])) is (literal is None)
    assert "literal" not in dynamics.Verdict(claim(), finding()).document()


SIZES = np.array([8.0, 16.0, 32.0, 64.0])


@pytest.mark.parametrize(
    ("values", "claimed", "options", "holds"),
    [
        (SIZES**0.26, 0.25, {}, True),
        (SIZES**0.22, 0.25, {}, False),
        (SIZES**0.1, 0.0, {}, False),
        (1e6 * SIZES**1.05, 1.0, {}, True),  # a factor hides nothing
        (SIZES**1.15, 1.0, {}, False),
        (SIZES + 3 * np.sqrt(SIZES), 1.0, {}, None),  # comes nearer
        (SIZES * (1 + 0.2 * SIZES), 1.0, {}, False),  # goes away
        (SIZES, 2.0, {"upper": True}, True),
        (SIZES**3, 2.0, {"upper": True}, False),
        (SIZES * np.array([1.0, 1.5, 0.7, 1.05]), 1.0, {}, None),  # an interval that reaches far
        (SIZES**1.12, 1.0, {"errors": np.full(4, 0.01)}, None),  # or into the tenth
        (SIZES**1.6, 2.0, {"errors": np.full(4, 0.05)}, False),
        (SIZES**1.6, 2.0, {"errors": np.full(4, 0.5)}, None),
        (SIZES[:2], 1.0, {}, None),
    ],
)
def test_growth_is_decided_by_its_interval_and_its_corrections(values, claimed, options, holds):
    assert growth(SIZES[: len(values)], values, claimed, **options).holds is holds


@pytest.mark.parametrize(("count", "number"), [(17, 24), (0, 200), (27, 200), (5, 5)])
def test_the_interval_of_a_share_is_what_two_tails_of_the_binomial_law_leave(count, number):
    """Each end of Clopper and Pearson's interval makes what was seen 2.5 % likely, or is 0 or 1."""
    share, low, high = share_of(count, number)
    assert share == count / number

    def tail(chance, numbers):
        return sum(comb(number, k) * chance**k * (1 - chance) ** (number - k) for k in numbers)

    at_least, at_most = range(count, number + 1), range(count + 1)
    assert tail(low, at_least) == pytest.approx(0.025) if count else low == 0
    assert tail(high, at_most) == pytest.approx(0.025) if count < number else high == 1


def test_numbers_of_a_reason():
    assert listed([1.23456, nan]) == "1.23, not seen"
    assert in_percent(17, 24) == "71 % (95 %: 49 to 87)"
    assert in_percent(0, 200) == "0 % (95 %: 0 to 1.8)"
    assert [counted(k, "seed") for k in (0, 1, 1200)] == ["0 seeds", "1 seed", "1,200 seeds"]
