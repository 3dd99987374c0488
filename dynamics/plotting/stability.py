"""The stability limit along a run beside the learning rate, and what alpha does above it."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np

from dynamics.plotting.style import BLUE, GREY, RC, VERMILION, logarithmic, new_figure, time_axis
from dynamics.problem import FloatArray
from dynamics.results.trajectory import Trajectory


def stability(run: Trajectory, calm: Trajectory, limits: FloatArray, name: str = "alpha") -> Any:
    """Learning rate and limit over time; below, one state of the run, shaded where eta is above.

    Parameters
    ----------
    run : Trajectory
        Gradient descent at one learning rate.
    calm : Trajectory
        The gradient flow, on which the limit is that of a state that does not oscillate.
    limits : float array, shape (records of the flow,)
        From `dynamics.training.stability_limit.limits_along` on the flow.
    name : str
        State drawn below.

    Returns
    -------
    array of Axes
    """
    notation, eta = run.presentation.notation, float(run.settings["eta"])
    begin = run.time[run.time > 0].min()
    kept = (calm.time >= begin) & (limits > 0) & np.isfinite(limits)
    time, limit, shown = calm.time[kept], limits[kept], run.time > 0
    with mpl.rc_context(RC):
        _, axes = new_figure(5.6, 4.6, nrows=2, sharex=True)
        axes[0].plot(time, limit, color=BLUE, label="stability limit $2/\\lambda_{max}$")
        axes[0].axhline(eta, color=VERMILION, ls="--", label=rf"learning rate $\eta = {eta:g}$")
        logarithmic(axes[0])
        axes[0].set_ylabel(r"$\eta$")
        axes[0].legend(loc="upper right")
        axes[1].plot(run.time[shown], run[name][shown], ".", color=GREY, ms=3)
        axes[1].set_ylabel(notation.label(name))
        for panel in axes:
            panel.fill_between(
                time, 0, 1, where=np.asarray(limit < eta), transform=panel.get_xaxis_transform(),
                color=VERMILION, alpha=0.12, lw=0, step="mid",
            )  # fmt: skip
        time_axis(axes[1], run)
    return axes
