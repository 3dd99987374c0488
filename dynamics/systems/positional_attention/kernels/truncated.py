r"""Kernels of the truncated expectation: the walk over configurations, the certified gradient.

A configuration is a multiset of n types with counts m_k and weight n! prod P_k^{m_k} / m_k!. The
walk chooses counts type by type, most probable type first. All completions of a partial choice,
with r sets left for the types from k on, have together the mass

.. math:: n! \prod_{i<k} \frac{P_i^{m_i}}{m_i!}\; \frac{(P_k + P_{k+1} + \dots)^r}{r!},

which is what a branch brings to the mass left out when it is cut. It is cut exactly where its most
probable completion, known from a table, is below the threshold. What was left out changes a
component of the gradient by at most

.. math:: \text{mass} \times \max_Z \bigl( |\partial h_s| + n \max_k |\partial h_k| \bigr),

since the logistic is at most 1. The certificate compares this with the gross of the component.
"""

from math import exp

import numpy as np

from dynamics.codegen.kernels import exact
from dynamics.systems.positional_attention.kernels.reduced import (
    margin_table,
    scatter,
    set_table,
    signal_type,
    spread_signal,
    weigh,
)

ROUNDING_BOUND = 8 * 2.3e-16


@exact
def completions(single, factorials):  # type: ignore[no-untyped-def]
    """Log weight of the most probable completion, prefix left out: (first type, sets left).

    Parameters
    ----------
    single : float array, shape (K,)
        log P_k, the most probable type first.
    factorials : float array, shape (n + 1,)
        log 0!, ..., log n!.
    """
    kinds, sets = single.size, factorials.size - 1
    best = np.full((kinds + 1, sets + 1), -np.inf)
    best[kinds, 0] = 0.0
    for k in range(kinds - 1, -1, -1):
        for rest in range(sets + 1):
            for m in range(rest + 1):
                weight = m * single[k] - factorials[m] + best[k + 1, rest - m]
                best[k, rest] = max(best[k, rest], weight)
    return best


@exact
def walk(single, tail, best, factorials, threshold, types, weights):  # type: ignore[no-untyped-def]
    """Configurations of log weight above a threshold; returns (how many, mass left out).

    Parameters
    ----------
    single, tail : float arrays, shape (K,)
        log P_k, the most probable type first, and log of P_k + P_{k+1} + ...
    best : float array, shape (K + 1, n + 1)
        `completions`.
    factorials : float array, shape (n + 1,)
        log 0!, ..., log n!.
    threshold : float
    types, weights : arrays, shapes (limit, n), (limit,)
        Receive the configurations; with ``types`` of no columns they are only counted. The walk
        stops beyond ``limit``.
    """
    kinds, sets, limit = single.size, factorials.size - 1, weights.size
    fill = types.shape[1] > 0
    # One level of the stack for every type whose count is set.
    kind, count = np.empty(sets + 2, dtype=np.int64), np.empty(sets + 2, dtype=np.int64)
    left, mass = np.empty(sets + 2, dtype=np.int64), np.empty(sets + 2)
    level, number, dropped = 0, 0, 0.0
    kind[0], count[0], left[0], mass[0] = 0, 0, sets, factorials[sets]
    while level >= 0:
        k, rest = kind[level], left[level]
        count[level] += 1
        if count[level] > rest:
            kind[level] += 1
            count[level] = 0
            k += 1
            if k >= kinds:
                level -= 1
                continue
            if mass[level] + best[k, rest] < threshold:
                dropped += exp(mass[level] + rest * tail[k] - factorials[rest])
                level -= 1
            continue
        m = count[level]
        base = mass[level] + m * single[k] - factorials[m]
        after = rest - m
        if after == 0:
            if base < threshold:
                dropped += exp(base)
                continue
            if number >= limit:
                return limit + 1, 1.0
            if fill:
                weights[number] = exp(base)
                column = 0
                for i in range(level + 1):
                    for _ in range(count[i]):
                        types[number, column] = kind[i]
                        column += 1
            number += 1
            continue
        if k + 1 >= kinds:
            continue
        if base + best[k + 1, after] < threshold:
            dropped += exp(base + after * tail[k + 1] - factorials[after])
            continue
        level += 1
        kind[level], count[level], left[level], mass[level] = k + 1, 0, after, base
    return number, dropped


def gradient(state, data, out):  # type: ignore[no-untyped-def]
    """Per-entry gradient, with its certificate filled; NaN where that exceeds the tolerance.

    Parameters
    ----------
    state : float array, shape (3,)
    data : reduced_data.ReducedData
        With a certificate.
    out : float array, shape (3,)
        Filled.
    """
    configurations, work, certificate = data.configurations, data.work, data.certificate
    parts, table, multiples = work.parts, work.table, configurations.multiples
    sets, kinds, columns = configurations.index.shape[0] - 1, table.shape[0], table.shape[1]
    signal = signal_type(configurations)
    margin_table(state, data)
    spread_signal(table, configurations)
    weigh(table, configurations, work.total, work.chance)
    scatter(work.chance, configurations, work.total)
    rows, lost = work.total.reshape(kinds, columns), False
    for i in range(3):
        set_table(parts[1 + i], multiples, configurations.sum_index, table)
        value, size, reach = 0.0, 0.0, 0.0
        for j in range(columns):
            steep = 0.0
            for k in range(kinds):
                slope = table[k, j]
                value += rows[k, j] * slope
                size += rows[k, j] * abs(slope)
                steep = max(steep, abs(slope))
            reach = max(reach, sets * steep + abs(table[signal, j]))
        out[i] = -value * data.share[i]
        certificate.gross[i] = size
        certificate.bound[i] = certificate.dropped * reach + ROUNDING_BOUND * size
        lost = lost or not certificate.bound[i] <= certificate.tolerance * size
    if lost:
        for i in range(3):
            out[i] = np.nan
