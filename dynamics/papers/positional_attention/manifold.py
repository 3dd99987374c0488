r"""Symmetric manifold (alpha, gamma, rho) inside the space of all trained entries.

The Hessian of the risk at a point of the manifold commutes with the wreath product of Lemma 4.1,
acting on the D(D-1) off-diagonal entries of A. A sum over one representative of each multiset of
types (module `configurations`), averaged over the group, therefore gives the Hessian. At D=16, C=4
there are 680 representatives for 2 125 764 configurations. If `Manifold` gets a `FullPopulation`,
the Hessian is a sum over all configurations of that problem.

Named sectors are subspaces that the group maps onto themselves:

- ``gamma``, ``rho``: entries of A inside sets, and between sets;
- ``sets``: entries with one value for each ordered pair of sets;
- ``patches``: entries with one value for each row and one for each column of each orbit, with mean
  zero over each set, so that patches of a set differ, equally towards all sets;
- ``rows``: the part of ``patches`` with one value for each row: some rows of a set attend more and
  others less (*row competition*).

The sectors ``sets`` and ``patches`` are whole isotypic components of the wreath product, so an
eigenvector of the Hessian is in one of them or orthogonal to both; an eigenvector orthogonal to
both is in ``gamma`` or in ``rho``.

With the output F and :math:`g = 1/(1+e^F)`, the risk :math:`R = E \log(1 + e^{-F})` has the Hessian

.. math:: \nabla^2 R = E[g (1-g)\,\nabla F \nabla F^T] - E[g\,\nabla^2 F], \qquad (1)

with derivatives of F by JAX.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.cache import compiled_program, jax
from dynamics.models.engine.program import evaluated
from dynamics.papers.positional_attention.configurations import (
    multinomial_weights,
    multisets,
    number_of_configurations,
)
from dynamics.papers.positional_attention.parameters import Parameters
from dynamics.parameter_fields import check_parameters
from dynamics.problem import FloatArray
from dynamics.validation import refuse
from theory.color_refinement import IntArray
from theory.papers.positional_attention.enumeration import Law
from theory.symmetry import Classes, Partition, PermutationGroup, classes

if TYPE_CHECKING:
    from dynamics.papers.positional_attention.full import FullPopulation

LARGEST = 5e9
"""Maximum number of multisets times Hessian entries; a Hessian of this size takes a second."""


class Manifold:
    """States (alpha, gamma, rho), with the Hessian of the risk by every trained entry.

    A full problem given as `full` provides configurations and sets. By default one configuration
    represents each multiset of types, and sets have consecutive patches. Raises InvalidRequest if
    the number of multisets times the number of entries of the Hessian exceeds `LARGEST`.
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
        """Flat state (alpha, A), shape (1 + D^2,), of a reduced state (alpha, gamma, rho)."""
        alpha, gamma, rho = np.asarray(state, dtype=np.float64)
        matrix = np.where(self._same, gamma, rho)
        np.fill_diagonal(matrix, self.parameters.beta)
        return np.concatenate([[alpha], matrix.ravel()])

    def hessian(self, state: ArrayLike) -> FloatArray:
        """Hessian by alpha and by the off-diagonal entries of A, row by row, at a reduced state."""
        whole = hessian(self.embedded(state), self._law, self.parameters)
        matrix = whole[np.ix_(self.trained, self.trained)]
        if self.full is None:
            sums = np.bincount(self._orbits.labels.ravel(), weights=matrix.ravel())
            matrix = (sums / self._orbits.sizes)[self._orbits.labels]
        return matrix

    @cached_property
    def symmetry(self) -> PermutationGroup:
        """Wreath product of Lemma 4.1 acting on the trained entries, with entry 0, alpha, fixed."""
        position = np.zeros((self.parameters.D,) * 2, dtype=np.int64)
        position[self._rows, self._columns] = 1 + np.arange(self._rows.size)
        generators = [
            np.concatenate([[0], position[pi[self._rows], pi[self._columns]]])
            for pi in self.partition.group().generators
        ]
        return PermutationGroup(self.trained.size, tuple(generators))

    @cached_property
    def sectors(self) -> Mapping[str, FloatArray]:
        """Name of a sector -> columns that span the sector, with 1 + D(D-1) rows."""
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
    """One configuration for each multiset of types, with the total probability of the multiset."""
    law = parameters.set_law
    patterns = np.array([np.repeat([1, -1, 0], counts) for counts in law.types], dtype=np.int8)
    types = multisets(len(patterns), parameters.L - 1)
    probability = multinomial_weights(types, law.probabilities)
    random = patterns[types].reshape(len(types), -1)
    signal = np.ones((len(types), parameters.C), dtype=np.int8)
    return np.concatenate([signal, random], axis=1).T, probability


