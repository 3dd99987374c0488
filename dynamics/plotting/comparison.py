"""The reduced run as lines, the full run as markers, the events of the reduced run shaded."""

from __future__ import annotations

from typing import Any

from matplotlib.lines import Line2D

from dynamics.compare import Comparison
from dynamics.plotting.style import GREY
from dynamics.plotting.training import training


def comparison(result: Comparison) -> Any:
    """Four panels over logarithmic time: see `dynamics.plotting.training`.

    Parameters
    ----------
    result : Comparison

    Returns
    -------
    array of Axes
    """
    axes = training(result.reduced, result.full)
    few, many = result.reduced.layout.size, result.full.layout.size
    handles = [
        Line2D([], [], color=GREY, label=f"{result.reduced.view}: {few} scalars"),
        Line2D(
            [], [], color=GREY, ls="", marker="o", mfc="white",
            label=f"{result.full.view}: {many} entries",
        ),
    ]  # fmt: skip
    axes[0].legend(handles=handles, loc="lower center", fontsize=8)
    return axes
