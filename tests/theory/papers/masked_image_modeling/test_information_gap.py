"""rho(0), Delta, floors, moments of masks; sizes that asymptotic statements need, integrated."""

import math
from fractions import Fraction

import naive
import numpy as np
import pytest
import sympy
from scipy.integrate import solve_ivp

from theory.papers.masked_image_modeling import information_gap, model
from theory.papers.masked_image_modeling import required_sizes as sizes
from theory.papers.masked_image_modeling.notation import NOTATION
from theory.papers.masked_image_modeling.symmetry import one_cluster

P, C_global, C_local, masked = NOTATION.symbols("P C_global C_local masked")
kappa_c, kappa_s = NOTATION.symbols("kappa_c kappa_s")


@pytest.mark.parametrize(
    ("areas", "p", "hidden", "latents"),
    [
        (one_cluster(6, 2, 2), 5, 2, ((0.7, 1.3), (0.4, 0.6))),
        (np.array([[0, 0, 1, 1, 1, 2]]), 3, 4, ((1, 2), (0.5, 0.5))),
    ],
)
def test_rho_at_start_equals_brute_force(areas, p, hidden, latents):
    row = (np.zeros(areas.max() + 1), np.zeros(areas.shape[1]))
    law = list(zip(*latents, strict=True))
    rates, _ = naive.masked_rates(areas.tolist(), p, hidden, law, row, width=1e-4)
    found = information_gap.rho_at_start(areas, 0, p, hidden, latents)
    assert found == pytest.approx(-rates[0] / rates[areas[0, p]], rel=1e-7)


def test_the_gap_is_the_exponent_of_rho_at_start_in_the_number_of_patches():
    """Between 10^80 and 10^120 patches, areas of sizes P^kappa, half of them masked."""
    ratio = information_gap.initial_ratio()
    for c, s in ((0.9, 0.3), (0.9, 0.1), (0.6, 0.4)):
        ends = []
        for power in (80, 120):
            size = sympy.Float(10, 60) ** power
            at = {P: size, C_global: size**c, C_local: size**s, masked: size / 2}
            ends.append(float(sympy.log(ratio.subs(at), 10)))
        delta = information_gap.information_gap().subs({kappa_c: c, kappa_s: s})
        assert (ends[1] - ends[0]) / 40 == pytest.approx(float(delta), abs=1e-6)


def test_rho_is_refused_where_it_is_not_defined():
    with pytest.raises(ValueError, match="patch 0 is in the global area"):
        information_gap.rho_at_start(one_cluster(6, 2, 2), 0, 0, 3)
    with pytest.raises(ValueError, match="patch 5 is in an area of its own"):
        information_gap.rho_at_start(one_cluster(6, 2, 1), 0, 5, 3)


@pytest.mark.parametrize(("sets", "hidden"), [([(3, 2)], 4), ([(2, 1), (3, 2)], 3), ([(2, 3)], 6)])
def test_moments_of_masks(sets, hidden):
    size, first = 8, 1
    total, count = Fraction(), 0
    for chosen, _ in model.masks(size, hidden):
        if 0 in chosen:
            begin, product = first, 1
            for width, power in sets:
                product *= sum(q not in chosen for q in range(begin, begin + width)) ** power
                begin += width
            total, count = total + product, count + 1
    assert model.unmasked_moment(sets, size, hidden) == sympy.Rational(total / count)


def test_floor_of_the_loss():
    counts = [
        sum(chosen >= {0, 1, 2} for chosen, _ in model.masks(7, hidden)) for hidden in range(1, 7)
    ]
    for hidden, number in enumerate(counts, start=1):
        assert model.fully_masked(7, hidden, 3) == Fraction(number, math.comb(7, hidden))
    assert model.unavoidable_error(7, 4, [1]) == Fraction(4, 14)
    second = Fraction(109, 100)
    assert model.unavoidable_error(7, 4, [3, 8], second) == second * model.fully_masked(7, 4, 3) / 4


def integrated(ratio, until, length=1.0):
    """Phi_m and Phi_0 of the leading motion, until an event or up to a length of a t."""

    def rates(_, phi):
        return [np.exp(phi[0]), -ratio * np.exp(2 * phi[1])]

    until.terminal = True
    path = solve_ivp(rates, (0, length), [0.0, 0.0], events=until, rtol=1e-11, atol=1e-12)
    return path.y[:, -1]


def test_the_ratio_is_that_of_whole_areas():
    P, core, local = 96, 64, 8
    exponents = math.log(core) / math.log(P), math.log(local) / math.log(P)
    expected = information_gap.rho_at_start(one_cluster(P, core, local), 0, core, 24)
    assert float(sizes.ratio_at_start(P, exponents, 0.25)) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("condition", [sizes.first_phase, sizes.threshold_before_switch])
def test_the_least_size_is_where_the_condition_begins(condition):
    exponents = (math.log(704) / math.log(4096), math.log(64) / math.log(4096))
    gap = (1 - exponents[1]) - 2 * (1 - exponents[0])
    least = sizes.least_patches(condition, exponents, 0.5, 4096)
    assert 4096 < least < 1e200
    for factor, met in ((0.99, False), (1.01, True)):
        P = factor * least
        assert condition(P, sizes.ratio_at_start(P, exponents, 0.5), gap) is met
    # Met at the start, and never.
    found = sizes.least_patches(sizes.first_phase, (0.9, 0.3), 0.5, 4096)
    assert found == pytest.approx(4096)
    assert sizes.least_patches(lambda *start: False, (0.9, 0.3), 0.5, 4096) == np.inf


def test_growth_in_stage_1_is_that_of_the_integrated_motion():
    P, gap, ratio = 1e30, 0.5, 2e15
    depth = (gap / 2 - 0.01) * math.log(P)
    own, _ = integrated(ratio, lambda _, phi: phi[1] + depth)
    found = float(sizes.growth_in_stage_1(P, ratio, gap))
    assert found == pytest.approx(np.exp(own) - 1, rel=1e-6)


def test_the_change_after_the_switch_is_that_of_the_integrated_motion():
    ratio = 50.0
    _, at_switch = integrated(ratio, lambda _, phi: ratio * np.exp(2 * phi[1]) - np.exp(phi[0]))
    _, at_end = integrated(ratio, lambda _, phi: phi[0] - 15.0)
    found = float(sizes.change_after_switch(1e4, ratio, 0.5))
    assert found == pytest.approx((at_end - at_switch) / at_switch, rel=1e-5)
