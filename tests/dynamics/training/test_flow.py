import threading
from contextlib import nullcontext

import numpy as np
import pytest

import dynamics
from dynamics.results.outcome import INTERRUPTED
from dynamics.training import flow


@pytest.fixture
def problem(system):
    return system.ReducedPopulation(system.Parameters())


def test_reference_trajectory(problem):
    """Section 8 of the specification's measured values, to the printed digits."""
    run = dynamics.flow(problem, time=1e5, record=[0.1, 630.4, 1e5])
    expected = [
        (0.18838, 0.00006, -0.00004, 0.143514),
        (0.15471, 0.62318, -0.20859, 0.095193),
        (0.08296, 4.05953, -1.70302, 0.015835),
    ]
    for k, (alpha, gamma, rho, risk) in enumerate(expected):
        found = [f"{run[name][k]:.5f}" for name in ("alpha", "gamma", "rho")]
        assert found == [f"{value:.5f}" for value in (alpha, gamma, rho)]
        assert f"{run['risk'][k]:.6f}" == f"{risk:.6f}"
    assert run.events["T1"].time == pytest.approx(759.395, abs=5e-4)
    assert run.outcome.kind == "reached horizon"
    assert run.steps.size == 0


@pytest.mark.parametrize(("horizon", "value"), [(1e2, 47.9), (1e4, 974), (1e6, None)])
def test_the_papers_t1_depends_on_the_horizon(problem, horizon, value):
    event = dynamics.flow(problem, time=horizon).events["T1_paper"]
    if value is None:
        assert not event
    else:
        assert event.time == pytest.approx(value, rel=2e-3)
        assert event.horizon == horizon


def test_event_times_hold_five_digits_at_any_tolerance(problem):
    tight = dynamics.flow(problem, time=3e4, rtol=1e-12)
    for rtol in (1e-3, 1e-8):
        run = dynamics.flow(problem, time=3e4, rtol=rtol)
        for name, event in tight.events.items():
            other = run.events[name]
            assert event.reached == other.reached, name
            if event:
                assert other.time == pytest.approx(event.time, rel=1e-5), name


@pytest.mark.parametrize("settings", [{"D": 9, "C": 3, "p": 5}, {"D": 8, "C": 2, "scale": 0.6}])
def test_jacobian_is_the_slope_of_the_gradient(system, settings):
    """Central differences whose error falls as the square of the width."""
    problem = system.ReducedPopulation(system.Parameters(**settings))
    state = np.array([0.2, 0.3, -0.15])
    jacobian, errors = problem.jacobian(state), []
    for width in (4e-3, 2e-3):
        steps = width * np.eye(3)
        columns = [problem.gradient(state + s) - problem.gradient(state - s) for s in steps]
        errors.append(np.abs(np.array(columns).T / (2 * width) - jacobian).max())
    assert errors[0] < 0.1
    assert 3.8 < errors[0] / errors[1] < 4.2


def test_times_are_recorded_once_and_ascending(system):
    problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    run = dynamics.flow(problem, 3.0, record=[2, 1, 1.0, 0, -0.0, 2])
    once = dynamics.flow(problem, 3.0, record=[0.0, 1.0, 2.0])
    assert run.time.tolist() == once.time.tolist() == [0.0, 1.0, 2.0]
    np.testing.assert_array_equal(run.states, once.states)
    assert len(run["risk"]) == 3


def test_an_interruption_of_the_second_path_ends_the_run(problem, monkeypatch):
    """The path is whole then; what it is compared with for its events is not."""
    again = flow._again

    def interrupted(path, end):
        raised = threading.Event()
        raised.set()
        monkeypatch.setattr(flow, "interruption", lambda: nullcontext(raised))
        return again(path, end)

    monkeypatch.setattr(flow, "_again", interrupted)
    assert dynamics.flow(problem, 1e3).outcome.kind == INTERRUPTED
