"""Attention of the model on an image without masks, read off the reduced state."""

from __future__ import annotations

from math import isqrt

import numpy as np
from numpy.typing import ArrayLike

from dynamics.problem import FloatArray
from dynamics.systems.masked_image_modeling.full.projection import Rows


def attention_map(rows: Rows, state: ArrayLike, cluster: int = 0, z: float = 1.0) -> FloatArray:
    """Attention of every patch on an image of a cluster with nothing masked, shape (P, P).

    A query is what it is where it is masked, its position alone: only then the model has to
    reconstruct it. Every latent has the value z.

    Parameters
    ----------
    rows : Rows
        Of the parameters.
    state : float array, shape (n,)
        Of the reduced problem.
    cluster : int
    z : float
    """
    values, areas = np.asarray(state, dtype=np.float64), rows.parameters.area_ids
    first = int((areas[:cluster].max(axis=1) + 1).sum())
    owner = first + areas[cluster]
    scores = np.empty((rows.parameters.P, rows.parameters.P))
    for kind, start in zip(rows.types, rows.starts, strict=False):
        ups, phi = values[start:], values[start + len(kind.ups_names) :]
        scores[kind.patches] = ups[kind.ups_of] + z * phi[kind.phi_of[:, owner]]
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def grid_of(P: int) -> tuple[int, int]:
    """Rows and columns of so many patches, as square as P allows."""
    high = max(h for h in range(1, isqrt(P) + 1) if P % h == 0)
    return high, P // high
