"""Enumeration of all outcomes of the idealised law, for the full problem at small sizes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from theory.papers.positional_attention.data_law import MIXED, SetLaw
from theory.symmetry import Partition

Law = tuple[NDArray[np.int8], NDArray[np.float64]]
"""Law of N samples: values of their D patches, shape (D, N), and probabilities, shape (N,)."""


def brute_configurations(size: int, set_size: int) -> int:
    """Number (D/C) 3^(D-C) of outcomes, given by the signal set and the values of other patches."""
    return int(size // set_size * 3 ** (size - set_size))


def brute_law(partition: Partition, law: SetLaw) -> Law:
    """Patch values, shape (D, N), and probabilities, shape (N,), of all outcomes with y = +1."""
    blocks, weights = [], []
    for members in partition.sets:
        others = np.setdiff1d(np.arange(partition.size), members)
        grid = np.indices((3,) * others.size, dtype=np.int8).reshape(others.size, -1) - 1
        values = np.ones((partition.size, grid.shape[1]), dtype=np.int8)
        values[others] = grid
        weight = np.where(grid == 0, 1 - law.q, law.q / 2).prod(axis=0) / len(partition.sets)
        if law.random_sets == MIXED:
            for random in partition.sets:
                if random is not members:
                    one_sign = np.abs(values[random].sum(axis=0)) == random.size
                    weight = np.where(one_sign, 0.0, weight) / law.mixed_share
        blocks.append(values[:, weight > 0])
        weights.append(weight[weight > 0])
    return np.ascontiguousarray(np.concatenate(blocks, axis=1)), np.concatenate(weights)
