"""Adam against sums over all past gradients, and on runs that go wrong."""

import naive
import numpy as np
import pytest

import dynamics
from dynamics.experiments.positional_attention.adam import NO_EVENTS, Averages, adam
from dynamics.results.outcome import CONVERGED, DIVERGED, HORIZON
from dynamics.validation import InvalidRequest


@pytest.fixture(scope="module")
def reduced():
    system = dynamics.load_system("positional_attention")
    return system.ReducedPopulation(system.Parameters(D=8, C=2))


def test_it_equals_sums_over_all_past_gradients(reduced):
    run = adam(reduced, 3e-3, 60, record=1)
    expected = naive.adam(reduced.gradient, reduced.initial_state, 3e-3, 60)
    np.testing.assert_allclose(run.states, expected, rtol=1e-11, atol=1e-14)
    assert run.outcome.kind == HORIZON
    np.testing.assert_array_equal(run.steps, np.arange(61))


def test_the_first_step_is_eta_times_the_sign_of_the_gradient(reduced):
    run = adam(reduced, (1e-3, 2e-3), 1)
    moved = run.states[1] - run.states[0]
    slope = reduced.gradient(run.states[0])
    expected = -np.array([1e-3, 2e-3, 2e-3]) * slope / (np.abs(slope) + 1e-8)
    np.testing.assert_allclose(moved, expected, rtol=1e-12)


def test_a_run_is_recorded_like_gradient_descent(reduced, tmp_path):
    run = adam(reduced, 1e-3, 50, record=[7, 20])
    assert run.steps.tolist() == [0, 7, 20, 50]
    np.testing.assert_allclose(run.time, [0, 0.007, 0.02, 0.05])
    assert run["risk"][-1] == pytest.approx(reduced.risk(run.final_state))
    assert run.settings["optimizer"] == "adam"
    assert set(run.reasons.values()) == {NO_EVENTS}
    dynamics.save(run, tmp_path / "run")
    np.testing.assert_array_equal(dynamics.load(tmp_path / "run").states, run.states)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("slope", [np.nan, np.inf, 1e200])
def test_what_is_not_finite_ends_the_run_as_diverged(reduced, monkeypatch, slope):
    """A gradient of 1e200 has an infinite square, whose update would be 0 for ever."""
    real = reduced.gradient
    late = []

    def gradient(state):
        late.append(state)
        return real(state) if len(late) < 6 else np.full(3, slope)

    monkeypatch.setattr(reduced, "gradient", gradient)
    run = adam(reduced, 1e-3, 100, record=2)
    assert run.outcome.kind == DIVERGED
    assert run.outcome.step == 5
    assert run.steps.tolist() == [0, 2, 4, 5]
    assert np.isfinite(run.states).all()
    assert "eta=0.001 is too large" in str(run.outcome)


def test_a_state_that_does_not_move_has_converged(reduced, monkeypatch):
    monkeypatch.setattr(reduced, "gradient", lambda state: np.zeros(3))
    assert adam(reduced, 1e-3, 3).outcome.kind == CONVERGED


def test_without_averages_it_is_descent_by_signs(reduced):
    run = adam(reduced, 1e-3, 5, record=1, averages=Averages(0.0, 0.0, 0.0))
    np.testing.assert_allclose(np.abs(np.diff(run.states, axis=0)), 1e-3, rtol=1e-12)


@pytest.mark.parametrize("eta", [0.0, -1e-3, np.nan])
def test_a_rate_that_cannot_be_is_refused(reduced, eta):
    with pytest.raises(InvalidRequest, match="eta="):
        adam(reduced, eta, 10)
