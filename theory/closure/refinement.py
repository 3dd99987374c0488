r"""Classes of entries that gradient descent keeps equal, by exact evaluations in a finite field.

At first, entries are in one class if they are in the same array and have the same absolute value
:math:`|\theta_i(0)|`. A round draws a random number of the finite field for each class, sets the
entries of the class to this number times their signs, and evaluates the gradient. Frozen entries
keep their initial value. An entry with a nonzero gradient moves in later rounds; if it starts at 0,
the gradient gives its sign. A class is split if the *signed gradients* of its entries (gradient
times sign) differ. The rounds end when two of them change no class. In every state with equal
entries in each final class, also at kinks, the signed gradients of a class are equal, and the
gradients of frozen entries are 0. The rounds are colour refinement with the gradient as the colour.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from theory.closure.partition import FROZEN, EntryClasses, cells
from theory.color_refinement import IntArray, by_appearance
from theory.law import FloatArray
from theory.program import field
from theory.program.field import Triples

Gradient = Callable[[Triples], Triples]
"""Function from points as triples of residues, shape (n, points, 3), to gradients of this shape."""
QUIET = 2
"""The refinement ends after this many consecutive rounds without a change."""


def refine(
    gradient: Gradient,
    start: FloatArray,
    triples: Triples,
    arrays: IntArray,
    generator: np.random.Generator,
    opposite: bool = True,
) -> EntryClasses:
    """Coarsest classes of entries with equal gradients in every state.

    `triples`, shape (n, 3), holds the residues of `start`. `arrays`, shape (n,), holds the number
    of the array that contains each entry. With `opposite`, entries that differ only in sign share a
    class.
    """
    size = start.size
    labels = cells(start, arrays, opposite)
    signs = np.sign(start) if opposite else np.ones(size)
    active = np.zeros(size, dtype=bool)
    rounds: list[int] = []
    quiet = 0
    while quiet < QUIET:
        slope = _along(gradient, labels, np.where(active, signs, 0), triples, generator)
        woken = slope.any(axis=1) & ~active
        first = np.where(slope[:, 0] <= field.negative(slope)[:, 0], 1.0, -1.0)
        signs = np.where(woken & (signs == 0), first, signs)
        active = active | woken
        signed = np.where((signs < 0)[:, None], field.negative(slope), slope).astype(np.int64)
        table = np.column_stack([labels, active, signed])
        finer = np.unique(table, axis=0, return_inverse=True)[1].reshape(-1)
        quiet = 0 if woken.any() or finer.max() > labels.max() else quiet + 1
        labels = finer
        rounds.append(np.unique(labels[active]).size)
    return oriented(labels, signs, active, start, tuple(rounds))


def oriented(
    labels: IntArray,
    signs: FloatArray,
    active: NDArray[np.bool_],
    start: FloatArray,
    rounds: tuple[int, ...],
) -> EntryClasses:
    """Classes in the order of their first entries, with signs relative to these entries."""
    moving = np.flatnonzero(active)
    ordered, relative = np.full(start.size, FROZEN, dtype=np.int64), np.zeros(start.size)
    if moving.size:
        ordered[moving], first = by_appearance(labels[moving])
        relative[moving] = signs[moving] * signs[moving[first]][ordered[moving]]
    return EntryClasses(ordered, relative, start, rounds)


def leaving(
    gradient: Gradient, classes: EntryClasses, triples: Triples, generator: np.random.Generator
) -> IntArray:
    """Indices of entries with a signed gradient unlike their class's, or nonzero though frozen."""
    slope = _along(gradient, classes.labels, classes.signs, triples, generator)
    signed = np.where((classes.signs < 0)[:, None], field.negative(slope), slope)
    moving = np.flatnonzero(classes.labels >= 0)
    first = classes.first[classes.labels[moving]]
    expected, start = np.zeros_like(signed), classes.signs * classes.start
    expected[moving] = signed[first]
    off = (signed != expected).any(axis=1)
    off[moving] |= start[moving] != start[first]  # entries of a class must be equal at the start
    return np.flatnonzero(off)


def tied(
    labels: IntArray, signs: FloatArray, triples: Triples, generator: np.random.Generator
) -> Triples:
    """Random state that keeps the classes and their signs; entries with sign 0 keep their start."""
    own = field.drawn(generator, int(labels.max(initial=0)) + 1)[labels]
    own = np.where((signs < 0)[:, None], field.negative(own), own)
    return np.where((signs == 0)[:, None], triples, own)


def _along(
    gradient: Gradient,
    labels: IntArray,
    signs: FloatArray,
    triples: Triples,
    generator: np.random.Generator,
) -> Triples:
    """Gradient, shape (n, 3), at a random state with equal entries in each class; see `tied`."""
    return gradient(tied(labels, signs, triples, generator)[:, None])[:, 0]
