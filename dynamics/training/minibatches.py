"""Mini-batches: which samples every step is on, decided by the number of the step alone.

Every epoch takes each sample once, in batches that are new: consecutive slices of a permutation of
the samples. A run can therefore be cut and resumed at any step.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class MiniBatches:
    """The batches of a problem.

    Attributes
    ----------
    seed : int
        Of the permutations.
    samples : int
        N.
    size : int or None
        Samples of a batch; None for all samples at every step.
    """

    seed: int
    samples: int
    size: int | None

    def members(self, first: int, last: int) -> list[NDArray[np.int64]]:
        """Samples of the batch of every step first, ..., last - 1; see `reshuffled_batches`.

        Parameters
        ----------
        first, last : int
            Steps, counted from the start of the run.

        Returns
        -------
        list of int arrays
        """
        size = self.samples if self.size is None else self.size
        return reshuffled_batches(self.seed, self.samples, size, first, last)


def reshuffled_batches(
    seed: int, samples: int, size: int, first: int, last: int
) -> list[NDArray[np.int64]]:
    """The samples of the batch of every step first, ..., last - 1.

    Parameters
    ----------
    seed : int
        Of the permutations.
    samples : int
        N.
    size : int
        Samples of a batch; one of N or more is all samples, at every step. The last batch of an
        epoch holds the samples that are left.
    first, last : int
        Steps, counted from the start of the run.

    Returns
    -------
    list of int arrays
        Ascending.
    """
    if size >= samples:
        return [np.arange(samples)] * (last - first)
    epoch_steps, batches = -(-samples // size), []
    for epoch in range(first // epoch_steps, (last - 1) // epoch_steps + 1):
        permutation = np.random.default_rng([seed, epoch]).permutation(samples)
        begin = epoch * epoch_steps
        inside = range(max(first - begin, 0), min(last - begin, epoch_steps))
        batches += [np.sort(permutation[k * size : (k + 1) * size]) for k in inside]
    return batches


def epoch_permutation(seed: int, batches: int, first: int, last: int) -> NDArray[np.int64]:
    """The number of the batch of every step, of fixed batches in a new order every epoch.

    Parameters
    ----------
    seed : int
        Of the permutations.
    batches : int
        How many there are.
    first, last : int
        Steps, counted from the start of the run.

    Returns
    -------
    int array, shape (last - first,)
    """
    epochs = range(first // batches, (last - 1) // batches + 1)
    orders = [np.random.default_rng([seed, epoch]).permutation(batches) for epoch in epochs]
    return np.concatenate(orders)[first - epochs[0] * batches :][: last - first]


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
    """A short hash of random numbers, by which a resumed run knows that they are the same.

    Parameters
    ----------
    arrays : iterable of arrays

    Returns
    -------
    str
        16 hexadecimal digits.
    """
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]
