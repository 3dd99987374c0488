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

    `seed`: of the permutations; `samples`: N; `size`: samples of a batch; the last one of an epoch
    holds those that are left.
    """

    seed: int
    samples: int
    size: int

    def members(self, first: int, last: int) -> list[NDArray[np.int64]]:
        """Samples of the batch of every step first, ..., last - 1, ascending.

        `first`, `last`: steps, counted from the start of the run.
        """
        size, epoch_steps, batches = self.size, -(-self.samples // self.size), []
        for epoch in range(first // epoch_steps, (last - 1) // epoch_steps + 1):
            permutation = np.random.default_rng([self.seed, epoch]).permutation(self.samples)
            begin = epoch * epoch_steps
            inside = range(max(first - begin, 0), min(last - begin, epoch_steps))
            batches += [np.sort(permutation[k * size : (k + 1) * size]) for k in inside]
        return batches


def fingerprint(arrays: Iterable[np.ndarray]) -> str:
    """A short hash of random numbers, by which a resumed run knows that they are the same.

    Returns str: 16 hexadecimal digits.
    """
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def sampling_settings(
    samples: int | None, seed: int | Generator, options: Mapping[str, Any] | Any
) -> dict[str, Any]:
    """Settings of a problem on samples, without the options that are None.

    `samples`: N; `options`: how it is trained.
    """
    fields = options if isinstance(options, Mapping) else asdict(options)
    stated = {"samples": samples, "seed": seed if isinstance(seed, int) else "generator"}
    return {name: value for name, value in (stated | dict(fields)).items() if value is not None}
