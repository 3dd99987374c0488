"""Plot of the arrays of a model, each entry coloured by its scalar in a closure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from math import ceil
from string import ascii_letters
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap, to_hex, to_rgb
from matplotlib.patches import Patch
from numpy.typing import NDArray

from dynamics.plotting.captions import constants
from dynamics.plotting.style import new_figure, styled

FEW = 10
"""Maximum number of classes shown by colour alone; with more classes, cells also have letters."""
COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000",
    "#7F3C8D", "#8C613C",
)  # fmt: skip
HUES = 7
"""Number of hues whose tints colour the classes if there are more than `FEW` classes."""
TINTS = ((1.0, 0.0), (0.45, 0.55), (0.6, 0.0))
"""Weights of the class colour and of white in the successive tints."""
FROZEN = "#e8e8e8"
CLEAR = "".join(letter for letter in ascii_letters if letter not in "lIO")
"""Letters that cannot be mistaken for each other or for digits."""
LETTERED = 2000
"""Maximum number of cells of an array with a letter in every cell; a larger array has one letter
for each class."""
SIGNED = 400
"""Maximum number of entries of an array whose signs are written into the cells."""
KEY, HEADING = 0.17, 0.25
"""Height of a row of the legend, and of the legend's title, in inches."""
LEGEND, FURTHER = 2.0, 1.5
"""Width of the first column of the legend, and of each further column, in inches."""
MOST_KEYS = 72
"""Maximum number of classes that the legend lists; all other classes are counted in one line."""
FULL_LEGEND = 24
"""Number of legend rows that fit the height of a figure."""
MOST_ARRAYS = 8
COLUMNS = 4
"""Maximum number of arrays in a row of the figure."""
UNIT, MOST_UNIT = 2.6, 3.6
"""Height of a matrix without letters, and maximum height of a matrix with letters, in inches."""
CELL = 0.1
"""Minimum width of a cell with a letter, in inches."""
IN_ROW, MOST_ROWS = 50, 12
"""A vector is drawn as a strip whose rows have up to `IN_ROW` entries. A vector that would need
more than `MOST_ROWS` rows has longer rows."""
BOX, LEAST_BOX = 0.5, 0.28
"""Maximum and minimum height of a row of a strip, in inches."""
LETTER = 0.068
"""Width of a character in a strip, in inches."""
TITLE, ABOVE = 0.35, 0.3
"""Height of the title of an array, and of the subtitle of the figure, in inches."""
OUTSIDE = np.iinfo(np.int64).min
"""Label of the empty cells in the last row of a strip, after the vector's last entry."""
LEAST_WIDTH = 0.25
"""Minimum width of an array, relative to the height of a square array."""


