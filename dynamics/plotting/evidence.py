"""The measurement behind a verdict: its curves and the lines that they are held against."""

from __future__ import annotations

import itertools
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from dynamics.plotting.style import BLUE, GREEN, GREY, ORANGE, PURPLE, RC, VERMILION, new_figure

COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, "black")
DASHES = ("-", "--", "-.", ":")
WORDS = {True: "holds", False: "does not hold here", None: "not decidable at this size"}
FEW = 12
"""Points up to which a curve shows its measurements."""


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
        _, axes = new_figure(5.6, 3.6)
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
        _scale(axes, plot)
        axes.set_xlabel(plot["x_label"])
        axes.set_ylabel(plot["y_label"])
        axes.set_title(f"{verdict.claim.source}: {WORDS[verdict.holds]}", fontsize=9, loc="left")
        many = len(plot["curves"]) + len(plot["lines"]) > 3
        place = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if many else {"loc": "best"}
        axes.legend(fontsize=8, **place)
    return axes


def _scale(axes: Axes, plot: Any) -> None:
    """The vertical scale; a symmetric logarithm is linear below the least size that occurs."""
    if plot["y_scale"] != "symlog":
        axes.set_yscale(plot["y_scale"])
        return
    sizes = np.abs(np.concatenate([np.asarray(c["y"], dtype=float) for c in plot["curves"]]))
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    least = float(sizes.min()) if sizes.size else 1.0
    largest = float(sizes.max()) if sizes.size else 1.0
    axes.set_yscale("symlog", linthresh=max(least, largest * 1e-6))
