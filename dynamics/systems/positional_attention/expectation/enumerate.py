r"""The exact expectation: all multisets of types, with multinomial weights.

A random set has one of K = (C+1)(C+2)/2 types (a, b). F is symmetric in the sets, so the
expectation over L-1 of them is a sum over multisets, each with weight

.. math:: \frac{(L-1)!}{\prod_k m_k!} \prod_k P_k^{m_k}.

Configurations do not depend on the state: they are built once per (D, C, q).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache
from math import comb, factorial

import numpy as np
from numpy.typing import NDArray

from dynamics.validation import refuse

MAX_CONFIGURATIONS = 5_000_000
"""Largest number of multisets that is enumerated."""


@dataclass(frozen=True)
class Configurations:
    """Everything about the law that a step needs.

    Attributes
    ----------
    values, set_sums, totals : float arrays
        The patch values x = 1, -1, 0; the set sums z = -C..C; all sums Z = 2C-D..D.
    composition : float array, shape (K, 3)
        Patches of each value in a set of each type.
    place : uint64 array, shape (K,)
        Position of the type's sum in `set_sums`.
    index : uint32 array, shape (L, n)
        Flat position (type, Z) of each set of each configuration, the signal set first.
    probability : float array, shape (n,)
        Sums to 1.
    entries : uint32 array, shape (e,)
        The flat positions that occur.
    starts : uint32 array, shape (e + 1,)
        Where in `members` each entry begins.
    members : uint32 array, shape (L n,)
        The configurations that hold each entry, as often as they hold it.
    """

    values: NDArray[np.float64]
    set_sums: NDArray[np.float64]
    totals: NDArray[np.float64]
    composition: NDArray[np.float64]
    place: NDArray[np.uint64]
    index: NDArray[np.uint32]
    probability: NDArray[np.float64]
    entries: NDArray[np.uint32]
    starts: NDArray[np.uint32]
    members: NDArray[np.uint32]

    def cuts(self, lanes: int) -> NDArray[np.int64]:
        """Entries at which to cut `entries` into lanes of about equal work, shape (lanes + 1,)."""
        wanted = np.linspace(0, self.members.size, lanes + 1)
        return np.searchsorted(self.starts, wanted).astype(np.int64)


def count(sets: int, set_size: int) -> int:
    """Number of multisets of L-1 types."""
    kinds = (set_size + 1) * (set_size + 2) // 2
    return comb(sets - 1 + kinds - 1, kinds - 1)


@lru_cache(maxsize=4)
def configurations(patches: int, set_size: int, q: float) -> Configurations:
    """All configurations of (D, C, q), those of probability 0 left out, ordered by Z.

    Raises
    ------
    ValueError
        If there are more than `MAX_CONFIGURATIONS` of them.
    """
    sets = patches // set_size
    number = count(sets, set_size)
    if number > MAX_CONFIGURATIONS:
        refuse(
            "expectation",
            "exact",
            f"needs {number:,} configurations at D={patches} C={set_size}",
            f"sizes of at most {MAX_CONFIGURATIONS:,} configurations",
            f"D={_largest(set_size)} at C={set_size}",
        )
    plus, minus = np.array([(a, b) for a in range(set_size + 1) for b in range(set_size + 1 - a)]).T
    composition = np.stack([plus, minus, set_size - plus - minus], axis=1)
    set_sums = np.arange(-set_size, set_size + 1)
    totals = np.arange(2 * set_size - patches, patches + 1)
    types = _multisets(plus.size, sets - 1, number)
    probability = _weights(types, _type_probability(composition, q))
    total = set_size + (plus - minus)[types].sum(axis=1)
    kept = np.flatnonzero(probability > 0)
    kept = kept[np.argsort(total[kept], kind="stable")]
    column = total[kept] - totals[0]
    signal_type = np.flatnonzero(plus == set_size)
    held = np.concatenate([np.broadcast_to(signal_type, (kept.size, 1)), types[kept]], axis=1)
    index = np.ascontiguousarray((held * totals.size + column[:, None]).T, dtype=np.uint32)
    order = np.argsort(index, axis=None, kind="stable")
    entries, first = np.unique(index.ravel()[order], return_index=True)
    return Configurations(
        values=np.array([1.0, -1.0, 0.0]),
        set_sums=set_sums.astype(float),
        totals=totals.astype(float),
        composition=composition.astype(float),
        place=(plus - minus + set_size).astype(np.uint64),
        index=index,
        probability=probability[kept],
        entries=entries,
        starts=np.append(first, order.size).astype(np.uint32),
        members=(order % kept.size).astype(np.uint32),
    )


def _largest(set_size: int) -> int:
    sets = 2
    while count(sets + 1, set_size) <= MAX_CONFIGURATIONS:
        sets += 1
    return sets * set_size


def _multisets(kinds: int, size: int, number: int) -> NDArray[np.int64]:
    chosen = itertools.combinations_with_replacement(range(kinds), size)
    flat = np.fromiter(itertools.chain.from_iterable(chosen), np.int64, number * size)
    return flat.reshape(number, size)


def _type_probability(composition: NDArray[np.int64], q: float) -> NDArray[np.float64]:
    """P(a, b) = C!/(a! b! (C-a-b)!) (q/2)^(a+b) (1-q)^(C-a-b)."""
    set_size = int(composition[0].sum())
    return np.array(
        [
            factorial(set_size)
            // (factorial(a) * factorial(b) * factorial(c))
            * (q / 2) ** int(a + b)
            * (1 - q) ** int(c)
            for a, b, c in composition
        ]
    )


def _weights(types: NDArray[np.int64], chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Multinomial weights of sorted multisets: position l of a run of length r brings l/r."""
    weight, run = np.ones(len(types)), np.ones(len(types))
    for position in range(types.shape[1]):
        if position:
            same = types[:, position] == types[:, position - 1]
            run = np.where(same, run + 1, 1)
        weight *= chance[types[:, position]] * (position + 1) / run
    return weight
