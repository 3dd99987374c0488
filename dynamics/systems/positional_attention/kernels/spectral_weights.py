r"""Weights, risk and their errors, summed over all z: kernels between `spectral` and one integral.

Each z is planned for its share of the allowed error, integrated, and its residue and rounding
noise are added. Equations are those of `spectral`. ``data`` is
`dynamics.systems.positional_attention.kernels.spectral_data.SpectralData`.
"""

from math import exp, expm1, pi

import numpy as np

from dynamics.systems.positional_attention.kernels.contour import (
    ROUNDING_UNIT,
    kernel_mass,
    plan,
    transform_length,
)
from dynamics.systems.positional_attention.kernels.integral import integrate
from dynamics.systems.positional_attention.kernels.saddle_points import TINY, scan_sums

LARGEST_TABLE = 1e300
NO_DIGIT = 0.1
PASSES = 4
GUESS = 0.06
LARGE = 0.5
"""Share of the largest bound at any z, from which a z is among the first."""


def prepare(tables, data, guess, limits):  # type: ignore[no-untyped-def]
    """Plan every z that still needs work; returns the number of nodes that this will take.

    Parameters
    ----------
    tables : float array, shape (at least 4, K, columns)
        h, then its derivatives.
    data : SpectralData
    guess : float array, shape (4,)
        Estimate of the gross.
    limits : (float, float, float)
        Error allowed at each z, relative to the gross; the bound on what a z adds, relative to the
        guess, up to which it is left out; the error up to which a z is done.
    """
    allowed, least, done = limits
    scan, plans, errors, nodes = data.scan, data.plans, data.weights.errors, 0.0
    for c in range(data.z.size):
        plans.contour[c] = -1
        largest = 0.0
        for i in range(4):
            largest = max(largest, scan.upper[c, i] / guess[i])
        if largest <= least or not scan.scanned[c] or 0.0 <= errors[c] <= done:
            continue
        plan(data, c, guess, allowed, 1.0 + data.count / 10.0)
        plans.length[c] = transform_length(data, c, np.ascontiguousarray(tables[0, :, c]))
        nodes += (plans.window[c] / plans.step[c] + 1.0) * plans.length[c]
    return nodes


def weigh_sum(tables, data, c, second):  # type: ignore[no-untyped-def]
    """Weights and risk at one z by its plan, with the residue (5), without (8), and their noise.

    Parameters
    ----------
    tables : float array, shape (at least 4, K, columns)
        h, then its derivatives.
    data : SpectralData
    c : int
        Position of z.
    second : bool
        Whether the weights of s (1 - s) are filled too.
    """
    weights = data.weights
    weights.first[c] = 0.0
    if second:
        weights.second[c] = 0.0
        weights.pairs[c] = 0.0
    risk = integrate(data, tables, c, second)
    kappa, kinds, period = data.kappas[data.plans.contour[c]], tables.shape[1], 2.0 * pi
    period /= data.plans.step[c]
    side = 1.0 if kappa > 0.0 else -1.0
    noise = weights.noise[c]
    mean = 0.0
    for i in range(4):
        output = (1 + i) % 4
        mean = data.chance[c] * tables[output, kinds - 1, c]
        noise[i] = abs(mean)
        for k in range(kinds):
            part = data.count * data.chance_less[c, k] * tables[output, k, c]
            mean += part
            noise[i] += abs(part)
    # The last mean is E[F; z].
    if data.plans.crossed[c]:
        decay = 1.0 / expm1(period * abs(kappa))
        risk -= decay * (period * (1.0 + decay) * data.chance[c] - side * mean)
    if kappa < 0.0:
        risk -= mean
        for k in range(kinds):
            weights.first[c, k] += data.chance_less[c, k]
    weights.risks[c] = risk
    add_noise(data, c, noise)


