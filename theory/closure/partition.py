r"""First stage of a closure: classes of trained entries that stay equal, and classes of samples.

*Entries*, by refinement on the gradient. Entries of one array with one size :math:`|\theta_i(0)|`
begin as one class, with the sign of their start; an entry at 0 gets its sign from its first clear
gradient. At random points of the space in which every class has one value, a class is split where
the signed gradients of its entries differ. When no point splits any more, gradient descent from the
start cannot leave the space: this is colour refinement with the gradient as the colour.

The threshold for a difference is set class by class, because gradients of two arrays may differ by
ten orders of magnitude: `FLOORS` times the rounding error of the class, measured against a run in
single precision, plus `ROUNDING` units in the last place of the class's largest gradient.

An entry whose gradient vanishes at every point is *frozen*.

*Samples*. On the space in which training stays, many samples of a law have the same restricted
loss. Their losses, the derivatives of these along random directions of the space, and what the
model observes agree at every state, so one of them stands for all with the sum of their
probabilities. Samples that agree at states near the start may differ later, where a kink is passed:
states along a run are compared too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from theory.color_refinement import IntArray, by_appearance
from theory.law import FloatArray, ModelError

FLOORS = 300.0
"""Measured rounding errors from which a difference counts."""
ROUNDING = 64 * np.finfo(np.float64).eps
SCALES = (0.1, 0.3, 1.0)
"""Sizes of the random points, in turn."""
QUIET = 3
"""Points in a row that must split nothing."""
MOST_HALVINGS = 40
UNCLEAR = 30.0
"""A gap within this factor of the tolerance is unclear, and reported."""
MOST_SPLITS = 8
FROZEN = -1
"""Label of an entry that never moves."""


class Training(Protocol):
    """The full training problem, as the closure sees it.

    Attributes
    ----------
    start : float array, shape (n,)
        Every trained entry at step 0.
    arrays : int array, shape (n,)
        Number of the array to which each entry belongs.
    groups : int array, shape (n,)
        Number of its parameter group.
    """

    start: FloatArray
    arrays: IntArray
    groups: IntArray

    def probe(self, state: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient at a state and the rounding error of each of its entries, both shape (n,)."""
        ...


@dataclass(frozen=True)
class Split:
    """Two entries of one class at first, and the point at which they differ.

    Attributes
    ----------
    first, second : int
        Entries, as positions in the flat state.
    values : tuple of float
        Their signed gradients.
    unclear : bool
        Whether the difference is within a factor `UNCLEAR` of what counts as rounding.
    """

    first: int
    second: int
    values: tuple[float, float]
    unclear: bool = False

    @property
    def share(self) -> float:
        """Difference of the two gradients as a part of the larger."""
        largest = max(map(abs, self.values))
        return abs(self.values[0] - self.values[1]) / largest if largest else 0.0


@dataclass(frozen=True)
class EntryClasses:
    """Classes of trained entries that gradient descent keeps equal up to a sign.

    Attributes
    ----------
    labels : int array, shape (n,)
        Class of each entry, in the order of first entries; `FROZEN` for one that never moves.
    signs : float array, shape (n,)
        Sign of each entry relative to the first of its class; 0 for a frozen one.
    start : float array, shape (n,)
        Every entry at step 0.
    rounds : int
        Points at which the gradient was evaluated.
    splits : tuple of Split
        Pairs that differ by the smallest parts of their gradients, smallest first.
    """

    labels: IntArray
    signs: FloatArray
    start: FloatArray
    rounds: int = 0
    splits: tuple[Split, ...] = ()

    @property
    def count(self) -> int:
        """Number of classes that move."""
        return int(self.labels.max(initial=FROZEN)) + 1

    @property
    def sizes(self) -> IntArray:
        """Entries of each class, shape (count,)."""
        return np.bincount(self.labels[self.labels >= 0], minlength=self.count)

    @property
    def first(self) -> IntArray:
        """The first entry of each class, shape (count,)."""
        moving = np.flatnonzero(self.labels >= 0)
        return moving[np.unique(self.labels[moving], return_index=True)[1]]

    def without(self, still: NDArray[np.bool_]) -> EntryClasses:
        """The classes with some of them frozen; ``still`` has shape (count,)."""
        numbers = np.where(still, FROZEN, np.cumsum(~still) - 1)
        labels = np.where(self.labels >= 0, numbers[self.labels], FROZEN)
        signs = np.where(labels >= 0, self.signs, 0.0)
        return replace(self, labels=labels.astype(np.int64), signs=signs)

    def lift(self, scalars: FloatArray) -> FloatArray:
        """States of every entry, shape (..., n), from one value for each class, (..., count)."""
        scalars = np.asarray(scalars, dtype=np.float64)
        states = np.broadcast_to(self.start, (*scalars.shape[:-1], self.start.size)).copy()
        moving = self.labels >= 0
        states[..., moving] = self.signs[moving] * scalars[..., self.labels[moving]]
        return states

    def tangent(self, change: FloatArray) -> FloatArray:
        """Change of every entry, shape (..., n), from that of each class; 0 for frozen ones."""
        return replace(self, start=np.zeros_like(self.start)).lift(change)

    def project(self, vectors: FloatArray) -> FloatArray:
        """Signed mean over each class, shape (..., count), of vectors of shape (..., n)."""
        moving = np.flatnonzero(self.labels >= 0)
        signed = np.asarray(vectors)[..., moving] * self.signs[moving]
        order = np.argsort(self.labels[moving], kind="stable")
        if not self.count:
            return np.zeros((*signed.shape[:-1], 0))
        edges = np.searchsorted(self.labels[moving][order], np.arange(self.count))
        # Pairwise sums: means of many equal numbers keep their digits.
        return np.add.reduceat(signed[..., order], edges, axis=-1) / self.sizes

    def residual(self, vector: FloatArray) -> FloatArray:
        """Part of a gradient, shape (n,), outside the space in which classes are equal."""
        return vector - self.tangent(self.project(vector))


