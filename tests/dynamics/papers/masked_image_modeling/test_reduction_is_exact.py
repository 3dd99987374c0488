"""The reduction against brute force: the acceptance runs, and what follows from them."""

import numpy as np
import pytest

import dynamics


def event_steps(events):
    return {name: event.step for name, event in events.items()}


def agree(result, bound=1e-12):
    assert max(result.deviation.values()) < bound
    assert event_steps(result.events["reduced"]) == event_steps(result.events["full"])
    assert result.full["dead"].max() < bound
    for name in set(result.full.observables) & set(result.reduced.observables):
        one, two = result.full[name], result.reduced[name]
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-11, err_msg=name)


def test_t1_over_3000_steps(system, crossed):
    """Section 7 (a): 44 scalars, in a random basis."""
    parameters = crossed(masked=4)
    reduced, full = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    assert reduced.layout.size == 44
    result = dynamics.compare(reduced, full, eta=2.0, steps=3000)
    agree(result)
    assert result.full["risk"][-1] == pytest.approx(0.4586236549702, abs=5e-13)
    assert result.reduced["risk"][-1] == pytest.approx(0.4586236549702, abs=5e-13)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["counts", "contour"])
@pytest.mark.parametrize("given", [{"masked": 4}, {"masked": 3, "z": "0.7,1.3", "odds": "0.4,0.6"}])
def test_both_expectations_over_3000_steps(system, crossed, kind, given):
    """Section 7 (a), T1 and T2."""
    parameters = crossed(**given)
    reduced = system.ReducedPopulation(parameters, kind)
    agree(dynamics.compare(reduced, system.FullPopulation(parameters), eta=2.0, steps=3000))


def test_random_latents_and_the_contour(system, crossed):
    parameters = crossed(masked=3, z="0.7,1.3", odds="0.4,0.6")
    reduced = system.ReducedPopulation(parameters, "contour")
    agree(dynamics.compare(reduced, system.FullPopulation(parameters), eta=2.0, steps=100))


def test_full_gradient_descent_sees_the_phases(system):
    """Section 7 (a'): two phases at (8, 2), one at (4, 4)."""
    default_run = system.default_runs["compare"]
    parameters = system.Parameters(**default_run.parameters)
    problems = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    result = dynamics.compare(*problems, default_run.eta, default_run.steps)
    agree(result)
    assert result.full["rho0"][0] == pytest.approx(1.99758, abs=5e-6)
    assert result.full.events["E2"].step == 13
    assert result.full["risk"][-1] == pytest.approx(0.0917977, abs=5e-8)
    assert result.full["floor"][-1] == pytest.approx(1 / 11, rel=1e-12)
    one_phase = system.Parameters(P=12, C_global=4, C_local=4, masked=3)
    problems = system.ReducedPopulation(one_phase), system.FullPopulation(one_phase)
    result = dynamics.compare(*problems, 1.0, 500)
    agree(result)
    assert result.full.events["E2"].step == 0
    assert not result.full.events["E0"]
    assert result.full["rho"].max() < 1


def test_a_wrong_gradient_is_seen(system):
    """The comparison can fail: another number of masked patches leaves the full run."""
    parameters = system.Parameters(P=8, C_global=4, C_local=2, masked=3)
    wrong = system.ReducedPopulation(system.Parameters(P=8, C_global=4, C_local=2, masked=4))
    wrong.parameters = parameters
    result = dynamics.compare(wrong, system.FullPopulation(parameters), eta=1.0, steps=50)
    assert max(result.deviation.values()) > 1e-3


def test_a_small_grid_of_two_clusters_is_reduced_exactly(system):
    parameters = system.Parameters(
        family="two_cluster_grid", b11=1, b10=2, C_local=2, T=1, masked=4
    )
    full = system.FullPopulation(parameters)
    agree(dynamics.compare(system.ReducedPopulation(parameters), full, eta=2.0, steps=200))
    contour = system.ReducedPopulation(parameters, "contour")
    agree(dynamics.compare(contour, full, eta=2.0, steps=100))
