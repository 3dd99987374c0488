r"""From reduced coordinates to every trained entry, traced.

Classes: :math:`\theta_i = \sigma_i z_{k(i)}`, and frozen entries as at the start; one step changes
:math:`z_k` by :math:`-\eta\,(1/n_k)\,\partial R/\partial z_k`. A linear space:
:math:`\theta = \theta(0) + U z` with orthonormal columns, :math:`z` changes by
:math:`-\eta\,\partial R/\partial z`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from theory.closure import EntryClasses, LinearSpace

FloatArray = NDArray[np.float64]

DENSE = 1 << 16
"""Entries times scalars up to which a product with a matrix is quicker than a gather."""


class Embedding(NamedTuple):
    """Arrays of an embedding; ``matrix`` is empty where entries are gathered by ``labels``.

    Attributes
    ----------
    offset : float array, shape (n,)
        Entries that do not depend on the coordinates; the start of a linear space.
    matrix : float array, shape (n, count) or (0, 0)
    labels : int array, shape (n,)
        Coordinate of each entry.
    signs : float array, shape (n,)
        0 for an entry without one.
    share : float array, shape (count,)
        Factor from the derivative by a coordinate to its rate.
    """

    offset: Any
    matrix: Any
    labels: Any
    signs: Any
    share: Any

    def lift(self, state: Any) -> Any:
        """Every entry, shape (n,); traced."""
        if self.matrix.shape[0]:
            return self.offset + self.matrix @ state
        return self.offset + self.signs * state[self.labels]

    def tangent(self, rate: Any) -> Any:
        """What a change of the coordinates changes in every entry, shape (n,); traced."""
        if self.matrix.shape[0]:
            return self.matrix @ rate
        return self.signs * rate[self.labels]

    def along(self, vector: Any) -> Any:
        """Coordinates of a vector of every entry: signed means of classes; traced."""
        import jax

        if self.matrix.shape[0]:
            return self.share * (self.matrix.T @ vector)
        count = self.share.shape[0]
        return self.share * jax.ops.segment_sum(self.signs * vector, self.labels, count)

    def project(self, flat: Any) -> Any:
        """Coordinates of a state of every entry; traced."""
        return self.along(flat - self.offset)


def class_embedding(classes: EntryClasses) -> Embedding:
    """The embedding of one value for each class."""
    moving = classes.labels >= 0
    offset = np.where(moving, 0.0, classes.start)
    labels = np.where(moving, classes.labels, 0)
    signs = np.where(moving, classes.signs, 0.0)
    matrix = np.zeros((0, 0))
    if labels.size * classes.count <= DENSE:
        matrix = np.zeros((labels.size, classes.count))
        matrix[np.arange(labels.size)[moving], labels[moving]] = signs[moving]
    return Embedding(offset, matrix, labels, signs, 1.0 / classes.sizes)


def linear_embedding(classes: EntryClasses, space: LinearSpace) -> Embedding:
    """The embedding of a linear space by orthonormal directions of the entries."""
    still = EntryClasses(classes.labels, classes.signs, np.zeros_like(classes.start))
    matrix = still.lift(space.directions(classes).T).T
    nothing = np.zeros(0)
    return Embedding(
        classes.start, np.ascontiguousarray(matrix), nothing, nothing, np.ones(matrix.shape[1])
    )
