"""The reduced run as lines, the full one as markers, seeds of the empirical one as bands."""

from __future__ import annotations

from typing import Any

from matplotlib.lines import Line2D

from dynamics.plotting.style import GREY
from dynamics.plotting.training import training
from dynamics.results.comparison import Comparison


def comparison(result: Comparison) -> Any:
    """The panels of the system over logarithmic time: see `dynamics.plotting.training`.

    Parameters
    ----------
    result : Comparison

    Returns
    -------
    array of Axes
    """
    few, many = result.reduced.layout.size, result.full.layout.size
    alone = f", seed {result.reduced.settings['seed']}" if result.partners else ""
    scalar = not any(result.reduced.layout.shapes)
    what = "scalars" if scalar else "entries"
    lines = Line2D([], [], color=GREY, label=f"{result.reduced.view}: {few} {what}{alone}")
    if "samples" in result.full.settings:
        axes = training(result.reduced, seeds=result.fulls)
        seeds = f", {len(result.fulls)} seeds" if result.others else ""
        beside = Line2D(
            [], [], color=GREY, ls=":",
            label=f"{result.full.view}: {many} entries, N = {result.full.settings['samples']:,}"
            f"{seeds}",
        )  # fmt: skip
    else:
        axes = training(result.reduced, result.full)
        beside = Line2D(
            [], [], color=GREY, ls="", marker="o", mfc="white",
            label=f"{result.full.view}: {many} entries",
        )  # fmt: skip
    axes[0].figure.legend(
        handles=[lines, beside], loc="outside lower center", ncols=2, fontsize=8, frameon=False
    )
    return axes
