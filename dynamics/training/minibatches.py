"""Mini-batches: which one every step takes, decided by the number of the step alone.

Either batches are fixed, and every epoch takes them in a new random order (`order`), or every epoch
deals the samples out anew (`dealt`). In both a run can be cut and taken up at any step.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray


def order(seed: int, many: int, first: int, last: int) -> NDArray[np.int64]:
    """The batch of every step first, ..., last - 1: a new permutation every epoch.

    Parameters
    ----------
    seed : int
        Of the permutations.
    many : int
        Number of batches.
    first, last : int
        Steps, counted from the start of the run.

    Returns
    -------
    int array, shape (last - first,)
    """
    epochs = range(first // many, (last - 1) // many + 1)
    taken = [np.random.default_rng([seed, epoch]).permutation(many) for epoch in epochs]
    return np.concatenate(taken)[first - epochs[0] * many :][: last - first]


def dealt(seed: int, samples: int, size: int, first: int, last: int) -> list[NDArray[np.int64]]:
    """The members of the batch of every step first, ..., last - 1.

    Every epoch takes each sample once, in batches that are new: consecutive slices of a permutation
    of the samples. The last batch of an epoch holds what is left.

    Parameters
    ----------
    seed : int
        Of the permutations.
    samples : int
        N.
    size : int
        Samples of a batch; one of N or more is all samples, at every step.
    first, last : int
        Steps, counted from the start of the run.

    Returns
    -------
    list of int arrays
        Ascending, each of ``size`` samples or of what is left.
    """
    if size >= samples:
        return [np.arange(samples)] * (last - first)
    many, found = -(-samples // size), []
    for epoch in range(first // many, (last - 1) // many + 1):
        taken = np.random.default_rng([seed, epoch]).permutation(samples)
        begin = epoch * many
        places = range(max(first - begin, 0), min(last - begin, many))
        found += [np.sort(taken[place * size : (place + 1) * size]) for place in places]
    return found


def joined(
    parts: Sequence[NDArray[np.int64]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Lists as one, and where each begins and ends in it.

    Returns
    -------
    bounds : int array, shape (parts, 2)
        First and one after last place.
    index : int array
    """
    sizes = np.array([part.size for part in parts], dtype=np.int64)
    ends = np.cumsum(sizes)
    return np.column_stack([ends - sizes, ends]), np.concatenate(parts)


def fingerprint(arrays: Iterable[np.ndarray]) -> str:
    """Of numbers that were drawn: what a resumed run must find again."""
    drawn = hashlib.sha256()
    for array in arrays:
        drawn.update(np.ascontiguousarray(array).tobytes())
    return drawn.hexdigest()[:16]
