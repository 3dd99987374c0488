"""Mini-batches: which samples every step is on, decided by the number of the step alone.

Every epoch takes each sample once, in batches that are new: consecutive slices of a permutation of
the samples. A run can therefore be cut and resumed at any step.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
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


def sampling_settings(
    samples: int | None, seed: int | Generator, options: Mapping[str, Any] | Any
) -> dict[str, Any]:
    """Settings of a problem on samples, without the options that are None.

    Parameters
    ----------
    samples : int or None
        N.
    seed : int or numpy Generator
    options : mapping or dataclass
        How it is trained.

    Returns
    -------
    dict
    """
    fields = options if isinstance(options, Mapping) else asdict(options)
    stated = {"samples": samples, "seed": seed if isinstance(seed, int) else "generator"}
    return {name: value for name, value in (stated | dict(fields)).items() if value is not None}
