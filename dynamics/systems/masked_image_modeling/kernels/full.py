r"""Kernels of the full population problem: every mask, cluster and latent, all of Q free.

For a masked image with tokens :math:`\tilde X_q = 1\{q \notin M\} X_q + e_q`, and p masked,

.. math::
   s_q = \tilde X_p^\top Q \tilde X_q, \quad u = \mathrm{softmax}(s), \quad
   F_p = \sum_{q \notin M} u_q X_q, \quad \ell = \tfrac12 |F_p - X_p|^2,

and :math:`\partial \ell / \partial Q = \tilde X_p (\sum_q \partial \ell / \partial s_q \tilde
X_q)^\top`, vectors of R^d throughout. Only that a masked token is :math:`e_p` is used, to take
its product with Q once. What is read off beside the gradient is summed in the same pass, patch by
patch: the loss, the least possible loss, the attention on the own area, and the chance that a mate
is unmasked.
"""

from math import exp

import numpy as np

from dynamics.systems.masked_image_modeling.kernels.reduced import read_order


def accumulate(state, basis, images, bounds, work):  # type: ignore[no-untyped-def]
    """Sums over images first, ..., last - 1: gradient by the rows e_p of Q, numbers by patch.

    Parameters
    ----------
    state : float array, shape (d, d)
    basis : (positions, features, owner)
        e (P, d), v (features, d), and the feature of every patch in each cluster (K, P).
    images : (cluster, latent, hidden, weight)
    bounds : (first, last)
    work : (rows, numbers)
        (P, d), and (P, 4): loss, floor, own attention, mates.
    """
    positions, features, owner = basis
    cluster, latent, hidden, weight = images
    rows, numbers = work
    size, depth = positions.shape
    rows[:] = 0.0
    numbers[:] = 0.0
    asked = np.zeros((size, depth))
    for p in range(size):
        for i in range(depth):
            for j in range(depth):
                asked[p, j] += positions[p, i] * state[i, j]
    tokens, seen = np.empty((size, depth)), np.empty(size, dtype=np.bool_)
    weights, pushed = np.empty(size), np.empty(size)
    missing = np.empty(depth)
    for n in range(bounds[0], bounds[1]):
        feature = owner[cluster[n]]
        seen[:] = True
        for m in range(hidden.shape[1]):
            seen[hidden[n, m]] = False
        for q in range(size):
            content = latent[n, q] if seen[q] else 0.0
            for i in range(depth):
                tokens[q, i] = positions[q, i] + content * features[feature[q], i]
        for m in range(hidden.shape[1]):
            p = hidden[n, m]
            top = -np.inf
            for q in range(size):
                score = 0.0
                for i in range(depth):
                    score += asked[p, i] * tokens[q, i]
                weights[q] = score
                top = max(top, score)
            total = 0.0
            for q in range(size):
                weights[q] = exp(weights[q] - top)
                total += weights[q]
            own, mates = 0.0, 0
            for i in range(depth):
                missing[i] = -latent[n, p] * features[feature[p], i]
            for q in range(size):
                weights[q] /= total
                if seen[q]:
                    if feature[q] == feature[p]:
                        own += weights[q]
                        mates += 1
                    for i in range(depth):
                        missing[i] += weights[q] * latent[n, q] * features[feature[q], i]
            loss, mean = 0.0, 0.0
            for i in range(depth):
                loss += 0.5 * missing[i] * missing[i]
            for q in range(size):
                pushed[q] = 0.0
                if seen[q]:
                    for i in range(depth):
                        pushed[q] += latent[n, q] * features[feature[q], i] * missing[i]
                mean += weights[q] * pushed[q]
            for q in range(size):
                along = weight[n] * weights[q] * (pushed[q] - mean)
                for i in range(depth):
                    rows[p, i] += along * tokens[q, i]
            numbers[p, 0] += weight[n] * loss
            if mates == 0:
                numbers[p, 1] += weight[n] * 0.5 * latent[n, p] * latent[n, p]
            else:
                numbers[p, 2] += weight[n] * own
                numbers[p, 3] += weight[n]


