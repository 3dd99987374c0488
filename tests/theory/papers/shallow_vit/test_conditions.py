"""What Theorem 1 asks of a law, equation (70), and the constant of Hoeffding's inequality."""

import math

import numpy as np
import pytest

from theory.papers.shallow_vit import conditions, subgaussian


def test_least_share_is_the_edge_of_condition_8():
    """At the edge the epsilon_S that (8) needs is 1/2, and less above it."""
    confusion, sigma, delta, tau = 0.05, 0.1, 0.2, 0.03
    edge = conditions.least_share(confusion, sigma, delta, tau)

    def epsilon(share):
        return confusion / share * math.exp(delta + tau) / (1 - (sigma + tau))

    assert epsilon(edge) == pytest.approx(0.5)
    assert epsilon(1.01 * edge) < 0.5
    assert conditions.least_share(0.0, sigma, delta) == 0.0
    assert conditions.least_share(confusion, 1.0, delta) == math.inf


def test_least_neurons_leave_no_room_in_equation_11():
    least = conditions.least_neurons(5, 200, 0.1)
    epsilon = 5 * math.sqrt(math.log(200) / least)
    assert 1 - epsilon - 0.1 * 5 / math.pi == pytest.approx(0.0)
    assert conditions.least_neurons(5, 200, 0.7) == math.inf


def test_batches_of_equation_9():
    assert conditions.least_batch(0.5, 0.1, 0.2) == pytest.approx(
        1 / (0.5 - math.exp(-0.2) * 0.1) ** 2
    )
    assert conditions.least_batch(0.05, 0.1, 0.2) == math.inf


def test_equation_70_is_no_equality_of_order():
    assert conditions.equation_70().holds is False
    edge = conditions.pole(0.1, 0.02)
    ratios = [
        conditions.derived_batch(edge * (1 + near), 0.1, 0.2, 0.02)
        / conditions.least_batch(edge * (1 + near), 0.1, 0.2, 0.02)
        for near in (0.1, 0.01, 0.001)
    ]
    assert ratios[1] > 50 * ratios[0]
    assert ratios[2] > 50 * ratios[1]
    assert conditions.derived_batch(0.99 * edge, 0.1, 0.2, 0.02) == math.inf


def test_the_constant_bounds_the_series_of_moments():
    C = 1 / (4 * subgaussian.hoeffding_constant())
    for x in (0.03, 0.4, 1.1, 2.5):
        total, term = 1.0, x
        for p in range(2, 120):
            term = math.exp(p * math.log(x) + p / 2 * math.log(p) - math.lgamma(p + 1))
            total += term
        assert subgaussian.exponent_of_series(x) == pytest.approx(math.log(total) / x**2)
        assert math.log(total) <= C * x**2 * (1 + 1e-6)


@pytest.mark.parametrize("chance", [1.0, 0.7, 0.1, 0.001])
def test_the_norm_is_the_largest_of_all_moments(chance):
    p = np.linspace(1, 60, 100_000)
    assert subgaussian.norm_of_rare_signs(chance) == pytest.approx(
        (p**-0.5 * chance ** (1 / p)).max(), rel=1e-6
    )
