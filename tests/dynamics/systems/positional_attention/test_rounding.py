"""Bounds on what rounding may change, against slower ways to compute the same."""

import mpmath
import numpy as np
import pytest

from dynamics.systems.positional_attention.reduced import rounding, spectral

STATES = [(0.0358, 0.0, 0.0), (0.2, 1.3, -0.4), (0.09, 3.0, -1.2), (-0.3, -0.5, 0.7)]


def shares(known, degree, state):
    """Shares of the sets of a spectral expectation in longer floats."""
    data, at = known.data, np.array(state)
    return rounding.shares(
        degree, at, data.constants, data.latents[2], data.multiples, data.sum_index
    )


@pytest.mark.parametrize("degree", [3, 9])
def test_sizes_of_terms_in_short_floats_are_those_in_longer_ones(system, degree, monkeypatch):
    """Up to the last spread at which they are short: none underflows, and the factor makes up."""
    parameters = system.Parameters(D=32, C=4, p=degree, q=0.3)
    known = system.ReducedPopulation(parameters, "spectral").expectation
    far = rounding.LARGEST_SPREAD / parameters.scale - parameters.beta
    for state in [*STATES, (0.2, 0.999 * far, 0.0), (0.2, 0.0, 0.999 * far)]:
        short = shares(known, degree, state).errors
        with monkeypatch.context() as patch:
            patch.setattr(rounding, "LARGEST_SPREAD", 0.0)
            long = shares(known, degree, state).errors
        assert (short > 0.0).any()
        assert (short >= long / rounding.MORE_OF_SIZES).all()
        np.testing.assert_allclose(short, long, rtol=1e-10)


@pytest.mark.parametrize(
    ("law", "state"),
    [({"nu": 1e-300, "p": 9}, (1e-20, 3.0, 1.0)), ({}, (1e90, 0.5, -0.2)), ({"p": 31}, STATES[1])],
)
def test_where_powers_may_underflow_or_overflow_sizes_are_long(system, law, state, monkeypatch):
    parameters = system.Parameters(D=12, C=4, **law)
    known = system.ReducedPopulation(parameters, "spectral").expectation
    found = shares(known, parameters.p, state).errors
    monkeypatch.setattr(rounding, "LARGEST_SPREAD", 0.0)
    np.testing.assert_array_equal(found, shares(known, parameters.p, state).errors)


def over_all_kappas(data, exact):
    """`spectral.rounding_bound` with the best of all kappas at each z, one after the other."""
    law, columns, unit = data.law, data.columns, rounding.ROUNDING
    errors = np.abs(data.tables - exact.values).astype(float) + exact.errors
    sizes = np.abs(data.tables) + errors
    total = (8 + law.count) * unit * data.gross
    for z in range(law.z.size):
        e, s, h = errors[:, :, z], sizes[:, :, z], data.tables[0, :, z]
        most, trivial = (part[:, -1] + law.count * part.max(axis=1) for part in (e, s))
        if not columns.scanned[z]:
            total += law.chance[z] * most[[1, 2, 3, 0]]
            continue
        grown = np.expm1(most[0]) / most[0]
        steep, slope, risk = [], [], []
        for k, kappa in enumerate(law.kappas):
            if abs(kappa) > 1.0:
                continue
            lam = columns.lam[z, k]
            tilt = lam * law.sums - kappa * h
            tilted = law.probability * np.exp(tilt - tilt.max())
            tilted *= law.count / tilted.sum()
            far = law.count * (abs(kappa) * np.abs(h).max() + abs(lam) * law.sums.max())
            far += abs(lam * law.z[z])
            height = float(mpmath.exp(columns.psi[z, k] + 8.0 * unit * far))
            mean_e, mean_s = (part @ tilted + part[:, -1] for part in (e, s))
            both = mean_e[0] * mean_s[1:] + (e[0] * s[1:]) @ tilted
            steep.append(height * grown * both)
            if kappa >= 0.0:
                slope.append(height * mean_e[1:])
                risk.append(height * grown * mean_e[0])
        total[:3] += np.minimum(np.min(steep, axis=0), law.chance[z] * trivial[1:])
        total[:3] += np.minimum(np.min(slope, axis=0), law.chance[z] * most[1:])
        total[3] += min(*risk, law.chance[z] * most[0])
    return total


@pytest.mark.parametrize("settings", [{"D": 32, "C": 4, "q": 0.3}, {"D": 64, "C": 4, "q": 0.05}])
def test_two_kappas_of_every_sum_bound_nearly_as_well_as_all(system, settings):
    known = system.ReducedPopulation(system.Parameters(**settings), "spectral").expectation
    for state in map(np.array, STATES):
        exact = shares(known, 3, state)
        known.gradient(state)
        found = spectral.rounding_bound(known.data, exact)
        least = over_all_kappas(known.data, exact)
        assert (found >= least * (1.0 - 1e-9)).all()
        assert (found <= least * 1.4).all()
