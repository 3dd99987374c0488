"""Flows: measured values, both integrators against each other and against closed forms."""

import threading
from contextlib import nullcontext

import numpy as np
import pytest

import dynamics
from dynamics.results.outcome import INTERRUPTED
from dynamics.training import flow, lsoda
from dynamics.training.flow import implicit_model, integrate_flow
from dynamics.training.lsoda import by_lsoda


@pytest.fixture
def problem(system):
    return system.ReducedPopulation(system.Parameters())


def test_reference_trajectory(problem):
    run = dynamics.flow(problem, time=1e5, record=[0.1, 630.4, 1e5])
    expected = {
        "alpha": [0.18838, 0.15471, 0.08296], "gamma": [0.00006, 0.62318, 4.05953],
        "rho": [-0.00004, -0.20859, -1.70302],
    }  # fmt: skip
    for name, values in expected.items():
        np.testing.assert_allclose(run[name], values, rtol=0, atol=5e-6)
    np.testing.assert_allclose(run["risk"], [0.143514, 0.095193, 0.015835], rtol=0, atol=5e-7)
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


@pytest.mark.parametrize(
    ("name", "parameters", "time"),
    [
        ("positional_attention", {"D": 9, "C": 3, "q": 0.4}, 1e4),
        ("positional_attention", {"D": 8, "C": 2, "random_sets": "mixed"}, 2e3),
        ("masked_image_modeling", {}, 30.0),
    ],
)
def test_the_path_is_that_of_lsoda(name, parameters, time):
    system = dynamics.load_system(name)
    problem = system.ReducedPopulation(system.Parameters(**parameters))
    assert implicit_model(problem) is not None
    start = problem.initial_state
    fast, slow = integrate_flow(problem, start, time, 1e-8), by_lsoda(problem, start, time, 1e-11)
    assert (fast.kind, slow.kind) == ("reached horizon", "reached horizon")
    times = np.geomspace(1e-3, time, 200)
    size = np.maximum(np.abs(slow.states(times)), 1e-3)
    error = np.abs(fast.states(times) - slow.states(times)) / size
    assert error.max() < 1e-6
    assert fast.nodes.size < slow.nodes.size


def test_flows_are_the_same_alone_together_and_in_any_number_of_threads(system):
    import numba

    several = [system.ReducedPopulation(system.Parameters(D=8, C=2, q=q)) for q in (0.2, 0.5, 0.8)]
    several += [system.ReducedPopulation(system.Parameters(D=9, C=3, p=5))]
    alone = [dynamics.flow(problem, 1e3) for problem in several]
    threads = numba.get_num_threads()
    try:
        for count in range(1, threads + 1):
            numba.set_num_threads(count)
            for one, other in zip(alone, dynamics.flows(iter(several), 1e3), strict=True):
                np.testing.assert_array_equal(one.states, other.states)
                times = [{k: e.time for k, e in run.events.items()} for run in (one, other)]
                np.testing.assert_equal(*times)
    finally:
        numba.set_num_threads(threads)


def test_a_comparison_has_one_integrator(system):
    """Of 65 entries the full problem has LSODA; so has then the reduced one."""
    for size, rtol, name, most in ((8, 1e-10, "LSODA", 1e-8), (4, 1e-8, "collocation", 1e-7)):
        law = system.Parameters(D=size, C=2)
        problems = system.ReducedPopulation(law), system.FullPopulation(law)
        made = dynamics.compare(*problems, time=5.0, rtol=rtol)
        assert {run.settings["integrator"] for run in (made.reduced, made.full)} == {name}
        assert max(made.deviation.values()) < most


