r"""Weights, risk and their errors, summed over all z: kernels between `spectral` and one integral.

Each z is planned for its share of the allowed error, integrated, and its residue and rounding
noise are added. Equations are those of `spectral`. ``law`` and ``columns`` are
`SumLaw` and `Columns` of `dynamics.systems.positional_attention.kernels.spectral_data`.
"""

from math import exp, expm1, pi

import numpy as np

from dynamics.codegen.kernels import LANES
from dynamics.systems.positional_attention.kernels.contour import (
    ROUNDING_UNIT,
    kernel_mass,
    plan,
    transform_length,
)
from dynamics.systems.positional_attention.kernels.integral import integrate
from dynamics.systems.positional_attention.kernels.saddle_points import TINY, scan_sums

prange = range
LARGEST_TABLE = 1e300
NO_DIGIT = 0.1
PASSES = 4
GUESS = 0.06
LARGE = 0.5
"""Share of the largest bound at any z, from which a z is among the first."""


def plan_sums(tables, law, columns, guess, limits):  # type: ignore[no-untyped-def]
    """Plan every z that still needs work; returns the number of nodes that this will take.

    Parameters
    ----------
    tables, law, columns
        As of `weigh_sums`.
    guess : float array, shape (4,)
        Estimate of the gross.
    limits : (float, float, float)
        Error allowed at each z, relative to the gross; the bound on what a z adds, relative to the
        guess, up to which it is left out; the error up to which a z is done.
    """
    allowed, least, done = limits
    nodes = 0.0
    for c in range(law.z.size):
        columns.contour[c] = -1
        largest = 0.0
        for i in range(4):
            largest = max(largest, columns.upper[c, i] / guess[i])
        if largest <= least or not columns.scanned[c] or 0.0 <= columns.errors[c] <= done:
            continue
        plan(law, columns, c, guess, allowed)
        if not columns.error[c] < largest:  # the integral would say less than the bound
            columns.contour[c] = -1
        if columns.contour[c] < 0:  # no contour: all of it is uncertain
            continue
        h = np.ascontiguousarray(tables[0, :, c])
        columns.length[c] = transform_length(law, columns, c, h)
        nodes += (columns.window[c] / columns.step[c] + 1.0) * columns.length[c]
    return nodes


def weigh_sums(tables, law, columns):  # type: ignore[no-untyped-def]
    """Weights and risk at every z that is planned, in lanes.

    Parameters
    ----------
    tables : float array, shape (4 or 10, K, columns)
        h, then its first derivatives; where second ones follow, the weights of s (1 - s) are
        filled too.
    law, columns : SumLaw, Columns
    """
    planned = np.flatnonzero(columns.contour >= 0)
    for lane in prange(min(LANES, planned.size)):
        # To and fro: neighbours take about as long.
        first, turns = np.int64(lane), (planned.size + LANES - 1) // LANES
        for turn in range(turns):
            position = turn * LANES + (first if turn % 2 == 0 else LANES - 1 - first)
            if position < planned.size:
                weigh_sum(tables, law, columns, planned[position])


def weigh_sum(tables, law, columns, c):  # type: ignore[no-untyped-def]
    """Weights and risk at one z by its plan: with the residue (5), without (8), and their noise.

    Parameters
    ----------
    tables, law, columns
        As of `weigh_sums`.
    c : int
        Position of z.
    """
    columns.errors[c] = 4.0 * columns.error[c]
    columns.first[c] = 0.0
    columns.second[c] = 0.0
    columns.pairs[c] = 0.0
    risk = integrate(tables, law, columns, c)
    kappa, kinds, period = law.kappas[columns.contour[c]], tables.shape[1], 2.0 * pi
    period /= columns.step[c]
    side = 1.0 if kappa > 0.0 else -1.0
    noise = columns.noise[c]
    mean = 0.0
    for i in range(4):
        output = (1 + i) % 4
        mean = law.chance[c] * tables[output, kinds - 1, c]
        noise[i] = abs(mean)
        for k in range(kinds):
            part = law.count * law.chance_less[c, k] * tables[output, k, c]
            mean += part
            noise[i] += abs(part)
    # The last mean is E[F; z].
    if columns.crossed[c]:
        decay = 1.0 / expm1(period * abs(kappa))
        risk -= decay * (period * (1.0 + decay) * law.chance[c] - side * mean)
    if kappa < 0.0:
        risk -= mean
        for k in range(kinds):
            columns.first[c, k] += law.chance_less[c, k]
    columns.risks[c] = risk
    add_noise(law, columns, c, noise)


