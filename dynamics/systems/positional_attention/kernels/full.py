r"""Kernels of the full problems: the matrix A, and the population risk by brute enumeration.

The first half works on a whole matrix A (its softmax S, its gradient from that of S, its order
parameters) and serves the empirical problem too. The second half sums over every configuration n of
patch values :math:`x_j \in \{-1, 0, 1\}` with its probability (label +1):

.. math::
   y_i = \sum_j S_{ij} x_j,\quad O_i = D \alpha y_i,\quad F = \sum_i O_i^p + \nu O_i, \qquad (1)

.. math::
   \frac{\partial R}{\partial S_{ij}} = -\sum_n w_n act'(O_i) D \alpha x_j =: M_{ij}, \qquad (2)

.. math::
   \frac{\partial R}{\partial A_{ij}} = s S_{ij} \Big(M_{ij} - \sum_r S_{ir} M_{ir}\Big). \qquad (3)

Nothing is shared with the reduced problem but the logistic.
"""

from typing import NamedTuple

import numpy as np

from dynamics.codegen.kernels.exponential import exponentials
from dynamics.codegen.kernels.logistic import logistic, logistic_loss

prange = range
LEAST = -700.0
BLOCK = 256


class PopulationData(NamedTuple):
    """What the kernels of the full population problem need beside the state (alpha, A).

    Attributes
    ----------
    nu, power, scale : float, int, float
        Linear part and degree p of the activation; factor s in the exponent of the softmax.
    values : int8 array, shape (D, N)
        Patch values of each configuration; inner loops run over configurations.
    probability : float array, shape (N,)
    sets : int array, shape (D,)
        Set of each patch.
    attention : float array, shape (D, D)
        Scratch for S.
    partial : float array, shape (lanes, 1 + D * D)
        Scratch: sums of each lane.
    """

    nu: float
    power: int
    scale: float
    values: np.ndarray
    probability: np.ndarray
    sets: np.ndarray
    attention: np.ndarray
    partial: np.ndarray


def softmax_row(row, scale, weights, scratch):  # type: ignore[no-untyped-def]
    """Softmax of scale * row; weights below e^-700 of the largest are e^-700 of it."""
    top = scale * row[0]
    for j in range(row.size):
        if scale * row[j] > top:
            top = scale * row[j]
    for j in range(row.size):
        weights[j] = scale * row[j] - top
        if weights[j] < LEAST:
            weights[j] = LEAST
    exponentials(weights, scratch)
    total = 0.0
    for j in range(row.size):
        total += weights[j]
    for j in range(row.size):
        weights[j] /= total


def attention_matrix(matrix, scale, attention):  # type: ignore[no-untyped-def]
    """Row-wise softmax of scale * A."""
    scratch = np.empty(attention.shape[0])
    for i in range(attention.shape[0]):
        softmax_row(matrix[i], scale, attention[i], scratch)


def row_through_softmax(weights, by_weights, factor, out):  # type: ignore[no-untyped-def]
    """One row of (3): factor S_ij (M_ij - sum over r of S_ir M_ir), with M = ``by_weights``."""
    mean = 0.0
    for j in range(weights.size):
        mean += weights[j] * by_weights[j]
    for j in range(weights.size):
        out[j] = factor * weights[j] * (by_weights[j] - mean)


def orbit_parameters(matrix, slope, attention, sets, scale, out):  # type: ignore[no-untyped-def]
    """Orbit means of A, G, its rate, association margin (of A, its rate -slope, and S).

    ``out`` has the order of the system's order parameters; alpha (entry 0) and its rate (entry 4)
    are left to the caller, because each problem holds v in its own way.
    """
    size = attention.shape[0]
    same, other, count, own, rate = 0.0, 0.0, 0, 0.0, 0.0
    margin = np.inf
    for i in range(size):
        drift, inside, outside = 0.0, np.inf, -np.inf
        for j in range(size):
            drift -= attention[i, j] * slope[i, j]
        for j in range(size):
            entry = matrix[i, j]
            if sets[i] == sets[j]:
                inside = min(inside, entry)
                own += attention[i, j]
                rate += scale * attention[i, j] * (-slope[i, j] - drift)
                if i != j:
                    same += entry
                    count += 1
            else:
                outside = max(outside, entry)
                other += entry
        margin = min(margin, inside - outside)
    out[1] = same / count
    out[2] = other / (size * size - size - count)
    out[3] = own
    out[5] = rate
    out[6] = margin


