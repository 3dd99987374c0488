r"""Kernels of the realistic problem (E): N samples, every entry of v and A free, one pass over X.

With :math:`u_j = \langle v, X_j\rangle`, :math:`O = D\,S u`, :math:`F = \sum_i O_i^p + \nu O_i` and
the weight :math:`w = -y/(1 + e^{yF})` of a sample,

.. math::
   \frac{\partial R}{\partial v} = \frac1N \sum_n w \sum_j \Big(D \sum_i act'(O_i) S_{ij}\Big) X_j,
   \qquad
   \frac{\partial R}{\partial S_{ij}} = \frac{D}{N} \sum_n w\, act'(O_i)\, u_j .

Samples stand in blocks, ``patches`` (blocks, D, d, samples of a block): a block is read from memory
for u, and again from the cache for the gradient by v. Places that no sample fills have y = 0 and
weigh nothing. Blocks are shared out to lanes, which are fixed by the problem and summed in order.
"""

from math import exp

import numpy as np

from dynamics.codegen.kernels.dense import add_moments, add_outer, mix, weighted_sum
from dynamics.codegen.kernels.logistic import logistic_loss
from dynamics.systems.positional_attention.kernels.attention import (
    attention_matrix,
    orbit_parameters,
    row_through_softmax,
    softmax_row,
)

prange = range


def forward(patches, value, mixing, constants, out):  # type: ignore[no-untyped-def]
    """u, O, act'(O) and F of one block.

    Parameters
    ----------
    patches : float array, shape (D, d, samples)
    value : float array, shape (d,)
        v.
    mixing : float array, shape (D, D)
        D times S.
    constants : (nu, p, scale)
    out : (projected, attended, slope, turned, margin)
        Three (D, samples), the transpose of the first, and one (samples,).
    """
    projected, attended, slope, turned, margin = out
    real = margin.dtype.type
    nu, power, degree = real(constants[0]), int(constants[1]), real(constants[1])
    for j in range(projected.shape[0]):
        weighted_sum(patches[j], value, projected[j])
    mix(mixing, projected, turned, attended)
    margin[:] = real(0.0)
    for i in range(attended.shape[0]):
        row, steep = attended[i], slope[i]
        steep[:] = real(1.0)
        for _ in range(power - 1):
            for n in range(row.size):
                steep[n] *= row[n]
        for n in range(row.size):
            margin[n] += (steep[n] + nu) * row[n]
            steep[n] = degree * steep[n] + nu