def add_noise(data, c, noise):  # type: ignore[no-untyped-def]
    """What rounding may add at one z: to the residue, to the nodes, to their phases.

    The phases e^{-i omega h} are wrong by omega times the roundings of h, and by those of the turns
    from node to node; over omega, |pi / sin(pi u)| omega has an integral of at most pi/4.

    Parameters
    ----------
    data : SpectralData
    c : int
        Position of z.
    noise : float array, shape (4,)
        On entry E[sum of |dh|; z], then that of |h|. Filled.
    """
    s, scan, count = data.plans.contour[c], data.scan, data.count
    kappa, step, reach = data.kappas[s], data.plans.step[c], scan.reach[c]
    tilt = abs(kappa) * reach[3, s] + abs(scan.lam[c, s] * data.z[c]) + abs(scan.psi[c, s])
    turns = 0.5 * reach[3, s] + (count + 1.0) / step
    rounded = (4.0 * count + 16.0 + 4.0 * tilt) * kernel_mass(kappa) + turns
    rounded *= ROUNDING_UNIT * exp(min(scan.psi[c, s], 700.0))
    residue = data.law_error
    if kappa > 0.0:
        residue *= exp(-2.0 * pi * kappa / step)
    for i in range(4):
        noise[i] = residue * noise[i] + rounded * (reach[i, s] if i < 3 else 1.0 / abs(kappa))


def accumulate(tables, data):  # type: ignore[no-untyped-def]
    """(6): sums over z and types of E[s dF] and the risk, and the same in absolute values.

    Parameters
    ----------
    tables : float array, shape (at least 4, K, columns)
        h, then its derivatives.
    data : SpectralData
    """
    count, weights, values, gross = data.count, data.weights.first, data.values, data.gross
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
        values[3] += data.weights.risks[c]
        gross[3] += abs(data.weights.risks[c])


def spectrum(tables, data, tolerance, second):  # type: ignore[no-untyped-def]
    """Weights, gradient sums, risk, gross and error bound, from h and its derivatives.

    The gross is guessed first. The z that may add most are taken alone: what they add is a better
    guess from below, with which the others need fewer nodes. The plan is made again where the guess
    was too high.

    Parameters
    ----------
    tables : float array, shape (at least 4, K, columns)
        h, then its derivatives.
    data : SpectralData
    tolerance : float
        Error allowed, relative to the gross.
    second : bool
        Whether the weights of s (1 - s) are needed.
    """
    values, gross, bounds, report = data.values, data.gross, data.bounds, data.report
    upper, errors = data.scan.upper, data.weights.errors
    kinds, columns = tables.shape[1], tables.shape[2]
    report[0], report[1] = 0.0, 0.0
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
        data.weights.first[:] = np.nan
        return
    guess, allowed = np.empty(4), tolerance / (4.0 * columns)
    scan_sums(tables, data, GUESS * allowed)
    data.weights.first[:] = 0.0
    data.weights.risks[:] = 0.0
    errors[:] = -1.0
    for i in range(4):
        guess[i] = GUESS * upper[:, i].max() + TINY
    for attempt in range(1 + PASSES):
        limits = (allowed, allowed, 6.0 * allowed)
        if attempt < 2:  # what the first have added can only raise the guess
            limits = (allowed, LARGE / GUESS if attempt == 0 else allowed, np.inf)
        report[0] += prepare(tables, data, guess, limits)
        if not report[0] <= data.budget:
            report[1] = 1.0
            return
        for c in range(columns):
            if data.plans.contour[c] >= 0:
                weigh_sum(tables, data, c, second)
                errors[c] = 4.0 * data.plans.error[c]
        accumulate(tables, data)
        for i in range(4):
            if not gross[i] < LARGEST_TABLE:
                report[1] = 2.0
                return
        if attempt == 0:
            for i in range(4):
                guess[i] = max(guess[i], gross[i])
            continue
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
            if errors[c] >= 0.0:
                bounds[i] += errors[c] * guess[i] + data.weights.noise[c, i]
            else:
                bounds[i] += upper[c, i]
        if bounds[i] > max(NO_DIGIT * gross[i], TINY):
            report[1] = 3.0
