"""Masked images: full enumeration with probabilities, or random samples.

An image has a uniformly drawn cluster k. Each area of the cluster has an independent latent z and a
feature v, and the content of the area's patches is z v. A mask is a uniformly drawn subset of M
patches. Clusters, latents and masks have separate random streams. A larger sample with the same
seed therefore starts with the images of a smaller sample.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from math import comb, lgamma, log, log10
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from theory.law import FloatArray

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class ImageLaw:
    """Law of masked images, given by the areas, the number of masked patches and the latents.

    The array `area_ids`, shape (K, P), holds the area of each patch in each of K clusters; area 0
    is the global one. `masked` is the number M of masked patches of an image. A latent takes the
    values `z` with the probabilities `odds`.
    """

    area_ids: IntArray
    masked: int
    z: tuple[float, ...] = (1.0,)
    odds: tuple[float, ...] = (1.0,)

    @property
    def P(self) -> int:  # noqa: N802 (the paper's letter)
        """Number of patches."""
        return self.area_ids.shape[1]

    @property
    def K(self) -> int:  # noqa: N802 (the paper's letter)
        """Number of clusters."""
        return len(self.area_ids)


class Images(NamedTuple):
    """Masked images and their probabilities.

    The array `cluster`, shape (N,), holds the cluster of each of N images, and `latent`, shape (N,
    P), the latent z of the area of each patch. The array `masked`, shape (N, M), lists the masked
    patches in ascending order. The probabilities `weight`, shape (N,), sum to 1.
    """

    cluster: IntArray
    latent: FloatArray
    masked: IntArray
    weight: FloatArray

    @property
    def hidden(self) -> NDArray[np.bool_]:
        """Whether each patch is masked, shape (N, P)."""
        hidden = np.zeros(self.latent.shape, dtype=bool)
        np.put_along_axis(hidden, self.masked, True, axis=1)
        return hidden


def image_count(parameters: Any) -> int:
    """Number of possible masked images; at large P it has thousands of digits."""
    return comb(parameters.P, parameters.masked) * latent_choices(parameters)


def latent_choices(parameters: Any) -> int:
    """Number of assignments of latents to the areas of a cluster, summed over all clusters."""
    return sum(len(parameters.z) ** (int(row.max()) + 1) for row in parameters.area_ids)


def image_digits(parameters: Any) -> float:
    """Decimal logarithm of the number of masked images, computed without large integers."""
    size, masked = parameters.P, parameters.masked
    masks = lgamma(size + 1) - lgamma(masked + 1) - lgamma(size - masked + 1)
    return masks / log(10) + log10(latent_choices(parameters))


def all_images(parameters: Any) -> Images:
    """All masked images with their probabilities."""
    masks = list(itertools.combinations(range(parameters.P), parameters.masked))
    clusters, latents, chances = [], [], []
    values, odds = np.array(parameters.z), np.array(parameters.odds)
    for k, areas in enumerate(parameters.area_ids):
        for digits in itertools.product(range(values.size), repeat=int(areas.max()) + 1):
            choice = list(digits)
            clusters.append(k)
            latents.append(values[choice][areas])
            chances.append(odds[choice].prod() / (parameters.K * len(masks)))
    return Images(
        np.repeat(np.array(clusters, dtype=np.int64), len(masks)),
        np.repeat(np.array(latents), len(masks), axis=0),
        np.tile(np.array(masks, dtype=np.int64), (len(clusters), 1)),
        np.repeat(np.array(chances), len(masks)),
    )


def sampled_images(parameters: Any, samples: int, generator: Generator) -> Images:
    """Draw N = `samples` independent masked images, each with weight 1/N."""
    streams = generator.spawn(3)
    areas = parameters.area_ids
    cluster = streams[0].integers(parameters.K, size=samples)
    most = int(areas.max()) + 1
    digit = np.searchsorted(
        np.cumsum(parameters.odds)[:-1], streams[1].random((samples, most)), side="right"
    )
    latent = np.take_along_axis(np.array(parameters.z)[digit], areas[cluster], axis=1)
    order = np.argsort(streams[2].random((samples, parameters.P)), axis=1, kind="stable")
    masked = np.sort(order[:, : parameters.masked], axis=1)
    weight = np.full(samples, 1.0 / samples)
    return Images(cluster.astype(np.int64), latent, masked.astype(np.int64), weight)
