r"""Gradient by every entry of A, order parameters and risk, summed over all configurations.

With the attention :math:`S = \mathrm{softmax}(s A)`, mixtures :math:`o_i = D \alpha \sum_j S_{ij}
x_j` and output :math:`F = \sum_i o_i^p + \nu o_i` of patches x with label +1, probability P,

.. math:: R = \sum P \log(1 + e^{-F}), \quad \frac{\partial R}{\partial o_i} =
   -\frac{P}{1 + e^F} (p\, o_i^{p-1} + \nu), \qquad (1)

.. math:: M_{ij} = \sum_x \frac{\partial R}{\partial o_i} x_j, \quad
   \frac{\partial R}{\partial \alpha} = D \sum_{ij} S_{ij} M_{ij}, \quad
   \frac{\partial R}{\partial A_{ij}} = s D \alpha S_{ij} \Big(M_{ij} - \sum_r S_{ir} M_{ir}\Big).
   \qquad (2)
"""

from math import exp, log1p
from typing import NamedTuple

import numpy as np

from dynamics.loops.kernels import kernels

BLOCK = 512
"""Number of configurations in one matrix product, so small that OpenBLAS takes one thread (D <=
22)."""
TIE = 1e-13
"""A sample counts as an error if F is below this multiple of the sum of its absolute terms."""


class MatrixData(NamedTuple):
    """Read-only arguments of the kernels, in addition to the state."""

    values: np.ndarray  # patch values x of every configuration, (N, D)
    chances: np.ndarray  # probability P of every configuration
    sets: np.ndarray  # set of each patch
    power: int  # degree p of the activation
    nu: float
    scale: float


def attention_of(matrix, scale):  # type: ignore[no-untyped-def]
    """Attention S: softmax of the rows of scale * A."""
    attention = np.empty_like(matrix)
    for i in range(matrix.shape[0]):
        top = np.max(scale * matrix[i])
        attention[i] = np.exp(scale * matrix[i] - top)
        attention[i] /= np.sum(attention[i])
    return attention


def gradient(state, data, out):  # type: ignore[no-untyped-def]
    """Write (2), the gradient by alpha and the off-diagonal entries of A, to `out`."""
    size = data.sets.size
    attention = attention_of(state[1:].reshape(size, size), data.scale)
    turned, moved = attention.T.copy(), np.zeros((size, size))
    for start in range(0, data.chances.size, BLOCK):
        x = data.values[start : start + BLOCK]
        slope = size * state[0] * np.dot(x, turned)  # o of (1), replaced below by dF/do
        for n in range(slope.shape[0]):
            row, margin = slope[n], 0.0
            for i in range(size):
                below = row[i]
                for _ in range(data.power - 2):
                    below *= row[i]
                margin += row[i] * (below + data.nu)
                row[i] = data.power * below + data.nu
            weight = -data.chances[start + n] / (1.0 + exp(margin))
            for i in range(size):
                row[i] *= weight
        moved += np.dot(slope.T, x)
    out[0] = 0.0
    for i in range(size):
        mean = 0.0
        for j in range(size):
            mean += attention[i, j] * moved[i, j]
        out[0] += size * mean
        for j in range(size):
            rate = data.scale * size * state[0] * attention[i, j] * (moved[i, j] - mean)
            out[1 + i * size + j] = rate if i != j else 0.0


def orbit_parameters(matrix, slope, attention, sets, scale, out):  # type: ignore[no-untyped-def]
    """Write to `out` gamma at index 1, rho at 2, G at 3, its rate at 5, association margin at 6."""
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


def order_parameters(state, slope, data, out):  # type: ignore[no-untyped-def]
    """Write to `out`: alpha, gamma, rho, G, rates of alpha and G, association margin (in order)."""
    size = data.sets.size
    matrix, change = state[1:].reshape(size, size), slope[1:].reshape(size, size)
    attention = attention_of(matrix, data.scale)
    orbit_parameters(matrix, change, attention, data.sets, data.scale, out)
    out[0] = state[0]
    out[4] = -slope[0]


def summary(state, data, out):  # type: ignore[no-untyped-def]
    """Write the risk, and the probability of configurations with F <= 0, to `out`."""
    size = data.sets.size
    attention = attention_of(state[1:].reshape(size, size), data.scale)
    turned, risk, wrong, total = attention.T.copy(), 0.0, 0.0, 0.0
    for start in range(0, data.chances.size, BLOCK):
        mixed = size * np.dot(data.values[start : start + BLOCK], turned)
        for n in range(mixed.shape[0]):
            margin, gross, chance = 0.0, 0.0, data.chances[start + n]
            for i in range(size):
                o = state[0] * mixed[n, i]
                part = o**data.power + data.nu * o
                margin += part
                gross += abs(part)
            risk += chance * (log1p(exp(-abs(margin))) + max(-margin, 0.0))
            wrong += 0.0 if margin > TIE * gross else chance
            total += chance
    out[0], out[1] = risk / total, wrong / total


kernels(__name__)
