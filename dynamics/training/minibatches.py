"""Mini-batches of samples, determined by the seed and the number of the step alone.

Every epoch uses each sample once: the batches of an epoch are slices of a new permutation. Because
the seed and the step determine a batch, a run can be resumed at any step.
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
    """The mini-batches of a problem; the last batch of an epoch may be smaller."""

    seed: int
    """Seed of the permutations of the samples."""
    samples: int
    """Number of samples."""
    size: int
    """Number of samples of a batch."""

    def members(self, first: int, last: int) -> list[NDArray[np.int64]]:
        """Indices of the samples in the batch of every step from `first` to `last` - 1."""
        size, epoch_steps, batches = self.size, -(-self.samples // self.size), []
        for epoch in range(first // epoch_steps, (last - 1) // epoch_steps + 1):
            permutation = np.random.default_rng([self.seed, epoch]).permutation(self.samples)
            begin = epoch * epoch_steps
            inside = range(max(first - begin, 0), min(last - begin, epoch_steps))
            batches += [np.sort(permutation[k * size : (k + 1) * size]) for k in inside]
        return batches


def fingerprint(arrays: Iterable[np.ndarray]) -> str:
    """Hash of arrays, 16 hexadecimal digits; a resumed run compares the hash of its samples."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def sampling_settings(
    samples: int | None, seed: int | Generator, options: Mapping[str, Any] | Any
) -> dict[str, Any]:
    """Settings of a problem trained on samples; options that are None are omitted."""
    fields = options if isinstance(options, Mapping) else asdict(options)
    stated = {"samples": samples, "seed": seed if isinstance(seed, int) else "generator"}
    return {name: value for name, value in (stated | dict(fields)).items() if value is not None}
