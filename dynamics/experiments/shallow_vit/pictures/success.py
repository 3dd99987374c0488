"""Shares of successful trials over a variable and the number of samples, N50 laid over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from dynamics.phase_diagrams.threshold import ABOVE, BELOW, MEASURED, Threshold
from dynamics.plotting.marks import hatch, logarithmic
from dynamics.plotting.style import BLUE, GREEN, ORANGE, RC, VERMILION, new_figure
from dynamics.problem import FloatArray

POINT: dict[str, Any] = {
    "ls": "",
    "ms": 5,
    "mec": "white",
    "mew": 0.8,
    "capsize": 2.5,
    "elinewidth": 1.4,
}
WIDE = 12.0
"""Ratio of the ends from which a horizontal axis is logarithmic."""
LAWS = ((GREEN, "--"), (ORANGE, "-."))
LOOKS = ((BLUE, "o"), (VERMILION, "s"))


@dataclass(frozen=True, eq=False)
class Panel:
    """One diagram.

    Attributes
    ----------
    x : float array, shape (rows,)
        The variable of every row.
    label : str
        What it is.
    share : float array, shape (rows, counts)
        Share of successful trials; NaN where a row had ended.
    thresholds : sequence of Threshold
        N50 of every row.
    laws : mapping
        Label -> N at the x of every row.
    title : str
    """

    x: FloatArray
    label: str
    share: FloatArray
    thresholds: Sequence[Threshold]
    laws: Mapping[str, FloatArray]
    title: str = ""


@dataclass(frozen=True, eq=False)
class Curves:
    """N50 of several families over a variable.

    Attributes
    ----------
    x : float array, shape (rows,)
    label : str
    families : mapping
        Label -> N50 of every row.
    laws : mapping
        Label -> N at the x of every row.
    scales : (str, str)
    title : str
    """

    x: FloatArray
    label: str
    families: Mapping[str, Sequence[Threshold]]
    laws: Mapping[str, FloatArray]
    scales: tuple[str, str] = ("log", "log")
    title: str = ""


def success(counts: ArrayLike, panels: Sequence[Panel | Curves], held: str) -> Any:
    """Diagrams side by side, black where all trials fail and white where all succeed.

    Parameters
    ----------
    counts : int array, shape (counts,)
        N.
    panels : sequence of Panel or Curves
    held : str
        What is the same everywhere, and what the bars are.

    Returns
    -------
    array of Axes
    """
    with mpl.rc_context(RC):
        figure, grid = new_figure(3.9 * len(panels) + 0.7, 4.3, ncols=len(panels), squeeze=False)
        axes, image = grid[0], None
        for panel, one in zip(axes, panels, strict=True):
            if isinstance(one, Panel):
                image = _diagram(panel, counts, one)
            else:
                _curves(panel, one)
            panel.set_ylabel("samples $N$" if isinstance(one, Panel) else "samples $N_{50}$")
            panel.set_title(one.title, fontsize=9, loc="left")
        maps = [a for a, one in zip(axes, panels, strict=True) if isinstance(one, Panel)]
        if image is not None:
            bar = figure.colorbar(image, ax=maps[-1], fraction=0.06, pad=0.02)
            bar.set_label("share of trials that succeed", fontsize=8)
        figure.suptitle(held, fontsize=8, x=0.01, ha="left")
    return axes


def _diagram(panel: Axes, counts: ArrayLike, one: Panel) -> Any:
    order = np.argsort(one.x)
    x, share = one.x[order], one.share[order]
    wide = bool(x[-1] > WIDE * x[0])
    edges, heights = _edges(x, wide), _edges(np.asarray(counts, dtype=np.float64), True)
    colours = mpl.colormaps["gray"]
    image = panel.pcolormesh(
        edges, heights, np.ma.masked_invalid(share.T), cmap=colours, vmin=0.0, vmax=1.0,
        edgecolors="#888888", linewidth=0.2,
    )  # fmt: skip
    panel.set_xscale("log" if wide else "linear")
    panel.set_yscale("log")
    panel.set(xlim=(edges[0], edges[-1]), ylim=(heights[0], heights[-1]), xlabel=one.label)
    panel.set_yticks(np.asarray(counts), [f"{n:g}" for n in np.asarray(counts)])
    panel.minorticks_off()
    if wide:
        logarithmic(panel.xaxis, float(x[-1] / x[0]))
    handles: list[Any] = []
    if np.isnan(share).any():
        patch = hatch(panel, edges, heights, np.isnan(share.T))
        patch.set_label("not run: two N at 100 %")
        handles.append(patch)
    _points(panel, one.x, one.thresholds, VERMILION, "o", heights)
    handles.append(
        Line2D([], [], color=VERMILION, marker="o", mec="white", ls="", label="$N_{50}$")
    )
    handles += [*_bounds(one.thresholds), *_laws(panel, one.x, one.laws, LAWS)]
    panel.legend(
        handles=handles, fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2
    )
    return image


def _curves(panel: Axes, one: Curves) -> None:
    handles = []
    for k, (label, found) in enumerate(one.families.items()):
        colour, marker = LOOKS[k]
        # Bounds of several families often coincide: later ones lie inside earlier ones.
        _points(panel, one.x, found, colour, marker, arrow=6.0 + 5.0 * (len(one.families) - 1 - k))
        handles.append(Line2D([], [], color=colour, marker=marker, mec="white", ls="", label=label))
    own = len(one.laws) == len(one.families)
    dashes = [(colour, "--") for colour, _ in LOOKS] if own else LAWS
    handles += _laws(panel, one.x, one.laws, dashes)
    handles += _bounds([t for found in one.families.values() for t in found])
    panel.set(xscale=one.scales[0], yscale=one.scales[1], xlabel=one.label)
    if one.scales[1] == "linear":
        panel.set_ylim(bottom=0.0)
    if one.scales[0] == "log":
        logarithmic(panel.xaxis, panel.get_xlim()[1] / panel.get_xlim()[0])
    if one.scales[1] == "log":
        logarithmic(panel.yaxis, panel.get_ylim()[1] / panel.get_ylim()[0])
    panel.legend(
        handles=handles, fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2
    )


def _points(
    panel: Axes,
    x: FloatArray,
    found: Sequence[Threshold],
    colour: str,
    marker: str,
    ends: FloatArray | None = None,
    arrow: float = 6.0,
) -> None:
    """N50 with 95 % intervals; an arrow where there is only a bound."""
    for at, one in zip(x, found, strict=True):
        if one.kind == MEASURED:
            top = one.high if one.high < inf else one.value
            bars = [[one.value - one.low], [top - one.value]]
            panel.errorbar([at], [one.value], yerr=bars, color=colour, marker=marker, zorder=5,
                           **POINT)  # fmt: skip
        elif one.kind in (ABOVE, BELOW):
            place = one.bound
            if ends is not None:
                place = float(np.clip(place, ends[0] * 1.05, ends[-1] / 1.05))
            look = "v" if one.kind == BELOW else "^"
            panel.plot([at], [place], look, color=colour, mec="white", mew=0.6, ms=arrow, zorder=5)


def _bounds(found: Sequence[Threshold]) -> list[Any]:
    """Handles of the arrows that are drawn."""
    marks = {BELOW: ("v", "$N_{50}$ at most"), ABOVE: ("^", "$N_{50}$ at least")}
    kinds = [kind for kind in marks if any(one.kind == kind for one in found)]
    return [
        Line2D([], [], color="black", marker=marks[kind][0], ls="", ms=4.5, label=marks[kind][1])
        for kind in kinds
    ]


def _laws(
    panel: Axes, x: FloatArray, laws: Mapping[str, FloatArray], looks: Sequence[tuple[str, str]]
) -> list[Any]:
    order, handles = np.argsort(x), []
    limits = panel.get_ylim()
    for (label, values), (colour, dash) in zip(laws.items(), looks, strict=False):
        handles += panel.plot(x[order], np.asarray(values)[order], dash, color=colour, label=label,
                              lw=1.8, zorder=4)  # fmt: skip
    if panel.get_yscale() == "log" and panel.collections:
        panel.set_ylim(limits)
    return handles


def _edges(places: FloatArray, log: bool) -> FloatArray:
    """Edges of the cells around ascending places, half way between them."""
    at = np.log(places) if log else places
    if at.size == 1:
        edges = np.array([at[0] - 0.5, at[0] + 0.5])
    else:
        inner = 0.5 * (at[1:] + at[:-1])
        edges = np.concatenate([[2 * at[0] - inner[0]], inner, [2 * at[-1] - inner[-1]]])
    return np.asarray(np.exp(edges) if log else edges)
