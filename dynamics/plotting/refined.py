"""A refined boundary: where the answer is yes, and the runs that found it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from dynamics.phases.refine import BARRED, YES, Refined
from dynamics.plotting import words
from dynamics.plotting.marks import Place, draw_marks
from dynamics.plotting.phase import HALO, NO_COLOUR, YES_COLOUR
from dynamics.plotting.style import RC, VERMILION, new_figure

WIDTH = 5.4


def refined(
    result: Refined, name: str, system: str = "", held: Mapping[str, Any] | None = None
) -> Axes:
    """Yes and no in two colours, inferred where there is no dot; the boundary as a line.

    Parameters
    ----------
    result : Refined
    name : str
        What is asked, as it stands in the legend (``"$T_1$ reached"``).
    system : str
        Whose letters label the axes.
    held : mapping, optional
        What is the same in every run: name -> value.

    Returns
    -------
    Axes
    """
    x, y = Place(result.x), Place(result.y)
    values = np.where(result.values == BARRED, np.nan, result.values == YES)
    line: dict[str, Any] = {"color": VERMILION, "lw": 1.8, "path_effects": HALO}
    dot: dict[str, Any] = {"ls": "", "marker": ".", "ms": 2.4, "color": "black", "mew": 0}
    with mpl.rc_context(RC):
        figure, axes = new_figure(WIDTH, 4.4)
        axes.spines[:].set_visible(True)
        x.draw(axes, "x", system)
        y.draw(axes, "y", system)
        colours = ListedColormap([NO_COLOUR, YES_COLOUR])
        axes.pcolormesh(
            x.edges, y.edges, np.ma.masked_invalid(values), cmap=colours, vmin=0, vmax=1
        )
        barred = draw_marks(axes, x, y, {"not valid": result.values == BARRED})
        rows, columns = np.nonzero(result.asked & (result.values != BARRED))
        axes.plot(x.centres[columns], y.centres[rows], zorder=3, **dot)
        for path in result.lines:
            axes.plot(x.at(path[:, 0]), y.at(path[:, 1]), zorder=4, **line)
        axes.set_title(words.fixed(system, held or {}, {}, WIDTH), fontsize=8, loc="left")
        handles = [
            Patch(facecolor=YES_COLOUR, label=name),
            Patch(facecolor=NO_COLOUR, label="otherwise"),
            Line2D([], [], label=_boundary(result, system), **line),
            Line2D([], [], label=f"{len(rows)} of {values.size} points run", **dot | {"ms": 5}),
            *barred.values(),
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=8)
    return axes


def _boundary(result: Refined, system: str) -> str:
    parts = [
        rf"{100 * width:.2g} % in" if axis.logarithmic else f"{width:.2g} in"
        for axis, width in zip((result.x, result.y), result.tolerance, strict=True)
    ]
    names = [words.letter(system, axis.name) for axis in (result.x, result.y)]
    return rf"boundary, $\pm$ {parts[0]} ${names[0]}$, {parts[1]} ${names[1]}$"
