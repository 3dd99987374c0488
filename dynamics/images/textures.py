r"""Objects on backgrounds: patches that are relevant to the label, and patches that are not.

An image of a data set (the object) is placed on a larger canvas at a random offset of whole
patches. Section 4.2 of Li et al. (2023) similarly integrates CIFAR-10 images into noisy
backgrounds. The background is a random crop of a texture, or zero (clean). Of the D patches, those
of the object are relevant to the label. Dropping background patches raises the share of relevant
patches, :math:`\alpha_\star`, up to 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dynamics.images import require
from dynamics.images.datasets import Floats
from dynamics.images.networks import check_patch
from dynamics.problem import FloatArray
from dynamics.validation import known_word, refuse

TEXTURES = ("grass", "gravel", "brick", "noise")
"""Names of textures: three images of scikit-image, and independent uniform pixels."""
COARSE = 4
"""Side, in pixels of the source image, of a cell that is averaged to one pixel of a texture."""
CELLS = 128


class Canvases(NamedTuple):
    """Objects on backgrounds; `relevant`, shape (N, D), marks the patches of the object."""

    pixels: Floats
    relevant: NDArray[np.bool_]


def texture(name: str, random: Generator) -> FloatArray:
    """Texture of 128 x 128 pixels with mean 0 and variance 1.

    Raises InvalidRequest if `name` is not in `TEXTURES`, or scikit-image is not installed.
    """
    known_word("texture", name, TEXTURES)
    if name == "noise":
        fine = random.uniform(size=(CELLS, CELLS))
    else:
        image = np.asarray(getattr(require("skimage.data", "scikit-image"), name)(), np.float64)
        side = CELLS * COARSE
        fine = image[:side, :side].reshape(CELLS, COARSE, CELLS, COARSE).mean(axis=(1, 3))
    return np.asarray((fine - fine.mean()) / fine.std())


def integrate(
    objects: Floats,
    background: FloatArray,
    side: int,
    patch: int,
    textured: NDArray[np.bool_],
    random: Generator,
) -> Canvases:
    """Place objects at random positions on larger canvases.

    `objects` have mean 0 and variance 1. Each image with `textured` True gets its own random crop
    of the texture `background`, equal in all channels. Images with `textured` False have the
    darkest value of all objects as background. Raises InvalidRequest if the patch does not divide
    the sides of object and canvas, or an object does not fit.
    """
    count, height, _, channels = objects.shape
    check_patch(patch, height, f"objects of {height} x {height} pixels")
    if side % patch or side < height:
        allowed = f"a multiple of patch={patch} that is at least {height}, the side of an object"
        refuse("side", side, f"cannot hold objects of {height} pixels", allowed, 2 * height)
    dark = objects.min(axis=(0, 1, 2))
    pixels = np.broadcast_to(dark, (count, side, side, channels)).astype(np.float32)
    grid, across = side // patch, height // patch
    relevant = np.zeros((count, grid, grid), bool)
    corners = random.integers(grid - across + 1, size=(count, 2))
    cuts = random.integers(len(background) - side + 1, size=(count, 2))
    for k, ((y, x), (top, left)) in enumerate(zip(corners, cuts, strict=True)):
        if textured[k]:
            pixels[k] = background[top : top + side, left : left + side, None]
        row, column = y * patch, x * patch
        pixels[k, row : row + height, column : column + height] = objects[k]
        relevant[k, y : y + across, x : x + across] = True
    return Canvases(pixels, relevant.reshape(count, -1))


def remaining(own: int, count: int, share: float) -> int:
    """Number n of patches to keep: own / n is about `share`, and n is between `own` and `count`.

    Examples
    --------
    >>> [remaining(2, 6, share) for share in (0.1, 0.5, 0.8, 1.0)]
    [6, 4, 3, 2]
    """
    return int(np.clip(np.floor(own / share + 0.5), own, count))


def sparsified(relevant: NDArray[np.bool_], share: float, random: Generator) -> NDArray[np.bool_]:
    """Mask, shape (N, D), of the patches left after background patches are dropped at random.

    Every image must have the same number of relevant patches. After the drop, relevant patches are
    about the given `share` (alpha_*) of all patches.

    Examples
    --------
    >>> relevant = np.array([[True, True, False, False, False, False]])
    >>> int(sparsified(relevant, 0.5, np.random.default_rng(0)).sum())
    4
    """
    own, count = int(relevant[0].sum()), relevant.shape[1]
    others = remaining(own, count, share) - own
    order = np.where(relevant, 2.0, random.uniform(size=relevant.shape)).argsort(axis=1)
    ranks = order.argsort(axis=1)
    return relevant | (ranks < others)
