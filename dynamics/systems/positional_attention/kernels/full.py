r"""Kernels of the problems with every entry of A, on samples or on weighted configurations.

With :math:`u_j = \langle v, X_j\rangle`, the weight p_n of a sample (1/N, or the probability of a
configuration) and :math:`w = -p_n\, y/(1 + e^{yF})`,

.. math::
   O = D\,S u, \qquad F = \sum_i O_i^p + \nu O_i, \qquad (1)

.. math::
   \frac{\partial R}{\partial v} = \sum_n w \sum_j \Big(D \sum_i act'(O_i) S_{ij}\Big) X_j,
   \qquad (2)

.. math::
   \frac{\partial R}{\partial S_{ij}} = D \sum_n w\, act'(O_i)\, u_j =: M_{ij}, \qquad (3)

.. math::
   \frac{\partial R}{\partial A_{ij}} = s S_{ij} \Big(M_{ij} - \sum_r S_{ir} M_{ir}\Big). \qquad (4)

A configuration is a sample with d = 1 and y = 1, whose patches are its values: then v is alpha.
Samples stand in blocks: a block is read from memory for u, and again from the cache for the
gradient by v. Blocks are shared out to lanes, which are fixed by the problem and summed in order,
so the result does not depend on the number of threads.
"""

from typing import NamedTuple

import numpy as np

from dynamics.codegen.kernels.dense import add_moments, add_outer, add_weighted_sum, mix
from dynamics.codegen.kernels.elementary import logistic_weights
from dynamics.systems.positional_attention.kernels.attention import (
    associated_share,
    attention_matrix,
    orbit_parameters,
    orbit_spreads,
    row_through_softmax,
    softmax_row,
)
from dynamics.systems.positional_attention.kernels.margins import loss_and_error, sum_block

prange = range
ORDER_PARAMETERS = 7


class SampleBlocks(NamedTuple):
    """Samples over which a weighted mean is taken.

    Attributes
    ----------
    patches : float array, shape (blocks, D, d, samples), or (blocks, D, samples, d) where `along`
    labels, weights : float arrays, shape (blocks, samples of a block)
        y, and p_n up to the division by `total`; both 0 in positions that no sample fills.
    total : float
        Sum of the weights.
    sums : float array, shape (blocks, 3)
        Scratch: parts of risk and error of each block at the last pass; see `sum_block`.
    along : bool
        Whether the entries of a patch lie side by side, and not those of the samples.
    """

    patches: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    total: float
    sums: np.ndarray
    along: bool


class MatrixData(NamedTuple):
    """What the kernels need beside the state (v, A).

    Attributes
    ----------
    nu, power, scale : float, int, float
        Linear part and degree p of the activation; factor s in the exponent of the softmax.
    diagonal : bool
        Whether the diagonal of A is trained.
    backward : bool
        Whether a pass goes on to the gradient; else it ends with risk and error, and the gradient
        is 0.
    batch : SampleBlocks
        The samples of the risk.
    sets : int array, shape (D,)
        Set of each patch.
    feature : float array, shape (d,)
        w*.
    attention, attention_of : float array, shape (D, D)
        Scratch for S, and the A that it is of; NaN before the first.
    value, mixing, transposed : arrays in the precision of the samples, shapes (d,), (D, D), (D, D)
        Scratch for v, D times S, and its transpose.
    partial : float array, shape (lanes, d + D * D)
        Scratch: sums of each lane.
    """

    nu: float
    power: int
    scale: float
    diagonal: bool
    backward: bool
    batch: SampleBlocks
    sets: np.ndarray
    feature: np.ndarray
    attention: np.ndarray
    attention_of: np.ndarray
    value: np.ndarray
    mixing: np.ndarray
    transposed: np.ndarray
    partial: np.ndarray


def project(patches, value, along, projected):  # type: ignore[no-untyped-def]
    """<v, X_j> of the samples of a block.

    Parameters
    ----------
    patches : array, shape (D, d, samples), or (D, samples, d) where ``along``
    value : array, shape (d,)
        v.
    along : bool
    projected : array, shape (D, samples)
        Filled.
    """
    projected[:] = value.dtype.type(0.0)
    for j in range(projected.shape[0]):
        if along:
            add_moments(patches[j], value, projected[j])
        else:
            add_weighted_sum(patches[j], value, projected[j])


def add_by_value(patches, weights, along, by_value):  # type: ignore[no-untyped-def]
    """Add (2) of a block: the sum over its samples and j of the weights times X_j.

    Parameters
    ----------
    patches, along
        As of `project`.
    weights : array, shape (D, samples)
    by_value : float array, shape (d,)
        Added to.
    """
    for j in range(weights.shape[0]):
        if along:
            add_weighted_sum(patches[j], weights[j], by_value)
        else:
            add_moments(patches[j], weights[j], by_value)


def forward(patches, model, rows, turned, margin):  # type: ignore[no-untyped-def]
    """(1) for one block of samples: u, O, act'(O) and F.

    Parameters
    ----------
    patches : array, shape (D, d, samples)
        See `project`.
    model : (nu, power, value, mixing, along)
        See `MatrixData` and `SampleBlocks`.
    rows : array, shape (3, D, samples)
        Receives u, O and act'(O).
    turned : array, shape (samples, D)
        Receives the transpose of u.
    margin : array, shape (samples,)
        Receives F.
    """
    projected, attended, slope = rows[0], rows[1], rows[2]
    real = margin.dtype.type
    linear, power, value, mixing, along = model
    nu, degree = real(linear), real(power)
    project(patches, value, along, projected)
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


