r"""Kernels of the reduced population problem: one pass over the configurations.

A configuration is a multiset of types of the L-1 random sets. With the table h(type, Z) of the
current state,

1. gather: e^-F = product over the signal set and the random sets of e^-h(type),
2. weigh: w = probability * e^-F / (1 + e^-F),
3. scatter w back to the table: W(type, Z) = sum of w over the configurations with that entry,
4. contract: dR/dtheta = - sum W(type, Z) dh(type, Z)/dtheta.

The derivatives enter only in the contraction, so one pass serves all of them. A set of type k
holds ``composition[k, i]`` patches of value ``x_i``, so tables are built from, and contracted with,
the contributions of single patches, ``patch[output, x, z, Z]``.
"""

from math import exp
from typing import Any

import numpy as np

from dynamics.codegen.kernels.exponential import exponentials
from dynamics.codegen.kernels.logistic import logistic, logistic_loss

prange = range
SAFE_EXPONENT = 700.0
patch_table: Any = None  # supplied by the generated file
curvature_table: Any = None  # supplied by the generated file
order: Any = None  # supplied by the generated file


def set_table(patch, types, table):  # type: ignore[no-untyped-def]
    """h(type, Z) = sum over values x of (patches of that value) * act(O | x, z, Z).

    ``patch`` is one output of the table of patches, (x, z, Z); a derivative gives that of h.
    """
    composition, place = types
    for k in range(place.size):
        m = place[k]
        one, two, three = composition[k, 0], composition[k, 1], composition[k, 2]
        for j in range(table.shape[1]):
            table[k, j] = one * patch[0, m, j] + two * patch[1, m, j] + three * patch[2, m, j]


