"""The reduction against brute force: the acceptance runs, and what follows from them."""

import dataclasses

import numpy as np
import pytest

import dynamics
from theory.symmetry import Partition


@pytest.mark.parametrize(("D", "C", "q"), [(8, 2, 0.5), (9, 3, 0.6), (8, 4, 0.5)])
def test_reduced_equals_full_over_3000_steps(system, D, C, q):
    parameters = system.Parameters(D=D, C=C, q=q)
    reduced, full = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    result = dynamics.compare(reduced, full, eta=0.02, steps=3000, record=1)
    assert len(result.time) == 3001
    assert max(result.deviation.values()) < 1e-12
    for name, event in result.events["reduced"].items():
        assert event.step == result.events["full"][name].step, name
    diagonal = np.diagonal(result.full["A"], axis1=1, axis2=2)
    assert (diagonal == parameters.beta).all()


def test_all_events_agree(system):
    parameters = system.Parameters(**system.default_runs["compare"].parameters)
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(3), 3))
    full = system.FullPopulation(parameters, Partition(labels))
    reduced = system.ReducedPopulation(parameters)
    result = dynamics.compare(reduced, full, eta=0.1, steps=9000)
    for name, first in result.events["reduced"].items():
        assert first, name
        assert first.step == result.events["full"][name].step, name
    assert set(result.events["full"]) >= {"T0", "T1", "event_III"}
    assert max(result.deviation.values()) < 1e-12


def test_a_wrong_recursion_is_seen(system):
    parameters = system.Parameters(D=8, C=2)
    wrong = system.ReducedPopulation(dataclasses.replace(parameters, beta=1.01))
    full = system.FullPopulation(parameters)
    with pytest.raises(ValueError, match="different parameters"):
        dynamics.compare(wrong, full, 0.02, 100)
    wrong.parameters = parameters
    assert dynamics.compare(wrong, full, 0.02, 100).deviation["alpha"] > 1e-6


def test_lemma_4_3_can_be_falsified(system):
    """Gamma falls although gamma > rho: polylog_gamma <= 0 (section 5 of the specification)."""
    parameters = system.Parameters(D=9, C=3, q=0.6, beta=0.7)
    run = dynamics.descend(system.ReducedPopulation(parameters), eta=0.02, steps=1500)
    alpha, gamma, rho = run.final_state
    assert gamma == pytest.approx(-0.00275, abs=5e-6)
    assert gamma > rho
    assert run["polylog_gamma"].min() < 0