def add_noise(law, columns, c, noise):  # type: ignore[no-untyped-def]
    """What rounding may add at one z: to the residue, to the nodes, to their phases.

    The phases e^{-i omega h} are wrong by omega times the roundings of h, and by those of the turns
    from node to node; over omega, |pi / sin(pi u)| omega has an integral of at most pi/4.

    Parameters
    ----------
    law, columns : SumLaw, Columns
    c : int
        Position of z.
    noise : float array, shape (4,)
        On entry E[sum of |dh|; z], then that of |h|. Filled.
    """
    s, count = columns.contour[c], law.count
    kappa, step, reach = law.kappas[s], columns.step[c], columns.reach[c]
    tilt = abs(kappa) * reach[3, s] + abs(columns.lam[c, s] * law.z[c]) + abs(columns.psi[c, s])
    turns = 0.5 * reach[3, s] + (count + 1.0) / step
    factor = ROUNDING_UNIT * (4.0 * count + 16.0) + expm1(min(4.0 * ROUNDING_UNIT * tilt, 700.0))
    rounded = factor * kernel_mass(kappa) + ROUNDING_UNIT * turns
    rounded *= exp(min(columns.psi[c, s], 700.0))
    residue = law.law_error
    if kappa > 0.0:
        residue *= exp(-2.0 * pi * kappa / step)
    for i in range(4):
        noise[i] = residue * noise[i] + rounded * (reach[i, s] if i < 3 else 1.0 / abs(kappa))


def accumulate(tables, data):  # type: ignore[no-untyped-def]
    """(6): sums over z and types of E[s dF] and the risk, and the same in absolute values.

    Parameters
    ----------
    tables : float array, shape (4 or 10, K, columns)
        See `weigh_sums`.
    data : SpectralData
    """
    weights, risks = data.columns.first, data.columns.risks
    values, gross = data.values, data.gross
    count, kinds = data.law.count, weights.shape[1]
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


def spectrum(tables, data, tolerance):  # type: ignore[no-untyped-def]
    """Weights, gradient sums, risk, gross and error bound, from h and its derivatives.

    The gross is guessed first. The z that may add most are taken alone: what they add is a better
    guess from below, with which the others need fewer nodes. The plan is made again where the guess
    was too high.

    Parameters
    ----------
    tables : float array, shape (4 or 10, K, columns)
        See `weigh_sums`.
    data : SpectralData
    tolerance : float
        Error allowed, relative to the gross.
    """
    values, gross, bounds, report = data.values, data.gross, data.bounds, data.report
    law, columns, budget = data.law, data.columns, data.budget
    upper, errors = columns.upper, columns.errors
    kinds, many = tables.shape[1], tables.shape[2]
    report[0], report[1] = 0.0, 0.0
    size = 0.0
    for i in range(4):
        for k in range(kinds):
            for c in range(many):
                size += abs(tables[i, k, c])
    if not size < LARGEST_TABLE:
        # Not a number, or so large that exponents overflow: no finite answer, whatever the budget.
        values[:] = np.nan
        gross[:] = np.nan
        bounds[:] = np.nan
        columns.first[:] = np.nan
        return
    guess, allowed = np.empty(4), tolerance / (4.0 * many)
    scan_sums(tables, law, columns, GUESS * allowed)
    columns.first[:] = 0.0
    columns.risks[:] = 0.0
    errors[:] = -1.0
    for i in range(4):
        guess[i] = GUESS * upper[:, i].max() + TINY
    for attempt in range(1 + PASSES):
        limits = (allowed, allowed, 6.0 * allowed)
        if attempt < 2:  # what the first have added can only raise the guess
            limits = (allowed, LARGE / GUESS if attempt == 0 else allowed, np.inf)
        report[0] += plan_sums(tables, law, columns, guess, limits)
        if not report[0] <= budget:
            report[1] = 1.0
            return
        weigh_sums(tables, law, columns)
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
        for c in range(many):
            errors[c] *= shrink / 0.7
    for i in range(4):
        bounds[i] = 8.0 * ROUNDING_UNIT * gross[i]
        for c in range(many):
            if errors[c] >= 0.0:
                bounds[i] += errors[c] * guess[i] + columns.noise[c, i]
            else:
                bounds[i] += upper[c, i]
        if not bounds[i] <= max(NO_DIGIT * gross[i], TINY):
            report[1] = 3.0
