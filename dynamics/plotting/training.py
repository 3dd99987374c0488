"""A run against time: order parameters, signal, risk, with the events shaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from dynamics.plotting.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RC,
    SHADES,
    VERMILION,
    band,
    logarithmic,
    new_figure,
    positive_time,
    sparse,
    time_axis,
)
from dynamics.systems import load_system
from dynamics.trajectory import Trajectory

PANELS = (
    (("alpha", BLUE, "o", "-"),),
    (("gamma", VERMILION, "s", "-"), ("rho", GREEN, "^", "--")),
    (("G", PURPLE, "D", "-"), ("alpha_G", ORANGE, "v", "--")),
    (("risk", GREY, "o", "-"),),
)
LOGARITHMIC = ("G", "risk")


def training(
    run: Trajectory, markers: Trajectory | None = None, seeds: Sequence[Trajectory] = ()
) -> Any:
    """alpha; gamma and rho; G and alpha G; the risk: four panels over logarithmic time.

    Parameters
    ----------
    run : Trajectory
        Drawn as lines.
    markers : Trajectory, optional
        A second run drawn over it as markers, at some of its records.
    seeds : sequence of Trajectory
        Runs of several seeds, drawn under it: their median dotted, least to greatest as a band.

    Returns
    -------
    array of Axes
    """
    notation = load_system(run.system).notation
    with mpl.rc_context(RC):
        _, axes = new_figure(6.4, 7.6, nrows=4, sharex=True)
        for panel, curves in zip(axes, PANELS, strict=True):
            for name, colour, marker, dash in curves:
                label = notation.label(name)
                panel.plot(*positive_time(run, run[name]), color=colour, ls=dash, label=label)
                if seeds:
                    band(panel, seeds, name, colour, ":")
                if markers is not None:
                    _mark(panel, markers, name, colour, marker)
            names = [name for name, *_ in curves]
            if names[0] in LOGARITHMIC:
                logarithmic(panel)
            if len(names) > 1:
                panel.legend(loc="best")
            panel.set_ylabel(",  ".join(map(notation.label, names)))
        axes[1].axhline(0, color=GREY, lw=0.6)
        half = run.parameters["D"] / 2
        axes[2].axhline(half, color=GREY, lw=0.8, ls=":")
        first = run.time[run.time > 0].min()
        axes[2].annotate(
            "$D/2$", (first, half), (4, 2), textcoords="offset points", color=GREY, fontsize=8
        )
        _events(axes, run)
        time_axis(axes[-1], run)
        for panel in axes[:-1]:
            panel.set_xlabel("")
    return axes


def _mark(panel: Axes, run: Trajectory, name: str, colour: str, marker: str) -> None:
    time, values = positive_time(run, run[name])
    chosen = sparse(time)
    panel.plot(
        time[chosen], values[chosen], marker, color=colour, mfc="white", ms=4.5, mew=1.1, zorder=3
    )


def _events(axes: Any, run: Trajectory) -> None:
    """Shade the three events and name their ends above the first panel."""
    first, last = run.time[run.time > 0].min(), run.time[-1]
    at = {name: max(event.time, first) for name, event in run.events.items() if event is not None}
    t0, t1, t3 = (at.get(name) for name in ("T0", "T1", "event_III"))
    spans = [("I", first, last if t0 is None else t0)]
    if t0 is not None:
        spans.append(("II", t0, last if t1 is None else t1))
    if t3 is not None:
        spans.append(("III", t3, last))
    for name, begin, end in spans:
        for panel in axes:
            panel.axvspan(begin, end, color=SHADES[name], lw=0, zorder=0)
        if end > begin:
            _above(axes[0], np.sqrt(begin * end), f"Event {name}", 14)
    if t1 is not None and t3 is None:
        reason = run.reasons.get("event_III", "")
        _above(axes[0], np.sqrt(t1 * last), f"no Event III:\n{reason}", 10, fontsize=7)
    for name, label in (("T0", "$T_0$"), ("T1", "$T_1$"), ("T1_paper", "$T_1$ (paper)")):
        if name in at:
            dotted = name == "T1_paper"
            for panel in axes:
                panel.axvline(at[name], color="black", lw=0.8, ls=":" if dotted else "-", zorder=1)
            if dotted:
                axes[0].annotate(
                    label, (at[name], 0.02), (3, 2), xycoords=("data", "axes fraction"),
                    textcoords="offset points", fontsize=7,
                )  # fmt: skip
            else:
                _above(axes[0], at[name], label, 2)


def _above(panel: Axes, place: float, text: str, height: float, fontsize: float = 8) -> None:
    panel.annotate(
        text, (place, 1.0), (0, height), xycoords=("data", "axes fraction"),
        textcoords="offset points", ha="center", va="bottom", fontsize=fontsize,
    )  # fmt: skip
