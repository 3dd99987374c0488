"""Kernels of the spectral expectation, run as Python, against the formulas as they are written."""

import numpy as np
import pytest

from dynamics.codegen import loops
from dynamics.codegen.kernels.vectors import WIDTH
from dynamics.systems.positional_attention.kernels import (
    circle,
    contour,
    grid_weights,
    integral,
    saddle_points,
)
from dynamics.systems.positional_attention.reduced import spectral

STATE = np.array([0.2, 0.05, -0.02])


@pytest.fixture
def data(system):
    """Tables, laws and plans of one state."""
    problem = system.ReducedPopulation(system.Parameters(D=24, C=3, q=0.3), "spectral")
    loops.gradient(problem.addressed, STATE)
    return spectral_data(problem)


def spectral_data(problem):
    return next(each.data for each in vars(problem).values() if isinstance(each, spectral.Spectral))


def tilted(data, c, kappa, lam):
    """P_k e^{-kappa h_k + lambda z_k} at one z."""
    law = data.law
    return law.probability * np.exp(-kappa * data.tables[0, :, c] + lam * law.sums)


def test_psi_and_the_means_are_those_of_the_tilted_law(data):
    law, columns, seen = data.law, data.columns, 0
    for c in np.flatnonzero(columns.scanned):
        h, slopes = data.tables[0, :, c], np.abs(data.tables[[1, 2, 3, 0], :, c])
        for s in np.flatnonzero(columns.psi[c] < saddle_points.UNKNOWN):
            kappa, lam = law.kappas[s], columns.lam[c, s]
            weights = tilted(data, c, kappa, lam)
            psi = law.count * np.log(weights.sum()) - lam * law.z[c] - kappa * h[-1]
            assert columns.psi[c, s] == pytest.approx(psi, rel=1e-11, abs=1e-11)
            mean = law.count * slopes @ weights / weights.sum() + slopes[:, -1]
            np.testing.assert_allclose(columns.reach[c, :, s], mean, rtol=1e-10)
            seen += 1
    assert seen > 200


def test_lambda_is_near_the_minimum_of_psi(data):
    law, columns = data.law, data.columns
    for c in np.flatnonzero(columns.scanned):
        for s in np.flatnonzero(columns.psi[c] < saddle_points.UNKNOWN):
            here = columns.lam[c, s]

            def exponent(lam, c=c, s=s):
                total = tilted(data, c, law.kappas[s], lam).sum()
                return law.count * np.log(total) - lam * law.z[c]

            if abs(here) < saddle_points.LARGEST_TILT - 1.0:
                assert exponent(here) <= min(exponent(here - 0.02), exponent(here + 0.02))


def test_sums_that_do_not_matter_keep_bounds_from_the_last_kappa(data):
    partly = (data.columns.psi == saddle_points.UNKNOWN).any(axis=1) & data.columns.scanned
    assert partly.any()
    for c in np.flatnonzero(partly):
        last = data.law.kappas[data.columns.psi[c] < saddle_points.UNKNOWN]
        assert 1.0 in last


