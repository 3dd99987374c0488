"""Runs at the sizes of the paper's figures: where they stop, what noise and removal do to them.

The expected numbers were measured once with another implementation, and other random numbers.
"""

import numpy as np
import pytest

import dynamics
from dynamics.papers.shallow_vit.empirical import FullEmpirical
from dynamics.papers.shallow_vit.parameters import Parameters
from dynamics.papers.shallow_vit.problems import ReducedPopulation

pytestmark = pytest.mark.long

ETA = 0.1


def end(problem, steps):
    """The step of zero training loss, and the observables there."""
    run = dynamics.descend(problem, ETA, steps, record=steps)
    return run.events["t_zero"].step, problem.observables(run.final_state)


@pytest.mark.parametrize("batch", [None, 20])
@pytest.mark.parametrize(
    ("margin", "confusion", "steps", "mass"),
    [(1.0, 0.05, 74, 0.619), (1000**0.5, 0.05, 150, 0.895), (1000**0.5, 0.0, None, 0.991)],
)
def test_attention_concentrates_as_far_as_the_margin_lets_it(margin, confusion, steps, mass, batch):
    parameters = Parameters(margin=margin, alpha_confusion=confusion)
    problem = FullEmpirical(parameters, 200, batch=batch)
    step, seen = end(problem, 260)
    assert seen["relevant"] == pytest.approx(mass, rel=0.1)
    assert steps is None or step == pytest.approx(steps, rel=0.1)
    assert seen["test_loss"] < 1e-3
    assert seen["test_error"] == 0.0


def scores(problem, states):
    """B at all states, shape (records, M, M)."""
    keys, queries = (problem.orbit_values(states)[name] for name in ("K", "Q"))
    return np.einsum("tdi,tdj->tij", keys, queries)


def test_noise_leads_away_from_training_on_patterns_by_its_size():
    """Of B, about as far as the noise; a few steps later to zero loss, many at 0.2."""
    away, stops = [], []
    clean = Parameters(noise=0.0)
    without = dynamics.descend(FullEmpirical(clean, 20), ETA, 120, record=1)
    patterns = dynamics.descend(ReducedPopulation(clean, samples=20), ETA, 120, record=1)
    assert without.events["t_zero"].step == patterns.events["t_zero"].step
    for noise in (1e-4, 0.01, 0.1, 0.2):
        problem = FullEmpirical(Parameters(noise=noise), 20)
        run = dynamics.descend(problem, ETA, 120, record=1)
        common = min(len(run.states), len(without.states))
        distance = scores(problem, run.states[:common]) - scores(problem, without.states[:common])
        away.append(abs(distance).max())
        stops.append(run.events["t_zero"].step)
    assert 1e-5 < away[0] < 1e-3
    assert 0.005 < away[1] < 0.05
    assert away == sorted(away)
    first = without.events["t_zero"].step
    assert stops == pytest.approx([first, first + 1, first + 7, first + 20], abs=6)


def test_removing_irrelevant_or_noisy_tokens_helps_and_random_ones_does_not():
    parameters = Parameters(
        alpha_star=0.3, alpha_confusion=0.1, m=300, data="fixed_disc", margin=1.0
    )
    found = {}
    for kind in ("random", "irrelevant", "noisiest"):
        for removed in (0.2, 0.5):
            losses = []
            for seed in range(10):
                options = {"sparsify": kind, "removed": removed, "noisy_share": 0.2}
                problem = FullEmpirical(parameters, 20, seed, **options)
                run = dynamics.descend(problem, 0.2, 400, record=400)
                losses.append(run["test_loss"][-1])
            found[kind, removed] = np.mean(losses)
    expected = {0.2: (0.59, 0.37), 0.5: (0.77, 0.19)}
    for removed, numbers in expected.items():
        for kind, number in zip(("random", "irrelevant"), numbers, strict=True):
            assert found[kind, removed] == pytest.approx(number, rel=0.25)
        assert found["noisiest", removed] < 0.1
