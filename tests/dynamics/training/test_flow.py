import threading
from contextlib import nullcontext

import numpy as np
import pytest

import dynamics
from dynamics.expectations import shares
from dynamics.expectations.spectral_sum import central_moments
from dynamics.results.outcome import INTERRUPTED
from dynamics.training import flow
from dynamics.validation import InvalidRequest


@pytest.fixture(scope="module")
def system():
    return dynamics.load_system("positional_attention")


@pytest.fixture(scope="module")
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
        assert f"{run['alpha'][k]:.5f}" == f"{alpha:.5f}"
        assert f"{run['gamma'][k]:.5f}" == f"{gamma:.5f}"
        assert f"{run['rho'][k]:.5f}" == f"{rho:.5f}"
        assert f"{run['risk'][k]:.6f}" == f"{risk:.6f}"
    assert run.events["T1"].time == pytest.approx(759.395, abs=5e-4)
    assert run.outcome.kind == "reached horizon"
    assert run.steps.size == 0


@pytest.mark.parametrize(
    ("horizon", "value"), [(1e2, 47.9), (1e3, 415), (1e4, 974), (1e5, 2141), (1e6, None)]
)
def test_the_papers_t1_depends_on_the_horizon(problem, horizon, value):
    event = dynamics.flow(problem, time=horizon).events["T1_paper"]
    if value is None:
        assert not event
    else:
        assert event.time == pytest.approx(value, rel=2e-3)
        assert event.horizon == horizon


@pytest.mark.parametrize("settings", [{}, {"D": 12, "C": 3, "q": 0.4}, {"D": 9, "C": 3, "p": 5}])
def test_event_times_hold_five_digits_at_any_tolerance(system, settings):
    problem = system.ReducedPopulation(system.Parameters(**settings))
    tight = dynamics.flow(problem, time=3e4, rtol=1e-12)
    for rtol in (1e-3, 1e-8):
        run = dynamics.flow(problem, time=3e4, rtol=rtol)
        for name, event in tight.events.items():
            other = run.events[name]
            assert event.reached == other.reached, name
            if event:
                assert other.time == pytest.approx(event.time, rel=1e-5), name


def test_gradient_descent_tends_to_the_flow_with_slope_one(problem):
    """GD at eta and the flow at the same time differ by O(eta)."""
    horizon, etas = 40.0, np.array([0.008, 0.004, 0.002, 0.001])
    reference = dynamics.flow(problem, time=horizon, rtol=1e-12).final_state
    errors = []
    for eta in etas:
        run = dynamics.descend(problem, eta=eta, steps=round(horizon / eta))
        errors.append(np.abs(run.final_state - reference).max())
    slope = np.polyfit(np.log(etas), np.log(errors), 1)[0]
    assert slope == pytest.approx(1.0, abs=0.1)


def test_full_and_reduced_flows_agree(system):
    """Without an analytic Jacobian on the full side."""
    parameters = system.Parameters(D=8, C=2)
    reduced, full = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    times = [0.0, 1.0, 20.0]
    first = dynamics.flow(reduced, time=20.0, rtol=1e-11, record=times)
    second = dynamics.flow(full, time=20.0, rtol=1e-11, record=times)
    for name, values in full.orbit_values(second.states).items():
        np.testing.assert_allclose(values, first[name][:, None] + 0 * values, atol=1e-9)
    assert second.events["T0"].time == pytest.approx(first.events["T0"].time, rel=1e-5)


@pytest.mark.parametrize("settings", [{}, {"D": 9, "C": 3, "p": 5}, {"D": 8, "C": 2, "scale": 0.6}])
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


