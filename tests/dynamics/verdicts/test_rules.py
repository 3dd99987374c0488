"""Each rule has a case here that fails without it; rounding of a start decides no verdict."""

import dataclasses
from math import comb, nan

import numpy as np
import pytest

import dynamics
from dynamics.verdicts.claim import claim as measured_by
from dynamics.verdicts.findings import Finding, Protocol, Undecided
from dynamics.verdicts.rounding import PERTURBATION, perturbed, perturbed_system, screened
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


def test_a_perturbation_moves_every_entry_by_about_1e_15():
    start = np.array([3.0, -2e-5, 0.0])
    assert (perturbed(start) != start).all()
    moved = perturbed(start)[:2] / start[:2] - 1
    np.testing.assert_allclose(np.abs(moved), PERTURBATION, 0.2)
    assert abs(perturbed(start)[2]) == 3 * PERTURBATION
    assert np.abs(perturbed(np.zeros(4))).max() == PERTURBATION
    assert (perturbed(start, 1) != perturbed(start, 2)).any()


def distance(system, amplified, bound=1e9, **data):
    """A check of the distance between the start of the system and its own one, amplified."""
    first = system.ReducedPopulation(system.Parameters()).initial_state

    @measured_by("Distance", "distance", "<=", bound, **data)
    def check(case):
        state = case.system.ReducedPopulation(system.Parameters()).initial_state
        return {"value": amplified * float(np.abs(state - first).max())}

    return check


@pytest.mark.parametrize(("amplified", "holds"), [(1.0, True), (1e18, None)])
def test_what_rests_on_rounding_decides_nothing(system, amplified, holds):
    check = distance(system, amplified, varies=("seed",))
    changed = dataclasses.replace(
        system, claims=(dataclasses.replace(system.claims[0], check=check),)
    )
    claims = [system.claims[0].source]
    (own,) = dynamics.verify(changed, claims=claims)
    (users,) = dynamics.verify(changed, system.Parameters(), claims)
    assert own.holds is True
    assert users.holds is holds
    assert ("sensitive to rounding" in users.evidence["reason"]) is (holds is None)
    near = distance(system, amplified, varies=("seed",), near_limit=True)
    assert near(system, Protocol()).holds is holds
    several = distance(system, amplified, near_limit=True)  # rests on no single run
    assert several(system, Protocol()).holds is True


def test_a_verdict_that_turns_decides_nothing_and_one_without_a_value_is_left(system):
    check = distance(system, 1.0, bound=0.0)
    first = check(system, Protocol())
    assert first.holds is True
    other = screened(first, check, system, Protocol())
    assert (other.holds, other.missing) == (None, ("precision",))
    none = dataclasses.replace(first, holds=False, measured=np.nan)
    assert screened(none, lambda *_: none, system, Protocol()) is none


@pytest.mark.long
@pytest.mark.parametrize("name", SYSTEMS)
def test_no_verdict_at_the_protocol_of_its_check_rests_on_rounding(name):
    system = dynamics.load_system(name)
    turned = []
    for source, check in checks(system).items():
        if check.near_limit:
            continue
        found = check(system, Protocol())
        if found.holds is not None:
            other = screened(found, check, system, Protocol())
            turned += [(source, other.reason)] * (other.holds is None)
    assert turned == []


def test_perturbed_problems_train_and_are_shared(system):
    one, two = perturbed_system(system, 1), perturbed_system(system, 1)
    assert one.ReducedPopulation is two.ReducedPopulation
    run = dynamics.descend(one.ReducedPopulation(one.Parameters(D=8, C=2)), 0.02, 50)
    calm = dynamics.descend(system.ReducedPopulation(system.Parameters(D=8, C=2)), 0.02, 50)
    assert 0 < np.abs(run.final_state - calm.final_state).max() < 1e-14
