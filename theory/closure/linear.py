r"""Second stage of a closure: the smallest linear space that gradient descent does not leave.

Beyond equal entries, training may stay in a smaller linear space through the start:
:math:`v = \alpha w_*` for a general :math:`w_*`, the eigenvectors of a covariance, the aligned
modes of a deep linear network. In the coordinates of the classes (`theory.closure.partition`),
gradients at points of the space so far are added to it until rounds of six points add
nothing.

A direction is added only above `theory.closure.partition.FLOORS` rounding errors, and the whole is
accepted only with a clear gap between what was added and what was left; otherwise the classes stand
as they are. Where parameter groups have learning rates of their own, each group is closed for
itself. It is a statement on plain gradient descent: a rule that treats coordinates one by one, such
as Adam, keeps the classes and leaves the linear space.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from theory.closure.partition import (
    FLOORS,
    MOST_HALVINGS,
    SCALES,
    EntryClasses,
    Training,
    random_state,
)
from theory.color_refinement import IntArray
from theory.law import FloatArray

LEAST_QUIET, MOST_QUIET = 4, 12
"""Rounds in a row that must add nothing: one more for every two scalars."""
SIZES = (0.01, 0.1, 0.3, 1.0, 3.0)
"""Sizes of the random displacements, in turn: kinks are passed near and far."""
TRIALS = 3
"""Searches with other points, where one does not tell noise from signal."""
POINTS = 6
"""Random points of a round."""
GAP = 1e4
"""Ratio between the least direction that was added and the largest that was not."""
MOST_SCALARS = 600
"""Classes up to which the second stage is tried."""


@dataclass(frozen=True)
class LinearSpace:
    """A linear space through the start, in the coordinates of the classes.

    Attributes
    ----------
    basis : float array, shape (count, free)
        Columns: directions of the scalars; displacements of the scalars are combinations of them.
    remark : str
        Why the second stage was left out, where it was; the basis is the identity there.
    """

    basis: FloatArray
    remark: str = ""

    def inside(self, classes: EntryClasses, states: Sequence[FloatArray]) -> list[FloatArray]:
        """States of every entry, projected on the space."""
        return _inside(classes, states, self.basis * np.sqrt(classes.sizes)[:, None])

    def directions(self, classes: EntryClasses) -> FloatArray:
        """Orthonormal directions of the entries, as changes of the scalars.

        Parameters
        ----------
        classes : EntryClasses

        Returns
        -------
        float array, shape (count, free)
            Columns, each with its largest coefficient positive.
        """
        roots = np.sqrt(classes.sizes)
        columns = np.linalg.qr(self.basis * roots[:, None])[0] / roots[:, None]
        largest = np.abs(columns).argmax(axis=0)
        return np.asarray(columns * np.sign(columns[largest, np.arange(columns.shape[1])]))

    @property
    def free(self) -> int:
        """Dimension of the space."""
        return int(self.basis.shape[1])


def linear_space(
    training: Training,
    classes: EntryClasses,
    generator: np.random.Generator,
    visited: Sequence[FloatArray] = (),
) -> LinearSpace:
    """The smallest linear space through the start that the gradient does not leave.

    Parameters
    ----------
    training : Training
    classes : EntryClasses
        Closed under gradient descent.
    generator : numpy Generator
        Draws the points.
    visited : sequence of float arrays, shape (n,)
        States of a run: random points may not reach what training reaches. They are projected on
        the space, which the run itself may leave where rounding grows.

    Returns
    -------
    LinearSpace
    """
    count = classes.count
    if count == 0:
        return LinearSpace(np.eye(0))
    if count > MOST_SCALARS:
        return LinearSpace(np.eye(count), f"more than {MOST_SCALARS} scalars")
    scale = _scales(training, classes, generator)
    for _ in range(TRIALS):
        search = _searched(training, classes, generator, visited, scale)
        if search.clear and search.basis.shape[1] == count:
            return LinearSpace(np.eye(count))
        if search.clear:
            roots = np.sqrt(classes.sizes)
            return LinearSpace(search.basis * scale[:, None] / roots[:, None])
    return LinearSpace(np.eye(count), "noise and signal were not distinguished")


def _searched(
    training: Training,
    classes: EntryClasses,
    generator: np.random.Generator,
    visited: Sequence[FloatArray],
    scale: FloatArray,
) -> _Search:
    """One search, from the gradient at the start until rounds of points add nothing."""
    count, groups = classes.count, training.groups[classes.first]
    search = _Search(np.zeros((count, 0)))
    needed = min(MOST_QUIET, LEAST_QUIET + count // 2)
    quiet = rounds = 0
    while quiet < needed and search.basis.shape[1] < count:
        basis = search.basis * scale[:, None]
        along = _inside(classes, visited, basis)
        points = []
        for k in range(POINTS if search.basis.shape[1] else 1):
            # Every second point lies near a state of the run.
            base = along[generator.integers(len(along))] if k % 2 and along else classes.start
            points.append(_point(training, classes, generator, (base, basis), rounds))
        added = search.add(*_parts(points, classes, groups, scale))
        rounds += 1
        quiet = 0 if added else quiet + 1
        if quiet == needed and along:
            states = [training.probe(state) for state in along]
            quiet = 0 if search.add(*_parts(states, classes, groups, scale), False) else quiet
    return search


class _Search:
    """Directions so far, orthonormal in scaled coordinates, and how clear each was."""

    def __init__(self, basis: FloatArray) -> None:
        self.basis = basis
        self.errors = np.zeros(0)
        self.added: list[float] = []
        self.left: list[float] = []

    @property
    def clear(self) -> bool:
        noise = max([1.0, *self.left])
        return min(self.added, default=np.inf) >= GAP * noise

    def add(self, vectors: list[FloatArray], errors: list[float], random: bool = True) -> bool:
        """Append the parts of some vectors outside the space; whether there were any.

        States of a run (not ``random``) come to rest: their remainders are not compared.
        """
        rest = [self._outside(vector) for vector in vectors]
        noise = [self._noise(v, e) for v, e in zip(vectors, errors, strict=True)]
        own = list(errors)
        some = False
        while rest:
            lengths = np.array([np.linalg.norm(vector) for vector in rest])
            ratios = [
                length / error if error > 0 else (np.inf if length > 0 else 0.0)
                for length, error in zip(lengths, noise, strict=True)
            ]
            k = int(np.argmax(ratios))
            if not ratios[k] > FLOORS or self.basis.shape[1] == self.basis.shape[0]:
                self.left += [float(ratios[k])] if random else []
                break
            some = True
            self.added.append(float(ratios[k]))
            direction = self._outside(rest[k] / lengths[k])
            direction /= np.linalg.norm(direction)
            self.basis = np.column_stack([self.basis, direction])
            self.errors = np.append(self.errors, own[k] / lengths[k])
            for j in range(len(rest)):
                along = float(direction @ rest[j])
                noise[j] += abs(along) / lengths[k] * noise[k] if j != k else 0.0
                rest[j] = rest[j] - along * direction
            del rest[k], noise[k], own[k]
        return some

    def _noise(self, vector: FloatArray, error: float) -> float:
        """Rounding error of what of a vector lies outside: its own, and that of the directions.

        A direction that has an error leaves a part of a vector along it outside.
        """
        least = np.finfo(float).eps * float(np.linalg.norm(vector))
        along = np.linalg.norm((self.basis.T @ vector) * self.errors)
        return max(error, least) + float(along)

    def _outside(self, vector: FloatArray) -> FloatArray:
        for _ in range(2):
            vector = vector - self.basis @ (self.basis.T @ vector)
        return vector


def _inside(
    classes: EntryClasses, states: Sequence[FloatArray], directions: FloatArray
) -> list[FloatArray]:
    """States projected on a space; directions are those of orthonormal class coordinates."""
    if not directions.shape[1]:
        return []
    at_start = classes.start[classes.first]
    roots = np.sqrt(classes.sizes)
    basis = np.linalg.qr(directions)[0]
    moved = [(state[classes.first] - at_start) * roots for state in states]
    return [classes.lift(at_start + basis @ (basis.T @ move) / roots) for move in moved]


def _parts(
    points: list[tuple[FloatArray, FloatArray]],
    classes: EntryClasses,
    groups: IntArray,
    scale: FloatArray,
) -> tuple[list[FloatArray], list[float]]:
    """Gradients in scaled coordinates, each parameter group for itself, and their errors."""
    roots = np.sqrt(classes.sizes)
    vectors, errors = [], []
    for gradient, floor in points:
        if not (np.isfinite(gradient).all() and np.isfinite(floor).all()):
            continue
        along = classes.project(gradient) * roots / scale
        spread = classes.project(floor * classes.signs) * roots / scale
        for group in np.unique(groups):
            inside = groups == group
            vectors.append(np.where(inside, along, 0.0))
            errors.append(float(np.linalg.norm(np.where(inside, spread, 0.0))))
    return vectors, errors


def _scales(
    training: Training, classes: EntryClasses, generator: np.random.Generator
) -> FloatArray:
    """Typical size of the gradient along each class, shape (count,)."""
    sizes = []
    for k in range(2 * len(SCALES)):
        gradient, _ = training.probe(random_state(classes, generator, SCALES[k % len(SCALES)]))
        if np.isfinite(gradient).all():
            sizes.append(np.abs(classes.project(gradient)) * np.sqrt(classes.sizes))
    if not sizes:
        return np.ones(classes.count)
    typical = np.sqrt(np.mean(np.square(sizes), axis=0))
    least = float(typical[typical > 0].min(initial=np.inf))
    return np.where(typical > 0, typical, least if np.isfinite(least) else 1.0)


def _point(
    training: Training,
    classes: EntryClasses,
    generator: np.random.Generator,
    around: tuple[FloatArray, FloatArray],
    rounds: int,
) -> tuple[FloatArray, FloatArray]:
    """Gradient and floors at a random point of the space; not finite where there is none.

    ``around`` is a state of the space, and directions of orthonormal class coordinates.
    """
    base, basis = around
    roots = np.sqrt(classes.sizes)
    at_start = base[classes.first]
    scale = SIZES[rounds % len(SIZES)]
    for _ in range(MOST_HALVINGS):
        moved = basis @ generator.standard_normal(basis.shape[1])
        size = float(np.sqrt(np.mean(moved**2))) if basis.shape[1] else 0.0
        if size > 0:
            moved *= scale / size
        gradient, floor = training.probe(classes.lift(at_start + moved / roots))
        if np.isfinite(gradient).all() and np.isfinite(floor).all():
            break
        scale /= 2
    return gradient, floor