@pytest.mark.parametrize("state", [(0.3, 1.0, -0.2), (40.0, 1.0, -0.2), (-40.0, 1.0, -0.2)])
def test_jacobian_is_that_of_the_sum_over_all_configurations(system, state):
    """Also of margins beyond the range of the exponential, configuration by configuration."""
    problem = system.ReducedPopulation(system.Parameters(D=8, C=2, p=3), expectation="exact")
    rows = problem.expectation.configurations
    totals, share = np.arange(-4.0, 9.0), np.array([1.0, 1 / 8, 1 / 48])
    law, state = problem.parameters.set_law, np.array(state)
    found = problem.jacobian(state)
    of_type = {(a, b): k for k, (a, b, _) in enumerate(law.types.tolist())}
    kinds = np.array([[of_type[a, b] for a, b in sets] for sets in rows.counts.tolist()])
    columns = (rows.counts @ (1, -1)).sum(axis=1).astype(int) + 4

    def slopes(at):
        """Derivatives of the margin of every configuration, shape (3, n), and the margins."""
        constants = np.array([8.0, 2.0, 1e-3, 1.0, 1.0])
        tables, moments = np.empty((4, 13, len(law.types))), central_moments(law.types[:, :2], 2, 3)
        shares.expand(shares.coordinates(at, constants), moments, 2e-3, law.sums, totals, tables)
        return tables[:, columns[:, None], kinds].sum(axis=2)

    F, *first = slopes(state)
    weight = rows.probability / (1 + np.exp(np.minimum(F, 700)))
    bent = weight / (1 + np.exp(np.minimum(-F, 700)))
    for k, width in enumerate(1e-5 * np.maximum(np.abs(state), 1.0)):
        move = width * np.eye(3)[k]
        second = (slopes(state + move)[1:] - slopes(state - move)[1:]) / (2 * width)
        expected = (bent * first[k] * np.array(first)).sum(axis=1) - (weight * second).sum(axis=1)
        np.testing.assert_allclose(
            found[:, k], expected * share, rtol=1e-6, atol=1e-9 * np.abs(found).max()
        )


def test_records_are_where_they_were_asked_for(problem):
    run = dynamics.flow(problem, time=10.0, record=25)
    assert run.time.size == 26
    assert (run.time[0], run.time[-1]) == (0.0, 10.0)
    np.testing.assert_array_equal(run.states[0], problem.initial_state)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"time": 0.0}, "time=0.0 is too small"),
        ({"time": float("inf")}, "time=inf is not finite"),
        ({"rtol": 1e-20}, "rtol=1e-20 is too small"),
        ({"record": [0.0, 99.0]}, "record=99.0 is too large"),
    ],
)
def test_wrong_settings_are_refused(problem, settings, message):
    with pytest.raises(InvalidRequest, match=message):
        dynamics.flow(problem, **({"time": 1.0} | settings))


def test_a_flow_is_saved_and_loaded(problem, tmp_path):
    run = dynamics.flow(problem, time=100.0)
    again = dynamics.load(dynamics.save(run, tmp_path / "flow"))
    np.testing.assert_array_equal(again.states, run.states)
    assert again.events["T0"].time == run.events["T0"].time
    assert again.events["T0"].step is None


def test_a_horizon_within_the_first_step_has_as_many_records(system):
    problem = system.ReducedPopulation(system.Parameters(D=8, C=2), "exact")
    run = dynamics.flow(problem, time=1e-4, record=100)
    assert run.time.size == 101
    assert run.time[-1] == 1e-4


def test_times_are_recorded_once_and_ascending(system):
    """Also where they are given twice: what interpolates between records divides by distances."""
    problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    run = dynamics.flow(problem, 3.0, record=[2, 1, 1.0, 0, -0.0, 2])
    once = dynamics.flow(problem, 3.0, record=[0.0, 1.0, 2.0])
    assert run.time.tolist() == once.time.tolist() == [0.0, 1.0, 2.0]
    np.testing.assert_array_equal(run.states, once.states)
    assert len(run["risk"]) == 3
    assert dynamics.flow(problem, 3.0, record=[1.0, 1.0]).time.tolist() == [1.0]


def test_an_interruption_of_the_second_path_ends_the_run(monkeypatch):
    """The path is whole then; what it is compared with for its events is not."""
    system = dynamics.load_system("positional_attention")
    problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    again = flow._again

    def interrupted(path, end):
        raised = threading.Event()
        raised.set()
        monkeypatch.setattr(flow, "interruption", lambda: nullcontext(raised))
        return again(path, end)

    monkeypatch.setattr(flow, "_again", interrupted)
    assert dynamics.flow(problem, 1e3).outcome.kind == INTERRUPTED
