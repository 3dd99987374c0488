"""Phases and events on pictures against time: shades, lines, and words that cover no curve."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from dynamics.plotting import choices, style
from dynamics.problem import FloatArray
from dynamics.results.trajectory import Trajectory

LABEL = 0.06
"""Distance of labels above a panel in one row, in widths of the panel."""
WORD = 0.12
"""Width of a label within a panel, in widths of the panel."""
USUAL = 6.4
"""Width of a figure that the widths above belong to, in inches."""
SPANS = 14.0
"""Height of the names of phases above a panel, in points."""
ROW = 10.0
"""Height of a row of labels, in points."""


def shade(axes: Any, run: Trajectory, settled: Iterable[Axes] = ()) -> None:
    """Shade the phases and name the events that divide them above the first panel.

    An event at the start divides nothing, and has no place on a logarithmic axis.

    Parameters
    ----------
    axes : array of Axes
    run : Trajectory
    settled : iterable of Axes
        Those with a legend at the best place, which shades do not move.
    """
    plot = run.presentation.plot
    first, last = _ends(run)
    narrow = USUAL / axes[0].figure.get_figwidth()
    at = {name: max(event.time, first) for name, event in run.events.items() if event}
    lowest = SPANS + ROW * max(0, _name_events(axes, run, at, narrow) - 1)
    style.settle_legends(settled)
    before, middle, height = True, -1.0, lowest
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
            time = _middle(begin, end, run)
            place = float(choices.share(time, *_axis(run)))
            height = height + ROW if place - middle < narrow * WORD else lowest
            middle = place
            _write_above(axes[0], time, label, height)
        before = end > begin


def _name_events(axes: Any, run: Trajectory, at: Mapping[str, float], narrow: float) -> int:
    """Draw lines at the events and name them; returns the number of rows of names above."""
    plot = run.presentation.plot
    rows: list[float] = []  # place of the last label of each row above the panel
    marks = {**plot.marks, **plot.asides}
    named = [name for name, event in run.events.items() if name in marks and event and event.time]
    for name in named:
        dash = ":" if name in plot.asides else "-"
        for panel in axes:
            panel.axvline(at[name], color="black", lw=0.8, ls=dash, zorder=1)
    for name in sorted(named, key=lambda name: at[name]):
        if name in plot.asides:
            height, right = _free_place(axes[0], at[name], _axis(run))
            axes[0].annotate(
                marks[name], (at[name], height), (3 if right else -3, 2),
                xycoords=("data", "axes fraction"),
                textcoords="offset points", fontsize=7, ha="left" if right else "right",
                bbox={"fc": "white", "ec": "none", "alpha": 0.7, "pad": 0.8},
            )  # fmt: skip
        else:
            place = float(choices.share(at[name], *_axis(run)))
            row = next(
                (k for k, other in enumerate(rows) if place - other > narrow * LABEL), len(rows)
            )
            rows[row : row + 1] = [place]
            _write_above(axes[0], at[name], marks[name], 2 + ROW * row)
    return len(rows)


def _axis(run: Trajectory) -> tuple[float, float]:
    """Least positive and last time."""
    return float(run.time[run.time > 0].min()), float(run.time[-1])


def _ends(run: Trajectory) -> tuple[float, float]:
    """First and last time of the axis."""
    first, last = _axis(run)
    return 0.0 if choices.linear() else first, last


def _middle(begin: float, end: float, run: Trajectory) -> float:
    """Time in the middle between two others on the axis."""
    places = choices.share([begin, end], *_axis(run))
    return float(choices.at_share(places.mean(), *_axis(run)))


def _free_place(panel: Axes, time: float, ends: tuple[float, float]) -> tuple[float, bool]:
    """Where a word beside a time covers no curve: its height, a share of the panel; if right.

    Parameters
    ----------
    panel : Axes
    time : float
    ends : (float, float)
        Least positive and last time.
    """
    panel.autoscale_view()
    rooms = {}
    for right in (True, False):
        wide = WORD * USUAL / panel.figure.get_figwidth()  # type: ignore[union-attr]
        shares = np.linspace(0.0, wide, 9) * (1 if right else -1)
        reach = choices.at_share(choices.share(time, *ends) + shares, *ends)
        covered = [part for line in panel.lines for part in _heights(line, reach)]
        for height in (0.02, 0.45, 0.85):
            middle = height + 0.05
            room = (max(low - middle, middle - high, 0.0) for low, high in covered)
            outside = not 0 <= choices.share(reach[-1], *ends) <= 1
            rooms[height, right] = -1.0 if outside else min([0.2, *room])
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
        middle = _middle(max(event.time, _ends(run)[0]), run.time[-1], run)
        _write_above(panel, middle, f"no {name}:\n{reason}", 10, fontsize=7)


def _write_above(panel: Axes, time: float, text: str, height: float, fontsize: float = 8) -> None:
    panel.annotate(
        text, (time, 1.0), (0, height), xycoords=("data", "axes fraction"),
        textcoords="offset points", ha="center", va="bottom", fontsize=fontsize,
    )  # fmt: skip