@styled
def entry_classes(closure: Mapping[str, Any], parameters: Mapping[str, Any] | None = None) -> Any:
    """Plot the arrays of a model, each entry coloured by its scalar in the closure.

    Entries that never move are grey, and a minus sign marks an entry equal to minus its scalar. A
    vector is drawn as a strip with the names of its scalars, in several rows if it is long. An
    array of more than two axes is drawn as a matrix: its first axis indexes the rows, and all other
    axes are flattened into columns. With more than ten scalars, letters in the cells and in the
    legend distinguish the scalars.

    Parameters
    ----------
    closure : mapping
        Document from `theory.closure.Closure.document`.
    parameters : mapping, optional
        Name -> value of each parameter of the model, for the subtitle.

    Raises
    ------
    TypeError
        If ``closure`` is not such a document.

    Examples
    --------
    Two scalars, a and b, of a matrix of four entries:

    >>> from dynamics import plotting
    >>> axes = plotting.entry_classes({
    ...     "labels": {"W": [[1, 2], [-2, 1]]}, "names": ["a", "b"], "sizes": [2, 2],
    ...     "scalars": 2, "entries": 4, "frozen": 0,
    ... })
    >>> axes[0, 0].get_title(), len(axes[0, 0].texts)
    ('W  (2 × 2)', 1)
    """
    if not isinstance(closure, Mapping) or "labels" not in closure:
        raise TypeError(f"plotting.entry_classes draws a closure, not {type(closure).__name__}")
    matrices = _matrices(closure["labels"])
    count = max(1, closure["scalars"])
    lettered = count > FEW
    colours = [_tinted(k) for k in range(count)] if lettered else list(COLOURS[:count])
    keys = _keys(closure, colours, lettered)
    strips = {name for name, labels in matrices.items() if np.ndim(closure["labels"][name]) < 2}
    sizes = [_size(labels, name in strips, lettered) for name, labels in matrices.items()]
    figure, axes, columns = _grid(sizes, len(strips) == len(matrices), len(keys))
    for panel in axes.ravel()[len(matrices) :]:
        panel.set_axis_off()
    for panel, (name, labels), (width, height) in zip(
        axes.ravel(), matrices.items(), sizes, strict=False
    ):
        size = " × ".join(map(str, np.shape(closure["labels"][name])[:1] + labels.shape[1:]))
        if name in strips:
            size = str(np.size(closure["labels"][name]))
            size += ", row by row" if len(labels) > 1 else ""
        panel.set_title(f"{name}  ({size})")
        _draw_array(panel, labels, colours)
        if name in strips:
            panel.set(aspect="auto", anchor="N", box_aspect=height / width)
        if lettered:
            _write_letters(panel, labels, colours)
        elif name in strips:
            cell = width / labels.shape[1], height / len(labels)
            _write_names(panel, labels, closure["names"], colours, cell)
        elif labels.size <= SIGNED:
            for row, column in np.argwhere(labels < 0):
                panel.text(column, row, "−", ha="center", va="center", color="white")
    left_out = len(closure["labels"]) - len(matrices)
    note = f"shown: {len(matrices)} of {len(closure['labels'])} arrays" if left_out else ""
    beside = LEGEND + FURTHER * (columns - 1)
    constants(figure, {}, parameters or {}, note, max(LEGEND, figure.get_figwidth() - beside))
    scalars = f"{closure['scalars']} scalar{'s' if closure['scalars'] != 1 else ''}"
    figure.legend(
        handles=keys, title=f"{scalars} of {closure['entries']} entries",
        loc="outside right upper", fontsize=8, title_fontsize=8, ncols=columns,
    )  # fmt: skip
    return axes


def _matrices(arrays: Mapping[str, Any]) -> dict[str, NDArray[np.int64]]:
    """Matrix of class labels of each array, by name; a vector is wrapped into rows of a strip."""
    matrices = {}
    for name in list(arrays)[:MOST_ARRAYS]:
        labels = np.array(arrays[name])
        if labels.ndim < 2:
            rows = min(MOST_ROWS, ceil(labels.size / IN_ROW))
            empty = np.full(-labels.size % rows, OUTSIDE)
            matrices[name] = np.concatenate([labels.ravel(), empty]).reshape(rows, -1)
        else:
            matrices[name] = labels.reshape(len(labels), -1)
    return matrices


def _size(labels: NDArray[np.int64], strip: bool, lettered: bool) -> tuple[float, float]:
    """Width and height of an array in inches; cells with letters have a minimum width."""
    rows, columns = labels.shape
    if strip:
        width = float(np.clip(BOX * columns, LEAST_WIDTH * UNIT, 2 * UNIT))
        return width, rows * float(np.clip(width / columns, LEAST_BOX, BOX))
    ratio = float(np.clip(columns / rows, LEAST_WIDTH, 2))
    least = CELL * max(columns / ratio, rows) if lettered else 0.0
    height = float(np.clip(least, UNIT, MOST_UNIT))
    return ratio * height, height


def _grid(sizes: Sequence[tuple[float, float]], strips: bool, keys: int) -> tuple[Any, Any, int]:
    """Make a figure with a panel for each array; also return the number of legend columns."""
    columns = 1 if strips else min(COLUMNS, len(sizes))
    rows = [sizes[k : k + columns] for k in range(0, len(sizes), columns)]
    widths = [max(width for width, _ in sizes[k::columns]) for k in range(columns)]
    heights = [TITLE + max(height for _, height in row) for row in rows]
    least = HEADING + KEY * min(keys, FULL_LEGEND) if strips else 0.0
    height = ABOVE + max(sum(heights), least)
    legend = max(1, ceil(keys / int((height - HEADING) / KEY)))
    usual = sum(widths) + LEGEND + FURTHER * (legend - 1)
    figure, axes = new_figure(
        usual, height, images=True, nrows=len(rows), ncols=columns, squeeze=False,
        width_ratios=widths, height_ratios=heights,
    )  # fmt: skip
    if figure.get_figwidth() < usual:  # a legend of half the figure's width may need more height
        legend = min(legend, 1 + max(0, int((figure.get_figwidth() / 2 - LEGEND) / FURTHER)))
        least = ABOVE + HEADING + KEY * ceil(keys / legend)
        figure.set_figheight(max(figure.get_figheight(), least))
    return figure, axes, legend


