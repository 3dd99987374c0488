r"""Kernels of the spectral expectation: one contour integral and one Fourier transform per sum z.

With n = L-1 random sets and u = kappa + i omega, for 0 < kappa < 1,

.. math::
   \varsigma(-F) = \frac{1}{2\pi} \int e^{-uF} \frac{\pi}{\sin \pi u}\, d\omega,

so the weights :math:`w_k(z) = E[\varsigma(-F)\, 1\{\text{set 1 has type } k, \text{sum} = z\}]`
need only :math:`E[e^{-uF}; z]`, in which the sets are independent but for their sum; that is fixed
by a discrete Fourier transform on the circle :math:`|\zeta| = e^\lambda`. Left of 0 the pole there
adds :math:`P_k\, pmf_{n-1}(z - z_k)`. Everything is tilted by (kappa, lambda): with

    p_k = P_k exp(-kappa h_k + lambda z_k) / S,    psi = n log S - lambda z - kappa h_s,

the integrand is e^psi times quantities of size one. Gradient, risk and gross come from one set of
weights.
"""

from math import log
from typing import Any

import numpy as np

from dynamics.systems.positional_attention.kernels.contour import (
    ROUNDING_UNIT,
    TINY,
    plan,
    survey,
    transform_length,
)
from dynamics.systems.positional_attention.kernels.integral import integrate, waves_of
from dynamics.systems.positional_attention.kernels.reduced import set_table

patch_table: Any = None  # supplied by the generated file
curvature_table: Any = None  # supplied by the generated file
order: Any = None  # supplied by the generated file

LARGEST_TABLE = 1e300
NO_DIGIT = 0.1
PASSES = 4
FINEST = 1e-13
GUESS = 0.06


