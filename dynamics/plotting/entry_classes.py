"""Which trained entries are one scalar: each array, coloured by class."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.colors import BoundaryNorm, ListedColormap

from dynamics.plotting.style import RC, new_figure

FEW = 10
"""Classes that have colours of their own; more share a colour map."""
FROZEN = "#e8e8e8"
COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000",
    "#7F3C8D", "#8C613C",
)  # fmt: skip
WRITTEN = 400
"""Entries of an array up to which signs are written into its cells."""
MOST_ARRAYS = 8
LEAST_WIDTH = 0.25
"""Width of the narrowest array, in the heights of a square one."""


def entry_classes(closure: Mapping[str, Any]) -> Any:
    """Arrays of a model, coloured by the scalar that each entry is.

    An entry that never moves is grey; a minus sign marks one that is minus its scalar. An array of
    more than two axes is drawn as a matrix of its first axis and the rest.

    Parameters
    ----------
    closure : mapping
        Of `theory.closure.Closure.document`.

    Returns
    -------
    array of Axes
    """
    arrays = list(closure["labels"].items())[:MOST_ARRAYS]
    numbers = [_matrix(np.array(entries)) for _, entries in arrays]
    count = max(1, closure["scalars"])
    colours = COLOURS[:count] if count <= FEW else mpl.colormaps["nipy_spectral"](
        np.linspace(0.05, 0.95, count)
    )  # fmt: skip
    palette = ListedColormap([FROZEN, *colours])
    norm = BoundaryNorm(np.arange(-0.5, count + 1.5), count + 1)
    sides = dict.fromkeys((f"axes.spines.{s}" for s in ("top", "right", "left", "bottom")), False)
    with mpl.rc_context(RC | sides):
        columns = min(4, len(arrays))
        rows = ceil(len(arrays) / columns)
        shapes = [np.clip(m.shape[1] / m.shape[0], LEAST_WIDTH, 2.0) for m in numbers]
        shapes = [LEAST_WIDTH if m.size == 1 else s for m, s in zip(numbers, shapes, strict=True)]
        widths = [max(shapes[k::columns]) for k in range(columns)]
        figure, axes = new_figure(
            2.6 * sum(widths) + 2.0, 2.6 * rows, nrows=rows, ncols=columns, squeeze=False,
            width_ratios=widths,
        )  # fmt: skip
        for panel in axes.ravel()[len(arrays) :]:
            panel.set_axis_off()
        for panel, (name, _), labels in zip(axes.ravel(), arrays, numbers, strict=False):
            panel.imshow(np.abs(labels), cmap=palette, norm=norm, interpolation="nearest")
            panel.set_title(_title(name, labels.shape))
            panel.set_xticks([])
            panel.set_yticks([])
            if labels.size <= WRITTEN:
                for row, column in zip(*np.nonzero(labels < 0), strict=True):
                    panel.text(column, row, "−", ha="center", va="center", color="white")
        _key(figure, axes, closure, colours)
    return axes


def _matrix(labels: Any) -> Any:
    if labels.ndim <= 1:
        return labels.reshape(-1, 1)
    return labels.reshape(labels.shape[0], -1)


def _title(name: str, shape: tuple[int, ...]) -> str:
    return f"{name}  ({shape[0]} × {shape[1]})" if shape[1] > 1 else f"{name}  ({shape[0]})"


def _key(figure: Any, axes: Any, closure: Mapping[str, Any], colours: Any) -> None:
    """Names and sizes of the classes, where they are few; else how many there are."""
    from matplotlib.patches import Patch

    names, sizes = closure["names"], closure["sizes"]
    handles = []
    if len(names) <= FEW:
        handles = [
            Patch(color=colour, label=f"{name}: {size}")
            for name, size, colour in zip(names, sizes, colours, strict=False)
        ]
    if closure["frozen"]:
        handles.append(Patch(color=FROZEN, label=f"never move: {closure['frozen']}"))
    title = f"{closure['scalars']} scalars of {closure['entries']} entries"
    figure.legend(
        handles=handles, title=title, loc="outside right upper", frameon=False, fontsize=8,
        title_fontsize=8,
    )  # fmt: skip
