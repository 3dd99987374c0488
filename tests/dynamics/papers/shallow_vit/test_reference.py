"""Runs at the paper's sizes against measurements made by another program, within 10 %."""

import numpy as np
import pytest

import dynamics

pytestmark = pytest.mark.long


def _ends(system, eta, steps, seeds=(0, 1, 2), samples=None, **given):
    """Steps to zero loss and attention to relevant tokens at the end, means over seeds."""
    found = []
    for seed in seeds:
        problem = system.ReducedPopulation(system.Parameters(**given), samples=samples, seed=seed)
        run = dynamics.descend(problem, eta, steps, record=steps)
        found.append((run.events["t_zero"].step, run["relevant"][-1]))
    return np.mean(found, axis=0)


RUNS = [
    ({}, None, (74, 0.619)),
    ({"margin": 1000**0.5}, None, (150, 0.895)),
    ({"output_weights": "per_position"}, 40, (847, 0.813)),
    ({"output_weights": "per_position", "L": 100}, 40, (1327, 0.870)),
    ({"M": 20, "d": 20}, None, (None, 0.637)),
    ({"M": 10, "d": 20, "margin": 1000**0.5}, None, (None, 0.898)),
]


@pytest.mark.parametrize(("given", "samples", "expected"), RUNS)
def test_attention_where_training_stops(system, given, samples, expected):
    steps, mass = _ends(system, 0.1, 3000, samples=samples, **given)
    assert mass == pytest.approx(expected[1], rel=0.1)
    if expected[0] is not None:
        assert steps == pytest.approx(expected[0], rel=0.1)


def test_iterations_go_with_the_difference_of_the_shares(system):
    """Figure 2: eta T = 3.5 / (alpha_* - alpha_#), whatever alpha_# is."""
    for confusion in (0.0, 0.2):
        times = []
        for share in (0.1, 0.2, 0.4):
            given = {"L": 100, "alpha_star": share, "alpha_confusion": confusion * share}
            times.append(0.05 * _ends(system, 0.05, 4000, **given)[0] * share * (1 - confusion))
        assert times == pytest.approx([3.5] * 3, rel=0.1)
