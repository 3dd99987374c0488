"""Sizes that asymptotic statements need: against rho(0) of areas, and the integrated motion."""

from math import log

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from theory.papers.masked_image_modeling import required_sizes as sizes
from theory.papers.masked_image_modeling.information_gap import rho_at_start
from theory.papers.masked_image_modeling.symmetry import one_cluster

EXPONENTS = (0.9, 0.3)


def integrated(ratio, until, length=1.0):
    """Phi_m and Phi_0 of the leading motion, until an event or up to a length of a t."""

    def rates(_, phi):
        return [np.exp(phi[0]), -ratio * np.exp(2 * phi[1])]

    until.terminal = True
    path = solve_ivp(rates, (0, length), [0.0, 0.0], events=until, rtol=1e-11, atol=1e-12)
    return path.y[:, -1]


def test_the_ratio_is_that_of_whole_areas():
    P, core, local = 96, 64, 8
    exponents = log(core) / log(P), log(local) / log(P)
    expected = rho_at_start(one_cluster(P, core, local), 0, core, 24)
    assert float(sizes.ratio_at_start(P, exponents, 0.25)) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("condition", [sizes.first_phase, sizes.threshold_before_switch])
def test_the_least_size_is_where_the_condition_begins(condition):
    exponents = (log(704) / log(4096), log(64) / log(4096))
    gap = (1 - exponents[1]) - 2 * (1 - exponents[0])
    least = sizes.least_patches(condition, exponents, 0.5, 4096)
    assert 4096 < least < 1e200
    for factor, met in ((0.99, False), (1.01, True)):
        P = factor * least
        assert condition(P, sizes.ratio_at_start(P, exponents, 0.5), gap) is met


def test_what_is_met_at_the_start_needs_no_more():
    found = sizes.least_patches(sizes.first_phase, EXPONENTS, 0.5, 4096)
    assert found == pytest.approx(4096)
    assert sizes.least_patches(lambda *start: False, EXPONENTS, 0.5, 4096) == np.inf


def test_growth_in_stage_1_is_that_of_the_integrated_motion():
    P, gap, ratio = 1e30, 0.5, 2e15
    depth = (gap / 2 - 0.01) * log(P)
    own, _ = integrated(ratio, lambda _, phi: phi[1] + depth)
    found = float(sizes.growth_in_stage_1(P, ratio, gap))
    assert found == pytest.approx(np.exp(own) - 1, rel=1e-6)


def test_the_change_after_the_switch_is_that_of_the_integrated_motion():
    ratio = 50.0
    _, at_switch = integrated(ratio, lambda _, phi: ratio * np.exp(2 * phi[1]) - np.exp(phi[0]))
    _, at_end = integrated(ratio, lambda _, phi: phi[0] - 15.0)
    found = float(sizes.change_after_switch(1e4, ratio, 0.5))
    assert found == pytest.approx((at_end - at_switch) / at_switch, rel=1e-5)
