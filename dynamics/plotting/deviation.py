"""How far the full run is from the reduced one, against time."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from dynamics.plotting.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RC,
    VERMILION,
    new_figure,
    time_axis,
)
from dynamics.results.comparison import Comparison

LOOKS = (
    (BLUE, "-", "o"), (VERMILION, "-", "s"), (GREEN, "--", "^"), (PURPLE, "-.", "D"),
    (ORANGE, ":", "v"), (GREY, "--", "x"),
)  # fmt: skip
"""Colour, dash and marker of each state."""
MOST = len(LOOKS)


def deviation(result: Comparison, axes: Axes | None = None) -> Axes:
    """Largest distance over the entries of each orbit, with the rounding unit of double precision.

    Of more than `MOST` states those that are farthest apart are drawn, and the legend says so.

    Parameters
    ----------
    result : Comparison
    axes : Axes, optional

    Returns
    -------
    Axes
    """
    notation = result.reduced.presentation.notation
    with mpl.rc_context(RC):
        if axes is None:
            _, axes = new_figure(5.6, 3.4)
        farthest = sorted(result.deviation, key=lambda name: -result.deviation[name])[:MOST]
        names = [name for name in result.deviations if name in farthest]
        for name, (colour, dash, marker) in zip(names, LOOKS, strict=False):
            series = result.deviations[name]
            shown = (result.time > 0) & (series > 0)
            axes.plot(
                result.time[shown], series[shown], dash, color=colour, label=notation.label(name),
                marker=marker, ms=3, markevery=0.08, mfc="white",
            )  # fmt: skip
        axes.set_yscale("log")
        time_axis(axes, result.reduced)
        unit = np.finfo(float).eps
        if max(result.deviation.values()) < 1e3 * unit:
            axes.axhline(unit, color=GREY, lw=0.8, ls=":")
            axes.annotate(
                "rounding unit", (axes.get_xlim()[0], unit), (4, 3), textcoords="offset points",
                color=GREY, fontsize=8,
            )  # fmt: skip
        axes.set_ylabel("largest |reduced $-$ full|")
        many = len(result.deviations)
        title = f"the {MOST} farthest of {many} states" if many > MOST else None
        axes.legend(loc="lower right", title=title, ncols=1 + (len(names) > 3), fontsize=8)
    return axes
