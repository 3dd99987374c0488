"""Shaded phases, event lines and their names in plots over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes

from dynamics.plotting import choices, style
from dynamics.results.trajectory import Trajectory

LABEL = 0.06
"""Width of an event's symbol above a panel, as a fraction of the time axis of a figure `USUAL`
inches wide."""
WORD = 0.12
"""Width of a phase's name above a panel, as a fraction of the time axis of a figure `USUAL` inches
wide."""
USUAL = 6.4
"""Width in inches of a figure whose labels take the fractions `LABEL` and `WORD` of the time
axis."""
SPANS = 14.0
"""Distance from the top of a panel to the names of phases, in points."""
ROW = 10.0
"""Height of a row of event labels above a panel, in points."""


def shade(axes: Any, run: Trajectory) -> None:
    """Shade the phases of a run in all panels, and name phases and events above the first panel.

    An event at the start of the run is not drawn.
    """
    plot = run.presentation.plot
    first, last = _ends(run)
    narrow = USUAL / axes[0].figure.get_figwidth()
    at = {name: max(event.time, first) for name, event in run.events.items() if event}
    lowest = SPANS + ROW * max(0, _name_events(axes, run, at, narrow) - 1)
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
                # The best legend location avoids lines and patches, but ignores collections.
                panel.fill_between(
                    [begin, end], 0, 1, transform=panel.get_xaxis_transform(), color=shade, lw=0,
                    zorder=0,
                )  # fmt: skip
            label = name if before else plot.alone.get(name, name)
            time = _middle(begin, end, run)
            place = float(choices.share(time, *_axis(run)))
            height = height + ROW if place - middle < narrow * WORD else lowest
            middle = place
            _write_above(axes[0], time, label, height)
        before = end > begin


def _name_events(axes: Any, run: Trajectory, at: Mapping[str, float], narrow: float) -> int:
    """Draw and name a line for each event in `at`; return the number of rows of event names."""
    plot = run.presentation.plot
    ends: list[float] = []  # right end of the last label in each row above the panel
    marks = {**plot.marks, **plot.asides}
    named = [name for name, event in run.events.items() if name in marks and event and event.time]
    for name in sorted(named, key=lambda name: at[name]):
        aside = name in plot.asides
        for panel in axes:
            panel.axvline(at[name], color="black", lw=0.8, ls=":" if aside else "-", zorder=1)
        place = float(choices.share(at[name], *_axis(run)))
        half = narrow * (WORD if aside else LABEL) / 2
        row = next((k for k, end in enumerate(ends) if place - half > end), len(ends))
        ends[row : row + 1] = [place + half]
        _write_above(axes[0], at[name], marks[name], 2 + ROW * row, 7 if aside else 8)
    return len(ends)


def _axis(run: Trajectory) -> tuple[float, float]:
    """Smallest positive time and last time of a run."""
    return float(run.time[run.time > 0].min()), float(run.time[-1])


def _ends(run: Trajectory) -> tuple[float, float]:
    """First and last time of the time axis of a run."""
    first, last = _axis(run)
    return 0.0 if choices.linear() else first, last


def _middle(begin: float, end: float, run: Trajectory) -> float:
    """Time midway on the time axis between two times."""
    places = choices.share([begin, end], *_axis(run))
    return float(choices.at_share(places.mean(), *_axis(run)))


def _say_why_absent(panel: Axes, run: Trajectory, name: str) -> None:
    """Write why a phase did not begin, on the left or after the end of the preceding phase."""
    spans = run.presentation.plot.spans
    number = [span[0] for span in spans].index(name)
    begins = spans[number][1]
    assert begins is not None
    reason = run.reasons.get(begins, "")
    if number == 0:
        latex = run.presentation.event_latex.get(begins, "")
        condition = f"${latex}$" if latex else begins.replace("_", " ")
        text = f"no {name}: {condition} {reason}"
        style.note(panel, text, (0.0, 1.0), (0, 26), "axes fraction", fontsize=7)
        return
    event = run.events.get(spans[number - 1][2] or "")
    if event:
        middle = _middle(max(event.time, _ends(run)[0]), run.time[-1], run)
        _write_above(panel, middle, f"no {name}:\n{reason}", 10, fontsize=7)


def _write_above(panel: Axes, time: float, text: str, height: float, fontsize: float = 8) -> None:
    look: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": fontsize}
    style.note(panel, text, (time, 1.0), (0, height), ("data", "axes fraction"), **look)
