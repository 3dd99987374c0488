"""Attention between patterns as a function of scores and token counts."""

from __future__ import annotations

import numpy as np

from theory.color_refinement import IntArray
from theory.law import FloatArray

PARTS = ("W_O", "V", "K", "Q")
"""Names of the trained arrays, expressed on patterns."""


def attention(scores: FloatArray, counts: IntArray) -> FloatArray:
    """Attention matrix P of each count vector: keys in rows, queries in columns.

    `scores`, shape (..., M, M): B; `counts`, shape (S, M). Returns float array, shape (..., S, M,
    M).
    """
    present, each = counts[:, :, None] > 0, scores[..., None, :, :]
    top = np.where(present, each, -np.inf).max(axis=-2, keepdims=True)
    powers = counts[:, :, None] * np.exp(np.where(present, each - top, -np.inf))
    return np.asarray(powers / powers.sum(axis=-2, keepdims=True))
