import numpy as np
import pytest

import dynamics
from dynamics.problem import SMALL
from dynamics.training.stability_limit import limits_along, smaller_rate


def test_limit_is_two_over_the_largest_curvature(system):
    problem = system.ReducedPopulation(system.Parameters())
    state, steps = np.array([0.1082, 1.4999, -0.5027]), 1e-6 * np.eye(3)
    columns = [problem.gradient(state + e) - problem.gradient(state - e) for e in steps]
    largest = np.linalg.eigvals(np.array(columns).T / 2e-6).real.max()
    assert dynamics.stability_limit(problem, state) == pytest.approx(2 / largest, rel=1e-5)
    assert dynamics.stability_limit(problem, state) == pytest.approx(0.0315, abs=1e-4)


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


@pytest.fixture(scope="module")
def two_curvatures():
    """Curvature 1 of one group, 100 of the other."""
    model = dynamics.Model(
        start=lambda: {"u": 1.0, "w": 0.5},
        risk=lambda theta, xp: theta["u"] ** 2 / 2 + 50 * theta["w"] ** 2,
        groups={"u": "first", "w": "second"},
    )
    return model.ReducedPopulation(model.Parameters())


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
    """Twenty halvings do not get there."""
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
    problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    questions = []

    def proceed():
        questions.append(len(questions))
        return len(questions) <= 1

    words = smaller_rate(problem, (1.0, 1.0), problem.initial_state, 20_000, proceed=proceed)
    assert words == "eta=1 is too large"
    assert len(questions) <= 4
