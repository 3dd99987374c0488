"""The attention matrix of a full run beside the true sets, at the moments that matter."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from dynamics.plotting.style import GREY, RC, new_figure
from dynamics.problem import FloatArray
from dynamics.trajectory import Trajectory

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
        _true_sets(axes[0], np.asarray(run.settings["sets"]))
        for panel, (title, time, matrix) in zip(axes[1:], moments, strict=True):
            _matrix(figure, panel, matrix)
            panel.set_title(title + (rf": $\tau = {time:.4g}$" if time else ""), fontsize=9)
        axes[0].set_ylabel("patch $i$")
        for panel in axes:
            panel.set_xlabel("patch $j$")
    return axes


def _true_sets(panel: Axes, labels: np.ndarray) -> None:
    same = labels[:, None] == labels[None, :]
    panel.imshow(np.where(same, 0.35, 1.0), cmap="gray", vmin=0, vmax=1)
    panel.set_title("true sets", fontsize=9)


def _matrix(figure: Any, panel: Axes, matrix: FloatArray) -> None:
    shown = np.ma.masked_where(np.eye(len(matrix), dtype=bool), matrix)
    largest = float(np.abs(shown).max()) or 1.0
    colours = mpl.colormaps["PuOr_r"].with_extremes(bad=GREY)
    image = panel.imshow(shown, cmap=colours, vmin=-largest, vmax=largest)
    panel.set_yticklabels([])
    bar = figure.colorbar(image, ax=panel, location="bottom", shrink=0.9, aspect=14)
    bar.ax.tick_params(labelsize=7)
    bar.ax.locator_params(nbins=3)
    bar.formatter.set_powerlimits((-2, 3))
    bar.set_label("$A_{ij}$", fontsize=8)
