"""Groups of curves of one run over time, a panel each, with its phases shaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import matplotlib as mpl

from dynamics.plotting.marks import NARROW, logarithmic
from dynamics.plotting.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RC,
    VERMILION,
    new_figure,
    offset_in_label,
    positive_time,
    time_axis,
)
from dynamics.plotting.training import shade
from dynamics.problem import FloatArray
from dynamics.results.trajectory import Trajectory

FEW = 12
"""Records up to which curves show them."""
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, GREY)
DASHES = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)), ":")


@dataclass(frozen=True)
class Group:
    """What one panel shows.

    Attributes
    ----------
    label : str
        Of the vertical axis.
    curves : sequence of (str, float array)
        Label and values at every record of the run.
    logarithmic : bool
    """

    label: str
    curves: Sequence[tuple[str, FloatArray]] = field(default=())
    logarithmic: bool = False


def correlations(run: Trajectory, groups: Sequence[Group], held: str) -> Any:
    """Panels of curves over logarithmic time.

    Parameters
    ----------
    run : Trajectory
    groups : sequence of Group
        The n-th curves of all groups have one colour.
    held : str
        What is held fixed, for the title.

    Returns
    -------
    array of Axes, shape (groups,)
    """
    with mpl.rc_context(RC):
        figure, axes = new_figure(7.4, 2.15 * len(groups) + 0.4, nrows=len(groups), sharex=True)
        for panel, group in zip(axes, groups, strict=True):
            for k, (label, values) in enumerate(group.curves):
                time, shown = positive_time(run, values)
                # Rings of several sizes, so that equal values do not hide each other.
                ring: dict[str, Any] = {"marker": "o", "mfc": "none", "ms": 10 - 2 * k}
                look = ring if len(time) <= FEW else {}
                panel.plot(time, shown, color=COLOURS[k], ls=DASHES[k], label=label, **look)
            panel.set_ylabel(group.label)
            if group.logarithmic:
                panel.set_yscale("log")
            else:
                offset_in_label(panel)
            panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9)
        shade(axes, run)
        time_axis(axes[-1], run)
        first, last = run.time[run.time > 0].min(), run.time[-1]
        if last < NARROW * first:
            logarithmic(axes[-1].xaxis, last / first)
        for panel in axes[:-1]:
            panel.set_xlabel("")
        figure.suptitle(held, fontsize=8, x=0.01, ha="left")
    return axes
