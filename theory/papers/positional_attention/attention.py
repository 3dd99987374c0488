"""Attention of positional-attention models, and its part inside the sets of a partition."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from theory.symmetry import Partition

FloatArray = NDArray[np.float64]


def same_set(partition: Partition) -> NDArray[np.bool_]:
    """Whether patches i and j belong to the same set, shape (D, D)."""
    return np.asarray(partition.labels[:, None] == partition.labels[None, :])


def softmax(matrix: FloatArray, scale: float) -> FloatArray:
    """Attention S: the softmax of every row of `scale` times `matrix`, shape (D, D)."""
    weights = np.exp(scale * (matrix - matrix.max(axis=1, keepdims=True)))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def own_attention(weights: FloatArray, partition: Partition) -> float:
    """G: the attention of a patch to its own set, summed over all patches."""
    return float(weights[same_set(partition)].sum())
