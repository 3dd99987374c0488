r"""Small networks on images: a transformer with two kinds of attention, and a convolution.

The transformer cuts an image into D square patches and embeds each linearly to a token :math:`X_j`
of dimension ``width``. Every layer adds the output of attention, then the output of a perceptron to
the tokens; both have layer-normalized inputs. The outputs for the classes are linear in the mean
token. Each head uses its own d coordinates of a token. Attention follows Jelassi, Sander, Li
(2022), with :math:`S = \mathrm{softmax}(A / \sqrt d)` and :math:`A = Q K^T`:

- ``vanilla`` (Definition 3.1) computes :math:`Q, K, V` from tokens with positions added;
- ``positional`` (Definition 3.2) computes :math:`Q = P^T W_Q` and :math:`K = P^T W_K` from the
  positions P alone, and V from tokens without positions.

The entries of the positions start as :math:`N(0, s^2)`, where s is ``spread``.

The convolutional network has layers of 3 x 3 filters and ReLU. Between layers, an image with at
least eight pixels on a side is max-pooled over 2 x 2 pixels. The outputs for the classes are linear
in the mean over the pixels of the last layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from dynamics.cache import jax
from dynamics.images.datasets import Floats
from dynamics.validation import refuse

Theta = Mapping[str, Any]
"""Name of a trained array -> numpy or JAX array."""
VANILLA, POSITIONAL = "vanilla", "positional"
CONTROL = "convolution"
EPSILON = 1e-5
"""Number added to the variance before a layer normalization divides by its root."""
POOLED = 8
"""Minimum side of an image, in pixels, for max pooling; smaller images are not pooled."""


@dataclass(frozen=True)
class Transformer:
    """A vision transformer; JAX compiles equal networks once.

    `patch` is the side of a patch in pixels; `width`, a multiple of `heads`, is the dimension of a
    token; `spread` is the standard deviation of the positions at the start.
    """

    attention: str = VANILLA
    patch: int = 1
    width: int = 32
    layers: int = 2
    heads: int = 4
    spread: float = field(default=0.02, compare=False)
    name: ClassVar[str] = "transformer"

    def grid(self, side: int) -> int:
        """Number of patches along an image's side; raises InvalidRequest for partial patches."""
        check_patch(self.patch, side, f"{side} pixels")
        return side // self.patch

    def start(self, side: int, channels: int, outputs: int, seed: int) -> dict[str, Floats]:
        """Every trained array at step 0; `outputs` is the length of the network's output."""
        random = np.random.default_rng([seed, 1])
        count, w, layers = self.grid(side) ** 2, self.width, self.layers
        zeros, ones = (partial(np.full, fill_value=x, dtype=np.float32) for x in (0.0, 1.0))
        square = {name: _normal(random, layers, w, w) for name in ("query", "key", "value", "out")}
        position = self.spread * random.normal(size=(count, w)).astype(np.float32)
        return {
            "embed": _normal(random, self.patch**2 * channels, w), "embed_bias": zeros(w),
            "position": position, **square,
            "attention_scale": ones((layers, w)), "perceptron_scale": ones((layers, w)),
            "wide": _normal(random, layers, w, 2 * w), "wide_bias": zeros((layers, 2 * w)),
            "narrow": _normal(random, layers, 2 * w, w), "narrow_bias": zeros((layers, w)),
            "end_scale": ones(w), "head": zeros((w, outputs)), "head_bias": zeros(outputs),
        }  # fmt: skip

    def outputs(self, theta: Theta, pixels: Any, present: Any = None) -> Any:
        """Outputs of the network, linear in the mean token, shape (N, outputs).

        `present`, shape (N, D), marks the patches to keep. Patches with `present` False get no
        attention and do not count in the mean token.
        """
        tokens, _ = self.forward(theta, self.embedded(theta, pixels), present)
        if present is None:
            mean = tokens.mean(axis=1)
        else:
            weights = present.astype(tokens.dtype)[..., None]
            mean = (tokens * weights).sum(axis=1) / weights.sum(axis=1)
        return mean @ theta["head"] + theta["head_bias"]

    def embedded(self, theta: Theta, pixels: Any) -> Any:
        """Tokens of the patches, without positions added, shape (N, D, width)."""
        return patches_of(pixels, self.patch) @ theta["embed"] + theta["embed_bias"]

    def forward(self, theta: Theta, tokens: Any, present: Any = None) -> tuple[Any, Any]:
        """Tokens after all layers, shape (N, D, width), and attention, (layers, N, heads, D, D).

        The given `tokens` are those without positions. Positional attention without `present` is
        equal for all images and has N = 1. `present`, shape (N, D), marks patches to keep.
        """
        jnp, maps = jax.numpy, []
        own = self.attention == VANILLA
        tokens = tokens + theta["position"] if own else tokens
        for layer in range(self.layers):
            inner = _normalized(tokens) * theta["attention_scale"][layer]
            scores = self.scores(theta, layer, inner if own else theta["position"][None])
            if present is not None:
                scores = jnp.where(present[:, None, None, :], scores, -jnp.inf)
            weights = jax.nn.softmax(scores, axis=-1)
            values = self._heads(inner @ theta["value"][layer])
            if own or present is not None:
                pooled = jnp.einsum("nhij,njhk->nihk", weights, values)
            else:
                pooled = jnp.einsum("hij,njhk->nihk", weights[0], values)
            tokens = tokens + pooled.reshape(tokens.shape) @ theta["out"][layer]
            inner = _normalized(tokens) * theta["perceptron_scale"][layer]
            wide = jax.nn.gelu(inner @ theta["wide"][layer] + theta["wide_bias"][layer])
            tokens = tokens + wide @ theta["narrow"][layer] + theta["narrow_bias"][layer]
            maps.append(weights)
        return _normalized(tokens) * theta["end_scale"], jnp.stack(maps)

    def scores(self, theta: Theta, layer: int, tokens: Any) -> Any:
        """Scores Q K^T of a layer, divided by the root of the head size, shape (N, heads, D, D).

        For positional attention, `tokens` are the positions, shape (1, D, width).
        """
        query, key = (self._heads(tokens @ theta[name][layer]) for name in ("query", "key"))
        rows = query.transpose(0, 2, 1, 3)
        columns = key.transpose(0, 2, 3, 1)
        return rows @ columns / (self.width / self.heads) ** 0.5

    def _heads(self, tokens: Any) -> Any:
        return tokens.reshape(*tokens.shape[:2], self.heads, self.width // self.heads)


@dataclass(frozen=True)
class Convolution:
    """A convolutional network; `channels` has the number of filters of each layer."""

    channels: tuple[int, ...] = (16, 32, 32)
    name: ClassVar[str] = CONTROL

    def start(self, side: int, channels: int, outputs: int, seed: int) -> dict[str, Floats]:
        """Every trained array at step 0; `outputs` is the length of the network's output."""
        del side
        random, theta, before = np.random.default_rng([seed, 1]), {}, channels
        for layer, count in enumerate(self.channels):
            theta[f"filters_{layer}"] = 2**0.5 * _normal(random, 9 * before, count)
            theta[f"bias_{layer}"] = np.zeros(count, np.float32)
            before = count
        theta["head"] = np.zeros((before, outputs), np.float32)
        return theta | {"head_bias": np.zeros(outputs, np.float32)}

    def outputs(self, theta: Theta, pixels: Any) -> Any:
        """Outputs, shape (N, outputs), linear in the mean over the pixels of the last layer."""
        for layer in range(len(self.channels)):
            filtered = _surroundings(pixels) @ theta[f"filters_{layer}"]
            pixels = jax.nn.relu(filtered + theta[f"bias_{layer}"])
            if layer + 1 < len(self.channels) and pixels.shape[1] >= POOLED:
                pixels = _maxima(pixels)
        return pixels.mean(axis=(1, 2)) @ theta["head"] + theta["head_bias"]


def check_patch(patch: int, side: int, what: str) -> None:
    """Raise InvalidRequest if a patch's side in pixels does not divide an image's side."""
    if side % patch:
        sizes = [n for n in range(1, side + 1) if side % n == 0]
        nearest = min(sizes, key=lambda n: abs(n - patch))
        allowed = f"one of {', '.join(map(str, sizes))}"
        refuse("patch", patch, f"does not divide {what}", allowed, nearest)


def patches_of(pixels: Any, patch: int) -> Any:
    """Pixels of each patch, patches row by row, shape (N, D, patch * patch * channels).

    Examples
    --------
    >>> patches_of(np.arange(4).reshape(1, 2, 2, 1), 1).tolist()
    [[[0], [1], [2], [3]]]
    """
    count, side, _, channels = pixels.shape
    grid = side // patch
    blocks = pixels.reshape(count, grid, patch, grid, patch, channels).swapaxes(2, 3)
    return blocks.reshape(count, grid**2, patch**2 * channels)


def _surroundings(pixels: Any) -> Any:
    """Each pixel with its eight neighbours, zero-padded, shape (N, side, side, 9 * channels)."""
    side = pixels.shape[1]
    wide = jax.numpy.pad(pixels, ((0, 0), (1, 1), (1, 1), (0, 0)))
    parts = [wide[:, y : y + side, x : x + side] for y in range(3) for x in range(3)]
    return jax.numpy.concatenate(parts, axis=-1)


def _maxima(pixels: Any) -> Any:
    """Max pooling over 2 x 2 pixels; an odd last row or column is dropped."""
    count, side, _, channels = pixels.shape
    half = side // 2
    even = pixels[:, : 2 * half, : 2 * half].reshape(count, half, 2, half, 2, channels)
    return even.max(axis=(2, 4))


def _normalized(tokens: Any) -> Any:
    centred = tokens - tokens.mean(axis=-1, keepdims=True)
    return centred / ((centred**2).mean(axis=-1, keepdims=True) + EPSILON) ** 0.5


def _normal(random: Generator, *shape: int) -> Floats:
    """Normal entries with variance 1 / shape[-2], where shape[-2] is the number of inputs."""
    return (random.normal(size=shape) / shape[-2] ** 0.5).astype(np.float32)
