"""Phases and events on pictures against time: shades, lines, and words that cover no curve."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from dynamics.plotting import style
from dynamics.problem import FloatArray
from dynamics.results.trajectory import Trajectory

LABEL = 0.06
"""Width of a label above a panel, in widths of the panel."""
WORD = 0.12
"""Width of a label within a panel, in widths of the panel."""
ROW = 10.0
"""Height of a row of labels, in points."""


def shade(axes: Any, run: Trajectory) -> None:
    """Shade the phases and name the events that divide them above the first panel.

    An event at the start divides nothing, and has no place on a logarithmic axis.

    Parameters
    ----------
    axes : array of Axes
    run : Trajectory
    """
    plot = run.presentation.plot
    first, last = run.time[run.time > 0].min(), run.time[-1]
    at = {name: max(event.time, first) for name, event in run.events.items() if event}
    before = True
    for (name, begins, ends), shade in zip(plot.spans, style.SHADES.values(), strict=False):
        begin = first if begins is None else at.get(begins)
        if begin is None:
            _say_why_absent(axes[0], run, name)
            before = False
            continue
        end = last if ends is None else at.get(ends, last)
        if end > begin:
            for panel in axes:
                panel.axvspan(begin, end, color=shade, lw=0, zorder=0)
            label = name if before else plot.alone.get(name, name)
            _write_above(axes[0], np.sqrt(begin * end), label, 14)
        before = end > begin
    rows: list[float] = []  # the last label of each row above the panel, in decades
    marks = {**plot.marks, **plot.asides}
    named = [name for name, event in run.events.items() if name in marks and event and event.time]
    for name in named:
        look = ":" if name in plot.asides else "-"
        for panel in axes:
            panel.axvline(at[name], color="black", lw=0.8, ls=look, zorder=1)
    for name in sorted(named, key=lambda name: at[name]):
        if name in plot.asides:
            height, right = _free_place(axes[0], at[name], (first, last))
            axes[0].annotate(
                marks[name], (at[name], height), (3 if right else -3, 2),
                xycoords=("data", "axes fraction"),
                textcoords="offset points", fontsize=7, ha="left" if right else "right",
                bbox={"fc": "white", "ec": "none", "alpha": 0.7, "pad": 0.8},
            )  # fmt: skip
        else:
            decade, apart = float(np.log10(at[name])), LABEL * float(np.log10(last / first))
            row = next((k for k, other in enumerate(rows) if decade - other > apart), len(rows))
            rows[row : row + 1] = [decade]
            _write_above(axes[0], at[name], marks[name], 2 + ROW * row)


def _free_place(panel: Axes, time: float, ends: tuple[float, float]) -> tuple[float, bool]:
    """Where a word beside a time covers no curve: its height, a share of the panel; if right.

    Parameters
    ----------
    panel : Axes
    time : float
    ends : (float, float)
        First and last time of the axis.
    """
    panel.autoscale_view()
    rooms = {}
    for right in (True, False):
        shares = np.linspace(0.0, WORD, 9) * (1 if right else -1)
        reach = time * (ends[1] / ends[0]) ** shares
        covered = [part for line in panel.lines for part in _heights(line, reach)]
        for height in (0.02, 0.45, 0.85):
            middle = height + 0.05
            room = (max(low - middle, middle - high, 0.0) for low, high in covered)
            outside = not right and reach[-1] < ends[0]
            rooms[height, right] = 0.0 if outside else min([0.2, *room])
    return max(rooms, key=lambda place: rooms[place])


def _heights(line: Line2D, times: FloatArray) -> list[tuple[float, float]]:
    """Least and largest height of a curve, or of a line at an event, between each two times."""
    x, y = np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)
    if len(x) == 2 and x[0] == x[1]:
        return [(0.0, 1.0)] if min(times[1:]) < x[0] < max(times[1:]) else []
    if len(x) <= 2 or x[-1] < min(times):
        return []
    panel = line.axes
    assert panel is not None
    spots = [(times[0], np.interp(at, x, y)) for at in times]
    heights = panel.transAxes.inverted().transform(panel.transData.transform(spots))[:, 1]
    return [(min(pair), max(pair)) for pair in pairwise(heights.tolist())]


def _say_why_absent(panel: Axes, run: Trajectory, name: str) -> None:
    """Say why a phase did not begin: the first on the left, others where the one before ended."""
    spans = run.presentation.plot.spans
    number = [span[0] for span in spans].index(name)
    begins = spans[number][1]
    assert begins is not None
    reason = run.reasons.get(begins, "")
    if number == 0:
        latex = run.presentation.event_latex.get(begins, "")
        condition = f"${latex}$" if latex else begins.replace("_", " ")
        panel.annotate(
            f"no {name}: {condition} {reason}", (0.0, 1.0), (0, 26),
            xycoords="axes fraction", textcoords="offset points", fontsize=7,
        )  # fmt: skip
        return
    event = run.events.get(spans[number - 1][2] or "")
    if event:
        middle = np.sqrt(max(event.time, run.time[run.time > 0].min()) * run.time[-1])
        _write_above(panel, middle, f"no {name}:\n{reason}", 10, fontsize=7)


def _write_above(panel: Axes, time: float, text: str, height: float, fontsize: float = 8) -> None:
    panel.annotate(
        text, (time, 1.0), (0, height), xycoords=("data", "axes fraction"),
        textcoords="offset points", ha="center", va="bottom", fontsize=fontsize,
    )  # fmt: skip
