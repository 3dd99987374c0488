"""The compiled integrator against LSODA, alone against together, and what it does not integrate."""

import numpy as np
import pytest

import dynamics
from dynamics.training import flow, lsoda
from dynamics.training.flow import implicit_model, integrate_flow
from dynamics.training.lsoda import by_lsoda


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
    fast = integrate_flow(problem, start, time, 1e-8)
    slow = by_lsoda(problem, start, time, 1e-11)
    assert (fast.kind, slow.kind) == ("reached horizon", "reached horizon")
    times = np.geomspace(1e-3, time, 200)
    size = np.maximum(np.abs(slow.states(times)), 1e-3)
    error = np.abs(fast.states(times) - slow.states(times)) / size
    assert error.max() < 1e-6
    assert fast.nodes.size < slow.nodes.size


def test_the_sign_of_a_rate_is_timed_to_a_millionth(system):
    """Where T0 errs a hundred times as much as the states, against LSODA at 1e-12."""
    law = system.Parameters(D=16, C=4, q=0.1, p=5, nu=2.253939e-4)
    problem = system.ReducedPopulation(law, "exact")
    usual = dynamics.flow(problem, time=50.0).events["T0"]
    tight = dynamics.flow(problem, time=50.0, rtol=1e-12, compiled=False).events["T0"]
    assert usual.time == pytest.approx(tight.time, rel=5e-7)


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
                assert {k: e.time for k, e in one.events.items() if e} == {
                    k: e.time for k, e in other.events.items() if e
                }
    finally:
        numba.set_num_threads(threads)


def test_a_comparison_has_one_integrator(system):
    """Of 65 entries the full problem has LSODA; so has then the reduced one."""
    law = system.Parameters(D=8, C=2)
    made = dynamics.compare(
        system.ReducedPopulation(law), system.FullPopulation(law), time=5.0, rtol=1e-10
    )
    assert {run.settings["integrator"] for run in (made.reduced, made.full)} == {"LSODA"}
    assert max(made.deviation.values()) < 1e-8
    law = system.Parameters(D=4, C=2)
    made = dynamics.compare(system.ReducedPopulation(law), system.FullPopulation(law), time=5.0)
    assert {run.settings["integrator"] for run in (made.reduced, made.full)} == {"collocation"}
    assert max(made.deviation.values()) < 1e-7


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
    """Nobody interrupted it: it is a failure, with a remedy."""
    monkeypatch.setattr(flow, "MAX_STEPS", 20)
    monkeypatch.setattr(lsoda, "MAX_STEPS", 20)
    problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    run = dynamics.flow(problem, 1e5, compiled=compiled)
    assert run.outcome.kind == "stalled"
    assert run.outcome.failed
    assert run.outcome.time < 1e5
    assert "try gradient descent" in run.outcome.remedy