def accumulate(data):  # type: ignore[no-untyped-def]
    """A pass over the blocks of the batch, lane by lane: (1), and the sums of (2) and (3).

    Parameters
    ----------
    data : MatrixData
        ``sums`` of its batch are filled, and where it is ``backward`` those in ``partial``.
    """
    patches, labels, weights, _, of_blocks, along = data.batch
    partial, transposed, backward = data.partial, data.transposed, data.backward
    (many, count), size, depth = labels.shape, data.attention.shape[0], data.value.size
    lanes, model = partial.shape[0], (data.nu, data.power, data.value, data.mixing, along)
    for lane in prange(lanes):
        sums = partial[lane]
        sums[:] = 0.0
        by_value, by_attention = sums[:depth], sums[-size * size :].reshape(size, size)
        rows = np.empty((3, size, count), dtype=patches.dtype)
        projected, attended, slope = rows[0], rows[1], rows[2]
        turned = np.empty((count, size), dtype=patches.dtype)
        margin, scratch = np.empty(count, dtype=patches.dtype), np.empty((4, count))
        right, decayed, shares = scratch[0], scratch[1], scratch[2]
        for block in range(lane * many // lanes, (lane + 1) * many // lanes):
            forward(patches[block], model, rows, turned, margin)
            y, weight = labels[block], weights[block]
            sum_block(y, weight, margin, rows, scratch, of_blocks[block])
            if not backward:
                continue
            logistic_weights(right, decayed, shares)
            for n in range(count):
                margin[n] = -y[n] * weight[n] * shares[n]
            for i in range(size):
                steep = slope[i]
                for n in range(count):
                    steep[n] *= margin[n]
            add_outer(slope, projected, turned, by_attention)
            mix(transposed, slope, turned, attended)
            add_by_value(patches[block], attended, along, by_value)


def prepare(state, data):  # type: ignore[no-untyped-def]
    """S, v, D times S and its transpose, of the state, in the scratch arrays.

    Parameters
    ----------
    state : float array, shape (d + D * D,)
        v, A.
    data : MatrixData
    """
    attention, value, mixing, transposed = (
        data.attention,
        data.value,
        data.mixing,
        data.transposed,
    )
    size, depth, scale = attention.shape[0], value.size, data.scale
    matrix = state[depth:].reshape(size, size)
    for k in range(depth):
        value[k] = state[k]
    attention_of = data.attention_of
    for i in prange(size):
        softmax_row(matrix[i], scale, attention[i], np.empty(size))
        for j in range(size):
            attention_of[i, j] = matrix[i, j]
            mixing[i, j] = size * attention[i, j]
    for j in prange(size):
        for i in range(size):
            transposed[j, i] = mixing[i, j]


def collect_rows(partial, attention, factor, diagonal, out):  # type: ignore[no-untyped-def]
    """Gradient by A: the lanes summed in their order, then through the softmax, row by row.

    Parameters
    ----------
    partial : float array, shape (lanes, D * D)
        Derivative by S of each lane.
    attention : float array, shape (D, D)
        S.
    factor : float
    diagonal : bool
        Whether the diagonal of A is trained.
    out : float array, shape (D, D)
        Filled.
    """
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
    """Gradient of the risk of the batch by v and by the trained entries of A, (2) to (4).

    Parameters
    ----------
    state : float array, shape (d + D * D,)
    data : MatrixData
    out : float array, shape (d + D * D,)
        Filled.
    """
    partial = data.partial
    size, depth = data.attention.shape[0], data.value.size
    prepare(state, data)
    accumulate(data)
    if not data.backward:
        out[:] = 0.0
        return
    share = 1.0 / data.batch.total
    for k in range(depth):
        total = 0.0
        for lane in range(partial.shape[0]):
            total += partial[lane, k]
        out[k] = share * total
    factor = data.scale * size * share
    by_matrix = out[depth:].reshape(size, size)
    collect_rows(partial[:, depth:], data.attention, factor, data.diagonal, by_matrix)


def order_parameters(state, slope, data, out):  # type: ignore[no-untyped-def]
    """Alpha = <v, w*>, orbit means of A, G, rates of alpha and of G, association margin.

    Parameters
    ----------
    state, slope : float array, shape (d + D * D,)
        State and its gradient.
    data : MatrixData
    out : float array, shape (7,) or (12,)
        Filled; of twelve entries the last five with risk and error of the batch, as the pass of the
        gradient has left them, the spreads of A inside and between sets, and its association.
    """
    size, depth = data.attention.shape[0], data.feature.size
    matrix, change = state[depth:].reshape(size, size), slope[depth:].reshape(size, size)
    differing = 0
    for i in range(size):
        for j in range(size):
            differing += matrix[i, j] != data.attention_of[i, j]
    if differing > 0:
        attention_matrix(matrix, data.scale, data.attention)
        for i in range(size):
            for j in range(size):
                data.attention_of[i, j] = matrix[i, j]
    orbit_parameters(matrix, change, data.attention, data.sets, data.scale, out)
    alpha, rate = 0.0, 0.0
    for k in range(depth):
        alpha += state[k] * data.feature[k]
        rate -= slope[k] * data.feature[k]
    out[0] = alpha
    out[4] = rate
    if out.size > ORDER_PARAMETERS:
        beside = out[ORDER_PARAMETERS:]
        loss_and_error(data.batch.sums, beside)
        orbit_spreads(matrix, data.sets, beside[2:])
        beside[4] = associated_share(matrix, data.sets)


def summary(state, data, out):  # type: ignore[no-untyped-def]
    """Risk, and share of samples with yF <= 0, of the batch, after a pass at the state.

    Parameters
    ----------
    state : float array, shape (d + D * D,)
    data : MatrixData
    out : float array, shape (2,)
        Filled; see `loss_and_error`.
    """
    loss_and_error(data.batch.sums, out)
