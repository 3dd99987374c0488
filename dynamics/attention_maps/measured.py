"""Both measures of every image and head, with what they were taken of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynamics.attention_maps.distance import distance
from dynamics.attention_maps.maps import FloatArray, Setting, maps, settle, stochastic
from dynamics.attention_maps.variation import variation
from dynamics.training.progress import bar
from dynamics.validation import refuse

QUARTERS = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Measured:
    """Diversity and total variation of the heads of one layer.

    Attributes
    ----------
    name : str
        Of the model.
    diversity : array, shape (images, heads)
        In patches.
    total_variation : array, shape (images, heads)
    setting : Setting
        With the grid.
    """

    name: str
    diversity: FloatArray
    total_variation: FloatArray
    setting: Setting

    @property
    def images(self) -> int:
        """How many images."""
        return len(self.diversity)

    @property
    def heads(self) -> int:
        """How many heads."""
        return self.diversity.shape[1]

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        assert self.setting.grid is not None
        return self.setting.grid


def quartiles(values: FloatArray) -> FloatArray:
    """Lower quartile, median and upper quartile over images.

    Parameters
    ----------
    values : array, shape (images, heads)

    Returns
    -------
    array, shape (3, heads)
    """
    return np.quantile(values, QUARTERS, axis=0)


def measure(attention: ArrayLike, setting: Setting | None = None, name: str = "") -> Measured:
    """Both measures of all maps, in one pass over an array that may be a memory-mapped file.

    Parameters
    ----------
    attention : array_like, shape (P, P), (images, P, P) or (images, heads, P, P)
        Of three axes the first are images of one head; the heads of one image are
        ``attention[None]``.
    setting : Setting, optional
    name : str
        What the result is called in pictures and tables.

    Raises
    ------
    InvalidRequest
        As `diversity` does, or if the array has another shape.
    """
    array = maps(attention)
    if array.ndim > 4:
        allowed = "(P, P), (images, P, P) or (images, heads, P, P)"
        nearest = (-1, *array.shape[-3:])
        refuse("attention", array.shape, "has too many axes", allowed, f"reshape{nearest}")
    setting = settle(array, setting or Setting())
    axes = array.shape[:-2]
    found = np.empty((2, *axes))
    with bar("diversity", found[0].size, unit="maps") as progress:
        for place in np.ndindex(axes):
            square = stochastic(array, place, setting.skip)
            found[(0, *place)] = distance(square, setting)
            found[(1, *place)] = variation(square, setting.off_diagonal)
            progress.update(1)
    images = axes[0] if axes else 1
    diversity, total_variation = found.reshape(2, images, -1)
    return Measured(name, diversity, total_variation, setting)
