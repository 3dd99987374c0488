r"""Smallest linear space through the start that contains the trajectory of gradient descent.

Training may stay in a linear space that is smaller than the space of equal entries. Examples of
such spaces are the multiples of one fixed vector, spans of eigenvectors of a covariance matrix, and
the aligned modes of a deep linear network. The search in the finite field is exact: gradients at
random points of start + span are added to the span until further points add no direction. Data that
are not simple fractions need a search in floats. The result of the search in floats is used only if
all parts of gradients outside the span are rounding errors.

If parameter groups have different learning rates, the space of each group is searched separately.
If the update rule is linear in the gradients, training stays in the linear space. A rule such as
Adam may leave the linear space, but keeps the entries of each class equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from theory.closure import modular
from theory.closure.partition import EntryClasses
from theory.closure.refinement import Gradient
from theory.color_refinement import IntArray
from theory.law import FloatArray
from theory.program import field
from theory.program.field import Triples

Rates = Callable[[FloatArray], FloatArray]
"""Function from the scalars to the gradient of an entry of each class; both of shape (count,)."""
MOST_SCALARS = 600
"""Maximum number of classes; above it, no smaller linear space is searched for."""
POINTS = 8, 64
"""Minimum and maximum number of random points in a round of the search in the finite field."""
QUIET = 6
"""The search in floats ends after this many consecutive points without a new direction."""
SIZES = (0.1, 0.3, 1.0, 3.0)
"""Root mean squares, used in turn, of the random displacements in the search in floats."""
SIGNAL, NOISE = 1e-9, 2e-12
"""Relative part of a gradient outside the span: a direction above SIGNAL, rounding below NOISE."""


@dataclass(frozen=True)
class LinearSpace:
    """Linear space through the start, with one coordinate for each class of entries.

    The columns of `basis`, shape (count, free), are directions of the scalars. `proved` is False if
    the space was found in floats, from gradients at some states.
    """

    basis: FloatArray
    proved: bool = True

    def directions(self, classes: EntryClasses) -> FloatArray:
        """Basis, shape (count, free), orthonormal in the inner product weighted by class sizes."""
        roots = np.sqrt(classes.sizes)
        columns = np.linalg.qr(self.basis * roots[:, None])[0] / roots[:, None]
        largest = np.abs(columns).argmax(axis=0)
        return np.asarray(columns * np.sign(columns[largest, np.arange(columns.shape[1])]))

    @property
    def free(self) -> int:
        """Dimension of the linear space."""
        return int(self.basis.shape[1])


@dataclass(frozen=True)
class Span:
    """Linear span over the finite field: rows of its reduced echelon form, and pivot columns."""

    rows: Triples
    pivots: IntArray

    def points(self, start: Triples, number: int, generator: np.random.Generator) -> Triples:
        """Random points of start + span, shape (count, number, 3)."""
        if not len(self.rows):
            return start[:, None]
        factors = field.drawn(generator, number, len(self.rows))
        moved = modular.product(factors, self.rows).transpose(1, 0, 2)
        return field.add(start[:, None], moved)


def whole_span(count: int) -> Span:
    """Span of all directions."""
    rows = np.zeros((count, count, 3), dtype=np.uint64)
    rows[np.arange(count), np.arange(count)] = 1
    return Span(rows, np.arange(count))


def closed_span(
    gradient: Gradient, start: Triples, groups: IntArray, generator: np.random.Generator
) -> Span:
    """Smallest span that contains each parameter group's gradient at any point of start + span."""
    count = len(start)
    span = Span(np.zeros((0, count, 3), dtype=np.uint64), np.zeros(0, dtype=np.int64))
    while len(span.rows) < count:
        points = span.points(start, int(np.clip(len(span.rows), *POINTS)), generator)
        fresh, pivots = modular.echelon(_outside(span, gradient(points), groups))
        if not len(fresh):
            break
        rows = np.concatenate([modular.outside(span.rows, fresh, pivots), fresh])
        pivots = np.concatenate([span.pivots, pivots])
        order = np.argsort(pivots)
        span = Span(rows[order], pivots[order])
    return span


def leaves(
    span: Span, gradient: Gradient, start: Triples, groups: IntArray, generator: np.random.Generator
) -> bool:
    """Whether gradients at random points of start + span have a part outside the span."""
    points = span.points(start, POINTS[0], generator)
    return bool(_outside(span, gradient(points), groups).any())


def _outside(span: Span, slopes: Triples, groups: IntArray) -> Triples:
    """Parts of gradients outside a span, as one vector for each gradient and parameter group."""
    vectors = slopes.transpose(1, 0, 2)
    masks = groups == np.unique(groups)[:, None]
    vectors = np.concatenate([np.where(mask[:, None], vectors, 0) for mask in masks])
    return modular.outside(vectors, span.rows, span.pivots)


def exact_basis(span: Span) -> FloatArray | None:
    """Basis of a span in floats, (count, free), or None if a number is not a small fraction."""
    found = [modular.fractions(row) for row in span.rows]
    if not all(found):
        return None
    return np.array([[float(x) for x in row] for row in found]).reshape(len(found), -1).T


def reduced_basis(basis: FloatArray, span: Span) -> FloatArray:
    """Float `basis` recombined into the echelon form of the exact `span`, shape (count, free)."""
    columns = np.linalg.solve(basis[span.pivots].T, basis.T).T
    return np.asarray(np.where(span.rows.any(axis=2).T, columns, 0.0))


def numeric_basis(
    rates: Rates, start: FloatArray, groups: IntArray, generator: np.random.Generator
) -> tuple[FloatArray, bool]:
    """Basis of the linear space in floats; whether gradients have less than `NOISE` outside it."""
    trials = [rates(start + s * generator.standard_normal(start.size)) for s in SIZES]
    good = [trial for trial in trials if np.isfinite(trial).all()]
    scale = np.sqrt(np.mean(np.square(good), axis=0)) if good else np.ones(start.size)
    scale = np.where(scale > 0, scale, scale[scale > 0].min(initial=np.inf))
    scale = np.where(np.isfinite(scale), scale, 1.0)
    basis, left = np.zeros((start.size, 0)), 0.0
    quiet = rounds = 0
    while quiet < QUIET:
        before = basis.shape[1]
        moved = scale * (basis @ generator.standard_normal(before))
        size = SIZES[rounds % len(SIZES)] / max(float(np.sqrt(np.mean(moved**2))), 1e-300)
        for vector in _normalized(rates(start + moved * size) / scale, groups):
            rest = vector - basis @ (basis.T @ vector)
            rest -= basis @ (basis.T @ rest)
            part = float(np.linalg.norm(rest))
            if part > SIGNAL and basis.shape[1] < start.size:
                basis = np.column_stack([basis, rest / part])
            else:
                left = max(left, part)
        quiet, rounds = (0 if basis.shape[1] > before else quiet + 1), rounds + 1
    return basis * scale[:, None], left < NOISE


def _normalized(slope: FloatArray, groups: IntArray) -> Iterator[FloatArray]:
    """Yield the nonzero parts of a gradient in each parameter group, normalized to length 1."""
    for group in np.unique(groups):
        vector = np.where(groups == group, slope, 0.0)
        length = float(np.linalg.norm(vector))
        if np.isfinite(length) and length > 0:
            yield vector / length
