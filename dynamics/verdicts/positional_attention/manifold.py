r"""The symmetric manifold (alpha, gamma, rho) inside the space of all trained entries.

The Hessian of the risk at a point of the manifold commutes with the wreath product of Lemma 4.1,
acting on the D(D-1) off-diagonal entries of A. So it is the group average of the Hessian summed
over one representative of each multiset of types of `configurations`: 680 configurations at
D=16, C=4 in place of 2 125 764. With a `FullPopulation` it is summed by brute force instead.

Named sectors are subspaces that the group maps onto themselves:

- ``gamma``, ``rho``: entries inside sets, and between sets;
- ``sets``: one value per ordered pair of sets: sets, not patches, differ;
- ``patches``: one value per row and one per column of each orbit, with mean zero over each set: the
  patches of a set differ, alike towards all sets;
- ``rows``: the part of ``patches`` in rows: some rows of a set attend more and others less (*row
  competition*).

``sets`` and ``patches`` are whole isotypic components of the wreath product, so an eigenvector is
in one of them or orthogonal to both; what is left lies in ``gamma`` or in ``rho``.

The second derivatives of the risk by every trained entry are in closed form. For one configuration
of patch values, with :math:`y_i = \sum_j S_{ij} x_j`, :math:`O_i = D\alpha y_i`,
:math:`F = \sum_i act(O_i)` and
:math:`T_{ij} = \partial y_i/\partial A_{ij} = s S_{ij} (x_j - y_i)`,

.. math::
   \frac{\partial F}{\partial\alpha} = D\sum_i act'_i y_i,\qquad
   \frac{\partial F}{\partial A_{ij}} = D\alpha\, act'_i T_{ij}, \qquad (1)

.. math::
   \frac{\partial^2 F}{\partial\alpha^2} = D^2\sum_i act''_i y_i^2,\qquad
   \frac{\partial^2 F}{\partial\alpha\,\partial A_{ij}} = D\,(act'_i + act''_i O_i)\, T_{ij},
   \qquad (2)

.. math::
   \frac{\partial^2 F}{\partial A_{ij}\,\partial A_{ik}} = (D\alpha)^2 act''_i T_{ij} T_{ik}
   + D\alpha\, act'_i\, s\,(\delta_{jk} T_{ij} - S_{ik} T_{ij} - S_{ij} T_{ik}), \qquad (3)

and nothing couples two rows of A. With the logistic :math:`g = 1/(1+e^F)` of the loss
:math:`\log(1 + e^{-F})`,

.. math:: \nabla^2 R = E[g (1-g)\,\nabla F \nabla F^T] - E[g\,\nabla^2 F]. \qquad (4)

Across the feature, at :math:`v = \alpha w^\star + r u` with a unit :math:`u \perp w^\star`, patch j
adds :math:`r n_j`, :math:`n_j \sim N(0, \sigma^2)` independent, to its value. F does not depend on
the noise at r = 0 and :math:`E\,n_j n_k = \sigma^2\delta_{jk}`, hence

.. math:: \frac{\partial^2 R}{\partial r^2} = \sigma^2 D^2\, E\Big[g (1-g)
   \sum_{ik} act'_i (SS^T)_{ik}\, act'_k - g \sum_i act''_i (SS^T)_{ii}\Big]. \qquad (5)

By the same moments it is equal for all u, and mixed derivatives by r and alpha or A are zero.
Reference: Jelassi, Sander, Li (2022), equation (T) and problem (P).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dynamics.papers.positional_attention.configurations import (
    multinomial_weights,
    multisets,
    number_of_configurations,
)
from dynamics.papers.positional_attention.parameters import Parameters
from dynamics.problem import FloatArray
from dynamics.validation import check_parameters, refuse
from theory.color_refinement import IntArray
from theory.papers.positional_attention.enumeration import Law
from theory.symmetry import Classes, Partition, PermutationGroup, classes

if TYPE_CHECKING:
    from dynamics.papers.positional_attention.full import FullPopulation

LARGEST = 5e9
"""Multisets times entries of the Hessian that are accepted: about a second for each Hessian."""
BLOCK = 512
"""Configurations of one matrix product: what is made of them stays in the cache."""


class Manifold:
    """States on three scalars, with the Hessian of the risk by every trained entry.

    Parameters
    ----------
    parameters : Parameters
    full : FullPopulation, optional
        Take its Hessian and its sets; by default the multisets of types, on consecutive sets.

    Raises
    ------
    InvalidRequest
        If there are too many multisets for matrices of this size.
    """

    def __init__(self, parameters: Parameters, full: FullPopulation | None = None) -> None:
        check_parameters(parameters, Parameters)
        self.parameters = parameters
        self.full = full
        number = number_of_configurations(parameters.L, parameters.C)
        if full is None and number * parameters.D**4 > LARGEST:
            refuse(
                "D",
                parameters.D,
                f"needs {number:,} Hessians by {parameters.D * (parameters.D - 1):,} entries",
                f"at most {LARGEST / parameters.D**4:,.0f} at this size",
                f"D={2 * parameters.C} at C={parameters.C}",
            )
        sizes = [parameters.C] * parameters.L
        self.partition = Partition.contiguous(sizes) if full is None else full.partition
        labels = self.partition.labels
        self._same = labels[:, None] == labels[None, :]
        rows, columns = np.nonzero(~np.eye(parameters.D, dtype=bool))
        self._rows, self._columns = rows, columns
        self.trained = np.concatenate([[0], 1 + rows * parameters.D + columns])

    def embedded(self, state: ArrayLike) -> FloatArray:
        """The flat state (alpha, A) of a reduced one (alpha, gamma, rho), shape (1 + D^2,)."""
        alpha, gamma, rho = np.asarray(state, dtype=np.float64)
        matrix = np.where(self._same, gamma, rho)
        np.fill_diagonal(matrix, self.parameters.beta)
        return np.concatenate([[alpha], matrix.ravel()])

    def hessian(self, state: ArrayLike) -> FloatArray:
        """Hessian by alpha and the D(D-1) off-diagonal entries, row by row, at a reduced state."""
        whole = hessian(self.embedded(state), self._law, self.parameters)
        matrix = whole[np.ix_(self.trained, self.trained)]
        if self.full is None:
            sums = np.bincount(self._orbits.labels.ravel(), weights=matrix.ravel())
            matrix = (sums / self._orbits.sizes)[self._orbits.labels]
        return matrix

    def decoupled(self, state: ArrayLike) -> Mapping[str, float]:
        """Curvature in the directions that couple to nothing: v orthogonal to w*."""
        return {"v": orthogonal_curvature(self.embedded(state), self._law, self.parameters)}

    @cached_property
    def symmetry(self) -> PermutationGroup:
        """The wreath product, acting on the trained entries; alpha, entry 0, stays."""
        position = np.zeros((self.parameters.D,) * 2, dtype=np.int64)
        position[self._rows, self._columns] = 1 + np.arange(self._rows.size)
        generators = [
            np.concatenate([[0], position[pi[self._rows], pi[self._columns]]])
            for pi in self.partition.group().generators
        ]
        return PermutationGroup(self.trained.size, tuple(generators))

    @cached_property
    def sectors(self) -> Mapping[str, FloatArray]:
        """Spanning columns of the named sectors, shape (1 + D(D-1), at least their dimension)."""
        same, labels = self._same[self._rows, self._columns], self.partition.labels
        own = np.where(same, 0, 1)
        by_row = _differing(2 * self._rows + own, 2 * labels[self._rows] + own)
        by_column = _differing(2 * self._columns + own, 2 * labels[self._columns] + own)
        entries = np.eye(self.trained.size)[:, 1:]
        return {
            "gamma": entries[:, same],
            "rho": entries[:, ~same],
            "sets": _indicators(labels[self._rows] * self.parameters.L + labels[self._columns]),
            "patches": np.concatenate([by_row, by_column], axis=1),
            "rows": by_row,
        }

    @cached_property
    def _law(self) -> Law:
        return representatives(self.parameters) if self.full is None else self.full.law

    @cached_property
    def _orbits(self) -> Classes:
        return classes(self.symmetry)


def representatives(parameters: Parameters) -> Law:
    """One configuration of each multiset of types, with the probability of the whole orbit.

    The signal set is the first; in each random set the patches at +1 come first, then those at -1.
    """
    law = parameters.set_law
    patterns = np.array([np.repeat([1, -1, 0], counts) for counts in law.types], dtype=np.int8)
    types = multisets(len(patterns), parameters.L - 1)
    probability = multinomial_weights(types, law.probabilities)
    random = patterns[types].reshape(len(types), -1)
    signal = np.ones((len(types), parameters.C), dtype=np.int8)
    return np.concatenate([signal, random], axis=1).T, probability


def _indicators(classes_of_entries: IntArray) -> FloatArray:
    """Normalised indicator of each class of entries, with a zero for alpha in front."""
    names, counts = np.unique(classes_of_entries, return_counts=True)
    columns = (classes_of_entries[:, None] == names[None, :]) / np.sqrt(counts)
    return np.concatenate([np.zeros((1, names.size)), columns])


def _differing(fine: IntArray, coarse: IntArray) -> FloatArray:
    """Indicators of classes of entries, less their part that is equal on coarser classes."""
    columns, means = _indicators(fine), _indicators(coarse)
    return columns - means @ (means.T @ columns)


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
    rows, less = np.arange(size), np.eye(size) - free[:, None, :]  # delta_jk - S_ik of (3)
    for x, attended, weight, spread, slope, bend in _blocks(alpha, attention, law, parameters):
        through = x - attended[:, None, :]
        through *= scale * free[:, :, None]
        first = np.empty((state.size, x.shape[1]))
        first[0] = size * (slope * attended).sum(axis=0)
        by_entry = first[1:].reshape(through.shape)
        np.multiply(size * alpha * slope[:, None, :], through, out=by_entry)
        total += (first * spread) @ first.T  # (4), first term, from (1)
        # (4), second term: (2), then (3), which couples no two rows of A.
        total[0, 0] -= size**2 * (bend * attended**2 @ weight).sum()
        mixed = (slope + bend * size * alpha * attended) * weight
        mixed_entries = size * (through @ mixed[:, :, None]).ravel()
        total[0, 1:] -= mixed_entries
        total[1:, 0] -= mixed_entries
        steep = through @ (weight * slope)[:, :, None]
        softened = steep * less - free[:, :, None] * steep.transpose(0, 2, 1)
        bent = through * (weight * bend)[:, None, :]
        curved = (size * alpha) * (size * alpha) * bent @ through.transpose(0, 2, 1)
        entries[rows, :, rows, :] -= curved + size * alpha * scale * softened
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
    overlap, total = attention @ attention.T, 0.0  # S S^T of (5)
    for _, _, weight, spread, slope, bend in _blocks(alpha, attention, law, parameters):
        total += float((slope * (overlap @ slope)).sum(axis=0) @ spread)
        total -= float(np.diag(overlap) @ bend @ weight)
    return (parameters.sigma * parameters.D) ** 2 * total


def _read(state: FloatArray, parameters: Parameters) -> tuple[float, FloatArray]:
    """Alpha, and the attention after the softmax."""
    from scipy.special import softmax

    matrix = state[1:].reshape(parameters.D, parameters.D)
    return float(state[0]), softmax(parameters.scale * matrix, axis=1)


def _blocks(
    alpha: float, attention: FloatArray, law: Law, parameters: Parameters
) -> Iterator[tuple[FloatArray, ...]]:
    """Of each block of configurations: x, y, P g, P g (1-g), act'(O), act''(O)."""
    from scipy.special import expit

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
