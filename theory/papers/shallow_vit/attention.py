"""Attention between patterns as a function of scores and token counts."""

from __future__ import annotations

import numpy as np

from theory.color_refinement import IntArray
from theory.law import FloatArray

PARTS = ("W_O", "V", "K", "Q")
"""Names of the trained matrices in coordinates of patterns."""


def attention(scores: FloatArray, counts: IntArray) -> FloatArray:
    """Attention P between patterns, for each count vector; rows are keys, columns queries.

    Scores B of shape (..., M, M) and counts of shape (S, M) give P of shape (..., S, M, M).
    """
    present, each = counts[:, :, None] > 0, scores[..., None, :, :]
    top = np.where(present, each, -np.inf).max(axis=-2, keepdims=True)
    powers = counts[:, :, None] * np.exp(np.where(present, each - top, -np.inf))
    return np.asarray(powers / powers.sum(axis=-2, keepdims=True))
