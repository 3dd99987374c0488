"""Measures of attention maps along a run: what sees the order of weights, what sees the weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl

from dynamics.plotting.style import BLUE, GREEN, GREY, RC, VERMILION, new_figure
from dynamics.problem import FloatArray

COLOURS = ((BLUE, "o", "-"), (GREEN, "s", "--"), (VERMILION, "^", "-."))


def spread(
    time: FloatArray,
    measures: tuple[Mapping[int, FloatArray], FloatArray],
    events: Mapping[str, float],
    held: str,
) -> Any:
    """Attention diversity above, mean pairwise total variation below.

    Parameters
    ----------
    time : float array, shape (maps,)
        Begins at 0, which the axis shows: it is linear up to the second time.
    measures : (mapping, float array)
        Number of keys -> diversity in patches; total variation.
    events : mapping
        Label -> time of an event to be marked.
    held : str

    Returns
    -------
    array of Axes, shape (2,)
    """
    with mpl.rc_context(RC):
        figure, axes = new_figure(6.4, 4.4, nrows=2, sharex=True)
        style: dict[str, Any] = {"ms": 4.5, "mfc": "white", "mew": 1.1}
        for (keys, values), (colour, marker, dash) in zip(
            measures[0].items(), COLOURS, strict=False
        ):
            label = f"top {keys} keys"
            axes[0].plot(time, values, marker + dash, color=colour, label=label, **style)
        axes[1].plot(time, measures[1], "o-", color=BLUE, **style)
        axes[0].set_ylabel("attention diversity\n(patches)")
        axes[1].set_ylabel("mean pairwise\ntotal variation")
        axes[0].legend(loc="lower right")
        axes[1].set_xscale("symlog", linthresh=float(time[1]), linscale=0.4)
        axes[1].set_xlim(-0.1 * time[1], time[-1] * 1.2)
        axes[1].set_xlabel(r"time $\tau = \eta \times$ steps (linear up to the first step)")
        for panel in axes:
            panel.set_ylim(bottom=0.0)
            panel.margins(y=0.08)
            for at in events.values():
                panel.axvline(at, color=GREY, lw=0.8, zorder=0)
        for label, at in events.items():
            axes[0].annotate(
                label, (at, 1.0), (0, 2), xycoords=("data", "axes fraction"), ha="center",
                textcoords="offset points", fontsize=8,
            )  # fmt: skip
        figure.suptitle(held, fontsize=8, x=0.01, ha="left")
    return axes
