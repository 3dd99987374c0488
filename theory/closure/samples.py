r"""Classes of samples: which samples of a law have the same loss on the closed space.

On the space in which training stays, many samples of a law have the same restricted loss. Their
losses, the derivatives of these along random directions of the space, and what is observed of them
agree at every state, so one of them stands for all with the sum of their probabilities. Samples
that agree at states near the start may differ later, where a kink is passed: states along a run are
looked at too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from theory.closure.partition import FLOORS, ROUNDING, FloatArray, IntArray

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
        count = int(labels.max(initial=-1)) + 1
        error, largest = np.zeros(count), np.zeros(count)
        np.maximum.at(error, labels, floors)
        np.maximum.at(largest, labels, np.abs(values))
        tolerance = FLOORS * error + ROUNDING * largest
        order = np.lexsort((values, finite, labels))
        before, after = order[:-1], order[1:]
        new = labels[before] != labels[after]
        new |= finite[before] != finite[after]
        new |= values[after] - values[before] > tolerance[labels[after]]
        fresh = np.empty_like(labels)
        fresh[order] = np.concatenate([[0], np.cumsum(new)])
        labels = fresh
    first, inverse = np.unique(labels, return_index=True, return_inverse=True)[1:]
    rank = np.empty_like(first)
    rank[np.argsort(first)] = np.arange(first.size)
    return SampleClasses(rank[inverse.ravel()])
