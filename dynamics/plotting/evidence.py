"""The measurement behind a verdict: its curves and the lines that they are held against."""

from __future__ import annotations

import itertools
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import SymmetricalLogLocator

from dynamics.plotting.marks import logarithmic as ticks
from dynamics.plotting.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RC,
    VERMILION,
    logarithmic,
    new_figure,
)

COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, "black")
DASHES = ("-", "--", "-.", ":")
WORDS = {True: "holds", False: "does not hold here", None: "not decidable at this size"}
FEW = 12
"""Points up to which a curve shows its measurements."""
NARROW = 100.0
"""Up to this ratio a logarithmic axis has room for labels at 1, 2, 5."""


def evidence(verdict: Any) -> Axes | None:
    """Draw what a verdict rests on.

    Parameters
    ----------
    verdict : Verdict
        Of `dynamics.verify`.

    Returns
    -------
    Axes or None
        None where the evidence is a table only.
    """
    plot = verdict.evidence.get("plot")
    if not plot:
        return None
    with mpl.rc_context(RC):
        many = len(plot["curves"]) + len(plot["lines"]) > 3
        _, axes = new_figure(7.4 if many else 5.6, 3.6)
        for number, curve in enumerate(plot["curves"]):
            colour = COLOURS[number % len(COLOURS)]
            marker = "o" if len(curve["x"]) <= FEW else ""
            axes.plot(
                curve["x"], curve["y"], DASHES[number % len(DASHES)], marker=marker, mfc="white",
                color=colour, label=curve["label"], ms=4.5,
            )  # fmt: skip
        for line, dash in zip(plot["lines"], itertools.cycle((":", "--", "-."))):
            axes.axhline(line["y"], color=GREY, lw=0.9, ls=dash, label=line["label"], zorder=0)
        axes.set_xscale(plot["x_scale"])
        _narrow(axes, plot)
        _scale(axes, plot)
        axes.set_xlabel(plot["x_label"])
        axes.set_ylabel(plot["y_label"])
        axes.set_title(f"{verdict.claim.source}: {WORDS[verdict.holds]}", fontsize=9, loc="left")
        place = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if many else {"loc": "best"}
        axes.legend(fontsize=8, **place)
    return axes


def _narrow(axes: Axes, plot: Any) -> None:
    """Labels of a logarithmic horizontal axis of less than two decades."""
    values = np.concatenate([np.asarray(curve["x"], dtype=float) for curve in plot["curves"]])
    values = values[np.isfinite(values) & (values > 0)]
    if plot["x_scale"] == "log" and values.size and values.max() < NARROW * values.min():
        ticks(axes.xaxis, values.max() / values.min())


def _scale(axes: Axes, plot: Any) -> None:
    """The vertical scale; what may be negative has a symmetric logarithm, where it is."""
    values = np.concatenate([np.asarray(curve["y"], dtype=float) for curve in plot["curves"]])
    values = values[np.isfinite(values) & (values != 0)]
    negative = bool((values < 0).any())
    if plot["y_scale"] == "linear" or not values.size:
        return
    if plot["y_scale"] == "symlog" and negative:
        largest = float(np.abs(values).max())
        least = max(float(np.abs(values).min()), largest * 1e-6)
        axes.set_yscale("symlog", linthresh=least)
        axes.yaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=10 * least))
    elif values.max() < NARROW * values.min():
        logarithmic(axes)
    else:
        axes.set_yscale("log")
