"""Spectrum across a symmetric manifold, and growth of what leaves it."""

from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dynamics
from dynamics.analysis.transverse_stability import propagate, split, transverse
from dynamics.papers.positional_attention.manifold import Manifold
from theory.symmetry import PermutationGroup

SYSTEM = dynamics.load_system("positional_attention")


LAW = SYSTEM.Parameters(D=9, C=3, q=0.6)


@cache
def along():
    """The spectrum along the flow."""
    times = np.concatenate([[0.0], np.geomspace(1e-3, 1e5, 300)])
    run = dynamics.flow(SYSTEM.ReducedPopulation(LAW), 1e5, rtol=1e-10, record=times)
    return transverse(Manifold(LAW), run)


def test_split_gives_the_orbits_and_their_complement():
    swaps = PermutationGroup(5, (np.array([0, 2, 1, 3, 4]), np.array([0, 1, 2, 4, 3])))
    fixed, across = split(swaps)
    basis = np.concatenate([fixed, across], axis=1)
    np.testing.assert_allclose(basis.T @ basis, np.eye(5), atol=1e-15)
    half = np.sqrt(0.5)
    wanted = [[1, 0, 0], [0, half, 0], [0, half, 0], [0, 0, half], [0, 0, half]]
    np.testing.assert_allclose(fixed, wanted)
    np.testing.assert_allclose(np.abs(across[1]), np.abs(across[2]))


def test_propagator_of_hessians_that_do_not_commute():
    """Against an integrator; the error falls fourfold when the intervals are halved."""

    def bend(time):
        turn, grow = np.cos(3 * time), np.sin(2 * time)
        return np.array([[-1.0, turn, 0.3], [turn, 0.5, grow], [0.3, grow, -0.4 * time]])

    def rate(time, flat):
        return (-bend(time) @ flat.reshape(3, 3)).ravel()

    wanted = solve_ivp(rate, (0, 2), np.eye(3).ravel(), rtol=1e-12, atol=1e-12).y[:, -1]
    lengths = np.linalg.svd(wanted.reshape(3, 3))[1]
    errors = []
    for records in (101, 201):
        time = np.linspace(0, 2, records)
        largest, typical, worst = propagate(time, [bend(t) for t in time])
        errors.append([largest[-1] / lengths[0] - 1, typical[-1] ** 2 * 3 / (lengths**2).sum() - 1])
        grown = np.linalg.norm(wanted.reshape(3, 3) @ worst)
        assert grown == pytest.approx(lengths[0], rel=1e-3)
    np.testing.assert_allclose(np.divide(*errors), 4, rtol=0.05)
    summed = np.trapezoid([np.linalg.eigvalsh(bend(t))[0] for t in time], time)
    assert largest[-1] < 0.8 * np.exp(-summed)  # the sum of the worst rates overestimates


def test_spectrum_of_a_small_size():
    found, (D, C), negative = along(), (9, 3), (38, 32, 70)
    plateau, later = found.at(3.0), found.at(100.0)
    counts = found.negative[plateau], found.negative[later], found.eigenvalues.shape[1]
    assert counts == negative
    assert found.eigenvalues[found.time > 1].min() == pytest.approx(-0.0107, abs=1e-4)
    assert found.attracting_from == pytest.approx(3.09e3, rel=0.01)
    assert found.peak == pytest.approx(487.0, rel=0.01)
    # Across is less stable than along: the symmetric line repels more than gamma grows.
    assert found.eigenvalues[plateau, 0] < found.symmetric[plateau, 0] < 0
    assert found.multiplicity(plateau) == D - D // C
    first = {name: share[plateau, 0] for name, share in found.shares.items()}
    assert first["rows"] > 0.98
    assert first["gamma"] + first["rho"] == pytest.approx(1)


def test_the_full_flow_grows_the_worst_deviation_by_the_peak():
    """Nothing linear here: the full flow from a start displaced along the worst direction."""
    found, full, omega = along(), SYSTEM.FullPopulation(LAW), 1e-6
    manifold = Manifold(LAW, full)
    start, end = full.initial_state, found.time[found.amplification.argmax()]
    start[manifold.trained] += omega * found.worst
    run = dynamics.flow(full, end, rtol=1e-11, initial=start, record=2)
    across = split(manifold.symmetry)[1]
    grown = np.linalg.norm(across.T @ run.final_state[manifold.trained]) / omega
    assert grown == pytest.approx(found.peak, rel=0.01)
