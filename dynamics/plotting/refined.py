"""A refined boundary: where the answer is yes, and the runs that found it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import ListedColormap
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from dynamics.phase_diagrams.boundaries import NOT_VALID, YES, Refined
from dynamics.plotting import words
from dynamics.plotting.marks import hatch, logarithmic
from dynamics.plotting.phase import HALO, NO_COLOUR, YES_COLOUR
from dynamics.plotting.style import RC, VERMILION, new_figure

WIDTH = 5.4


def refined(
    result: Refined,
    name: str,
    notation: words.Letters | None = None,
    held: Mapping[str, Any] | None = None,
) -> Axes:
    """Yes and no in two colours, inferred where there is no dot; the boundary as a line.

    Parameters
    ----------
    result : Refined
    name : str
        What is asked, as it stands in the legend (``"$T_1$ reached"``).
    notation : Notation, optional
        The letters that label the axes.
    held : mapping, optional
        What is the same in every run: name -> value.

    Returns
    -------
    Axes
    """
    letters = notation or {}
    x, y = result.x.values, result.y.values
    line: dict[str, Any] = {"color": VERMILION, "lw": 1.8, "path_effects": HALO}
    dot: dict[str, Any] = {"ls": "", "marker": ".", "ms": 2.4, "color": "black", "mew": 0}
    with mpl.rc_context(RC):
        figure, axes = new_figure(WIDTH, 4.4)
        axes.spines[:].set_visible(True)
        for which, axis in (("x", result.x), ("y", result.y)):
            axes.set(**{
                f"{which}scale": "log" if axis.logarithmic else "linear",
                f"{which}label": words.label(letters, axis.name),
                f"{which}lim": (axis.values[0], axis.values[-1]),
            })  # fmt: skip
            if axis.logarithmic:
                logarithmic(getattr(axes, f"{which}axis"), axis.values[-1] / axis.values[0])
        handles: list[Any] = [*_areas(axes, result, name)]
        rows, columns = np.nonzero(result.evaluated & (result.values != NOT_VALID))
        axes.plot(x[columns], y[rows], zorder=3, clip_on=False, **dot)
        for path in result.lines:
            axes.plot(path[:, 0], path[:, 1], zorder=4, **line)
        axes.set_title(words.fixed(letters, held or {}, {}, WIDTH), fontsize=8, loc="left")
        runs = f"{len(rows)} of {result.values.size} points run"
        if result.runs > len(rows):
            runs += f", {result.runs - len(rows)} more on the boundary"
        handles.insert(2, Line2D([], [], label=_boundary(result, letters), **line))
        handles.insert(3, Line2D([], [], label=runs, **dot | {"ms": 5}))
        figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=8)
    return axes


def _areas(axes: Axes, result: Refined, name: str) -> list[Patch]:
    """Colour the squares of the lattice; those that the boundary crosses are cut along it."""
    x, y, values = result.x.values, result.y.values, result.values
    corners = np.stack([values[:-1, :-1], values[:-1, 1:], values[1:, 1:], values[1:, :-1]])
    barred = (corners == NOT_VALID).any(axis=0)
    shown = np.ma.masked_where(barred, (corners == YES).all(axis=0))
    colours = ListedColormap([NO_COLOUR, YES_COLOUR])
    axes.pcolormesh(x, y, shown, cmap=colours, vmin=0, vmax=1)
    mixed = ~barred & (corners == YES).any(axis=0) & (corners != YES).any(axis=0)
    pieces = [_piece(result, int(row), int(column)) for row, column in np.argwhere(mixed)]
    style: dict[str, Any] = {"facecolor": YES_COLOUR, "lw": 0}
    axes.add_collection(PolyCollection(pieces, **style), autolim=False)
    handles = [Patch(**style, label=name), Patch(facecolor=NO_COLOUR, label="otherwise")]
    if barred.any():
        handles.append(hatch(axes, x, y, barred))
    return handles


def _piece(result: Refined, row: int, column: int) -> Any:
    """The part of a square of the lattice in which the answer is yes: x and y of its corners."""
    places = []
    for down, right, edge, along in (
        (0, 0, (row, column, 0), (0, 1)),
        (0, 1, (row, column + 1, 1), (1, 0)),
        (1, 1, (row + 1, column, 0), (0, -1)),
        (1, 0, (row, column, 1), (-1, 0)),
    ):
        at = np.array([row + down, column + right], dtype=np.float64)
        if result.values[row + down, column + right] == YES:
            places.append(at)
        if edge in result.crossed:
            share = result.crossed[edge]
            places.append(at + np.array(along) * (share if sum(along) > 0 else 1.0 - share))
    rows, columns = np.array(places).T
    return np.column_stack([result.x.at(columns), result.y.at(rows)])


def _boundary(result: Refined, notation: words.Letters) -> str:
    parts = [
        rf"{100 * width:.2g} % in" if axis.logarithmic else f"{width:.2g} in"
        for axis, width in zip((result.x, result.y), result.tolerance, strict=True)
    ]
    names = [words.letter(notation, axis.name) for axis in (result.x, result.y)]
    return rf"boundary, $\pm$ {parts[0]} ${names[0]}$, {parts[1]} ${names[1]}$"
