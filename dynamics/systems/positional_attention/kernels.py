r"""Kernels of the reduced population problem: one pass over the configurations.

A configuration is a multiset of types of the L-1 random sets. With the table h(type, Z) of the
current state,

1. gather: F = h(signal) + sum over the sets of h(type),
2. weigh: w = probability * 1/(1+e^F),
3. scatter w back to the table: W(type, Z) = sum of w over the configurations with that entry,
4. contract: dR/dtheta = - sum W(type, Z) dh(type, Z)/dtheta.

The derivatives enter only in the contraction, so one pass serves all of them. A set of type k
holds ``composition[k, i]`` patches of value ``x_i``, so tables are built from, and contracted with,
the contributions of single patches, ``patch[output, x, z, Z]``.
"""

from typing import Any

from dynamics.kernels.logistic import logistic, logistic_loss

prange = range
patch_table: Any = None  # supplied by the generated file
quantities: Any = None  # supplied by the generated file
order: Any = None  # supplied by the generated file


def set_table(patch, types, table):  # type: ignore[no-untyped-def]
    """h(type, Z) = sum over values x of (patches of that value) * act(O | x, z, Z)."""
    composition, place = types
    for k in range(place.size):
        for j in range(table.shape[1]):
            table[k, j] = (
                composition[k, 0] * patch[0, 0, place[k], j]
                + composition[k, 1] * patch[0, 1, place[k], j]
                + composition[k, 2] * patch[0, 2, place[k], j]
            )


def weigh(table, configurations, scattered):  # type: ignore[no-untyped-def]
    """Gather, logistic, scatter: W(type, Z), one copy per lane.

    Lanes are a property of the problem, not of the machine: results do not depend on the number of
    threads.
    """
    index, signal, probability = configurations
    lanes = scattered.shape[0]
    flat = table.reshape(-1)
    for lane in prange(lanes):
        target = scattered[lane]
        for k in range(target.size):
            target[k] = 0.0
        for c in range(lane * probability.size // lanes, (lane + 1) * probability.size // lanes):
            margin = flat[signal[c]]
            for set_ in range(index.shape[1]):
                margin += flat[index[c, set_]]
            weight = probability[c] * logistic(-margin)
            target[signal[c]] += weight
            for set_ in range(index.shape[1]):
                target[index[c, set_]] += weight


def contract(patch, types, scattered, weights, share, out):  # type: ignore[no-untyped-def]
    """Per-entry gradient: minus W against the derivatives of the patches, by (x, z, Z)."""
    composition, place = types
    columns = patch.shape[3]
    for lane in range(1, scattered.shape[0]):
        for k in range(scattered.shape[1]):
            scattered[0, k] += scattered[lane, k]
    total = scattered[0].reshape(place.size, columns)
    weights[:] = 0.0
    for k in range(place.size):
        for i in range(3):
            for j in range(columns):
                weights[i, place[k], j] += composition[k, i] * total[k, j]
    for theta in range(out.size):
        slope = 0.0
        for i in range(3):
            for m in range(weights.shape[1]):
                for j in range(columns):
                    slope += weights[i, m, j] * patch[1 + theta, i, m, j]
        out[theta] = -slope * share[theta]


def gradient(state, data, out):  # type: ignore[no-untyped-def]
    """Per-entry gradient of the population risk at (alpha, gamma, rho)."""
    constants, share, latents, types, configurations, work = data
    patch, table, scattered, weights = work
    patch_table(state, constants, latents, patch)
    set_table(patch, types, table)
    weigh(table, configurations, scattered)
    contract(patch, types, scattered, weights, share, out)


def order_parameters(state, slope, data, out):  # type: ignore[no-untyped-def]
    """Order parameters from the state and its gradient."""
    order(state, -slope, data[0], out)


def summary(state, data, out):  # type: ignore[no-untyped-def]
    """Population risk and error: ``out = (E log(1 + e^-F), P(F <= 0))``.

    A margin below 1e-13 of the sum of the absolute contributions is a tie, and counts as an error.
    """
    constants, share, latents, types, configurations, work = data
    patch, table, scattered, weights = work
    index, signal, probability = configurations
    patch_table(state, constants, latents, patch)
    set_table(patch, types, table)
    flat = table.reshape(-1)
    out[0] = 0.0
    out[1] = 0.0
    for c in range(probability.size):
        margin = flat[signal[c]]
        gross = abs(margin)
        for set_ in range(index.shape[1]):
            margin += flat[index[c, set_]]
            gross += abs(flat[index[c, set_]])
        out[0] += probability[c] * logistic_loss(margin)
        if margin <= 1e-13 * gross:
            out[1] += probability[c]