def test_where_the_compiled_gradient_alone_gives_up_lsoda_takes_over(system, monkeypatch):
    problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    expected = by_lsoda(problem, problem.initial_state, 5.0, 1e-8)

    class Stuck(flow.Integration):
        def proceed(self):
            self.outcome = flow.STUCK
            self.control.refused[:] = self.state

    monkeypatch.setattr(flow, "Integration", Stuck)
    found = integrate_flow(problem, problem.initial_state, 5.0, 1e-8)
    np.testing.assert_array_equal(found.nodes, expected.nodes)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_flow_that_takes_too_many_steps_has_stalled(system, monkeypatch, compiled):
    monkeypatch.setattr(flow, "MAX_STEPS", 20)
    monkeypatch.setattr(lsoda, "MAX_STEPS", 20)
    problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    run = dynamics.flow(problem, 1e5, compiled=compiled)
    assert run.outcome.kind == "stalled"
    assert run.outcome.failed
    assert run.outcome.time < 1e5
    assert "try gradient descent" in run.outcome.remedy


def double_well(w):
    return -(w**2) / 2 + w**4 / 4


LOGISTIC = dynamics.Model(
    start=lambda w0=1e-10: {"w": w0},
    risk=lambda theta, xp: double_well(theta["w"]),
    events={"T": "w >= 0.5"},
)
DELAYED = dynamics.Model(
    start=lambda x0=0.1: {"x": x0, "c": 0.0},
    risk=lambda theta, xp: -theta["c"] - (theta["c"] - 13.6) * theta["x"] ** 2 / 2,
)
BESIDE = dynamics.Model(
    start=lambda: {"w": 1e-20, "x": 1.0, "still": 0.0},
    risk=lambda theta, xp: (
        double_well(theta["w"]) + (theta["x"] - 3) ** 2 / 20
        + (xp.cos(theta["x"] + theta["still"]) + xp.cos(theta["x"] - theta["still"])) / 20
    ),
    events={"T": "w >= 0.5"},
)  # fmt: skip
INTEGRATORS = {"ReducedPopulation": "collocation", "FullPopulation": "LSODA"}


def arrival(w0):
    """Time at which w of the logistic flow is a half: w^2 / (1 - w^2) grows like exp(2 t)."""
    return np.log(0.5 / w0) - np.log(0.75) / 2 + np.log1p(-(w0**2)) / 2


@pytest.mark.parametrize("kind", INTEGRATORS)
def test_growth_from_small_states_takes_the_time_of_the_closed_form(kind):
    for w0 in (1e-3, 1e-20, 1e-100):
        problem = getattr(LOGISTIC, kind)(LOGISTIC.Parameters(w0=w0))
        run = dynamics.flow(problem, time=1.2 * arrival(w0))
        assert run.settings["integrator"] == INTEGRATORS[kind]
        assert run.events["T"].time == pytest.approx(arrival(w0), rel=3e-8)
        w = run["w"].reshape(-1)
        assert (w > 0).all()
        exact = 1 / np.sqrt(1 + (1 / w0**2 - 1) * np.exp(-2 * run.time))
        np.testing.assert_allclose(w, exact, rtol=1e-5)


@pytest.mark.parametrize(("kind", "x0"), zip(INTEGRATORS, (0.1, -0.1), strict=True))
def test_an_entry_that_falls_to_1e_41_returns(kind, x0):
    """A delayed loss of stability: ln|x| + x^2/4 - (c - a)^2/2 is kept, and so is the sign of x."""
    problem = getattr(DELAYED, kind)(DELAYED.Parameters(x0=x0))
    run = dynamics.flow(problem, time=27.2)
    x, c = np.abs(run["x"]).reshape(-1), run["c"].reshape(-1)
    assert x.min() < 1e-40
    assert (np.sign(run["x"]) == np.sign(x0)).all()
    kept = np.log(x) + x**2 / 4 - (c - 13.6) ** 2 / 2
    np.testing.assert_allclose(kept, kept[0], rtol=0, atol=5e-6)


def test_an_entry_that_is_0_by_symmetry_takes_no_steps():
    """Its gradient is a difference of sines, which rounds: beside it an entry of 1e-20 grows."""
    problem = BESIDE.FullPopulation(BESIDE.Parameters())
    event = dynamics.flow(problem, time=50.0).events["T"]
    assert event.time == pytest.approx(arrival(1e-20), rel=3e-8)
    made = integrate_flow(problem, problem.initial_state, 50.0, 1e-8)
    assert made.nodes.size < 700