def refine_entries(
    training: Training,
    generator: np.random.Generator,
    extra: Sequence[FloatArray] = (),
    before: EntryClasses | None = None,
) -> EntryClasses:
    """Classes of entries that stay equal, up to a sign.

    Parameters
    ----------
    training : Training
    generator : numpy Generator
        Draws the points.
    extra : sequence of float arrays, shape (n,)
        States at which classes are split too: those at which a run left earlier classes.
    before : EntryClasses, optional
        Earlier classes, to be refined.

    Raises
    ------
    ModelError
        If the gradient is not finite at the start, or nowhere near it.
    """
    start, size = training.start, training.start.size
    before = before or EntryClasses(np.full(size, FROZEN), np.zeros(size), start)
    active = before.labels >= 0
    labels = np.where(active, before.labels, before.count + training.arrays)
    sizes = np.unique(np.abs(start), return_inverse=True)[1].ravel()
    pairs_of_labels = np.stack([labels, np.where(active, 0, sizes)])
    labels = np.unique(pairs_of_labels, axis=1, return_inverse=True)[1].ravel()
    signs = np.where(active, before.signs, np.sign(start))
    pending = list(extra)
    quiet = rounds = 0
    splits: list[Split] = []
    while quiet < QUIET or pending:
        if pending:
            gradient, floor = training.probe(pending.pop())
            if not _finite(gradient, floor):
                continue
        else:
            scale = SCALES[rounds % len(SCALES)] if rounds else 0.0
            gradient, floor = _random_probe(training, generator, (labels, signs * active), scale)
        count = int(labels.max()) + 1
        tolerance = _tolerances(labels, count, gradient, floor)
        woken = (np.abs(gradient) > tolerance[labels]) & ~active
        signs = np.where(woken & (signs == 0), np.sign(gradient), signs)
        active = active | woken
        labels, pairs = _split(labels, active, np.where(active, signs, 0) * gradient, tolerance)
        splits = sorted(splits + pairs, key=lambda split: split.share)[:MOST_SPLITS]
        quiet = 0 if pairs or woken.any() else quiet + 1
        rounds += 1
    moving = np.flatnonzero(active)
    ordered = np.full(size, FROZEN, dtype=np.int64)
    oriented = np.zeros(size)
    if moving.size:
        ordered[moving], first = by_appearance(labels[moving])
        oriented[moving] = signs[moving] * signs[moving[first]][ordered[moving]]
    return EntryClasses(ordered, oriented, start, rounds, tuple(splits))


def class_tolerances(
    training: Training, classes: EntryClasses, gradient: FloatArray, floor: FloatArray
) -> FloatArray:
    """Least difference that is no rounding, for each entry by its class, shape (n,).

    Entries that are frozen are a class of their own in each array.

    Parameters
    ----------
    training : Training
    classes : EntryClasses
    gradient, floor : float arrays, shape (n,)
        A gradient and its rounding error.
    """
    labels = np.where(classes.labels >= 0, classes.labels, classes.count + training.arrays)
    return _tolerances(labels, int(labels.max()) + 1, gradient, floor)[labels]