def _indicators(classes_of_entries: IntArray) -> FloatArray:
    """Normalized indicator of each class of entries, with a leading zero for alpha."""
    names, counts = np.unique(classes_of_entries, return_counts=True)
    columns = (classes_of_entries[:, None] == names[None, :]) / np.sqrt(counts)
    return np.concatenate([np.zeros((1, names.size)), columns])


def _differing(fine: IntArray, coarse: IntArray) -> FloatArray:
    """Indicators of classes of entries, minus their projections on coarser classes."""
    columns, means = _indicators(fine), _indicators(coarse)
    return columns - means @ (means.T @ columns)


def hessian(state: FloatArray, law: Law, parameters: Parameters) -> FloatArray:
    """Hessian of the population risk by alpha and every entry of A, shape (1 + D^2, 1 + D^2).

    `state`, shape (1 + D^2,), has alpha, then A row by row, with its diagonal; `law` has the
    configurations given y = +1.
    """
    size, rows = parameters.D, np.arange(parameters.D)
    slopes, weights, bends = _derivatives(state, law, parameters)
    first = np.concatenate([slopes[..., 0].sum(axis=1)[:, None], slopes[..., 1:].reshape(
        len(slopes), -1)], axis=1)  # fmt: skip
    total = (first.T * weights) @ first  # (1), first term
    # Second term of (1): F is a sum over rows of A, so only alpha couples different rows.
    total[0, 0] -= bends[:, 0, 0].sum()
    total[0, 1:] -= bends[:, 0, 1:].ravel()
    total[1:, 0] = total[0, 1:]
    total[1:, 1:].reshape((size,) * 4)[rows, :, rows, :] -= bends[:, 1:, 1:]
    return total


def _derivatives(state: FloatArray, law: Law, parameters: Parameters) -> Any:
    size = parameters.D
    parts = np.full((size, 1), state[0]), state[1:].reshape(size, size)
    arguments = np.concatenate(parts, axis=1), np.asarray(law[0], np.float64).T, np.asarray(law[1])
    return evaluated(_compiled(size, parameters.p), *arguments, parameters.nu, parameters.scale)


@cache
def _compiled(size: int, degree: int) -> Any:
    """Compiled derivatives of F in (1) by alpha and row i of A, over weighted configurations."""
    each = jax.vmap

    def share(row: Any, x: Any, nu: Any, scale: Any) -> Any:
        inner = size * row[0] * (jax.nn.softmax(scale * row[1:]) @ x)
        return inner**degree + nu * inner

    def derivatives(rows: Any, values: Any, chances: Any, nu: Any, scale: Any) -> Any:
        def margin(x: Any) -> Any:
            return each(share, (0, None, None, None))(rows, x, nu, scale).sum()

        def of_row(row: Any) -> Any:
            return pulled @ each(share, (None, 0, None, None))(row, values, nu, scale)

        margins = each(margin)(values)
        pulled = chances * jax.nn.sigmoid(-margins)
        by_row = each(each(jax.grad(share), (0, None, None, None)), (None, 0, None, None))
        slopes = by_row(rows, values, nu, scale)
        spread = pulled * jax.nn.sigmoid(margins)
        return slopes, spread, each(jax.hessian(of_row))(rows)

    return compiled_program(derivatives)
