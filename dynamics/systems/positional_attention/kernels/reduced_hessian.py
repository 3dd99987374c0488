r"""Kernel of the Hessian of the reduced population problem, from the table of `reduced`.

With s = 1/(1 + e^F), the Hessian of the risk is E[ s (1 - s) F_theta F_phi ] - E[ s F_theta_phi ]:
outer products over the configurations, and a contraction like that of the gradient.
"""

from typing import Any

import numpy as np

from dynamics.codegen.kernels.elementary import exponentials
from dynamics.systems.positional_attention.kernels.reduced import (
    BLOCK,
    NONE_BELOW,
    SAFE_EXPONENT,
    contract,
    fill_parts,
    scatter,
    set_table,
    spread_signal,
)

curvature_table: Any = None  # supplied by the generated file


def hessian(state, data, out):  # type: ignore[no-untyped-def]
    """Derivative of the per-entry gradient by the state, from its two parts.

    d2R / dtheta dphi = E[ s (1 - s) F_theta F_phi ] - E[ s F_theta_phi ], s = 1/(1+e^F), divided
    by the number of entries of theta.

    Parameters
    ----------
    state : float array, shape (3,)
    data : ReducedData
    out : float array, shape (3, 3)
        Filled.
    """
    configurations, work, share = data.configurations, data.work, data.share
    grid = work.weights.shape
    curvature = np.empty((6, grid[0], grid[1], grid[2]))
    curvature_table(state, data.constants, configurations.latents, curvature)
    fill_parts(state, data)
    multiples, sum_index = configurations.multiples, configurations.sum_index
    table, flat = np.empty((work.total.size, 4)), work.table.reshape(-1)
    for i in range(4):
        set_table(work.parts[i], multiples, sum_index, work.table)
        spread_signal(work.table, configurations)
        for k in range(flat.size):
            table[k, i] = flat[k]
    first = outer_products(table, configurations, work.chance)
    scatter(work.chance, configurations, work.total)
    second, composition = np.empty(6), configurations.composition
    contract(curvature, composition, sum_index, work.total, work.weights, np.ones(6), second)
    k = 0
    for i in range(3):
        for j in range(i, 3):
            entry = first[k] + second[k]
            out[i, j] = entry * share[i]
            out[j, i] = entry * share[j]
            k += 1


def outer_products(table, configurations, chance):  # type: ignore[no-untyped-def]
    """E[ s (1 - s) F_theta F_phi ], shape (6,): (0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2).

    With e = e^-|F|, s (1 - s) = e / (1 + e)^2, and s = e / (1 + e) or 1 / (1 + e), by the sign.

    Parameters
    ----------
    table : float array, shape (K * sums Z, 4)
        h(type, Z) and its derivatives, side by side, those of the signal set spread.
    configurations : Configurations
    chance : float array, shape (n,)
        Filled with w of each configuration, its probability times s.
    """
    probability, products = configurations.probability, np.empty(6)
    aa, ag, ar, gg, gr, rr = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0  # by alpha, gamma, rho
    sums, power, scratch = np.empty((4, BLOCK)), np.empty(BLOCK), np.empty(BLOCK)
    for begin in range(0, probability.size, BLOCK):
        likely = probability[begin : begin + BLOCK]
        weight = chance[begin : begin + likely.size]
        sum_sets(table, configurations.index, (begin, likely.size), sums)
        for c in range(likely.size):
            power[c] = -min(abs(sums[0, c]), SAFE_EXPONENT)
        exponentials(power[: likely.size], scratch[: likely.size])
        for c in range(likely.size):
            small = power[c] if power[c] >= NONE_BELOW else 0.0
            portion = likely[c] / (1.0 + small)
            weight[c] = portion * (small if sums[0, c] > 0.0 else 1.0)
            steep = portion * small / (1.0 + small)
            a, g, r = sums[1, c], sums[2, c], sums[3, c]
            aa += steep * a * a
            ag += steep * a * g
            ar += steep * a * r
            gg += steep * g * g
            gr += steep * g * r
            rr += steep * r * r
    products[0], products[1], products[2] = aa, ag, ar
    products[3], products[4], products[5] = gg, gr, rr
    return products


def sum_sets(table, index, span, sums):  # type: ignore[no-untyped-def]
    """F and its derivatives: sums over the random sets of consecutive configurations.

    Parameters
    ----------
    table : float array, shape (K * sums Z, 4)
        Those of the signal set spread.
    index : uint32 array, shape (L, n)
        See `Configurations`.
    span : (int, int)
        First configuration, and how many.
    sums : float array, shape (4, BLOCK)
        Filled, as far as there are configurations.
    """
    first, count = span
    for c in range(count):
        margin, along, across, deep = 0.0, 0.0, 0.0, 0.0
        for k in range(1, index.shape[0]):
            row = index[k, first + c]
            margin += table[row, 0]
            along += table[row, 1]
            across += table[row, 2]
            deep += table[row, 3]
        sums[0, c], sums[1, c], sums[2, c], sums[3, c] = margin, along, across, deep