def random_state(classes: EntryClasses, generator: np.random.Generator, scale: float) -> FloatArray:
    """A random state in which every class has one value, shape (n,).

    Parameters
    ----------
    classes : EntryClasses
    generator : numpy Generator
    scale : float
        Standard deviation of the displacement of each class from the start.
    """
    at_start = classes.start[classes.first] if classes.count else np.zeros(0)
    return classes.lift(at_start + scale * generator.standard_normal(classes.count))


def _random_probe(
    training: Training,
    generator: np.random.Generator,
    classes: tuple[IntArray, FloatArray],
    scale: float,
) -> tuple[FloatArray, FloatArray]:
    """Gradient and floors at a random point of the classes, nearer to the start where needed."""
    labels, signs = classes
    if scale == 0.0:
        gradient, floor = training.probe(training.start)
        if not _finite(gradient, floor):
            bad = int(np.flatnonzero(~np.isfinite(gradient) | ~np.isfinite(floor))[0])
            raise ModelError(
                f"the gradient at the start is {gradient[bad]:g} (entry {bad}), not finite"
            )
        return gradient, floor
    for _ in range(MOST_HALVINGS):
        values = scale * generator.standard_normal(int(labels.max()) + 1)
        gradient, floor = training.probe(training.start + signs * values[labels])
        if _finite(gradient, floor):
            return gradient, floor
        scale /= 2
    raise ModelError("the gradient is finite at the start and at no point near it")


def _finite(gradient: FloatArray, floor: FloatArray) -> bool:
    return bool(np.isfinite(gradient).all() and np.isfinite(floor).all())


def _tolerances(
    labels: IntArray, count: int, gradient: FloatArray, floor: FloatArray
) -> FloatArray:
    """Least difference that is no rounding, in each class, shape (count,)."""
    error, largest = np.zeros(count), np.zeros(count)
    np.maximum.at(error, labels, floor)
    np.maximum.at(largest, labels, np.abs(gradient))
    return FLOORS * error + ROUNDING * largest


def _split(
    labels: IntArray, active: NDArray[np.bool_], values: FloatArray, tolerance: FloatArray
) -> tuple[IntArray, list[Split]]:
    """Finer labels, and one pair of entries for each class that was split."""
    order = np.lexsort((values, active, labels))
    before, after = order[:-1], order[1:]
    same = labels[before] == labels[after]
    gap = values[after] - values[before]
    apart = same & ((active[before] != active[after]) | (gap > tolerance[labels[after]]))
    fresh = np.empty(labels.size, dtype=np.int64)
    fresh[order] = np.concatenate([[0], np.cumsum(~same | apart)])
    pairs = []
    order_of_gaps = np.flatnonzero(apart)[np.argsort(gap[apart], kind="stable")]
    for k in order_of_gaps[:MOST_SPLITS]:
        one, two = sorted((int(before[k]), int(after[k])))
        limit = tolerance[labels[one]]
        unclear = bool(gap[k] < UNCLEAR * limit and active[before[k]] == active[after[k]])
        pairs.append(Split(one, two, (float(values[one]), float(values[two])), unclear))
    return fresh, pairs


Signature = tuple[FloatArray, FloatArray]
"""A number for each sample, and its rounding error, both shape (N,)."""


@dataclass(frozen=True)
class SampleClasses:
    """Classes of samples with equal restricted loss.

    Attributes
    ----------
    labels : int array, shape (N,)
        Class of each sample, in the order of first samples.
    """

    labels: IntArray

    @property
    def count(self) -> int:
        """Number of classes."""
        return int(self.labels.max(initial=-1)) + 1

    @property
    def first(self) -> IntArray:
        """The first sample of each class, shape (count,)."""
        return np.unique(self.labels, return_index=True)[1]

    def summed(self, weights: FloatArray) -> FloatArray:
        """Sum of weights over each class, shape (count,)."""
        return np.asarray(np.bincount(self.labels, weights, minlength=self.count), dtype=float)


def split_samples(labels: IntArray, signatures: Iterable[Signature]) -> SampleClasses:
    """Refine classes of samples by numbers that members of a class must share.

    Parameters
    ----------
    labels : int array, shape (N,)
        Classes so far; all 0 at first.
    signatures : iterable of Signature

    Returns
    -------
    SampleClasses
    """
    labels = np.asarray(labels, dtype=np.int64)
    for values, floors in signatures:
        finite = np.isfinite(values) & np.isfinite(floors)
        values, floors = np.where(finite, values, 0.0), np.where(finite, floors, 0.0)
        tolerance = _tolerances(labels, int(labels.max(initial=-1)) + 1, values, floors)
        labels, _ = _split(labels, finite, values, tolerance)
    return SampleClasses(by_appearance(labels)[0])
