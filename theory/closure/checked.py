"""Classes of entries with equal gradients at some states, for a model that cannot be traced."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from theory.closure.partition import EntryClasses, cells
from theory.closure.refinement import oriented
from theory.color_refinement import IntArray
from theory.law import FloatArray

STATES = 60
"""Number of states at which gradients are compared."""
SCALES = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Standard deviations of the random displacements from the start; they are used in turn."""
SAME = 1e-10
"""Gradients of two entries are equal up to this difference, relative to the largest in a class."""


def refine(
    gradient: Callable[[FloatArray], FloatArray],
    start: FloatArray,
    arrays: IntArray,
    generator: np.random.Generator,
    opposite: bool = True,
) -> EntryClasses:
    """Coarsest classes of entries with equal gradients at some random states.

    `gradient` maps a state to its gradient, both of shape (n,). `arrays`, shape (n,), holds the
    number of the array that contains each entry. With `opposite`, entries that differ only in sign
    share a class.
    """
    labels = cells(start, arrays, opposite)
    signs = np.sign(start) if opposite else np.ones(start.size)
    active, rounds = np.zeros(start.size, dtype=bool), []
    for number in range(STATES):
        scale = SCALES[number % len(SCALES)] if number else 0.0
        moved = scale * generator.standard_normal(int(labels.max()) + 1)[labels]
        slope = gradient(start + np.where(active, signs * moved, 0.0))
        if not np.isfinite(slope).all():
            continue
        least = SAME * largest(slope, labels)
        woken = (np.abs(slope) > least) & ~active
        signs = np.where(woken & (signs == 0), np.sign(slope), signs)
        active = active | woken
        labels = _split(labels, active, np.where(active, signs * slope, 0.0), least)
        rounds.append(np.unique(labels[active]).size)
    return oriented(labels, signs, active, start, tuple(rounds))


def largest(slope: FloatArray, labels: IntArray) -> FloatArray:
    """Largest absolute gradient in the class of each entry, shape (n,)."""
    found = np.zeros(int(labels.max()) + 1)
    np.maximum.at(found, labels, np.abs(slope))
    return found[labels]


def _split(
    labels: IntArray, active: NDArray[np.bool_], values: FloatArray, least: FloatArray
) -> IntArray:
    """Labels after splitting each class at gaps larger than `least` between its sorted values."""
    order = np.lexsort((values, active, labels))
    before, after = order[:-1], order[1:]
    apart = (labels[before] != labels[after]) | (active[before] != active[after])
    apart |= values[after] - values[before] > least[after]
    finer = np.empty(labels.size, dtype=np.int64)
    finer[order] = np.concatenate([[0], np.cumsum(apart)])
    return finer