def margins(data, alpha, first, last, attended, slope, margin):  # type: ignore[no-untyped-def]
    """(1) for the configurations first, ..., last - 1: y_i, act'(O_i) and F.

    Parameters
    ----------
    attended, slope : float arrays, shape (D, BLOCK)
        Receive y_i and act'(O_i).
    margin : float array, shape (BLOCK,)
        Receives F.
    """
    attention, nu, power = data.attention, data.nu, data.power
    size, count = attention.shape[0], last - first
    margin[:count] = 0.0
    for i in range(size):
        y = attended[i]
        y[:count] = 0.0
        for j in range(size):
            weight, x = attention[i, j], data.values[j, first:last]
            for n in range(count):
                y[n] += weight * x[n]
        steep = slope[i]
        steep[:count] = 1.0
        for _ in range(power - 1):
            for n in range(count):
                steep[n] *= size * alpha * y[n]
        for n in range(count):
            margin[n] += (steep[n] + nu) * size * alpha * y[n]
            steep[n] = power * steep[n] + nu


def accumulate(data, alpha):  # type: ignore[no-untyped-def]
    """Sums over the configurations of dF/dalpha and of dF/dS, each weighted by P/(1+e^F).

    ``partial[lane]`` receives dF/dalpha, then dF/dS without its factor alpha D. The lanes are fixed
    by the problem and summed in order, so the result does not depend on the number of threads.
    """
    values, probability, partial = data.values, data.probability, data.partial
    size, lanes = values.shape[0], partial.shape[0]
    blocks = (probability.size + BLOCK - 1) // BLOCK
    for lane in prange(lanes):
        attended, slope = np.empty((size, BLOCK)), np.empty((size, BLOCK))
        margin = np.empty(BLOCK)
        sums = partial[lane]
        sums[:] = 0.0
        for block in range(lane * blocks // lanes, (lane + 1) * blocks // lanes):
            first = block * BLOCK
            count = min(BLOCK, probability.size - first)
            margins(data, alpha, first, first + count, attended, slope, margin)
            chance = probability[first : first + count]
            for n in range(count):
                margin[n] = chance[n] * logistic(-margin[n])
            for i in range(size):
                y, steep, along = attended[i], slope[i], 0.0
                for n in range(count):
                    steep[n] *= margin[n]
                    along += steep[n] * y[n]
                sums[0] += size * along
                for j in range(size):
                    entry, x = 0.0, values[j, first : first + count]
                    for n in range(count):
                        entry += steep[n] * x[n]
                    sums[1 + i * size + j] += entry


def gradient(state, data, out):  # type: ignore[no-untyped-def]
    """Gradient of the population risk by alpha and by every off-diagonal entry of A, (2), (3)."""
    attention, partial = data.attention, data.partial
    size, alpha = attention.shape[0], state[0]
    attention_matrix(state[1:].reshape(size, size), data.scale, attention)
    accumulate(data, alpha)
    for lane in range(1, partial.shape[0]):
        for k in range(partial.shape[1]):
            partial[0, k] += partial[lane, k]
    out[0] = -partial[0, 0]
    by_weights, slope = partial[0, 1:].reshape(size, size), out[1:].reshape(size, size)
    for i in range(size):
        row_through_softmax(attention[i], by_weights[i], -data.scale * size * alpha, slope[i])
        slope[i, i] = 0.0


def order_parameters(state, slope, data, out):  # type: ignore[no-untyped-def]
    """Alpha, orbit means of A, G, rates of alpha and of G, association margin."""
    size = data.attention.shape[0]
    matrix, change = state[1:].reshape(size, size), slope[1:].reshape(size, size)
    attention_matrix(matrix, data.scale, data.attention)
    orbit_parameters(matrix, change, data.attention, data.sets, data.scale, out)
    out[0] = state[0]
    out[4] = -slope[0]


def summary(state, data, out):  # type: ignore[no-untyped-def]
    """Population risk and error: ``out = (E log(1 + e^-F), P(F <= 0))``.

    A margin below 1e-13 of the sum of the absolute contributions is a tie, and counts as an error.
    """
    probability = data.probability
    size, alpha = data.attention.shape[0], state[0]
    attention_matrix(state[1:].reshape(size, size), data.scale, data.attention)
    attended, slope = np.empty((size, BLOCK)), np.empty((size, BLOCK))
    margin = np.empty(BLOCK)
    out[0] = 0.0
    out[1] = 0.0
    for first in range(0, probability.size, BLOCK):
        count = min(BLOCK, probability.size - first)
        margins(data, alpha, first, first + count, attended, slope, margin)
        for n in range(count):
            gross = 0.0
            for i in range(size):
                gross += abs(slope[i, n] * alpha * size * attended[i, n])
            out[0] += probability[first + n] * logistic_loss(margin[n])
            if margin[n] <= 1e-13 * gross:
                out[1] += probability[first + n]
    if out[0] != out[0]:
        out[1] = np.nan
