"""Labels, ticks and marks of plots of sweeps.

Symbols come from the notation table of a result. Names without a symbol, such as letters in a
sweep's expressions, are written out. A mark at a run without a value shows the reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator
from numpy.typing import ArrayLike, NDArray

from dynamics.phase_diagrams.quantities import COMPLETE, TIME, Quantity
from dynamics.phase_diagrams.selection import Axis, Slice
from dynamics.plotting.style import GREY, Decades, number, tick
from dynamics.problem import FloatArray
from dynamics.results import outcome as ends
from theory.notation import NotationEntry

Letters = Mapping[str, NotationEntry]
"""A notation table, possibly empty."""
WORDS = {
    "samples": "samples $N$",
    "patch_association": "share of associated rows",
    "error_estimate": "error / gross gradient",
    "T0": "$T_0$",
    "T1": "$T_1$",
    "T1_paper": "$T_1$ (paper)",
    "event_III": "of Event III",
}
LETTERS = {"samples": "N", "eta": r"\eta"}
SHORT = 20
"""Maximum length in characters of a meaning that an axis label states before the symbol."""
STAR = "\ue000"
"""Placeholder of an asterisk in a symbol, while the asterisks of a formula become products."""
SIGNS = {
    "<=": r"\leq", ">=": r"\geq", "==": "=", "!=": r"\neq", "<": "<", ">": ">",
}  # fmt: skip


def letter(notation: Letters, name: str) -> str:
    """Symbol of a name in LaTeX without dollar signs; a name without a symbol is written out."""
    if name in LETTERS:
        return LETTERS[name]
    if name in notation:
        return notation[name].latex
    spaced = name.replace("_", r"\ ")
    return name if len(name) == 1 else rf"\mathrm{{{spaced}}}"


def label(notation: Letters, name: str) -> str:
    """Axis label of a name: its symbol, preceded by its meaning if the meaning is short."""
    if name in WORDS:
        return WORDS[name]
    if name not in notation:
        return f"${name}$" if len(name) == 1 else name.replace("_", " ")
    meaning = re.split("[:,(]", notation[name].meaning)[0].strip()
    symbol = f"${notation[name].latex}$"
    return f"{meaning} {symbol}" if len(meaning) <= SHORT else symbol


def quantity(notation: Letters, target: Quantity) -> str:
    """Label of a quantity for an axis, a colour bar or a legend."""
    event = target.name.removeprefix(TIME)
    written = WORDS.get(event, f"of {event.replace('_', ' ')}")
    if target.relation == "reached":
        return f"{written.removeprefix('of ')} reached"
    name = f"time {written}" if target.is_time else label(notation, target.name)
    if target.yes_no:
        return f"{name} ${SIGNS[target.relation]} {number(target.number)}$"
    return name


def formula(notation: Letters, text: str) -> str:
    """LaTeX, without dollar signs, of a formula of `dynamics.results.expression`."""
    functions = r"([A-Za-z_]\w*)(?=\s*\()"
    written = re.sub(functions, lambda words: rf"\mathrm{{{words[1]}}}", text)
    names = r"(?<![\w.{\\])([A-Za-z_]\w*)(?![\w}])"
    written = re.sub(names, lambda words: letter(notation, words[1]).replace("*", STAR), written)
    written = re.sub(r"\s*\*\*\s*(-?[\w.]+)", r"^{\1}", written)
    written = written.replace("**", r"{\ast\ast}").replace("*", r"\,").replace("%", r"\%")
    return written.replace(STAR, "*")


MARKS = {ends.OSCILLATING: "d", ends.DIVERGED: "X", ends.PRECISION_LOST: "v", ends.INTERRUPTED: "s"}
OTHER = "P"
"""Marker of all failures that `MARKS` does not list, such as a killed worker."""
PALE = "#DDDDDD"
FEW = 8
"""Maximum number of integers drawn as categories, and of values of an axis that all have a tick."""
NARROW = 100.0


class CellAxis:
    """Positions of the values of a sweep's `Axis` in a plot.

    Up to `FEW` integers are equally spaced categories. Values that are not categories have a linear
    axis, or a logarithmic axis if the values are nearly geometric.
    """

    def __init__(self, axis: Axis) -> None:
        self.axis = axis
        values = axis.values
        self.category = len(values) <= FEW and bool((values == np.round(values)).all())

    @property
    def centres(self) -> FloatArray:
        """Positions of the centres of the cells, one for each value of the axis."""
        return self.at(self.axis.values)

    @property
    def edges(self) -> FloatArray:
        """Edges of the cells around the values."""
        if self.category:
            return np.arange(len(self.axis.values) + 1, dtype=np.float64) - 0.5
        return self.axis.edges

    def at(self, values: ArrayLike) -> FloatArray:
        """Positions of any values within the range of the axis."""
        if self.category:
            return self.axis.index(values)
        return np.asarray(values, dtype=np.float64)

    def draw(self, panel: Axes, which: str, notation: Letters, labelled: bool = True) -> None:
        """Set scale, limits, ticks and label of the axis ``"x"`` or ``"y"`` of a panel."""
        ticks = panel.xaxis if which == "x" else panel.yaxis
        values = self.axis.values
        panel.set(**{f"{which}scale": "log" if self.axis.logarithmic and not self.category
                     else "linear"})  # fmt: skip
        panel.set(**{f"{which}lim": (self.edges[0], self.edges[-1])})
        wide = self.axis.logarithmic and values[-1] >= NARROW * values[0]
        if self.category or (len(values) <= FEW and not wide):
            ticks.set_major_locator(FixedLocator(list(self.centres)))
            ticks.set_major_formatter(FuncFormatter(lambda _, k: f"{values[k or 0]:.4g}"))
            ticks.set_minor_locator(NullLocator())
        elif self.axis.logarithmic:
            logarithmic(ticks, values[-1] / values[0])
        if labelled:
            panel.set(**{f"{which}label": label(notation, self.axis.name)})


def logarithmic(ticks: Any, ratio: float, powers: bool = False) -> None:
    """Set ticks of a logarithmic axis: `Decades` if the ratio of its ends is small, else powers.

    With `powers`, labels of `Decades` are written as powers of ten.
    """
    if ratio < NARROW:
        ticks.set_major_locator(Decades())
        ticks.set_major_formatter(FuncFormatter(lambda value, _: tick(value, powers)))
    ticks.set_minor_formatter(NullFormatter())


def without(result: Slice) -> dict[str, NDArray[np.bool_]]:
    """Map each reason for a missing value to the mask of the cells of a slice with this reason.

    The value of a failed run counts as missing even if the run reached the requested event.
    """
    whole = np.isin(result.outcome, [k for k, kind in enumerate(result.kinds) if kind in COMPLETE])
    absent = "not reached" if result.quantity.is_time else "no value"
    words = {absent: whole & np.isnan(result.values)}
    for code, kind in enumerate(result.kinds):
        if kind not in COMPLETE:
            words[kind] = result.outcome == code
    words["not valid"] = result.outcome == ends.INVALID
    words["not computed yet"] = result.outcome == ends.PENDING
    return {word: where for word, where in words.items() if where.any()}


def draw_marks(
    panel: Axes, x: CellAxis, y: CellAxis, where: dict[str, NDArray[np.bool_]]
) -> dict[str, Any]:
    """Mark the cells of one panel by the masks of `without`; return legend handles by reason."""
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
    """Marker style of an outcome, or of a run that is not computed yet."""
    if word == "not computed yet":
        return {"ls": "", "marker": ".", "ms": 3, "color": GREY}
    return {
        "ls": "", "marker": MARKS.get(word, OTHER), "ms": 7, "mfc": "black", "mec": "white",
        "mew": 0.8,
    }  # fmt: skip


def hatch(panel: Axes, x: FloatArray, y: FloatArray, cells: NDArray[np.bool_]) -> Patch:
    """Hatch invalid cells between column edges `x` and row edges `y`; return a legend handle."""
    corners = [
        [(x[c], y[r]), (x[c + 1], y[r]), (x[c + 1], y[r + 1]), (x[c], y[r + 1])]
        for r, c in np.argwhere(cells)
    ]
    style: dict[str, Any] = {"facecolor": "white", "edgecolor": GREY, "hatch": "/////", "lw": 0}
    panel.add_collection(PolyCollection(corners, **style), autolim=False)
    return Patch(**style, label="not valid")
