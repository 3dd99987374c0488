r"""Lemmas A.8, 5.1 and 5.2 at numbers: the paper's expectations, by enumeration of masked images.

For correlations Phi (P, features) and Ups (P, P) of any values, the attention of every patch is
taken image by image, and what the paper states is averaged with the chances of the images. Nothing
is differentiated: what comes out is laid beside the loss and the gradient of the full problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from dynamics.problem import FloatArray
from dynamics.systems.masked_image_modeling.empirical import sampling
from theory.systems.masked_image_modeling.lemmas import (
    paper_feature_rate,
    paper_loss,
    paper_position_rate,
)
from theory.systems.masked_image_modeling.recursion import MASKED, OTHER, OWN

PER_AREA = 2.5e-4
"""Seconds for each patch and feature, on one core."""
PER_KEY = 5e-8
"""The same for each key of each masked patch of an image."""


@dataclass(frozen=True)
class Stated:
    """What the lemmas say.

    Attributes
    ----------
    loss : float array, shape (P,)
        L_p, Lemma A.8.
    alpha : float array, shape (P, features)
        Rates of Phi, Lemma 5.1.
    beta : float array, shape (K, P, P)
        Rates of Ups, cluster by cluster, Lemma 5.2.
    """

    loss: FloatArray
    alpha: FloatArray
    beta: FloatArray


def stated(parameters: Any, phi: FloatArray, ups: FloatArray) -> Stated:
    """The statements at correlations of any values.

    Parameters
    ----------
    parameters : Parameters
        Small enough to enumerate.
    phi : float array, shape (P, features)
        Features cluster by cluster, area by area.
    ups : float array, shape (P, P)
    """
    images, areas = sampling.every(parameters), parameters.area_ids
    offsets = np.concatenate([[0], np.cumsum(areas.max(axis=1) + 1)])
    found = Stated(np.zeros(len(ups)), np.zeros_like(phi), np.zeros((len(areas), *ups.shape)))
    hidden = np.zeros(images.latent.shape, dtype=bool)
    np.put_along_axis(hidden, images.hidden, True, axis=1)
    for k, cluster in enumerate(areas):
        features = slice(int(offsets[k]), int(offsets[k + 1]))
        inside = np.eye(offsets[k + 1] - offsets[k])[cluster]
        loss = _loss(inside.shape[1])
        for p in range(len(ups)):
            kept = (images.cluster == k) & hidden[:, p]
            z, masked, weight = images.latent[kept], hidden[kept], images.weight[kept]
            scores = ups[p] + np.where(masked, 0.0, z * phi[p, features][cluster])
            u = np.exp(scores - scores.max(axis=1, keepdims=True))
            u /= u.sum(axis=1, keepdims=True)
            A = np.where(masked, 0.0, u) @ inside
            latents = z[:, [int(np.argmax(cluster == a)) for a in range(A.shape[1])]]
            m = int(cluster[p])
            found.loss[p] += weight @ loss(latents, A, m)
            for i in range(A.shape[1]):
                rate = _feature(latents, A, m, i)
                found.alpha[p, features.start + i] += weight @ rate
            found.beta[k, p] += weight @ _positions((latents, A, m), cluster, u, masked)
    return found


def seconds(parameters: Any) -> float:
    """Predicted time of `stated`."""
    keys = float(sampling.number(parameters) * parameters.masked * parameters.P)
    return PER_AREA * parameters.P * parameters.features + PER_KEY * keys


def _loss(areas: int) -> Any:
    """Lemma A.8 as a function of numbers."""
    z, A = sympy.symbols(f"z:{areas}"), sympy.symbols(f"A:{areas}")
    made = [
        sympy.lambdify([z, A], paper_loss(z, dict(enumerate(A)), m), "numpy") for m in range(areas)
    ]
    return lambda latents, shares, m: made[m](tuple(latents.T), tuple(shares.T))


def _feature(z: FloatArray, A: FloatArray, m: int, i: int) -> FloatArray:
    """Lemma 5.1 for every image."""
    squares = z**2 * A**2
    rest = squares.sum(axis=1) - squares[:, m] - (squares[:, i] if i != m else 0.0)
    latents, shares = tuple(z.T), dict(enumerate(A.T))
    return np.asarray(paper_feature_rate(latents, shares, m, i, rest))


def _positions(
    seen: tuple[FloatArray, FloatArray, int], cluster: Any, u: FloatArray, masked: Any
) -> FloatArray:
    """Lemma 5.2 for every image and key."""
    z, A, m = seen
    r = z[:, m] ** 2 * A[:, m] - (z**2 * A**2).sum(axis=1)
    rates = np.empty_like(u)
    for q, area in enumerate(cluster):
        place = OWN if area == m else OTHER
        given = z[:, area], A[:, area], r
        open_, shut = (np.asarray(paper_position_rate(name, *given)) for name in (place, MASKED))
        rates[:, q] = np.where(masked[:, q], shut, open_)
    return u * rates
