"""What training makes of 1e-15 of its start decides no verdict."""

import dataclasses

import numpy as np
import pytest

import dynamics
from dynamics.verdicts.claim import claim
from dynamics.verdicts.findings import Protocol
from dynamics.verdicts.rounding import PERTURBATION, perturbed, perturbed_system, screened
from dynamics.verdicts.verify import checks

SYSTEMS = ("positional_attention", "masked_image_modeling", "shallow_vit")


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

    @claim("Distance", "distance", "<=", bound, **data)
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
    finding = check(system, Protocol())
    assert finding.holds is True
    other = screened(finding, check, system, Protocol())
    assert (other.holds, other.missing) == (None, ("precision",))
    none = dataclasses.replace(finding, holds=False, measured=np.nan)
    assert screened(none, lambda *_: none, system, Protocol()) is none


@pytest.mark.long
@pytest.mark.parametrize("name", SYSTEMS)
def test_no_verdict_at_the_protocol_of_its_check_rests_on_rounding(name):
    system = dynamics.load_system(name)
    turned = []
    for source, check in checks(system).items():
        if check.near_limit:
            continue
        finding = check(system, Protocol())
        if finding.holds is not None:
            other = screened(finding, check, system, Protocol())
            turned += [(source, other.reason)] * (other.holds is None)
    assert turned == []


def test_perturbed_problems_train_and_are_shared(system):
    one, two = perturbed_system(system, 1), perturbed_system(system, 1)
    assert one.ReducedPopulation is two.ReducedPopulation
    run = dynamics.descend(one.ReducedPopulation(one.Parameters(D=8, C=2)), 0.02, 50)
    calm = dynamics.descend(system.ReducedPopulation(system.Parameters(D=8, C=2)), 0.02, 50)
    assert 0 < np.abs(run.final_state - calm.final_state).max() < 1e-14