def test_weights_of_the_grid_are_exponentials(data):
    law, kinds = data.law, data.law.probability.size
    c = int(law.outward[0])
    weights = np.empty((law.kappas.size // WIDTH, kinds, WIDTH))
    lowest, highest = grid_weights.tilted_weights(law, data.tables, c, weights)
    h = data.tables[0, :, c]
    assert (lowest, highest) == (h.min(), h.max())
    for s, kappa in enumerate(law.kappas):
        wanted = np.exp(-kappa * (h - (lowest if kappa > 0 else highest)))
        np.testing.assert_allclose(weights[s // WIDTH, :, s % WIDTH], wanted, rtol=1e-13)


def test_weights_that_underflow_are_bounds_from_above():
    law = spectral.law_of_sums(set_law(), 3)
    kinds, rows = law.probability.size, 2 * int(law.sums.max()) + 1
    tables = np.linspace(0.0, 40_000.0, kinds).reshape(1, kinds, 1)
    weights, folded = np.empty((3, kinds, WIDTH)), np.empty((rows, WIDTH))
    grid_weights.tilted_weights(law, tables, 0, weights)
    for block in weights:
        grid_weights.fold_weights(law, block, folded)
        assert (block >= grid_weights.LEAST_WEIGHT).all()
        assert (folded > 0.0).all()
    assert (weights == grid_weights.LEAST_WEIGHT).any()


def set_law():
    from theory.papers.positional_attention.data_law import SetLaw

    return SetLaw(3, 0.3)


def test_the_tilt_of_a_mean_has_it():
    law = set_law()
    sums = np.arange(-law.C, law.C + 1.0)
    for mean in (-2.9, -1.0, 0.0, 0.4, 2.5):
        weights = law.sum_law * np.exp(spectral.tilt_of(law, mean) * sums)
        assert weights @ sums / weights.sum() == pytest.approx(mean, abs=1e-9)
    assert spectral.tilt_of(law, 3.0) == saddle_points.LARGEST_TILT
    assert spectral.tilt_of(law, -3.0) == -saddle_points.LARGEST_TILT


def test_a_plan_takes_no_kappa_of_which_nothing_is_known(data):
    law, columns, allowed = data.law, data.columns, 1e-10
    c = int(np.flatnonzero(columns.contour >= 0)[0])
    known = columns.psi[c].copy()
    last = law.kappas.size - WIDTH
    try:
        columns.psi[c, :last] = saddle_points.UNKNOWN
        contour.plan(law, columns, c, data.gross, allowed)
        assert last < columns.contour[c] <= law.last
        assert columns.step[c] > 1e-3
        columns.psi[c, : law.last] = saddle_points.UNKNOWN
        columns.contour[c] = -1
        contour.plan(law, columns, c, data.gross, allowed)
        assert columns.contour[c] == -1
    finally:
        columns.psi[c] = known
        contour.plan(law, columns, c, data.gross, allowed)


def circle_points(length, width, z):
    """zeta_m^j for j = -C..C, and zeta_m^{-z} / M."""
    zeta = np.exp(2j * np.pi * np.arange(length) / length)
    return zeta[:, None] ** np.arange(-width, width + 1), zeta ** (-z) / length


@pytest.mark.parametrize("length", [8, 12, 28])
def test_the_circle_and_its_adjoint_are_fourier_sums(length):
    width, z, rng = 3, -5, np.random.default_rng(length)
    waves, shift = circle.powers_of_points(width, length, z)
    powers, turned = circle_points(length, width, z)
    np.testing.assert_allclose(shift[0] + 1j * shift[1], turned, atol=1e-15)
    half = length // 2 + 1
    np.testing.assert_allclose(waves[0] + 1j * waves[1], powers[:half, width:], atol=1e-14)
    fold = rng.normal(size=(2, 2 * width + 1, WIDTH))
    base, halves = np.empty((2, length, WIDTH)), np.empty((4, width + 1, WIDTH))
    circle.on_circle(fold, waves, halves, base)
    np.testing.assert_allclose(
        base[0] + 1j * base[1], powers @ (fold[0] + 1j * fold[1]), rtol=1e-12
    )
    back, sides = np.empty_like(fold), np.empty((4, half, WIDTH))
    circle.from_circle(base, waves, length // 2, sides, back)
    wanted = powers.T @ (base[0] + 1j * base[1])
    np.testing.assert_allclose(back[0] + 1j * back[1], wanted, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("power", [0, 1, 2, 7, 30])
def test_powers_are_powers_and_what_is_left_out_is_nothing(power):
    length, rng = 20, np.random.default_rng(power)
    size = np.exp(-0.4 * np.minimum(np.arange(length), length - np.arange(length)))[:, None]
    values = size * np.exp(1j * rng.uniform(0, 6, (length, WIDTH)))
    base, out = np.array([values.real, values.imag]), np.zeros((2, length, WIDTH))
    shift = rng.normal(size=(2, length))
    reach = circle.farthest(base, power)
    circle.raised(base, power, shift, reach, out)
    wanted = values**power * (shift[0] + 1j * shift[1])[:, None]
    np.testing.assert_allclose(out[0] + 1j * out[1], wanted, rtol=1e-12, atol=1e-17)
    assert (reach < length // 2) == (power == 30)


def naive_integral(data, tables, c, nodes):
    """The sums of `integrate`, node by node, in complex numbers."""
    law, columns = data.law, data.columns
    s, length = columns.contour[c], columns.length[c]
    kappa, lam, step, power = law.kappas[s], columns.lam[c, s], columns.step[c], law.count - 1
    h, slopes = tables[0, :, c], tables[1:4, :, c]
    chances = tilted(data, c, kappa, lam)
    psi = law.count * np.log(chances.sum()) - lam * law.z[c] - kappa * h[-1]
    chances /= chances.sum()
    powers, turned = circle_points(length, int(law.sums.max()), law.z[c])
    zeta = powers[:, law.sums + int(law.sums.max())]
    risk, first, second = 0.0, np.zeros(h.size), np.zeros(h.size)
    pairs = np.zeros((3, 3))
    for node in range(nodes):
        omega = node * step
        u, now = kappa + 1j * omega, chances * np.exp(-1j * omega * h)
        front = np.exp(psi) * step / (2.0 * np.pi) * np.pi / np.sin(np.pi * u)
        front *= np.exp(-1j * omega * h[-1]) * (1.0 if node == 0 else 2.0)
        base = zeta @ now
        types = now * (turned * base**power @ zeta)
        first += (front * types).real
        second += (front * u * types).real
        risk += (front / u * types.sum()).real
        if power > 0:
            each = zeta @ (now * slopes).T
            around = turned * base ** (power - 1)
            pairs += (front * u * np.einsum("m,mi,mj->ij", around, each, each)).real
    return risk, first, second, pairs[np.triu_indices(3)]


@pytest.mark.parametrize("D", [6, 24])
def test_an_integral_is_the_sum_over_its_nodes(system, D):
    """With one random set, which has no pairs, and with seven."""
    problem = system.ReducedPopulation(system.Parameters(D=D, C=3, q=0.3), "spectral")
    loops.gradient(problem.addressed, STATE)
    data = spectral_data(problem)
    columns = data.columns
    kinds, many = data.tables.shape[1:]
    tables = np.concatenate([data.tables, np.zeros((6, kinds, many))])
    planned = np.flatnonzero(columns.contour >= 0)
    assert planned.size
    for c in planned[:: max(1, planned.size // 4)]:
        columns.first[c], columns.second[c], columns.pairs[c] = 0.0, 0.0, 0.0
        risk = integral.integrate(tables, data.law, columns, c)
        blocks = int(np.ceil((columns.window[c] / columns.step[c] + 1.0) / WIDTH))
        wanted = naive_integral(data, tables, c, blocks * WIDTH)
        size = np.exp(columns.psi[c, columns.contour[c]])
        assert risk == pytest.approx(wanted[0], rel=1e-11, abs=1e-13 * size)
        found = columns.first[c], columns.second[c], columns.pairs[c]
        for one, other in zip(found, wanted[1:], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-13 * size)
