r"""Second derivatives of the population risk by every trained entry, in closed form.

For one configuration of patch values, with :math:`y_i = \sum_j S_{ij} x_j`, :math:`O_i = D\alpha
y_i`, :math:`F = \sum_i act(O_i)` and :math:`T_{ij} = \partial y_i/\partial A_{ij} = s S_{ij}
(x_j - y_i)`,

.. math::
   \frac{\partial F}{\partial\alpha} = D\sum_i act'_i y_i,\qquad
   \frac{\partial F}{\partial A_{ij}} = D\alpha\, act'_i T_{ij},

.. math::
   \frac{\partial^2 F}{\partial\alpha^2} = D^2\sum_i act''_i y_i^2,\qquad
   \frac{\partial^2 F}{\partial\alpha\,\partial A_{ij}} = D\,(act'_i + act''_i O_i)\, T_{ij},

.. math::
   \frac{\partial^2 F}{\partial A_{ij}\,\partial A_{ik}} = (D\alpha)^2 act''_i T_{ij} T_{ik}
   + D\alpha\, act'_i\, s\,(\delta_{jk} T_{ij} - S_{ik} T_{ij} - S_{ij} T_{ik}),

and nothing couples two rows of A. With the logistic :math:`g = 1/(1+e^F)` of the loss
:math:`\log(1 + e^{-F})`,

.. math:: \nabla^2 R = E[g (1-g)\,\nabla F \nabla F^T] - E[g\,\nabla^2 F].

Across the feature, at :math:`v = \alpha w^\star + r u` with a unit :math:`u \perp w^\star`, patch j
adds :math:`r n_j`, :math:`n_j \sim N(0, \sigma^2)` independent, to its value. F does not depend on
the noise at r = 0 and :math:`E\,n_j n_k = \sigma^2\delta_{jk}`, hence

.. math:: \frac{\partial^2 R}{\partial r^2} = \sigma^2 D^2\, E\Big[g (1-g)
   \sum_{ik} act'_i (SS^T)_{ik}\, act'_k - g \sum_i act''_i (SS^T)_{ii}\Big].

By the same moments it is equal for all u, and mixed derivatives by r and alpha or A are zero.
Reference: Jelassi, Sander, Li (2022), equation (T) and problem (P).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from dynamics.problem import FloatArray
from dynamics.systems.positional_attention.parameters import Parameters

BLOCK = 2048
"""Configurations of one matrix product."""

Law = tuple[NDArray[np.int8], FloatArray]
"""Values of the patches, shape (D, N), and probabilities, shape (N,)."""


def hessian(state: FloatArray, law: Law, parameters: Parameters) -> FloatArray:
    """Hessian of the population risk by alpha and the off-diagonal entries of A.

    Parameters
    ----------
    state : float array, shape (1 + D^2,)
        alpha, then A row by row.
    law : Law
        Configurations given y = +1.
    parameters : Parameters

    Returns
    -------
    float array, shape (1 + D^2, 1 + D^2)
        Symmetric; rows and columns of the diagonal of A, which is held, are zero.
    """
    alpha, attention = _read(state, parameters)
    size, scale = parameters.D, parameters.scale
    free = attention * ~np.eye(size, dtype=bool)
    total = np.zeros((state.size, state.size))
    entries = total[1:, 1:].reshape(size, size, size, size)
    for x, attended, weight, spread, slope, bend in _blocks(alpha, attention, law, parameters):
        through = scale * free[:, :, None] * (x[None, :, :] - attended[:, None, :])
        first = np.empty((state.size, x.shape[1]))
        first[0] = size * (slope * attended).sum(axis=0)
        first[1:] = (size * alpha * slope[:, None, :] * through).reshape(size * size, -1)
        total += (first * spread) @ first.T
        total[0, 0] -= size**2 * (bend * attended**2 @ weight).sum()
        mixed = (slope + bend * size * alpha * attended) * weight
        mixed_entries = size * np.einsum("ijn,in->ij", through, mixed).ravel()
        total[0, 1:] -= mixed_entries
        total[1:, 0] -= mixed_entries
        for i, row in enumerate(through):
            steep = row @ (weight * slope[i])
            softened = np.diag(steep) - np.outer(steep, free[i]) - np.outer(free[i], steep)
            curved = (size * alpha) ** 2 * (row * (weight * bend[i])) @ row.T
            entries[i, :, i, :] -= curved + size * alpha * scale * softened
    return (total + total.T) / 2


def orthogonal_curvature(state: FloatArray, law: Law, parameters: Parameters) -> float:
    """Second derivative of the risk along any unit vector orthogonal to w*, at v = alpha w*.

    Parameters
    ----------
    state : float array, shape (1 + D^2,)
        alpha, then A row by row.
    law : Law
        Configurations given y = +1.
    parameters : Parameters
    """
    alpha, attention = _read(state, parameters)
    overlap, total = attention @ attention.T, 0.0
    for _, _, weight, spread, slope, bend in _blocks(alpha, attention, law, parameters):
        total += float((slope * (overlap @ slope)).sum(axis=0) @ spread)
        total -= float(np.diag(overlap) @ bend @ weight)
    return (parameters.sigma * parameters.D) ** 2 * total


def _read(state: FloatArray, parameters: Parameters) -> tuple[float, FloatArray]:
    """Alpha, and the attention after the softmax."""
    matrix = state[1:].reshape(parameters.D, parameters.D)
    return float(state[0]), softmax(parameters.scale * matrix, axis=1)


def _blocks(
    alpha: float, attention: FloatArray, law: Law, parameters: Parameters
) -> Iterator[tuple[FloatArray, ...]]:
    """Of each block of configurations: x, y, P g, P g (1-g), act'(O), act''(O)."""
    values, probability = law
    p, nu = parameters.p, parameters.nu
    for begin in range(0, probability.size, BLOCK):
        x = values[:, begin : begin + BLOCK].astype(np.float64)
        attended = attention @ x
        inner = parameters.D * alpha * attended
        below = inner ** (p - 2)
        margin = (inner * (below * inner + nu)).sum(axis=0)
        weight = probability[begin : begin + BLOCK] * expit(-margin)
        slope, bend = p * below * inner + nu, p * (p - 1) * below
        yield x, attended, weight, weight * expit(margin), slope, bend