def prepare(tables, problem, found, guess, allowed, plans, errors):  # type: ignore[no-untyped-def]
    """Plan every z that still needs work; returns the number of nodes that this will take.

    ``plans`` is (columns, 6): position of kappa (-1: nothing to do), step, window, log bound,
    allowed error, transform length. ``errors`` holds what earlier passes have reached, or -1.
    """
    law, window, kappas, ends, budget = problem
    probability, sums, count = law
    psi, lam, reach, upper, scanned = found
    width, nodes = int(sums.max()), 0.0
    longest = 8 * ((2 * int(count) * width + 8) // 8)
    empty = np.empty((0, 0))
    for c in range(upper.shape[0]):
        plans[c, 0] = -1.0
        largest = 0.0
        for i in range(4):
            largest = max(largest, upper[c, i] / guess[i])
        reached = 0.0 <= errors[c] <= 6.0 * allowed
        if largest <= allowed or not scanned[c] or reached:
            continue
        scan = (psi[c], lam[c], reach[c])
        plan(kappas, ends, scan, guess, allowed, 1.0 + count / 10.0, plans[c])
        s = int(plans[c, 0])
        column = (np.ascontiguousarray(tables[0, :, c]), 0.0, empty, empty[:0, 0])
        excess = plans[c, 3] - log(max(plans[c, 4], TINY))
        z = window[0][c]
        length = transform_length(law, column, kappas[s], lam[c, s], z, excess, longest)
        plans[c, 5] = length
        nodes += (plans[c, 2] / plans[c, 1] + 1.0) * length
    return nodes


def weigh_sum(tables, problem, found, plans, c, weights, curved):  # type: ignore[no-untyped-def]
    """w_k at one z by its plan, the residue at 0 added left of it; returns the risk there.

    ``curved`` is (v_k, pairs) by column, both of no columns where only the gradient is wanted.
    """
    law, window, kappas, ends, budget = problem
    sums, count = law[1], law[2]
    sums_z, chance, chance_less, outward = window
    s, share = int(plans[c, 0]), np.ascontiguousarray(tables[0, :, c])
    length = int(plans[c, 5])
    tilts = (kappas[s], found[1][c, s], found[0][c, s])
    point = (tilts, plans[c, 1], plans[c, 2], sums_z[c])
    weights[:] = 0.0
    waves = waves_of(int(sums.max()), length)
    if curved[0].shape[0] > 0:
        slopes = np.ascontiguousarray(tables[1:4, :, c])
        curved[0][c] = 0.0
        curved[1][c] = 0.0
        risk = integrate(law, share, point, waves, weights, (slopes, curved[0][c], curved[1][c]))
    else:
        none = np.empty((0, 0))
        risk = integrate(law, share, point, waves, weights, (none, none[:, 0], none[:, 0]))
    if kappas[s] < 0.0:
        risk -= chance[c] * share[share.size - 1]
        for k in range(share.size):
            weights[k] += chance_less[c, k]
            risk -= count * chance_less[c, k] * share[k]
    return risk


def collect(tables, count, weights, risks, values, gross):  # type: ignore[no-untyped-def]
    """Sums over z and types: E[s dF_theta] and the risk, and the same in absolute values."""
    kinds = weights.shape[1]
    values[:] = 0.0
    gross[:] = 0.0
    for c in range(weights.shape[0]):
        whole = 0.0
        for k in range(kinds):
            whole += weights[c, k]
            for i in range(3):
                term = count * weights[c, k] * tables[1 + i, k, c]
                values[i] += term
                gross[i] += abs(term)
        for i in range(3):
            term = whole * tables[1 + i, kinds - 1, c]
            values[i] += term
            gross[i] += abs(term)
        values[3] += risks[c]
        gross[3] += abs(risks[c])


def surveyed(tables, problem, tolerance):  # type: ignore[no-untyped-def]
    """The scan of every sum: psi, lambda, reach, upper bounds, and whether it was needed."""
    columns, kappas = problem[1][0].size, problem[2].size
    upper, scanned = np.empty((columns, 4)), np.zeros(columns, dtype=np.bool_)
    shape = (columns, kappas)
    found = (np.empty(shape), np.empty(shape), np.empty((columns, 4, kappas)), upper, scanned)
    survey(tables, problem, tolerance, found)
    return found


def spectrum(tables, problem, tolerance, out, weights, curved):  # type: ignore[no-untyped-def]
    """Gradient sums, risk, gross and error bound from the tables of h and its derivatives.

    ``out`` receives (4,) values: E[s dF_theta] for three theta and the risk; their gross; their
    bounds; and (nodes, status). Status 1: the predicted work exceeds the budget; status 2: the
    integrals overflow; status 3: they cancel until not a digit is left. The gross is guessed first
    and the plan made again where the guess was too high. ``weights`` receives
    w_k(z), ``curved`` what `weigh_sum` says.
    """
    law, window, kappas, ends, budget = problem
    values, gross, bounds, report = out
    kinds, columns = law[0].size, window[0].size
    size = 0.0
    for i in range(4):
        for k in range(kinds):
            for c in range(columns):
                size += abs(tables[i, k, c])
    if not size < LARGEST_TABLE:
        # Not a number, or so large that exponents overflow: no finite answer, whatever the budget.
        values[:] = np.nan
        gross[:] = np.nan
        bounds[:] = np.nan
        return
    found = surveyed(tables, problem, tolerance)
    upper = found[3]
    weights[:] = 0.0
    risks, errors = np.zeros(columns), -np.ones(columns)
    plans, guess = np.empty((columns, 6)), np.empty(4)
    for i in range(4):
        guess[i] = GUESS * upper[:, i].max() + TINY
    report[0], report[1] = 0.0, 0.0
    for _ in range(PASSES):
        nodes = prepare(tables, problem, found, guess, tolerance / (4.0 * columns), plans, errors)
        report[0] += nodes
        if not report[0] <= budget:
            report[1] = 1.0
            return
        for c in range(columns):
            if plans[c, 0] >= 0.0:
                risks[c] = weigh_sum(tables, problem, found, plans, c, weights[c], curved)
                errors[c] = 4.0 * plans[c, 4]
        collect(tables, law[2], weights, risks, values, gross)
        for i in range(4):
            if not gross[i] < LARGEST_TABLE:
                report[1] = 2.0
                return
        shrink = 1.0
        for i in range(4):
            if gross[i] > 0.0:
                shrink = max(shrink, guess[i] / gross[i])
        if shrink <= 1.5:
            break
        for i in range(4):
            if gross[i] > 0.0:
                guess[i] = min(guess[i], 0.7 * gross[i])
        for c in range(columns):
            errors[c] *= shrink / 0.7
    for i in range(4):
        bounds[i] = 8.0 * ROUNDING_UNIT * gross[i]
        for c in range(columns):
            bounds[i] += errors[c] * guess[i] if errors[c] >= 0.0 else upper[c, i]
        if bounds[i] > max(NO_DIGIT * gross[i], TINY):
            report[1] = 3.0


def tables_at(state, data):  # type: ignore[no-untyped-def]
    """Fill and return h and its three derivatives by type and z."""
    constants, share, latents, types, problem, work = data
    patch, tables = work[:2]
    patch_table(state, constants, latents, patch)
    for k in range(4):
        set_table(patch[k], types, tables[k])
    return tables


def settled(state, data):  # type: ignore[no-untyped-def]
    """Fill the results for a state, gradient and risk only."""
    problem, work = data[4], data[5]
    columns, kinds = problem[1][0].size, problem[0][0].size
    none, weights = np.empty((0, kinds)), np.empty((columns, kinds))
    spectrum(tables_at(state, data), problem, work[6][0], work[2:6], weights, (none, none))


def gradient(state, data, out):  # type: ignore[no-untyped-def]
    """Per-entry gradient of the population risk; NaN where the work exceeds the budget."""
    share, results = data[1], data[5][2:6]
    settled(state, data)
    for theta in range(3):
        out[theta] = -results[0][theta] * share[theta]
        if results[3][1] > 0.0:
            out[theta] = np.nan


def hessian(state, data, out):  # type: ignore[no-untyped-def]
    """Derivative of the per-entry gradient by the state; NaN where the work exceeds the budget.

    d2R / dtheta dphi = E[ s (1 - s) F_theta F_phi ] - E[ s F_theta_phi ], s = 1/(1+e^F), divided
    by the number of entries of theta; w_k, v_k and the pairs come from one pass over the nodes. The
    tolerance speaks of s; where s (1 - s) is much smaller, a second pass is as much finer.
    """
    constants, share, latents, types, problem, work = data
    columns, kinds, tolerance = problem[1][0].size, problem[0][0].size, work[6][0]
    grid = work[0].shape
    patch = np.empty((10, grid[1], grid[2], grid[3]))
    curvature_table(state, constants, latents, patch)
    tables = np.empty((10, kinds, columns))
    for k in range(10):
        set_table(patch[k], types, tables[k])
    weights, singles = np.empty((columns, kinds)), np.zeros((columns, kinds))
    pairs, first, second = np.zeros((columns, 6)), np.empty((3, 3)), np.empty((3, 3))
    for _ in range(2):
        spectrum(tables[:4], problem, tolerance, work[2:6], weights, (singles, pairs))
        bent(tables, problem[0][2], (weights, singles, pairs), first, second)
        ratio = 1.0
        for i in range(3):
            size = work[3][i] * work[3][i]
            if size > 0.0:
                ratio = min(ratio, 300.0 * abs(first[i, i]) * weights.sum() / size)
        if ratio >= 1.0 or work[5][1] > 0.0:
            break
        tolerance = max(tolerance * ratio, FINEST)
    for i in range(3):
        for j in range(3):
            both = (first[i, j] - second[i, j]) * share[i]
            out[i, j] = both if work[5][1] == 0.0 else np.nan


def bent(tables, count, given, first, second):  # type: ignore[no-untyped-def]
    """E[ s (1 - s) F_i F_j ] and E[ s F_ij ] from the weights of s and of s (1 - s)."""
    weights, singles, pairs = given
    first[:] = 0.0
    second[:] = 0.0
    columns, kinds = weights.shape
    for c in range(columns):
        whole, curved = weights[c].sum(), singles[c].sum()
        place = 0
        for i in range(3):
            for j in range(i, 3):
                steep_i, steep_j = tables[1 + i, kinds - 1, c], tables[1 + j, kinds - 1, c]
                outer = curved * steep_i * steep_j + count * (count - 1.0) * pairs[c, place]
                inner = whole * tables[4 + place, kinds - 1, c]
                for k in range(kinds):
                    one, two = tables[1 + i, k, c], tables[1 + j, k, c]
                    outer += count * singles[c, k] * (one * steep_j + two * steep_i + one * two)
                    inner += count * weights[c, k] * tables[4 + place, k, c]
                first[i, j] += outer
                second[i, j] += inner
                place += 1
    for i in range(3):
        for j in range(i):
            first[i, j], second[i, j] = first[j, i], second[j, i]


def order_parameters(state, slope, data, out):  # type: ignore[no-untyped-def]
    """Order parameters from the state and its gradient."""
    order(state, -slope, data[0], out)


def summary(state, data, out):  # type: ignore[no-untyped-def]
    """Population risk; the population error is not a smooth function and is left NaN."""
    results = data[5][2:6]
    settled(state, data)
    out[0] = results[0][3] if results[3][1] == 0.0 else np.nan
    out[1] = np.nan
