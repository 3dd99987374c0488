"""Stability limits of descent, and the oscillation beyond them."""

import itertools

import numpy as np
import pytest

import dynamics
from dynamics.problem import SMALL
from dynamics.training.oscillation import Oscillation
from dynamics.training.stability_limit import limits_along, smaller_rate


def test_the_limit_is_lowest_where_alpha_falls_and_descend_warns_before_it(system):
    problem = system.ReducedPopulation(system.Parameters())
    run = dynamics.descend(problem, eta=0.02, steps=200_000)
    limits = limits_along(problem, run)
    lowest = int(np.argmin(limits[10:])) + 10
    assert limits[lowest] == pytest.approx(0.0315, abs=1e-4)
    assert 1000 < run.time[lowest] < 3000
    assert run.remarks == ()
    with pytest.warns(dynamics.TrainingWarning, match="stability limit") as told:
        near = dynamics.descend(problem, eta=0.033, steps=100_000)
    assert near.remarks == (str(told[0].message),)
    assert told[0].filename == __file__
    step = int(near.remarks[0].split("at step ")[1].split(",")[0])
    assert dynamics.stability_limit(problem, run.states[np.searchsorted(run.time, step * 0.033)])
    assert step * 0.033 < run.time[np.flatnonzero(limits[10:] < 0.033)[0] + 10]


def test_the_largest_curvature_counts_where_a_negative_one_is_larger_in_size(system):
    """Many entries: by power iteration, here against all eigenvalues."""
    parameters = system.Parameters(D=6, C=2, q=0.5, d=6)
    problem = system.FullEmpirical(parameters, 30, 0)
    state = dynamics.descend(problem, 0.01, 5).final_state
    assert state.size > SMALL
    steps = 1e-6 * np.eye(state.size)
    matrix = [(problem.gradient(state + e) - problem.gradient(state - e)) / 2e-6 for e in steps]
    values = np.linalg.eigvals(np.array(matrix)).real
    assert values.min() < -2 * values.max() < 0
    assert dynamics.stability_limit(problem, state) == pytest.approx(2 / values.max(), rel=1e-3)


def test_of_groups_each_learning_rate_counts_with_its_own_curvature():
    model = dynamics.Model(
        start=lambda: {"u": 1.0, "w": 0.5},
        risk=lambda theta, xp: theta["u"] ** 2 / 2 + 50 * theta["w"] ** 2,
        groups={"u": "first", "w": "second"},
    )
    two_curvatures = model.ReducedPopulation(model.Parameters())
    calm = dynamics.descend(two_curvatures, (1.5, 0.015), 300)
    assert not calm.outcome.failed
    assert calm.remarks == ()
    with pytest.warns(dynamics.TrainingWarning):
        grows = dynamics.descend(two_curvatures, (0.001, 0.0201), 300)
    assert abs(grows["w"][-1]) > abs(grows["w"][0])
    limit = "eta=(0.001, 0.0201) at step 1, where the stability limit is (0.000995, 0.02)"
    assert grows.remarks == (f"{limit}: it is passed",)
    outcome = dynamics.descend(two_curvatures, (0.001, 0.03), 20_000).outcome
    assert outcome.kind == "diverged"
    assert outcome.remedy == (
        "eta=(0.001, 0.03) is above the stability limit (0.0006667, 0.02) there; "
        "try eta=(0.0006, 0.018)"
    )
    assert not dynamics.descend(two_curvatures, (0.0006, 0.018), 2000).outcome.failed


def of_one(risk):
    model = dynamics.Model(start=lambda: {"u": 0.3}, risk=lambda theta, xp: risk(theta["u"], xp))
    return model.ReducedPopulation(model.Parameters())


@pytest.mark.parametrize("curvature", [0.0, 5.0])
def test_where_the_gradient_jumps_no_learning_rate_is_named(curvature):
    risk = lambda u, xp: xp.abs(u - 1) + curvature * (u - 1) ** 2  # noqa: E731
    run = dynamics.descend(of_one(risk), 0.02, 2000)
    assert run.outcome.kind == "oscillating"
    assert run.outcome.remedy.endswith("where a gradient jumps, every eta may reverse it")
    assert "try" not in run.outcome.remedy