def evaluate(state, batch, data):  # type: ignore[no-untyped-def]
    """Make the pass over a batch at a state, unless it was the last one."""
    basis, images, batches, kinds, work = data
    rows, numbers, last, which = work[:4]
    same = which[0] == batch
    for i in range(state.size):
        same = same and state[i] == last[i]
    if same:
        return
    depth = rows.shape[1]
    accumulate(state.reshape(depth, depth), basis, images, batches[0][batch], (rows, numbers))
    last[:] = state
    which[0] = batch


def gradient(state, data, out):  # type: ignore[no-untyped-def]
    """Gradient by every entry of Q of the risk of a batch, the next of ``order``."""
    basis, images, batches, kinds, work = data
    positions, rows = basis[0], work[0]
    bounds, shares, order, cursor = batches
    batch = order[cursor[0] % order.size]
    cursor[0] += 1
    evaluate(state, batch, data)
    size, depth = positions.shape
    slope = out.reshape(depth, depth)
    slope[:] = 0.0
    for p in range(size):
        for i in range(depth):
            along = shares[batch] * positions[p, i]
            if along != 0.0:
                for j in range(depth):
                    slope[i, j] += along * rows[p, j]


def entry_mean(matrix, basis, pairs):  # type: ignore[no-untyped-def]
    """Mean of e_p^T Q v over pairs (p, v)."""
    positions, features = basis[0], basis[1]
    total = 0.0
    for k in range(pairs.shape[0]):
        e, v = positions[pairs[k, 0]], features[pairs[k, 1]]
        for i in range(e.size):
            if e[i] != 0.0:
                part = 0.0
                for j in range(v.size):
                    part += matrix[i, j] * v[j]
                total += e[i] * part
    return total / pairs.shape[0]


def row_numbers(data, out):  # type: ignore[no-untyped-def]
    """Of every row type: (L_p - L*_p, own attention given a mate) of the last pass, its means."""
    kind, share, numbers = data[3][0], data[2][1][data[4][3][0]], data[4][1]
    mates, many = np.zeros(out.shape[0]), np.zeros(out.shape[0])
    out[:] = 0.0
    for p in range(kind.size):
        row = kind[p]
        many[row] += 1.0
        out[row, 0] += share * (numbers[p, 0] - numbers[p, 1])
        out[row, 1] += numbers[p, 2]
        mates[row] += numbers[p, 3]
    for row in range(out.shape[0]):
        out[row, 0] /= many[row]
        out[row, 1] /= mates[row]


def order_parameters(state, slope, data, out):  # type: ignore[no-untyped-def]
    """Order parameters of `kernels`, from means over rows of one type."""
    basis, images, batches, kinds, work = data
    target, remote, places, rows = kinds[1], kinds[2], kinds[3], kinds[4]
    last, depth = work[2], work[0].shape[1]
    known = True
    for i in range(state.size):
        known = known and state[i] == last[i]
    if not known:
        evaluate(state, 0, data)
    row_numbers(data, rows)
    now, change = state.reshape(depth, depth), slope.reshape(depth, depth)
    few, moved = np.empty(2), np.empty(2)
    few[0], moved[0] = entry_mean(now, basis, target), entry_mean(change, basis, target)
    few[1], moved[1] = entry_mean(now, basis, remote), entry_mean(change, basis, remote)
    read_order(few, moved, places, rows, out)


def summary(state, data, out):  # type: ignore[no-untyped-def]
    """Risk over all images, and its excess over the floor."""
    evaluate(state, 0, data)
    share, numbers = data[2][1][0], data[4][1]
    out[:] = 0.0
    for p in range(numbers.shape[0]):
        out[0] += share * numbers[p, 0]
        out[1] += share * (numbers[p, 0] - numbers[p, 1])
