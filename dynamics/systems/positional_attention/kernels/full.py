r"""Kernels of the full population problem: brute enumeration, all D x D entries of A free.

Nothing is shared with the reduced path but the logistic. For every configuration n of patch values
:math:`x_j \in \{-1, 0, 1\}` with its probability (label +1),

.. math::
   y_i = \sum_j S_{ij} x_j,\quad O_i = D \alpha y_i,\quad F = \sum_i O_i^p + \nu O_i,

.. math::
   \frac{\partial R}{\partial S_{ij}} = -\sum_n w_n act'(O_i) D \alpha x_j =: M_{ij}, \qquad
   \frac{\partial R}{\partial A_{ij}} = s S_{ij} \Big(M_{ij} - \sum_r S_{ir} M_{ir}\Big).

``values`` is (D, N): configurations are contiguous, so every inner loop runs over them.
"""

import numpy as np

from dynamics.codegen.kernels.logistic import logistic, logistic_loss
from dynamics.systems.positional_attention.kernels.attention import (
    attention_matrix,
    orbit_parameters,
    row_through_softmax,
)

prange = range
BLOCK = 256


def margins(attention, alpha, law, constants, first, last, out):  # type: ignore[no-untyped-def]
    """y_i, act'(O_i) and the margins F of the configurations first..last-1.

    ``out`` is (attended, slope, margin) of shapes (D, block), (D, block), (block,).
    """
    values, probability = law
    nu, power = constants[0], int(constants[1])
    attended, slope, margin = out
    size, count = attention.shape[0], last - first
    margin[:count] = 0.0
    for i in range(size):
        y = attended[i]
        y[:count] = 0.0
        for j in range(size):
            weight, x = attention[i, j], values[j, first:last]
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


def accumulate(attention, alpha, law, constants, partial):  # type: ignore[no-untyped-def]
    """Sums over the configurations of dF/dalpha and of dF/dS, each weighted by P/(1+e^F).

    ``partial[lane]`` holds (dF/dalpha, then dF/dS without its factor alpha D). The lanes are fixed
    by the problem and summed in order, so the result does not depend on the number of threads.
    """
    values, probability = law
    size, lanes = attention.shape[0], partial.shape[0]
    blocks = (probability.size + BLOCK - 1) // BLOCK
    for lane in prange(lanes):
        attended, slope = np.empty((size, BLOCK)), np.empty((size, BLOCK))
        margin = np.empty(BLOCK)
        sums = partial[lane]
        sums[:] = 0.0
        for block in range(lane * blocks // lanes, (lane + 1) * blocks // lanes):
            first = block * BLOCK
            count = min(BLOCK, probability.size - first)
            out = (attended, slope, margin)
            margins(attention, alpha, law, constants, first, first + count, out)
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
    """Gradient of the population risk by alpha and by every off-diagonal entry of A."""
    constants, law, labels, work = data
    attention, partial = work
    size, alpha, scale = attention.shape[0], state[0], constants[2]
    attention_matrix(state[1:].reshape(size, size), scale, attention)
    accumulate(attention, alpha, law, constants, partial)
    for lane in range(1, partial.shape[0]):
        for k in range(partial.shape[1]):
            partial[0, k] += partial[lane, k]
    out[0] = -partial[0, 0]
    pushed, slope = partial[0, 1:].reshape(size, size), out[1:].reshape(size, size)
    for i in range(size):
        row_through_softmax(attention[i], pushed[i], -scale * size * alpha, slope[i])
        slope[i, i] = 0.0


def order_parameters(state, slope, data, out):  # type: ignore[no-untyped-def]
    """alpha, orbit means of A, G and its rate, rate of alpha, association margin."""
    constants, law, labels, work = data
    attention = work[0]
    size, scale = attention.shape[0], constants[2]
    matrix, change = state[1:].reshape(size, size), slope[1:].reshape(size, size)
    attention_matrix(matrix, scale, attention)
    orbit_parameters(matrix, change, attention, labels, scale, out)
    out[0] = state[0]
    out[4] = -slope[0]


def summary(state, data, out):  # type: ignore[no-untyped-def]
    """Population risk and error: ``out = (E log(1 + e^-F), P(F <= 0))``; ties as in `kernels`."""
    constants, law, labels, work = data
    values, probability = law
    attention, partial = work
    size, alpha = attention.shape[0], state[0]
    attention_matrix(state[1:].reshape(size, size), constants[2], attention)
    attended, slope = np.empty((size, BLOCK)), np.empty((size, BLOCK))
    margin = np.empty(BLOCK)
    out[0] = 0.0
    out[1] = 0.0
    for first in range(0, probability.size, BLOCK):
        count = min(BLOCK, probability.size - first)
        margins(attention, alpha, law, constants, first, first + count, (attended, slope, margin))
        for n in range(count):
            gross = 0.0
            for i in range(size):
                gross += abs(slope[i, n] * alpha * size * attended[i, n])
            out[0] += probability[first + n] * logistic_loss(margin[n])
            if margin[n] <= 1e-13 * gross:
                out[1] += probability[first + n]
    if out[0] != out[0]:
        out[1] = np.nan
