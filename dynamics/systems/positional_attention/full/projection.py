"""How a full state is read by the reduced one: the entries that each scalar stands for."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynamics.problem import FloatArray
from theory.symmetry import Partition


def orbit_values(
    alpha: FloatArray, matrices: FloatArray, partition: Partition
) -> Mapping[str, FloatArray]:
    """Reduced state -> every value it stands for.

    Parameters
    ----------
    alpha : float array, shape (records,)
        <v, w*>.
    matrices : float array, shape (records, D, D)
        A.
    partition : Partition
        The true sets.

    Returns
    -------
    mapping
        ``alpha`` (records, 1); ``gamma``, the off-diagonal entries inside sets, and ``rho``, those
        between sets, shape (records, entries).
    """
    labels = partition.labels
    same = labels[:, None] == labels[None, :]
    inside = same & ~np.eye(labels.size, dtype=bool)
    return {
        "alpha": alpha[:, None],
        "gamma": matrices[:, inside],
        "rho": matrices[:, ~same],
    }


def associated_rows(matrix: FloatArray, partition: Partition) -> float:
    """Share of rows i whose C largest A_ij are exactly their set (Definition 2.2).

    Ties are broken against association: the least entry inside must exceed the greatest outside.
    """
    same = partition.labels[:, None] == partition.labels[None, :]
    inside = np.where(same, matrix, np.inf).min(axis=1)
    outside = np.where(same, -np.inf, matrix).max(axis=1)
    return float((inside > outside).mean())


def softmax(matrix: FloatArray, scale: float) -> FloatArray:
    """S: the softmax of every row of scale * A, shape (D, D)."""
    weights = np.exp(scale * (matrix - matrix.max(axis=1, keepdims=True)))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def own_attention(weights: FloatArray, partition: Partition) -> float:
    """G: D times the mean attention that falls inside the own set."""
    same = partition.labels[:, None] == partition.labels[None, :]
    return float(weights[same].sum())