def test_a_rate_a_million_times_too_large_is_told_the_limit():
    run = dynamics.descend(of_one(lambda u, xp: 1e9 * u**2 / 2), 0.05, 200)
    assert run.outcome.kind == "diverged"
    assert run.outcome.remedy.endswith("the stability limit 2e-09 there; try eta=1.8e-09")


def test_a_start_beyond_all_numbers_diverges_with_a_remedy(system):
    problem = system.FullPopulation(system.Parameters(D=4, C=2, alpha0=1e200))
    with np.errstate(all="ignore"):
        run = dynamics.descend(problem, 0.03, 2)
    assert (run.outcome.kind, run.outcome.step) == ("diverged", 0)
    assert run.outcome.remedy.endswith("start elsewhere, or take fewer steps")
    with np.errstate(all="ignore"):
        assert not problem.curvature(problem.initial_state) > 0


def test_an_interrupted_search_for_a_smaller_rate_ends_at_the_next_chunk(system):
    problem, asked = system.ReducedPopulation(system.Parameters(D=8, C=2)), itertools.count()
    at = (1.0, 1.0), problem.initial_state, 20_000
    words = smaller_rate(problem, *at, proceed=lambda: next(asked) < 1)
    assert words == "eta=1 is too large"
    assert next(asked) <= 4


@pytest.mark.parametrize("cut", [1, 64])
@pytest.mark.parametrize(
    ("rates", "lasting"),
    [
        ((-1.0) ** np.arange(1000), True), ((-0.97) ** np.arange(1000), False),
        (np.r_[np.ones(500), (-1.0) ** np.arange(500)], True), (np.zeros(1000), False),
        (np.r_[(-1.0) ** np.arange(960), np.ones(40)], False),
        (np.r_[np.ones(960), (-1.0) ** np.arange(40)], False),
        ((-1.0) ** np.arange(20_000) * np.linspace(2, 1, 20_000), True),
    ],
)  # fmt: skip
def test_oscillation(rates, lasting, cut):
    watch = Oscillation(0)
    for first in range(0, len(rates), cut):
        watch.feed(first, rates[first : first + cut, None])
    assert watch.lasting(len(rates) - 1) == lasting


@pytest.mark.parametrize(
    ("sizes", "factor"),
    [
        (lambda n: 0.9999**n, 0.9999), (lambda n: 0.9999999**n, 0.9999999),
        (lambda n: 1.0 + 0.5 * 0.99**n, None), (lambda n: np.ones(n.size), None),
        (lambda n: 2.0 - n / n.size, None),
    ],
)  # fmt: skip
def test_the_factor_of_an_amplitude_that_vanishes(sizes, factor):
    steps = np.arange(2000)
    watch = Oscillation(0)
    watch.feed(0, ((-1.0) ** steps * sizes(steps))[:, None])
    assert watch.lasting(1999)
    found = watch.decay(1999)
    assert (found is None) == (factor is None)
    assert found is None or 1 - found == pytest.approx(1 - factor, rel=0.01)


def test_descent_of_a_quadratic_zigzags_near_its_limit_and_rests_at_the_smallest_number():
    quadratic = of_one(lambda u, xp: u**2 / 2)
    with pytest.warns(dynamics.TrainingWarning, match="stability limit is 2: period two is near"):
        outcome = dynamics.descend(quadratic, eta=1.9999, steps=3000).outcome
    assert outcome.kind == "reached horizon"
    assert "zigzag" in outcome.remedy
    assert "leaves 0.9999 of it" in outcome.remedy
    with pytest.warns(dynamics.TrainingWarning, match="stability limit is 2: it is passed"):
        assert dynamics.descend(quadratic, eta=2.0001, steps=3000).outcome.kind == "oscillating"
    with pytest.warns(dynamics.TrainingWarning, match="stability limit is 2: it is reached"):
        outcome = dynamics.descend(quadratic, eta=2.0, steps=3000).outcome
    assert outcome.kind == "oscillating"
    assert "a zigzag that neither grows nor shrinks; try eta=1.8" in outcome.remedy
    with pytest.warns(dynamics.TrainingWarning):
        run = dynamics.descend(quadratic, eta=1.7, steps=3000)
    assert abs(run.final_state[0]) == 5e-324
    assert run.outcome.kind == "reached horizon"
