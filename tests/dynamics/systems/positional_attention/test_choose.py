"""What "auto" takes: by predicted cost and tolerance, and another along a run."""

import numpy as np
import pytest

import dynamics
from dynamics.validation import InvalidRequest


@pytest.mark.parametrize(
    ("settings", "tolerance", "chosen"),
    [
        ({}, 1e-10, "exact"),
        ({"D": 64, "q": 0.25}, 1e-10, "spectral"),
        ({"D": 64, "q": 0.02}, 1e-6, "truncated"),
        ({"D": 4096, "C": 8, "q": 0.008}, 1e-8, "spectral"),
    ],
)
def test_the_cheapest_is_taken_and_said_why(system, settings, tolerance, chosen):
    problem = system.ReducedPopulation(system.Parameters(**settings), tolerance=tolerance)
    assert problem.settings["expectation"] == chosen
    assert "a gradient predicted" in problem.settings["auto"]


@pytest.mark.long
def test_a_run_goes_over_to_another_when_that_becomes_right(system):
    """Truncated while the rare configurations do not matter, then spectral."""
    parameters = system.Parameters(D=64, q=0.02)
    problem = system.ReducedPopulation(parameters, tolerance=1e-6)
    run = dynamics.flow(problem, time=1e4, record=60)
    names = [settings["expectation"] for _, settings in run.settings["forms"]]
    starts = [start for start, _ in run.settings["forms"]]
    assert names[0] == "truncated"
    assert names[-1] == "spectral"
    assert starts == sorted(starts)
    assert starts[-1] < run.outcome.time
    assert (run["certificate"] <= 1e-6).all()
    smooth = dynamics.flow(system.ReducedPopulation(parameters, "spectral"), 1e4, record=2)
    np.testing.assert_allclose(run.final_state, smooth.final_state, rtol=1e-5)
    first, second = run.events["T0"], smooth.events["T0"]
    assert abs(first.time - second.time) <= first.uncertainty + 1e-5 * second.time
    assert 0.0 < second.uncertainty < first.uncertainty
    assert run.events["T1_paper"].time == pytest.approx(smooth.events["T1_paper"].time, rel=1e-5)


def test_gradient_descent_switches_at_the_same_step_every_time(system):
    parameters = system.Parameters(D=64, q=0.02)
    first, second = (
        dynamics.descend(system.ReducedPopulation(parameters, tolerance=1e-4), 0.01, 300)
        for _ in range(2)
    )
    assert first.settings == second.settings
    np.testing.assert_array_equal(first.states, second.states)
    smooth = dynamics.descend(system.ReducedPopulation(parameters, "spectral"), 0.01, 300)
    np.testing.assert_allclose(first.states, smooth.states, rtol=1e-3, atol=1e-9)


def test_the_spectral_budget_gives_way_to_enumeration(system):
    """Off every trajectory both signs of a large F meet at one z and the nodes are many."""
    parameters = system.Parameters(D=32, C=4, q=0.5)
    problem = system.ReducedPopulation(parameters, tolerance=1e-6)
    assert problem.settings["expectation"] == "spectral"
    state = np.array([3.0, 1.0, -0.5])
    exact = system.ReducedPopulation(parameters, "exact")
    found = exact.error_bound(state)
    error = np.abs(problem.gradient(state) - found["value"][:3])
    assert (error <= 1e-6 * found["gross"][:3]).all()
    assert problem.reconsidered(state).settings["expectation"] == "exact"


def test_wrong_requests(system):
    for name, value, message in [
        ("expectation", "guess", "expectation='guess' is unknown"),
        ("tolerance", 0, "tolerance=0 is too small"),
        ("samples", 1, "samples=1 is too small"),
        ("seed", -1, "seed=-1 is too small"),
        ("dropped", 0.1, "dropped=0.1 is not of auto"),
    ]:
        with pytest.raises(InvalidRequest, match=message.replace(".", r"\.")):
            system.ReducedPopulation(system.Parameters(), **{name: value})
