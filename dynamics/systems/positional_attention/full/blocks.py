"""How samples lie in memory: in blocks, in the order in which the kernels are quickest.

A block is read from memory for <v, X_j>, and again, from the cache if it fits, for the gradient by
v. The inner loops run over the numbers that lie side by side: over samples, or, where a block has
room for few of them and patches are long, along the patches. The numbers are the same either way,
up to the order of sums.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynamics.codegen.kernels import LANES
from dynamics.problem import IntArray
from dynamics.systems.positional_attention.kernels.full import SampleBlocks

CACHE = 1 << 20
"""Bytes of a block of samples, which is read twice; half of them where it has fewer samples than
patches, as D times D numbers are then what the products beside it read most."""
WIDTHS = (128, 64, 32, 16, 8)
"""Samples of a block: the widest that fits; fewer than 8 would not fill a vector."""
LONG = 16
"""Entries of a patch for each sample of a block, above which loops run along patches."""
OF_A_LANE = 32
"""Samples of which the products take longer than to clear and add up the sums of a lane."""
LEAST_LANES = 4
"""Lanes of a step of few samples, so that as many threads have work."""


class Blocking(NamedTuple):
    """How many samples are in a block, and what lies side by side in it.

    Attributes
    ----------
    width : int
        Samples of a block.
    along : bool
        Whether the entries of a patch do; else the samples.
    """

    width: int
    along: bool

    @classmethod
    def of(cls, size: int, depth: int, itemsize: int, batch: int) -> Blocking:
        """Blocks for a problem: within the cache, or of 8 samples if that is too few.

        Parameters
        ----------
        size, depth : int
            D and d.
        itemsize : int
            Bytes of a number.
        batch : int
            Samples of a step; a block has no more.
        """
        rooms = {width: CACHE if width >= size else CACHE // 2 for width in WIDTHS}
        fitting = (w for w, room in rooms.items() if w * size * depth * itemsize <= room)
        width = min(batch, next(fitting, WIDTHS[-1]))
        return cls(width, depth > LONG * width)

    def empty(self, count: int, size: int, depth: int, dtype: Any) -> NDArray[Any]:
        """Blocks for so many patches, all 0.

        Parameters
        ----------
        count, size, depth : int
            N, D and d.
        dtype : numpy dtype

        Returns
        -------
        array, shape (blocks, D, d, width), or (blocks, D, width, d) along patches
        """
        inner = (self.width, depth) if self.along else (depth, self.width)
        return np.zeros((-(-count // self.width), size, *inner), dtype)

    def fill(self, blocks: NDArray[Any], first: int, patches: NDArray[Any]) -> None:
        """Put samples into blocks.

        Parameters
        ----------
        blocks : array
            Of `empty`.
        first : int
            Number of the first of the samples.
        patches : array, shape (n, D, d)
        """
        done = 0
        while done < len(patches):
            block, begin = divmod(first + done, self.width)
            part = patches[done : done + self.width - begin]
            end = begin + len(part)
            if self.along:
                blocks[block, :, begin:end] = part.transpose(1, 0, 2)
            else:
                blocks[block, :, :, begin:end] = part.transpose(1, 2, 0)
            done += len(part)


def lanes_for(samples: int) -> int:
    """Parts into which the sums over the samples of a step are cut, for threads; from 4 to 16.

    Parameters
    ----------
    samples : int
        Of a step.
    """
    many = LANES
    while many > LEAST_LANES and samples < many * OF_A_LANE:
        many //= 2
    return many


def sample_blocks(
    patches: NDArray[Any], labels: NDArray[Any], weights: NDArray[Any], blocking: Blocking
) -> SampleBlocks:
    """Samples in blocks, the last one filled up with samples of weight 0.

    Parameters
    ----------
    patches : float array, shape (N, D, d)
    labels, weights : float arrays, shape (N,)
    blocking : Blocking

    Returns
    -------
    SampleBlocks
    """
    count, size, depth = patches.shape
    filled = blocking.empty(count, size, depth, patches.dtype)
    blocking.fill(filled, 0, patches)
    numbers = np.zeros((2, len(filled) * blocking.width), patches.dtype)
    numbers[:, :count] = labels, weights
    signs, shares = numbers.reshape(2, -1, blocking.width)
    return batch_of(filled, signs, shares, blocking)


def batch_of(
    patches: NDArray[Any], labels: NDArray[Any], weights: NDArray[Any], blocking: Blocking
) -> SampleBlocks:
    """Samples that are in blocks already, with room for what a pass leaves of them.

    Parameters
    ----------
    patches : float array
        As of `Blocking.empty`.
    labels, weights : float arrays, shape (blocks, samples of a block)
    blocking : Blocking
    """
    total, sums = float(weights.sum(dtype=np.float64)), np.empty((len(labels), 3))
    return SampleBlocks(patches, labels, weights, total, sums, blocking.along)


def samples_of(batch: SampleBlocks, members: IntArray) -> tuple[NDArray[Any], NDArray[Any]]:
    """Patches, shape (n, D, d), and labels, shape (n,), of some samples.

    Parameters
    ----------
    batch : SampleBlocks
    members : int array, shape (n,)
        Their numbers.
    """
    block, within = np.divmod(members, batch.labels.shape[1])
    inner = (slice(None), within) if batch.along else (slice(None), slice(None), within)
    return batch.patches[(block, *inner)], batch.labels[block, within]
