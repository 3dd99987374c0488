"""Least curvature across the closed space along a run, and what deviations become."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl

from dynamics.analysis.transverse_growth import TransverseGrowth
from dynamics.plotting.style import BLUE, GREY, RC, VERMILION, logarithmic, new_figure, time_axis
from dynamics.results.trajectory import Trajectory


def transverse_growth(growth: TransverseGrowth, run: Trajectory) -> Any:
    """Least transverse curvature over time, negative shaded; below, the growth of deviations.

    Parameters
    ----------
    growth : TransverseGrowth
    run : Trajectory
        The reduced run.

    Returns
    -------
    array of Axes
    """
    kept = growth.time > 0
    time, least = growth.time[kept], growth.least[kept]
    with mpl.rc_context(RC):
        _, axes = new_figure(5.6, 4.6, nrows=2, sharex=True)
        axes[0].plot(time, least, "o-", ms=3, color=BLUE)
        axes[0].axhline(0.0, color=GREY, lw=0.6)
        if least.min() < 0:
            axes[0].fill_between(time, least, 0, where=least < 0, color=VERMILION, alpha=0.15, lw=0)
        axes[0].set_ylabel("least curvature\nacross the closed space")
        axes[1].plot(time, growth.amplification[kept], color=VERMILION)
        logarithmic(axes[1])
        axes[1].set_ylabel("bound on the growth\nof a deviation")
        time_axis(axes[1], run)
        axes[0].set_xlabel("")
    return axes