def _draw_array(panel: Axes, labels: NDArray[np.int64], colours: Sequence[str]) -> None:
    """Fill every cell of an array with the colour of its scalar."""
    count = len(colours)
    palette = ListedColormap([FROZEN, *colours])
    norm = BoundaryNorm(np.arange(-0.5, count + 1.5), count + 1)
    sizes = np.ma.masked_where(labels == OUTSIDE, np.abs(labels))
    panel.imshow(sizes, cmap=palette, norm=norm, interpolation="nearest")
    panel.set(xticks=[], yticks=[])
    panel.spines[:].set_visible(False)


def _write_names(
    panel: Axes,
    labels: NDArray[np.int64],
    names: Sequence[str],
    colours: Sequence[str],
    cell: tuple[float, float],
) -> None:
    """Write the scalar's name into each run of equal cells of a strip, if the name fits."""
    for row, line in enumerate(labels):
        for own, cells in groupby(enumerate(line.tolist()), lambda cell: cell[1]):
            places = [place for place, _ in cells]
            if own in (0, OUTSIDE):
                continue
            text = ("−" if own < 0 else "") + names[abs(own) - 1]
            upright = len(text) * LETTER > cell[0] * len(places)
            if upright and len(text) * LETTER > cell[1]:
                continue
            panel.text(
                (places[0] + places[-1]) / 2, row, text, ha="center", va="center", fontsize=7,
                rotation=90 if upright else 0, color=_ink(colours[abs(own) - 1]),
            )  # fmt: skip


def _ink(colour: str) -> str:
    """Colour of letters on a cell: white on dark colours, black on bright colours."""
    red, green, blue = to_rgb(colour)
    return "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.55 else "black"


def _keys(closure: Mapping[str, Any], colours: Sequence[str], lettered: bool) -> list[Any]:
    """Legend entry of each scalar, with its number of entries."""
    keys: list[Any] = []
    classes = zip(closure["names"][:MOST_KEYS], closure["sizes"], colours, strict=False)
    for k, (name, size, colour) in enumerate(classes):
        own = f"{_letter(k)}   " if lettered else ""
        keys.append(Patch(color=colour, label=f"{own}{name}: {size}"))
    if len(closure["names"]) > MOST_KEYS:
        left = len(closure["names"]) - MOST_KEYS
        keys.append(Patch(color="none", label=f"and {left} more"))
    if closure["frozen"]:
        keys.append(Patch(color=FROZEN, label=f"never move: {closure['frozen']}"))
    return keys


def _tinted(number: int) -> str:
    """Colour of a class among many: hues in turn, with a new lightness after each cycle."""
    share, white = TINTS[number // HUES % len(TINTS)]
    red, green, blue = (share * part + white for part in to_rgb(COLOURS[number % HUES]))
    return to_hex((red, green, blue))


def _letter(number: int) -> str:
    """Letter of a class among many: a to z, A to Z, then numbers."""
    return CLEAR[number] if number < len(CLEAR) else str(number + 1)


def _write_letters(panel: Axes, labels: NDArray[np.int64], colours: Sequence[str]) -> None:
    """Write class letters into all moving cells, or one per class if there are many cells."""
    moving = (labels != 0) & (labels != OUTSIDE)
    cells = np.argwhere(moving)
    if len(cells) > LETTERED:
        middles = []
        for number in np.unique(np.abs(labels[moving])):
            own = np.argwhere(np.abs(labels) == number)
            middles.append(own[np.square(own - own.mean(axis=0)).sum(axis=1).argmin()])
        cells = np.array(middles)
    for row, column in cells:
        label = int(labels[row, column])
        text = f"{'−' if label < 0 else ''}{_letter(abs(label) - 1)}"
        panel.text(
            column, row, text, ha="center", va="center_baseline",
            fontsize=5.5 if len(text) < 3 and label > 0 else 4.4,
            color=_ink(colours[abs(label) - 1]),
        )  # fmt: skip
