r"""Configurations of the random sets, laid out for the kernels.

A configuration is a multiset of types (a, b) of the L-1 random sets, with a weight. Which there
are, and how they are weighted, is decided elsewhere (`enumerate`: all of them); here they are
ordered so that the kernels gather them set by set and scatter them entry by entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial

import numpy as np
from numpy.typing import NDArray

from dynamics import codegen

FloatArray = NDArray[np.float64]

LARGEST_FACTORIAL = 150
"""Set size up to which the numbers of arrangements are exact floats."""


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
        The flat positions that occur, ordered by Z, then type.
    starts : uint32 array, shape (e + 1,)
        Where in `members` each entry begins.
    members : uint32 array, shape (L n,)
        The configurations that hold each entry, as often as they hold it.
    """

    values: FloatArray
    set_sums: FloatArray
    totals: FloatArray
    composition: FloatArray
    place: NDArray[np.uint64]
    index: NDArray[np.uint32]
    probability: FloatArray
    entries: NDArray[np.uint32]
    starts: NDArray[np.uint32]
    members: NDArray[np.uint32]

    @property
    def threaded(self) -> bool:
        """Whether a step is shared among threads: a property of the problem."""
        return self.probability.size >= codegen.THREADED_FROM

    def cuts(self, lanes: int) -> NDArray[np.int64]:
        """Entries at which to cut `entries` into lanes of about equal work, shape (lanes + 1,)."""
        wanted = np.linspace(0, self.members.size, lanes + 1)
        return np.searchsorted(self.starts, wanted).astype(np.int64)


def type_compositions(set_size: int) -> NDArray[np.int64]:
    """Patches at +1, -1 and 0 in each of the K = (C+1)(C+2)/2 types, shape (K, 3)."""
    pairs = [(a, b) for a in range(set_size + 1) for b in range(set_size + 1 - a)]
    return np.array([(a, b, set_size - a - b) for a, b in pairs])


def type_probabilities(composition: NDArray[np.int64], q: float) -> FloatArray:
    """P(a, b) = C!/(a! b! (C-a-b)!) (q/2)^(a+b) (1-q)^(C-a-b)."""
    set_size = int(composition[0].sum())
    if set_size > LARGEST_FACTORIAL:
        from scipy.stats import multinomial

        return np.asarray(multinomial.pmf(composition, set_size, [q / 2, q / 2, 1 - q]))
    arrangements = [
        factorial(set_size) // (factorial(a) * factorial(b) * factorial(c))
        for a, b, c in composition.tolist()
    ]
    filled = composition[:, 0] + composition[:, 1]
    return np.array(arrangements, dtype=float) * (q / 2) ** filled * (1 - q) ** composition[:, 2]


def multinomial_weights(types: NDArray[np.int64], chance: FloatArray) -> FloatArray:
    """Multinomial weights of multisets, shape (n, L-1), with equal types side by side.

    Position l of a run of length r brings l/r.
    """
    weight, run = np.ones(len(types)), np.ones(len(types))
    for position in range(types.shape[1]):
        if position:
            same = types[:, position] == types[:, position - 1]
            run = np.where(same, run + 1, 1)
        weight *= chance[types[:, position]] * (position + 1) / run
    return weight


def assemble(
    patches: int, set_size: int, types: NDArray[np.int64], probability: FloatArray
) -> Configurations:
    """Lay out configurations, those of weight 0 left out, ordered by Z.

    Parameters
    ----------
    patches, set_size : int
        D and C.
    types : int array, shape (n, L-1)
        Type of each random set.
    probability : float array, shape (n,)
        Weights.
    """
    composition = type_compositions(set_size)
    sums = composition[:, 0] - composition[:, 1]
    set_sums = np.arange(-set_size, set_size + 1)
    totals = np.arange(2 * set_size - patches, patches + 1)
    total = set_size + sums[types].sum(axis=1)
    kept = np.flatnonzero(probability > 0)
    kept = kept[np.argsort(total[kept], kind="stable")]
    column = total[kept] - totals[0]
    signal = np.flatnonzero(sums == set_size)
    held = np.concatenate([np.broadcast_to(signal, (kept.size, 1)), types[kept]], axis=1)
    index = np.ascontiguousarray((held * totals.size + column[:, None]).T, dtype=np.uint32)
    # Entries by (Z, type), configurations by Z: a lane reads what it has just written.
    flat = np.ascontiguousarray(index.T).ravel()
    by_total = (flat % totals.size) * np.uint32(len(composition)) + flat // totals.size
    order = np.argsort(by_total, kind="stable")
    _, first = np.unique(by_total[order], return_index=True)
    entries = flat[order[first]]
    return Configurations(
        values=np.array([1.0, -1.0, 0.0]),
        set_sums=set_sums.astype(float),
        totals=totals.astype(float),
        composition=composition.astype(float),
        place=(sums + set_size).astype(np.uint64),
        index=index,
        probability=probability[kept],
        entries=entries,
        starts=np.append(first, order.size).astype(np.uint32),
        members=(order // len(index)).astype(np.uint32),
    )