def weigh(table, configurations, total, chance):  # type: ignore[no-untyped-def]
    """Gather, logistic, scatter: ``total`` is W(type, Z), flat; ``chance`` is scratch.

    e^-F is the product of the e^-h of the sets, so the exponential is taken of the table and not
    of every configuration; where a product could overflow, the sum is taken first. The scatter is
    done entry by entry, as a sum over the configurations that hold the entry. Both passes are cut
    in lanes fixed by the problem, so results do not depend on the number of threads.
    """
    index, probability, entries, starts, members, cuts = configurations
    lanes, flat, largest = cuts.size - 1, table.reshape(-1), 0.0
    for k in range(flat.size):
        largest = max(largest, abs(flat[k]))
    product = largest * index.shape[0] < SAFE_EXPONENT
    if product:
        for k in range(flat.size):
            flat[k] = -flat[k]
        exponentials(flat, total)
    for lane in prange(lanes):
        first = lane * probability.size // lanes
        weight = chance[first : (lane + 1) * probability.size // lanes]
        if product:
            multiply(flat, index, first, weight)
        else:
            add(flat, index, first, weight)
        likely = probability[first : first + weight.size]
        for c in range(weight.size):
            weight[c] = likely[c] * (weight[c] / (1.0 + weight[c]))
    total[:] = 0.0
    for lane in prange(lanes):
        for k in range(cuts[lane], cuts[lane + 1]):
            summed = 0.0
            for m in range(starts[k], starts[k + 1]):
                summed += chance[members[m]]
            total[entries[k]] = summed


def multiply(flat, index, first, out):  # type: ignore[no-untyped-def]
    """e^-F as the product of the factors e^-h of the sets, two sets at a time."""
    last, sets = first + out.size, index.shape[0]
    one, two = index[0, first:last], index[1, first:last]
    for c in range(out.size):
        out[c] = flat[one[c]] * flat[two[c]]
    for k in range(1, sets // 2):
        one, two = index[2 * k, first:last], index[2 * k + 1, first:last]
        for c in range(out.size):
            out[c] *= flat[one[c]] * flat[two[c]]
    if sets % 2 == 1:
        one = index[sets - 1, first:last]
        for c in range(out.size):
            out[c] *= flat[one[c]]


def add(flat, index, first, out):  # type: ignore[no-untyped-def]
    """e^-F from the sum F, cut where e^-F / (1 + e^-F) is 1 to the last digit."""
    for c in range(out.size):
        margin = 0.0
        for k in range(index.shape[0]):
            margin += flat[index[k, first + c]]
        out[c] = exp(min(-margin, SAFE_EXPONENT))


def contract(patch, types, total, weights, share, out):  # type: ignore[no-untyped-def]
    """Per-entry gradient: minus W against the derivatives of the patches, by (x, z, Z)."""
    composition, place = types
    columns = patch.shape[3]
    weights[:] = 0.0
    rows = total.reshape(place.size, columns)
    for k in range(place.size):
        m = place[k]
        for i in range(3):
            many = composition[k, i]
            for j in range(columns):
                weights[i, m, j] += many * rows[k, j]
    pushed = weights.reshape(-1)
    for theta in range(out.size):
        along = patch[1 + theta].reshape(-1)
        slope = 0.0
        for k in range(pushed.size):
            slope += pushed[k] * along[k]
        out[theta] = -slope * share[theta]


def gradient(state, data, out):  # type: ignore[no-untyped-def]
    """Per-entry gradient of the population risk at (alpha, gamma, rho)."""
    constants, share, latents, types, configurations, work = data
    patch, table, total, weights, chance = work
    patch_table(state, constants, latents, patch)
    set_table(patch[0], types, table)
    weigh(table, configurations, total, chance)
    contract(patch, types, total, weights, share, out)


def hessian(state, data, out):  # type: ignore[no-untyped-def]
    """Derivative of the per-entry gradient by the state, from its two parts.

    d2R / dtheta dphi = E[ s (1 - s) F_theta F_phi ] - E[ s F_theta_phi ], s = 1/(1+e^F), divided
    by the number of entries of theta.
    """
    constants, share, latents, types, configurations, work = data
    index, probability = configurations[:2]
    grid = work[3].shape
    patch = np.empty((10, grid[0], grid[1], grid[2]))
    curvature_table(state, constants, latents, patch)
    tables = np.empty((4, work[1].shape[0], work[1].shape[1]))
    for k in range(4):
        set_table(patch[k], types, tables[k])
    flat = tables.reshape(4, work[2].size)
    total = np.zeros(work[2].size)
    first = np.zeros((3, 3))
    slope = np.empty(4)
    for c in range(probability.size):
        slope[:] = 0.0
        for k in range(index.shape[0]):
            for i in range(4):
                slope[i] += flat[i, index[k, c]]
        weight = probability[c] * logistic(-slope[0])
        bent = weight * logistic(slope[0])
        for k in range(index.shape[0]):
            total[index[k, c]] += weight
        for i in range(3):
            for j in range(i + 1):
                first[i, j] += bent * slope[1 + i] * slope[1 + j]
    second = np.empty(6)
    contract(patch[3:], types, total, work[3], np.ones(6), second)
    k = 0
    for i in range(3):
        for j in range(i, 3):
            both = first[j, i] + second[k]
            out[i, j] = both * share[i]
            out[j, i] = both * share[j]
            k += 1


def order_parameters(state, slope, data, out):  # type: ignore[no-untyped-def]
    """Order parameters from the state and its gradient."""
    order(state, -slope, data[0], out)


def summary(state, data, out):  # type: ignore[no-untyped-def]
    """Population risk and error: ``out = (E log(1 + e^-F), P(F <= 0))``.

    A margin below 1e-13 of the sum of the absolute contributions is a tie, and counts as an error.
    """
    constants, share, latents, types, configurations, work = data
    patch, table = work[:2]
    index, probability = configurations[:2]
    patch_table(state, constants, latents, patch)
    set_table(patch[0], types, table)
    flat = table.reshape(-1)
    out[0] = 0.0
    out[1] = 0.0
    for c in range(probability.size):
        margin, gross = 0.0, 0.0
        for k in range(index.shape[0]):
            margin += flat[index[k, c]]
            gross += abs(flat[index[k, c]])
        out[0] += probability[c] * logistic_loss(margin)
        if margin <= 1e-13 * gross:
            out[1] += probability[c]
    if out[0] != out[0]:
        out[1] = np.nan
