"""Classes of trained entries that stay equal, and classes of samples.

`theory.closure.refinement` finds classes of entries exactly, from a traced program;
`theory.closure.checked` finds them from gradients at some states.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from theory.color_refinement import IntArray
from theory.law import FloatArray

FROZEN = -1
"""Label of an entry that never moves."""


def cells(start: FloatArray, arrays: IntArray, opposite: bool = True) -> IntArray:
    """Initial class of each entry, determined by its array and its absolute value, shape (n,).

    `arrays`, shape (n,), holds the number of the array that contains each entry. Without
    `opposite`, entries that differ in sign are in different classes.
    """
    values = np.abs(start) if opposite else start
    sizes = np.unique(values, return_inverse=True)[1].reshape(-1)
    keys = np.stack([arrays, sizes])
    return np.unique(keys, axis=1, return_inverse=True)[1].reshape(-1)


@dataclass(frozen=True)
class EntryClasses:
    """Classes of trained entries that gradient descent keeps equal up to a sign.

    The array `labels`, shape (n,), holds the class of each entry, or `FROZEN` for an entry that
    never moves. Classes are numbered in the order of their first entries. The array `signs`, shape
    (n,), holds the sign of each entry relative to the first entry of its class, and 0 for a frozen
    entry. `start` holds the value of each entry at step 0. `rounds` holds the number of classes,
    without frozen entries, after each round of `refinement`. If a model declares its scalars, each
    label stands for one scalar, and `declared` holds the number of entries with its value.
    """

    labels: IntArray
    signs: FloatArray
    start: FloatArray
    rounds: tuple[int, ...] = ()
    declared: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """Number of classes whose entries move."""
        return int(self.labels.max(initial=FROZEN)) + 1

    @property
    def sizes(self) -> IntArray:
        """Number of entries of each class, shape (count,)."""
        if self.declared:
            return np.array(self.declared)
        return np.bincount(self.labels[self.labels >= 0], minlength=self.count)

    @property
    def first(self) -> IntArray:
        """Index of the first entry of each class, shape (count,)."""
        moving = np.flatnonzero(self.labels >= 0)
        return moving[np.unique(self.labels[moving], return_index=True)[1]]

    def without(self, still: NDArray[np.bool_]) -> EntryClasses:
        """Copy in which the classes marked by the mask `still`, shape (count,), are frozen."""
        numbers = np.where(still, FROZEN, np.cumsum(~still) - 1)
        labels = np.where(self.labels >= 0, numbers[self.labels], FROZEN)
        signs = np.where(labels >= 0, self.signs, 0.0)
        return replace(self, labels=labels.astype(np.int64), signs=signs)

    def lift(self, scalars: FloatArray) -> FloatArray:
        """Values of all entries from values of the classes, (..., count) -> (..., n)."""
        scalars = np.asarray(scalars, dtype=np.float64)
        states = np.broadcast_to(self.start, (*scalars.shape[:-1], self.start.size)).copy()
        moving = self.labels >= 0
        states[..., moving] = self.signs[moving] * scalars[..., self.labels[moving]]
        return states

    def tangent(self, change: FloatArray) -> FloatArray:
        """Changes of all entries from changes of the classes, (..., count) -> (..., n)."""
        return replace(self, start=np.zeros_like(self.start)).lift(change)

    def project(self, vectors: FloatArray) -> FloatArray:
        """Mean over each class of the sign times the entry, (..., n) -> (..., count)."""
        moving = np.flatnonzero(self.labels >= 0)
        signed = np.asarray(vectors)[..., moving] * self.signs[moving]
        if self.declared:
            return np.asarray(signed)
        order = np.argsort(self.labels[moving], kind="stable")
        if not self.count:
            return np.zeros((*signed.shape[:-1], 0))
        edges = np.searchsorted(self.labels[moving][order], np.arange(self.count))
        # `reduceat` sums in pairs, so the mean of many equal numbers has little rounding error.
        return np.add.reduceat(signed[..., order], edges, axis=-1) / self.sizes

    def residual(self, vector: FloatArray) -> FloatArray:
        """Part of a gradient, shape (n,), that would make entries of a class unequal."""
        return vector - self.tangent(self.project(vector))


@dataclass(frozen=True)
class SampleClasses:
    """Classes of samples whose losses are equal if the entries of each class are equal.

    The array `labels`, shape (N,), holds the class of each sample. Classes are numbered in the
    order of their first samples.
    """

    labels: IntArray

    @property
    def count(self) -> int:
        """Number of classes of samples."""
        return int(self.labels.max(initial=-1)) + 1

    @property
    def first(self) -> IntArray:
        """Index of the first sample of each class, shape (count,)."""
        return np.unique(self.labels, return_index=True)[1]

    def summed(self, weights: FloatArray) -> FloatArray:
        """Sum of the sample weights in each class of samples, shape (count,)."""
        return np.asarray(np.bincount(self.labels, weights, minlength=self.count), dtype=float)
