"""What pictures of sweeps share: axes of a grid, and marks where a run has no value."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator
from numpy.typing import ArrayLike, NDArray

from dynamics.phase_diagrams.axis import Axis
from dynamics.phase_diagrams.selection import COMPLETE, Slice
from dynamics.plotting.style import GREY
from dynamics.plotting.words import Letters, label
from dynamics.problem import FloatArray
from dynamics.results.outcome import (
    CERTIFICATE_LOST,
    DIVERGED,
    INTERRUPTED,
    INVALID,
    OSCILLATING,
    PENDING,
)

MARKS = {
    OSCILLATING: "d",
    DIVERGED: "X",
    CERTIFICATE_LOST: "v",
    INTERRUPTED: "s",
}
OTHER = "P"
"""Of every other failure, such as a killed worker."""
PALE = "#DDDDDD"
FEW = 8
"""Up to so many whole numbers are drawn as categories, so many values all have a tick."""
NARROWEST = 4.0
NARROW = 100.0


class Place:
    """Where the values of an axis stand on a picture.

    Few whole numbers (C = 2, 4, 8) are categories, equally far apart; others stand at their own
    values, logarithmically where they are nearly geometric.

    Parameters
    ----------
    axis : Axis
    """

    def __init__(self, axis: Axis) -> None:
        self.axis = axis
        values = axis.values
        self.category = len(values) <= FEW and bool((values == np.round(values)).all())

    @property
    def centres(self) -> FloatArray:
        """Places of the values."""
        return self.at(self.axis.values)

    @property
    def edges(self) -> FloatArray:
        """Edges of the cells around the values."""
        if self.category:
            return np.arange(len(self.axis.values) + 1, dtype=np.float64) - 0.5
        return self.axis.edges

    def at(self, values: ArrayLike) -> FloatArray:
        """Places of any values in the range of the axis."""
        if self.category:
            return self.axis.index(values)
        return np.asarray(values, dtype=np.float64)

    def draw(self, panel: Axes, which: str, notation: Letters, labelled: bool = True) -> None:
        """Give one axis ("x" or "y") of a panel its scale, limits, ticks and label."""
        ticks = panel.xaxis if which == "x" else panel.yaxis
        values = self.axis.values
        panel.set(**{f"{which}scale": "log" if self.axis.logarithmic and not self.category
                     else "linear"})  # fmt: skip
        panel.set(**{f"{which}lim": (self.edges[0], self.edges[-1])})
        if self.category or len(values) <= FEW:
            ticks.set_major_locator(FixedLocator(list(self.centres)))
            ticks.set_major_formatter(FuncFormatter(lambda _, k: f"{values[k or 0]:.4g}"))
            ticks.set_minor_locator(NullLocator())
        elif self.axis.logarithmic:
            logarithmic(ticks, values[-1] / values[0])
        if labelled:
            panel.set(**{f"{which}label": label(notation, self.axis.name)})


def logarithmic(ticks: Any, ratio: float) -> None:
    """Ticks of a logarithmic axis; the narrower it is, the more of them are labelled."""
    if ratio < NARROW:
        subs: tuple[float, ...] = (1, 2, 5) if ratio < NARROW / 4 else (1, 3)
        if ratio < NARROWEST:
            subs = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
        ticks.set_major_locator(LogLocator(subs=subs, numticks=12))
        ticks.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ticks.set_minor_formatter(NullFormatter())


def without(result: Slice) -> dict[str, NDArray[np.bool_]]:
    """Why cells of a slice have no value of a run that went to its end: word -> where.

    A run that failed has its word even where it reached the event that is asked for.
    """
    whole = np.isin(result.outcome, [k for k, kind in enumerate(result.kinds) if kind in COMPLETE])
    absent = "not reached" if result.quantity.is_time else "no value"
    found = {absent: whole & np.isnan(result.values)}
    for code, kind in enumerate(result.kinds):
        if kind not in COMPLETE:
            found[kind] = result.outcome == code
    found["not valid"] = result.outcome == INVALID
    found["not computed yet"] = result.outcome == PENDING
    return {word: where for word, where in found.items() if where.any()}


def draw_marks(
    panel: Axes, x: Place, y: Place, where: dict[str, NDArray[np.bool_]]
) -> dict[str, Any]:
    """Mark cells of one panel; word -> handle of a legend."""
    handles: dict[str, Any] = {}
    for word, cells in where.items():
        if not cells.any():
            continue
        if word in ("not reached", "no value"):
            flat = mpl.colors.ListedColormap([PALE])
            panel.pcolormesh(x.edges, y.edges, np.where(cells, 1.0, np.nan), cmap=flat)
            handles[word] = Patch(facecolor=PALE, label=word)
        elif word == "not valid":
            handles[word] = hatch(panel, x.edges, y.edges, cells)
        else:
            look = mark(word)
            rows, columns = np.nonzero(cells)
            panel.plot(x.centres[columns], y.centres[rows], zorder=4, label=word, **look)
            handles[word] = Line2D([], [], label=word, **look)
    return handles


def mark(word: str) -> dict[str, Any]:
    """Look of the mark of an outcome, or of a run that is not computed yet."""
    if word == "not computed yet":
        return {"ls": "", "marker": ".", "ms": 3, "color": GREY}
    return {
        "ls": "", "marker": MARKS.get(word, OTHER), "ms": 7, "mfc": "black", "mec": "white",
        "mew": 0.8,
    }  # fmt: skip


def hatch(panel: Axes, x: FloatArray, y: FloatArray, cells: NDArray[np.bool_]) -> Patch:
    """Hatch cells, shape (rows, columns), between the edges x and y; the handle of a legend."""
    corners = [
        [(x[c], y[r]), (x[c + 1], y[r]), (x[c + 1], y[r + 1]), (x[c], y[r + 1])]
        for r, c in np.argwhere(cells)
    ]
    style: dict[str, Any] = {"facecolor": "white", "edgecolor": GREY, "hatch": "/////", "lw": 0}
    panel.add_collection(PolyCollection(corners, **style), autolim=False)
    return Patch(**style, label="not valid")
