"""Patch association from random starts of growing spread, against time."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from dynamics.plotting.style import GREY, RC, VERMILION, new_figure
from dynamics.problem import FloatArray


def against_spread(
    omegas: FloatArray, time: FloatArray, shares: FloatArray, safe: float | None = None
) -> Axes:
    """Share of associated rows over omega and time.

    Parameters
    ----------
    omegas : float array, shape (spreads,)
        Equally spaced in their logarithm, ascending.
    time : float array, shape (records,)
        Positive.
    shares : float array, shape (spreads, records)
    safe : float, optional
        1 / Phi_max: the spread that the linear theory expects to survive.
    """
    with mpl.rc_context(RC | {"axes.spines.top": True, "axes.spines.right": True}):
        figure, axes = new_figure(6.0, 3.6)
        image = axes.pcolormesh(
            _edges(time), _edges(omegas), shares, cmap="viridis", vmin=0, vmax=1, rasterized=True
        )
        axes.set_xscale("log")
        axes.set_yscale("log")
        if safe is not None:
            axes.axhline(safe, color=VERMILION, lw=1.2, ls="--")
            axes.annotate(
                r"$1/\Phi_{max}$", (time[0], safe), (3, 3), textcoords="offset points",
                color="white", fontsize=9,
            )  # fmt: skip
        axes.set_xlabel(r"time $\tau$")
        axes.set_ylabel(r"spread of the random start $\omega$")
        figure.colorbar(image, ax=axes, label="share of associated rows").outline.set_color(GREY)
    return axes


def _edges(centres: FloatArray) -> Any:
    """Edges of cells around logarithmically spaced centres."""
    logs = np.log(centres)
    middle = (logs[1:] + logs[:-1]) / 2
    ends = (logs[0] - (middle[0] - logs[0]), logs[-1] + (logs[-1] - middle[-1]))
    return np.exp(np.concatenate([[ends[0]], middle, [ends[1]]]))
