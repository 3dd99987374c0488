"""Several runs over one axis of time: learning rates over the flow, ways to take an expectation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np

from dynamics.plotting.style import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    RC,
    VERMILION,
    logarithmic,
    new_figure,
)
from dynamics.results.comparison import Overlay
from dynamics.results.trajectory import Trajectory

COLOURS = (VERMILION, BLUE, GREEN, PURPLE, ORANGE)
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
BELOW = "#BBBBBB"
WORDS = {"certificate": "bound / gross gradient"}
LOGARITHMIC = ("risk", "certificate")


def overlay(result: Overlay, names: Sequence[str] | None = None) -> Any:
    """Gradient descent at several learning rates over the flow, which is the broad line below.

    Parameters
    ----------
    result : Overlay
    names : sequence of str, optional
        States and observables, one panel each; by default those of the plot description.

    Returns
    -------
    array of Axes
    """
    names = result.flow.presentation.plot.overlaid if names is None else names
    labelled = {"flow": result.flow} | {
        rf"$\eta = {run.settings['eta']:g}$": run for run in result.runs
    }
    return several(labelled, names)


def several(runs: Mapping[str, Trajectory], names: Sequence[str]) -> Any:
    """Runs by their labels, the first as a broad line below the others.

    Parameters
    ----------
    runs : mapping
        Label -> `Trajectory`.
    names : sequence of str
        States and observables, one panel each; a run without one is left out there.

    Returns
    -------
    array of Axes
    """
    first = next(iter(runs.values()))
    notation, plot = first.presentation.notation, first.presentation.plot
    drawn = [name for panel in plot.panels if panel.logarithmic for name in panel.names]
    steep = {*LOGARITHMIC, *(name for name in drawn if name in plot.overlaid)}
    with mpl.rc_context(RC):
        figure, grid = new_figure(5.6, 1.0 + 1.45 * len(names), nrows=len(names), sharex=True)
        axes = np.atleast_1d(grid)
        for panel, name in zip(axes, names, strict=True):
            for place, (label, run) in enumerate(runs.items()):
                if name not in run.layout.names and name not in run.observables:
                    continue
                series = run[name]
                shown = (run.time > 0) & np.isfinite(series)
                if name in steep:
                    shown &= series > 0
                look: dict[str, Any] = {"color": BELOW, "lw": 4.5, "solid_capstyle": "round"}
                if place:
                    colour = COLOURS[(place - 1) % len(COLOURS)]
                    look = {"color": colour, "ls": DASHES[(place - 1) % len(DASHES)], "lw": 1.4}
                panel.plot(run.time[shown], series[shown], label=label, **look)
            panel.set_ylabel(WORDS.get(name) or notation.label(name))
            if name in steep:
                panel.set_yscale("log")
            elif name == "alpha":
                logarithmic(panel)
        begin = min(run.time[run.time > 0].min() for run in runs.values())
        axes[-1].set_xscale("log")
        axes[-1].set_xlim(begin, max(run.time[-1] for run in runs.values()))
        axes[-1].set_xlabel(r"time $\tau = \eta \times$ steps")
        figure.align_ylabels(axes)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=min(4, len(labels)))
    return axes
