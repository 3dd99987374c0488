"""Mini-batches: which one every step takes, decided by the number of the step alone.

Batches are fixed; every epoch takes them in a new random order. A run can therefore be cut and
taken up at any step.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

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


def fingerprint(arrays: Iterable[np.ndarray]) -> str:
    """Of numbers that were drawn: what a resumed run must find again."""
    drawn = hashlib.sha256()
    for array in arrays:
        drawn.update(np.ascontiguousarray(array).tobytes())
    return drawn.hexdigest()[:16]
