"""Attention of patterns to patterns, from their scores and the counts of a sample."""

from __future__ import annotations

import numpy as np

from theory.color_refinement import IntArray
from theory.law import FloatArray

PARTS = ("W_O", "V", "K", "Q")
"""Trained arrays, on patterns."""


def attention(scores: FloatArray, counts: IntArray) -> FloatArray:
    """P of count vectors: keys in rows, queries in columns.

    `scores`, shape (..., M, M): B; `counts`, shape (S, M). Returns float array, shape (..., S, M,
    M).
    """
    present, each = counts[:, :, None] > 0, scores[..., None, :, :]
    top = np.where(present, each, -np.inf).max(axis=-2, keepdims=True)
    powers = counts[:, :, None] * np.exp(np.where(present, each - top, -np.inf))
    return np.asarray(powers / powers.sum(axis=-2, keepdims=True))
