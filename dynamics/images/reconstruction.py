"""Masked reconstruction: train a transformer to predict the pixels of masked patches.

Each step masks random patches of each image: the tokens of masked patches are replaced by one
trained vector, to which the positions are added. The prediction for a patch is a linear function of
its token after the last layer; the loss is the mean squared error over masked patches. Attention is
measured on whole images, without masks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.cache import compiled_program, jax
from dynamics.images.datasets import Floats
from dynamics.images.networks import Theta, Transformer, patches_of
from dynamics.problem import FloatArray

MASKED = 0.75
"""Share of the patches that are masked (He et al. 2022, MAE)."""


@dataclass(frozen=True)
class Reconstruction:
    """Task of predicting a random share `masked` of the patches, with mean squared error."""

    network: Transformer
    masked: float = MASKED

    def start(self, side: int, channels: int, seed: int) -> dict[str, Floats]:
        """Every trained array at step 0: those of the network, and the token of masked patches."""
        theta = self.network.start(side, channels, self.network.patch**2 * channels, seed)
        return theta | {"hidden": np.zeros(self.network.width, np.float32)}

    def loss(self, theta: Theta, batch: tuple[Any, ...], key: Any) -> Any:
        """Mean squared error over the masked patches of a batch of pixels."""
        patches = patches_of(batch[0], self.network.patch)
        count, patch_count, _ = patches.shape
        draws = jax.random.uniform(key, (count, patch_count), dtype=patches.dtype)
        order = jax.numpy.argsort(jax.numpy.argsort(draws, axis=1), axis=1)
        hidden = order < max(1, round(self.masked * patch_count))
        errors = ((self.filled(theta, batch[0], hidden) - patches) ** 2).mean(axis=2)
        return (errors * hidden).sum() / hidden.sum()

    def filled(self, theta: Theta, pixels: Any, hidden: Any) -> Any:
        """Predicted pixels of every patch; `hidden`, shape (N, D), marks the masked patches."""
        tokens = self.network.embedded(theta, pixels)
        tokens = jax.numpy.where(hidden[..., None], theta["hidden"], tokens)
        tokens, _ = self.network.forward(theta, tokens)
        return tokens @ theta["head"] + theta["head_bias"]


@cache
def _mapping() -> Any:
    def maps(network: Transformer, theta: Theta, pixels: Any) -> Any:
        return network.forward(theta, network.embedded(theta, pixels))[1]

    return compiled_program(maps, static_argnums=0)


def attention(network: Transformer, theta: Theta, pixels: NDArray[Any], layer: int) -> FloatArray:
    """Attention of a layer on whole images, shape (N, heads, D, D)."""
    used = {name: array for name, array in theta.items() if name not in ("head", "head_bias")}
    maps = np.asarray(_mapping()(network, used, pixels)[layer], np.float64)
    return maps / maps.sum(axis=-1, keepdims=True)
