"""Arrays of a model, coloured by the scalar that each entry is, as a closure finds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from string import ascii_letters
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap, to_hex, to_rgb
from matplotlib.patches import Patch
from numpy.typing import NDArray

from dynamics.plotting.captions import fixed, subtitle
from dynamics.plotting.style import new_figure, styled

FEW = 10
"""Classes that have colours of their own; of more, each has a letter in its cells too."""
COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000",
    "#7F3C8D", "#8C613C",
)  # fmt: skip
HUES = 7
"""Of `COLOURS`, those that many classes have in turn; then paler, then darker."""
TINTS = ((1.0, 0.0), (0.45, 0.55), (0.6, 0.0))
"""Shares of the colour and of white, in turn."""
FROZEN = "#e8e8e8"
CLEAR = "".join(letter for letter in ascii_letters if letter not in "lIO")
"""Letters that look like no other and like no digit."""
LETTERED = 2000
"""Cells of an array up to which each has a letter; of more, one cell of each class."""
SIGNED = 400
"""Entries of an array up to which signs are written into its cells."""
KEY, HEADING = 0.17, 0.25
"""Heights of a row of the legend and of its title, in inches."""
LEGEND, FURTHER = 2.0, 1.5
"""Widths of the legend, in inches: of its first column, and of each further one."""
MOST_KEYS = 72
"""Classes up to which all are in the legend."""
MOST_ARRAYS = 8
COLUMNS = 4
"""Of the arrays, side by side."""
UNIT = 2.6
"""Height of an array, in inches."""
MOST_UNIT = 3.6
"""Greatest height of an array with letters, in inches."""
CELL = 0.1
"""Least width of a cell with a letter, in inches."""
LEAST_WIDTH = 0.25
"""Width of the narrowest array, in the heights of a square one."""


@styled
def entry_classes(closure: Mapping[str, Any], parameters: Mapping[str, Any] | None = None) -> Any:
    """Arrays of a model, coloured by the scalar that each entry is.

    An entry that never moves is grey; a minus sign marks one that is minus its scalar. An array of
    more than two axes is drawn as a matrix of its first axis and the rest. Of more than ten
    scalars each has a letter too, in its cells and in the legend.

    Parameters
    ----------
    closure : mapping
        Of `theory.closure.Closure.document`.
    parameters : mapping, optional
        Of the model, by name; they stand above the arrays.

    Returns
    -------
    array of Axes

    Raises
    ------
    TypeError
        If ``closure`` is no closure as ``Closure.document()`` gives.

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
    figure, axes, columns = _grid(list(matrices.values()), lettered, len(keys))
    for panel in axes.ravel()[len(matrices) :]:
        panel.set_axis_off()
    for panel, (name, labels) in zip(axes.ravel(), matrices.items(), strict=False):
        across = f" × {labels.shape[1]}" if labels.shape[1] > 1 else ""
        panel.set_title(f"{name}  ({len(labels)}{across})")
        _draw_array(panel, labels, colours)
        if lettered:
            _write_letters(panel, labels, colours)
        elif labels.size <= SIGNED:
            for row, column in np.argwhere(labels < 0):
                panel.text(column, row, "−", ha="center", va="center", color="white")
    subtitle(figure, fixed({}, parameters or {}, {}, figure.get_figwidth()))
    scalars = f"{closure['scalars']} scalar{'s' if closure['scalars'] != 1 else ''}"
    figure.legend(
        handles=keys, title=f"{scalars} of {closure['entries']} entries",
        loc="outside right upper", fontsize=8, title_fontsize=8, ncols=columns,
    )  # fmt: skip
    return axes


def _matrices(arrays: Mapping[str, Any]) -> dict[str, NDArray[np.int64]]:
    """The first arrays of labels, each as a matrix of its first axis and the rest."""
    matrices = {}
    for name in list(arrays)[:MOST_ARRAYS]:
        labels = np.array(arrays[name])
        matrices[name] = labels.reshape(len(labels), -1) if labels.ndim else labels.reshape(1, 1)
    return matrices


def _grid(matrices: Sequence[NDArray[np.int64]], lettered: bool, keys: int) -> tuple[Any, Any, int]:
    """A figure with a panel for each matrix, as wide as its shape asks for.

    The third value is the number of columns that the legend needs in its height.
    """
    columns = min(COLUMNS, len(matrices))
    rows = ceil(len(matrices) / columns)
    shapes = [
        LEAST_WIDTH if labels.size == 1 else np.clip(labels.shape[1] / len(labels), LEAST_WIDTH, 2)
        for labels in matrices
    ]
    widths = [max(shapes[k::columns]) for k in range(columns)]
    unit = UNIT
    if lettered:
        pairs = zip(matrices, shapes, strict=True)
        longest = max(max(labels.shape[1] / width, len(labels)) for labels, width in pairs)
        unit = float(np.clip(CELL * longest, UNIT, MOST_UNIT))
    grid = {"nrows": rows, "ncols": columns, "squeeze": False, "width_ratios": widths}
    fitting = int((unit * rows - HEADING) / KEY)
    legend = max(1, ceil(keys / fitting))
    beside = LEGEND + FURTHER * (legend - 1)
    return *new_figure(unit * sum(widths) + beside, unit * rows, **grid), legend


def _draw_array(panel: Axes, labels: NDArray[np.int64], colours: Sequence[str]) -> None:
    """The colour of its scalar in every cell."""
    count = len(colours)
    palette = ListedColormap([FROZEN, *colours])
    norm = BoundaryNorm(np.arange(-0.5, count + 1.5), count + 1)
    panel.imshow(np.abs(labels), cmap=palette, norm=norm, interpolation="nearest")
    panel.set(xticks=[], yticks=[])
    panel.spines[:].set_visible(False)


def _keys(closure: Mapping[str, Any], colours: Sequence[str], lettered: bool) -> list[Any]:
    """Of the legend: every scalar with the number of entries that are it."""
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
    """Colour of one of many classes: safe hues in turn, of another lightness every time."""
    share, white = TINTS[number // HUES % len(TINTS)]
    red, green, blue = (share * part + white for part in to_rgb(COLOURS[number % HUES]))
    return to_hex((red, green, blue))


def _letter(number: int) -> str:
    """What stands in the cells of one of many classes: a to z, A to Z, then numbers."""
    return CLEAR[number] if number < len(CLEAR) else str(number + 1)


def _write_letters(panel: Axes, labels: NDArray[np.int64], colours: Sequence[str]) -> None:
    """Write the letter of its class into every cell that moves; into one of each, of too many."""
    cells = np.argwhere(labels != 0)
    if len(cells) > LETTERED:
        middles = []
        for number in np.unique(np.abs(labels[labels != 0])):
            own = np.argwhere(np.abs(labels) == number)
            middles.append(own[np.square(own - own.mean(axis=0)).sum(axis=1).argmin()])
        cells = np.array(middles)
    for row, column in cells:
        label = int(labels[row, column])
        red, green, blue = to_rgb(colours[abs(label) - 1])
        dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.55
        text = f"{'−' if label < 0 else ''}{_letter(abs(label) - 1)}"
        panel.text(
            column, row, text, ha="center", va="center_baseline",
            fontsize=5.5 if label > 0 else 4.4,
            color="white" if dark else "black",
        )  # fmt: skip
