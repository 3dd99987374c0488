import numpy as np
import pytest

import dynamics
from dynamics.problem import SMALL
from dynamics.training import stability_limit
from dynamics.training.stability_limit import limits_along, smaller_rate


def test_limit_is_two_over_the_largest_curvature(system):
    problem = system.ReducedPopulation(system.Parameters())
    state, width = np.array([0.1082, 1.4999, -0.5027]), 1e-6
    columns = []
    for k in range(3):
        step = width * np.eye(3)[k]
        slope = problem.gradient(state + step) - problem.gradient(state - step)
        columns.append(slope / (2 * width))
    largest = np.linalg.eigvals(np.array(columns).T).real.max()
    assert dynamics.stability_limit(problem, state) == pytest.approx(2 / largest, rel=1e-5)
    assert dynamics.stability_limit(problem, state) == pytest.approx(0.0315, abs=1e-4)


def test_reduced_and_full_have_the_same_limit_where_alpha_decides(system):
    parameters = system.Parameters(D=8, C=2)
    reduced, full = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    run = dynamics.compare(reduced, full, 0.02, 500)
    first = dynamics.stability_limit(reduced, run.reduced.final_state)
    second = dynamics.stability_limit(full, run.full.final_state)
    assert first == pytest.approx(second, rel=1e-5)


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


@pytest.mark.parametrize(
    "settings", [{}, {"D": 12, "C": 3, "q": 0.4}, {"D": 9, "C": 3, "q": 0.5, "p": 5}]
)
def test_period_two_sets_in_at_the_predicted_limit(system, settings):
    """At 1.03 times the limit GD alternates for good, at 0.97 times it does not."""
    problem = system.ReducedPopulation(system.Parameters(**settings))
    start = dynamics.flow(problem, time=600.0).final_state
    limit = dynamics.stability_limit(problem, start)
    for factor, alternates in ((0.97, False), (1.03, True)):
        run = dynamics.descend(problem, factor * limit, 400, record=1, initial=start)
        change = np.diff(run["alpha"][-40:])
        assert ((change[1:] * change[:-1] < 0).all()) == alternates


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


@pytest.fixture(scope="module")
def two_curvatures():
    """Curvature 1 of one group, 100 of the other."""
    model = dynamics.Model(
        start=lambda: {"u": 1.0, "w": 0.5},
        risk=lambda theta, xp: theta["u"] ** 2 / 2 + 50 * theta["w"] ** 2,
        groups={"u": "first", "w": "second"},
    )
    system = dynamics.load_system(model)
    return system.ReducedPopulation(system.Parameters())


def test_of_groups_each_learning_rate_counts_with_its_own_curvature(two_curvatures):
    calm = dynamics.descend(two_curvatures, (1.5, 0.015), 300)
    assert not calm.outcome.failed
    assert calm.remarks == ()
    with pytest.warns(dynamics.TrainingWarning):
        grows = dynamics.descend(two_curvatures, (0.001, 0.0201), 300)
    assert abs(grows["w"][-1]) > abs(grows["w"][0])
    limit = "eta=(0.001, 0.0201) at step 1, where the stability limit is (0.000995, 0.02)"
    assert grows.remarks == (f"{limit}: it is passed",)


def test_a_remedy_keeps_the_ratio_of_learning_rates(two_curvatures):
    outcome = dynamics.descend(two_curvatures, (0.001, 0.03), 20_000).outcome
    assert outcome.kind == "diverged"
    assert outcome.remedy == (
        "eta=(0.001, 0.03) is above the stability limit (0.0006667, 0.02) there; "
        "try eta=(0.0006, 0.018)"
    )
    assert not dynamics.descend(two_curvatures, (0.0006, 0.018), 2000).outcome.failed


def test_no_positive_curvature_means_no_limit(system):
    problem = system.ReducedPopulation(system.Parameters())
    assert dynamics.stability_limit(problem, problem.initial_state) == float("inf")


@pytest.mark.parametrize("curvature", [0.0, 0.05, 5.0])
def test_where_the_gradient_jumps_no_learning_rate_is_named(curvature):
    def risk(theta, xp, c=curvature):
        return xp.abs(theta["w"][0] - 1) + c * (theta["w"][0] - 1) ** 2

    kinked = dynamics.load_system(dynamics.Model(start=lambda: {"w": np.full(1, 0.3)}, risk=risk))
    run = dynamics.descend(kinked.ReducedPopulation(kinked.Parameters()), 0.02, 2000)
    assert run.outcome.kind == "oscillating"
    assert run.outcome.remedy.endswith("where a gradient jumps, every eta may reverse it")
    assert "try" not in run.outcome.remedy


