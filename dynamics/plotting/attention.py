"""The attention matrix of a full run beside the true sets, at the moments that matter."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np

from dynamics.plotting.matrices import entries, true_sets
from dynamics.plotting.style import RC, new_figure
from dynamics.results.trajectory import Trajectory

NAMES = {"T0": "$T_0$", "T1": "$T_1$"}


def attention(run: Trajectory) -> Any:
    """True sets, then A at the start, at T0, at T1 and at the end.

    The diagonal is not trained and drawn grey. Each matrix has its own colour scale, symmetric
    about zero, because its entries grow by orders of magnitude.

    Parameters
    ----------
    run : Trajectory
        With the part ``A`` in its states and ``sets`` in its settings.

    Returns
    -------
    array of Axes
    """
    part = run.layout.part
    moments = [("start", 0.0, part(run.states[0], "A"))]
    for name, title in NAMES.items():
        event = run.events.get(name)
        if event is not None:
            moments.append((title, event.time, part(event.state, "A")))
    moments.append(("end", float(run.time[-1]), part(run.final_state, "A")))
    with mpl.rc_context(RC | {"axes.spines.top": True, "axes.spines.right": True}):
        figure, axes = new_figure(2.1 * (1 + len(moments)), 2.6, ncols=1 + len(moments))
        true_sets(axes[0], np.asarray(run.settings["sets"]))
        for panel, (title, time, matrix) in zip(axes[1:], moments, strict=True):
            entries(figure, panel, matrix)
            panel.set_yticklabels([])
            panel.set_title(title + (rf": $\tau = {time:.4g}$" if time else ""), fontsize=9)
        axes[0].set_ylabel("patch $i$")
        for panel in axes:
            panel.set_xlabel("patch $j$")
    return axes
