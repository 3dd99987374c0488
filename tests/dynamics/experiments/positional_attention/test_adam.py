"""Adam of Figure 2 against sums over all past gradients, and on runs that go wrong."""

import naive
import numpy as np
import pytest

import dynamics
from dynamics.experiments.positional_attention.convolution import adam
from dynamics.results.outcome import DIVERGED, HORIZON
from dynamics.validation import InvalidRequest


@pytest.fixture(scope="module")
def reduced():
    system = dynamics.load_system("positional_attention")
    return system.ReducedPopulation(system.Parameters(D=8, C=2))


def test_it_equals_sums_over_all_past_gradients(reduced):
    run = adam(reduced, 3e-3, 60, record=range(60))
    expected = naive.adam(reduced.gradient, reduced.initial_state, 3e-3, 60)
    np.testing.assert_allclose(run.states, expected, rtol=1e-11, atol=1e-14)
    assert run.outcome.kind == HORIZON
    np.testing.assert_array_equal(run.steps, np.arange(61))


def test_the_first_step_is_eta_times_the_sign_of_the_gradient(reduced):
    run = adam(reduced, 1e-3, 1)
    moved = run.states[1] - run.states[0]
    slope = reduced.gradient(run.states[0])
    expected = -1e-3 * slope / (np.abs(slope) + 1e-8)
    np.testing.assert_allclose(moved, expected, rtol=1e-12)


def test_states_are_recorded_with_their_observables(reduced):
    run = adam(reduced, 1e-3, 50, record=[7, 20])
    assert run.steps.tolist() == [0, 7, 20, 50]
    assert run.observables["risk"][-1] == pytest.approx(reduced.risk(run.states[-1]))


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
    run = adam(reduced, 1e-3, 100, record=[2, 4])
    assert run.outcome.kind == DIVERGED
    assert run.outcome.step == 5
    assert run.steps.tolist() == [0, 2, 4, 5]
    assert np.isfinite(run.states).all()
    assert "eta=0.001 is too large" in str(run.outcome)


@pytest.mark.parametrize("eta", [0.0, -1e-3, np.nan])
def test_a_rate_that_cannot_be_is_refused(reduced, eta):
    with pytest.raises(InvalidRequest, match="eta="):
        adam(reduced, eta, 10)