def accumulate(model, samples, bounds, constants, partial):  # type: ignore[no-untyped-def]
    """Sums over the blocks of a batch, lane by lane: of w dF/dv, then of w act'(O_i) u_j.

    Parameters
    ----------
    model : (value, mixing, mixing transposed)
    samples : (patches, labels)
    bounds : (first, last)
        The blocks of the batch.
    partial : float array, shape (lanes, d + D * D)
    """
    patches, labels = samples
    value, mixing, turned = model
    first, many = bounds[0], bounds[1] - bounds[0]
    size, depth, count = patches.shape[1], patches.shape[2], patches.shape[3]
    lanes = partial.shape[0]
    for lane in prange(lanes):
        sums = partial[lane]
        sums[:] = 0.0
        by_value, by_attention = sums[:depth], sums[depth:].reshape(size, size)
        work = np.empty((3, size, count), dtype=patches.dtype)
        projected, attended, slope = work[0], work[1], work[2]
        beside = np.empty((count, size), dtype=patches.dtype)
        margin = np.empty(count, dtype=patches.dtype)
        for block in range(first + lane * many // lanes, first + (lane + 1) * many // lanes):
            out = (projected, attended, slope, beside, margin)
            forward(patches[block], value, mixing, constants, out)
            y = labels[block]
            for n in range(count):
                margin[n] = -y[n] / (1.0 + exp(y[n] * margin[n]))
            for i in range(size):
                steep = slope[i]
                for n in range(count):
                    steep[n] *= margin[n]
            add_outer(slope, projected, beside, by_attention)
            mix(turned, slope, beside, attended)
            for j in range(size):
                add_moments(patches[block, j], attended[j], by_value)


def prepare(state, constants, work):  # type: ignore[no-untyped-def]
    """S, v, D times S and its transpose, of the state, in ``work``."""
    attention, value, mixing, turned = work
    size, depth = attention.shape[0], value.size
    matrix = state[depth:].reshape(size, size)
    for k in range(depth):
        value[k] = state[k]
    for i in prange(size):
        softmax_row(matrix[i], constants[2], attention[i], np.empty(size))
        for j in range(size):
            mixing[i, j] = size * attention[i, j]
    for j in prange(size):
        for i in range(size):
            turned[j, i] = mixing[i, j]


def gather(partial, attention, factor, diagonal, out):  # type: ignore[no-untyped-def]
    """Gradient by A: the lanes summed in their order, then through the softmax, row by row."""
    size = out.shape[0]
    for i in prange(size):
        row = out[i]
        row[:] = 0.0
        for lane in range(partial.shape[0]):
            part = partial[lane, i * size : (i + 1) * size]
            for j in range(size):
                row[j] += part[j]
        row_through_softmax(attention[i], row, factor, row)
        if not diagonal:
            row[i] = 0.0


def gradient(state, data, out):  # type: ignore[no-untyped-def]
    """Gradient of the empirical risk of a batch by v and by the trained entries of A.

    The batch is the next of ``order``; a full batch is an order of one.
    """
    constants, samples, batches, structure, work = data
    bounds, sizes, order, cursor = batches
    attention, value, mixing, turned, partial = work
    size, depth = attention.shape[0], value.size
    batch = order[cursor[0] % order.size]
    cursor[0] += 1
    prepare(state, constants, work[:4])
    accumulate((value, mixing, turned), samples, bounds[batch], constants, partial)
    share = 1.0 / sizes[batch]
    for k in range(depth):
        total = 0.0
        for lane in range(partial.shape[0]):
            total += partial[lane, k]
        out[k] = share * total
    factor = constants[2] * size * share
    by_matrix = out[depth:].reshape(size, size)
    gather(partial[:, depth:], attention, factor, constants[3] > 0.0, by_matrix)


def order_parameters(state, slope, data, out):  # type: ignore[no-untyped-def]
    """Alpha = <v, w*>, orbit means of A, G and its rate, rate of alpha, association margin."""
    constants, samples, batches, structure, work = data
    labels, feature = structure
    attention = work[0]
    size, depth = attention.shape[0], feature.size
    matrix, change = state[depth:].reshape(size, size), slope[depth:].reshape(size, size)
    attention_matrix(matrix, constants[2], attention)
    orbit_parameters(matrix, change, attention, labels, constants[2], out)
    alpha, rate = 0.0, 0.0
    for k in range(depth):
        alpha += state[k] * feature[k]
        rate -= slope[k] * feature[k]
    out[0] = alpha
    out[4] = rate


def summary(state, data, out):  # type: ignore[no-untyped-def]
    """Empirical risk and share of samples with yF <= 0, over all samples."""
    constants, samples, batches, structure, work = data
    patches, labels = samples
    attention, value, mixing = work[:3]
    size, count = patches.shape[1], patches.shape[3]
    prepare(state, constants, work[:4])
    room = np.empty((3, size, count), dtype=patches.dtype)
    beside = np.empty((count, size), dtype=patches.dtype)
    margin = np.empty(count, dtype=patches.dtype)
    risk, wrong, seen = 0.0, 0.0, 0.0
    for block in range(patches.shape[0]):
        out_of = (room[0], room[1], room[2], beside, margin)
        forward(patches[block], value, mixing, constants, out_of)
        for n in range(count):
            y = labels[block, n]
            if y != 0.0:
                seen += 1.0
                risk += logistic_loss(y * margin[n])
                if not y * margin[n] > 0.0:
                    wrong += 1.0
    out[0] = risk / seen
    out[1] = wrong / seen
