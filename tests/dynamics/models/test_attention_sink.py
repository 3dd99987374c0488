"""An attention sink: half the logarithm of time, the drain of its value, and broken laws."""

import numpy as np
import pytest

import dynamics
from dynamics.verdicts.library import attention_sink


@pytest.fixture(scope="module")
def system():
    return dynamics.load_system("attention_sink")


def by_hand(alpha, beta, eta, steps, law):
    """Logits and values under gradient descent, by arrays alone; the laws of next tokens."""
    V, W = law.V, law.W
    copies = W * law.xi / law.copied * (np.arange(V) < law.copied)
    for _ in range(steps):
        sink = np.exp(alpha)[:, None]
        logits = (sink * beta + copies) / (sink + W)
        q = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        off = (q - 1 / V) / V
        slope = (off * sink * (W * beta - copies)).sum(axis=1) / (sink[:, 0] + W) ** 2
        beta = beta - eta * (off * sink / (sink + W)).sum(axis=0)
        alpha = alpha - eta * slope
    return alpha, beta


@pytest.mark.parametrize("more", [{}, {"V": 5, "copied": 2, "W": 7.0, "xi": 2.0}])
def test_descent_by_hand(system, more):
    law = system.Parameters(**more)
    zero = np.zeros(law.V)
    for view in ("ReducedPopulation", "FullPopulation"):
        run = dynamics.descend(getattr(system, view)(law), 0.7, 200)
        alpha, beta = by_hand(zero, zero, 0.7, 200, law)
        found = [run[name][-1] for name in ("a", "b_c", "b_o")]
        np.testing.assert_allclose(found, [alpha[0], beta[0], beta[-1]], rtol=1e-11)


@pytest.mark.parametrize("more", [{}, {"V": 5, "copied": 2, "W": 7.0, "xi": 2.0}])
def test_the_logit_grows_as_half_the_logarithm_of_time(system, more):
    """The published 1/2; the constant is derived in `dynamics.verdicts.library.attention_sink`."""
    law = system.Parameters(trained="alpha", **more)
    run = dynamics.flow(system.ReducedPopulation(law), 1e10, 1e-10, record=[1e6, 1e8, 1e10])
    asymptote = np.log(2 * attention_sink.copied_variance(law) * run.time / law.V) / 2
    assert np.abs(run["a"] - asymptote)[-2:].max() < 0.01
    assert np.diff(run["a"])[-1] == pytest.approx(np.log(100) / 2, abs=2e-3)


def test_what_moves_alone_is_the_array_that_is_trained(system):
    sizes = {"both": (3, 2, (8, 2, 6)), "alpha": (1, 1, (8,)), "beta": (2, 1, (2, 6))}
    for trained, expected in sizes.items():
        closure = system.closure(system.Parameters(trained=trained))
        assert (closure.scalars, closure.free, closure.sizes) == expected


def test_trained_together_the_logit_rests_where_the_value_cancels_the_copies(system):
    law = system.Parameters()
    run = dynamics.flow(system.ReducedPopulation(law), 1e5, 1e-10)
    assert abs(run["added"][-1]) < 1e-9
    copies = law.W * law.xi / law.copied
    assert run["b_o"][-1] - run["b_c"][-1] == pytest.approx(np.exp(-run["a"][-1]) * copies)
    later = dynamics.flow(system.ReducedPopulation(law), 1e6, 1e-10)
    assert later["a"][-1] == pytest.approx(run["a"][-1], abs=1e-8)
