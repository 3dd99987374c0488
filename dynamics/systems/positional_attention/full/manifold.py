r"""The symmetric manifold (alpha, gamma, rho) inside the space of all trained entries.

The Hessian of the risk at a point of the manifold commutes with the wreath product of Lemma 4.1,
acting on the D(D-1) off-diagonal entries of A. So it is the group average of the Hessian summed
over one representative of each multiset of types (`expectation.enumerate`): 680 configurations at
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
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dynamics.problem import FloatArray
from dynamics.systems.positional_attention.full.hessian import Law, hessian, orthogonal_curvature
from dynamics.systems.positional_attention.full.population import FullPopulation
from dynamics.systems.positional_attention.parameters import Parameters
from dynamics.systems.positional_attention.reduced import enumeration
from dynamics.systems.positional_attention.reduced.configurations import (
    multinomial_weights,
    type_compositions,
    type_probabilities,
)
from dynamics.validation import refuse
from theory.symmetry import Classes, IntArray, Partition, PermutationGroup, classes

LARGEST = 5e9
"""Multisets times entries of the Hessian that are accepted: about a second for each Hessian."""


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
        self.parameters = parameters
        self.full = full
        number = enumeration.count(parameters.L, parameters.C)
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
        flat, chosen = self.embedded(state), np.ix_(self.trained, self.trained)
        if self.full is not None:
            return self.full.jacobian(flat)[chosen]
        found = hessian(flat, self._law, self.parameters)[chosen]
        sums = np.bincount(self._orbits.labels.ravel(), weights=found.ravel())
        averaged: FloatArray = (sums / self._orbits.sizes)[self._orbits.labels]
        return averaged

    def decoupled(self, state: ArrayLike) -> Mapping[str, float]:
        """Curvature in the directions that couple to nothing: v orthogonal to w*."""
        flat = self.embedded(state)
        law = self._law if self.full is None else self.full.law
        return {"v": orthogonal_curvature(flat, law, self.parameters)}

    @cached_property
    def symmetry(self) -> PermutationGroup:
        """The wreath product, acting on the trained entries; alpha, entry 0, stays."""
        place = np.zeros((self.parameters.D,) * 2, dtype=np.int64)
        place[self._rows, self._columns] = 1 + np.arange(self._rows.size)
        moved = [
            np.concatenate([[0], place[pi[self._rows], pi[self._columns]]])
            for pi in self.partition.group().generators
        ]
        return PermutationGroup(self.trained.size, tuple(moved))

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
        return representatives(self.parameters)

    @cached_property
    def _orbits(self) -> Classes:
        return classes(self.symmetry)


def representatives(parameters: Parameters) -> Law:
    """One configuration of each multiset of types, with the probability of the whole orbit.

    The signal set is the first; in each random set the patches at +1 come first, then those at -1.
    """
    compositions = type_compositions(parameters.C)
    patterns = np.array([np.repeat([1, -1, 0], counts) for counts in compositions], dtype=np.int8)
    chosen = itertools.combinations_with_replacement(range(len(patterns)), parameters.L - 1)
    types = np.array(list(chosen))
    probability = multinomial_weights(types, type_probabilities(compositions, parameters.q))
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