def test_a_risk_without_a_floor_has_no_jump():
    def risk(theta, xp):
        return -xp.exp(100 * theta["w"][0] ** 2)

    model = dynamics.Model(start=lambda: {"w": np.full(1, 0.5)}, risk=risk)
    falling = dynamics.load_system(model)
    run = dynamics.descend(falling.ReducedPopulation(falling.Parameters()), 0.05, 20_000)
    assert run.outcome.kind == "diverged"
    assert run.outcome.remedy.endswith("start elsewhere, or take fewer steps")


def test_a_rate_a_million_times_too_large_is_told_the_limit():
    """Twenty halvings do not get there."""

    def risk(theta, xp, k=1e9):
        return k * theta["w"][0] ** 2 / 2

    model = dynamics.Model(start=lambda: {"w": np.full(1, 0.3)}, risk=risk)
    steep = dynamics.load_system(model)
    run = dynamics.descend(steep.ReducedPopulation(steep.Parameters()), 0.05, 200)
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


@pytest.mark.parametrize("asked", [0, 1, 3])
def test_an_interrupted_search_for_a_smaller_rate_ends_at_the_next_chunk(system, asked):
    problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    questions = []

    def proceed():
        questions.append(len(questions))
        return len(questions) <= asked

    words = smaller_rate(problem, (1.0, 1.0), problem.initial_state, 20_000, proceed=proceed)
    assert words == "eta=1 is too large"
    assert len(questions) <= asked + 3


class Slow:
    """A problem whose every gradient takes a second of a clock; its curvature, many of them."""

    has_jacobian = False

    def __init__(self, problem, clock):
        self.problem, self.clock = problem, clock

    def __getattr__(self, name):
        return getattr(self.problem, name)

    def advance(self, state, updates, first, last, buffers):
        reached = self.problem.advance(state, updates, first, last, buffers)
        self.clock.now += reached - first
        return reached

    def curvature(self, state, shares=1.0):
        self.clock.now += stability_limit.POWER_ITERATION
        return self.problem.curvature(state, shares)


class Clock:
    now = 0.0

    def perf_counter(self):
        return self.now


@pytest.fixture
def slow(monkeypatch):
    def risk(theta, xp, k=1e9):
        return k * xp.sum(theta["w"] ** 2) / 2

    model = dynamics.Model(start=lambda: {"w": np.linspace(0.1, 0.3, 20)}, risk=risk)
    system, clock = dynamics.load_system(model), Clock()
    monkeypatch.setattr(stability_limit, "time", clock)
    return lambda k: Slow(system.FullPopulation(system.Parameters(k=k)), clock), clock


def test_a_search_takes_no_more_than_a_few_times_the_gradients_of_the_run(slow):
    """Twenty halvings do not get there, and each takes some fifty steps to diverge."""
    make, clock = slow
    problem = make(1e9)
    words = smaller_rate(problem, (0.05,), problem.initial_state, 40)
    assert clock.now <= stability_limit.GRADIENTS_OVER_STEPS * 40
    assert "is too large; the search for a smaller one ended after" in words
    assert "of 200 steps into a run at" in words
    assert words.endswith("try that or less")


def test_limits_that_are_not_all_looked_at_name_a_rate_that_went_well(slow):
    """Curvature 1, a rate of 2.2: 0.55 is calm, and limits at all records would take 2000."""
    make, clock = slow
    problem = make(1.0)
    words = smaller_rate(problem, (2.2,), problem.initial_state, 200)
    assert clock.now <= stability_limit.GRADIENTS_OVER_STEPS * 200
    assert words == "eta=2.2 is above the stability limit 2 there; try eta=0.55"
    free = smaller_rate(problem.problem, (2.2,), problem.initial_state, 200)
    assert free == "eta=2.2 is above the stability limit 2 there; try eta=1.8"


def test_a_short_search_is_made_to_its_end_however_few_the_steps(slow):
    """Gradients that take no time: 20 halvings of a request of two steps."""
    make, _ = slow
    words = smaller_rate(make(1e9).problem, (0.05,), make(1e9).initial_state, 2)
    assert words.endswith("the stability limit 2e-09 there; try eta=1.8e-09")
