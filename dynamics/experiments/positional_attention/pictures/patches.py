"""Patches on their grid: the colour is the set, a word stands in every square, a frame singles out.

Sets need not be contiguous, so a frame follows the sides between its members and the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import ListedColormap, to_rgb
from numpy.typing import NDArray

from dynamics.plotting.style import BLUE, GREEN, ORANGE, PURPLE

TINTS = (
    (BLUE, 0.65),
    (ORANGE, 0.6),
    (GREEN, 0.24),
    (PURPLE, 0.75),
    ("#56B4E9", 0.5),
    ("#F0E442", 0.6),
    ("#999999", 0.5),
)
"""Hues and their shares; the rest is white. They differ in grey too, and black is read on them."""
RED = "#C8102E"


def patches(
    panel: Axes,
    labels: NDArray[np.int64],
    columns: int,
    words: Sequence[str],
    framed: NDArray[np.bool_] | None = None,
) -> None:
    """Draw the patches of one data point, row by row.

    Parameters
    ----------
    panel : Axes
    labels : int array, shape (D,)
        Set of each patch. After seven sets lighter tints of the same hues follow.
    columns : int
        Of the grid; divides D.
    words : sequence of str
        What stands in each square.
    framed : bool array, shape (D,), optional
        The patches to draw a red frame around.
    """
    rows = len(labels) // columns
    image = labels.reshape(rows, columns)
    shades = ListedColormap([_tinted(k) for k in range(int(labels.max()) + 1)])
    panel.imshow(image, cmap=shades, vmin=-0.5, vmax=shades.N - 0.5)
    panel.set_xticks([])
    panel.set_yticks([])
    panel.spines[:].set_visible(False)
    inner = [[(k - 0.5, -0.5), (k - 0.5, rows - 0.5)] for k in range(1, columns)]
    inner += [[(-0.5, k - 0.5), (columns - 0.5, k - 0.5)] for k in range(1, rows)]
    panel.add_collection(LineCollection(inner, colors="white", linewidths=2))
    for k, word in enumerate(words):
        panel.text(k % columns, k // columns, word, ha="center", va="center", fontsize=11)
    if framed is not None:
        sides = LineCollection(
            border(framed.reshape(rows, columns)),
            colors=RED, linewidths=3, capstyle="projecting", clip_on=False, zorder=3,
        )  # fmt: skip
        sides.set_label("frame")
        panel.add_collection(sides)


def border(inside: NDArray[np.bool_]) -> list[list[tuple[float, float]]]:
    """The unit sides between squares inside and outside, as segments (x, y).

    Parameters
    ----------
    inside : bool array, shape (rows, columns)
    """
    padded = np.pad(inside, 1)
    sides = []
    for row, column in zip(*np.nonzero(padded[1:] != padded[:-1]), strict=True):
        sides.append([(column - 1.5, row - 0.5), (column - 0.5, row - 0.5)])
    for row, column in zip(*np.nonzero(padded[:, 1:] != padded[:, :-1]), strict=True):
        sides.append([(column - 0.5, row - 1.5), (column - 0.5, row - 0.5)])
    return [[(float(x), float(y)) for x, y in side] for side in sides]


def _tinted(index: int) -> tuple[float, float, float]:
    hue, share = TINTS[index % len(TINTS)]
    share /= 1 + index // len(TINTS)
    red, green, blue = (1 - share * (1 - part) for part in to_rgb(hue))
    return red, green, blue
