"""Drivers on own models: batches, empirical runs, stability, groups of learning rates."""

from pathlib import Path

import numpy as np
import pytest

import dynamics
from dynamics.cli import main
from dynamics.loops import Updates

MODELS = Path(__file__).parents[2] / "support/models"


def test_one_batch_of_all_is_no_batch_and_batches_are_dealt_without_gaps():
    system = dynamics.load_system(MODELS / "softmax_icl.py")
    parameters = system.Parameters(K=2, N=3)
    whole, once, parts = (
        system.FullEmpirical(parameters, samples=12, seed=5, omega=0.0, **batch)
        for batch in ({}, {"batch": 12}, {"batch": 4})
    )
    one, same = (dynamics.descend(problem, eta=0.3, steps=30) for problem in (whole, once))
    np.testing.assert_array_equal(one.states, same.states)
    start, slopes = whole.initial_state, []
    for step in range(3):
        state, wide = start.copy(), np.empty((1, len(parts.order_names)))
        buffers = wide, np.array([step]), np.empty((1, start.size))
        assert parts.advance(state, Updates(np.ones(start.size)), step, step + 1, buffers)
        slopes.append(start - state)
    np.testing.assert_allclose(np.mean(slopes, axis=0), whole.gradient(start), atol=1e-15)
    assert np.ptp(slopes, axis=0).max() > 1e-3


def test_empirical_on_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [str(MODELS / "softmax_icl.py"), "--K", "2", "--N", "3", "--full", "empirical"]
    words += ["--samples", "40", "--omega", "0.1", "--eta", "0.5", "--steps", "40", "--out", "x"]
    assert main(["compare", *words, "--seeds", "3", "--seed", "7"]) == 0
    assert capsys.readouterr().err == ""
    found = dynamics.load("x")
    assert [run.settings["seed"] for run in found.fulls] == [7, 8, 9]
    starts = [run.states[0] for run in found.fulls]
    assert len({tuple(start) for start in starts}) == 3
    assert 0.02 < np.std(starts) < 0.3
    assert main(["run", *words, "--batch", "8", "--seed", "8", "--force"]) == 0
    np.testing.assert_array_equal(dynamics.load("x").states[0], starts[1])


@pytest.mark.parametrize("kind", ["ReducedPopulation", "FullPopulation"])
def test_the_stability_limit_is_two_over_the_largest_curvature(kind):
    system = dynamics.load_system("single_location")
    problem = getattr(system, kind)(system.Parameters(L=2))
    state = problem.initial_state + 0.3
    by_hand = np.empty((state.size, state.size))
    for k, step in enumerate(1e-5 * np.eye(state.size)):
        by_hand[:, k] = (problem.gradient(state + step) - problem.gradient(state - step)) / 2e-5
    np.testing.assert_allclose(problem.jacobian(state), by_hand, atol=1e-8)
    direction = np.arange(1.0, state.size + 1)
    found = problem.hessian_product(state, direction)
    np.testing.assert_allclose(found, by_hand @ direction, atol=1e-7)
    largest = np.linalg.eigvals(by_hand).real.max()
    assert dynamics.stability_limit(problem, state) == pytest.approx(2 / largest, rel=1e-6)


@pytest.mark.parametrize("count", [10, 49])
def test_what_is_one_of_every_sample_is_one_of_them_all(count):
    """The weights of a law sum up to 1 but for rounding: ten of .1 to less."""

    def law():
        for k in range(count):
            yield 1 / count, {"x": 1.0 + k / count}

    system = dynamics.Model(
        start=lambda: {"w": 0.0}, law=law, events={"all": "acc >= 1"},
        loss=lambda theta, sample, xp: (theta["w"] - sample["x"]) ** 2,
        observe=lambda theta, sample, xp: {"acc": xp.where(theta["w"] > 0.5, 1.0, 0.0)},
    )  # fmt: skip
    for problem in (system.ReducedPopulation, system.FullPopulation):
        run = dynamics.descend(problem(system.Parameters()), 0.1, 20)
        assert run.events["all"].step == int(np.argmax(run["w"] > 0.5))
        assert run["acc"][-1] == 1.0
