r"""Images and masks: all of them with their chances, or samples.

An image has a cluster k, drawn uniformly, and a latent z for each of its areas, drawn
independently; the content of patch q is z v of its area. A mask is a uniform subset of M patches.

Draws come from streams of their own: with one seed, more samples begin with the fewer ones.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from math import comb, lgamma, log, log10

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dynamics.problem import FloatArray
from dynamics.systems.masked_image_modeling.parameters import Parameters

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Images:
    """Masked images.

    Attributes
    ----------
    cluster : int array, shape (N,)
    latent : float array, shape (N, P)
        z of the area of each patch.
    hidden : int array, shape (N, M)
        Masked patches, ascending.
    weight : float array, shape (N,)
        Chance of each; the sum is 1.
    """

    cluster: IntArray
    latent: FloatArray
    hidden: IntArray
    weight: FloatArray


def number(parameters: Parameters) -> int:
    """Masked images that there are: masks times the latents of every cluster.

    At a large P the number has thousands of digits; see `digits`.
    """
    return comb(parameters.P, parameters.masked) * latents(parameters)


def latents(parameters: Parameters) -> int:
    """Latents of the areas of all clusters, every choice of them."""
    return sum(len(parameters.z) ** (int(row.max()) + 1) for row in parameters.area_ids)


def digits(parameters: Parameters) -> float:
    """Decimal logarithm of `number`, at once."""
    size, hidden = parameters.P, parameters.masked
    masks = lgamma(size + 1) - lgamma(hidden + 1) - lgamma(size - hidden + 1)
    return masks / log(10) + log10(latents(parameters))


def every(parameters: Parameters) -> Images:
    """All masked images, and their chances."""
    masks = list(itertools.combinations(range(parameters.P), parameters.masked))
    clusters, latents, chances = [], [], []
    values, odds = np.array(parameters.z), np.array(parameters.odds)
    for k, areas in enumerate(parameters.area_ids):
        for digits in itertools.product(range(values.size), repeat=int(areas.max()) + 1):
            chosen = list(digits)
            clusters.append(k)
            latents.append(values[chosen][areas])
            chances.append(odds[chosen].prod() / (parameters.K * len(masks)))
    repeats = len(clusters)
    return Images(
        np.repeat(np.array(clusters, dtype=np.int64), len(masks)),
        np.repeat(np.array(latents), len(masks), axis=0),
        np.tile(np.array(masks, dtype=np.int64), (repeats, 1)),
        np.repeat(np.array(chances), len(masks)),
    )


def drawn(parameters: Parameters, samples: int, generator: Generator) -> Images:
    """Independent masked images, each of weight 1/N.

    Parameters
    ----------
    parameters : Parameters
    samples : int
        N.
    generator : numpy Generator
    """
    streams = generator.spawn(3)
    areas = parameters.area_ids
    cluster = streams[0].integers(parameters.K, size=samples)
    most = int(areas.max()) + 1
    place = np.searchsorted(
        np.cumsum(parameters.odds)[:-1], streams[1].random((samples, most)), side="right"
    )
    latent = np.take_along_axis(np.array(parameters.z)[place], areas[cluster], axis=1)
    order = np.argsort(streams[2].random((samples, parameters.P)), axis=1, kind="stable")
    hidden = np.sort(order[:, : parameters.masked], axis=1)
    weight = np.full(samples, 1.0 / samples)
    return Images(cluster.astype(np.int64), latent, hidden.astype(np.int64), weight)
