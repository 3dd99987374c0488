"""A run against time: the panels of its plot description, with the phases shaded."""

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
    offset_in_label,
    positive_time,
    sparse,
    time_axis,
)
from dynamics.results.expression import Expression
from dynamics.results.presentation import Panel
from dynamics.results.trajectory import Trajectory

LOOKS = (
    (BLUE, "o"), (VERMILION, "s"), (GREEN, "^"), (PURPLE, "D"), (ORANGE, "v"), (GREY, "o"),
)  # fmt: skip
"""Colour and marker by the number of a look."""
DASHES: tuple[Any, ...] = ("-", "--", "-.", (0, (5, 1.5, 1, 1.5, 1, 1.5)))
"""Of the curves of a panel, in turn; dotted is what seeds are."""
MOST_INSIDE = 2
"""Curves up to which the legend is inside the panel."""
LARGEST = 1e150
"""Above this an axis cannot be drawn; a run that diverges goes there."""
PLAIN = "0"
"""A level that needs no name."""


def training(
    run: Trajectory, markers: Trajectory | None = None, seeds: Sequence[Trajectory] = ()
) -> Any:
    """The panels of a run over logarithmic time; see `PlotDescription`.

    A curve that the run does not have (of a class without members) is left out of its panel.

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
    notation, panels = run.presentation.notation, run.presentation.plot.panels
    with mpl.rc_context(RC):
        _, grid = new_figure(6.4, 1.9 * len(panels), nrows=len(panels), sharex=True, squeeze=False)
        axes = grid[:, 0]
        for panel, drawn in zip(axes, panels, strict=True):
            known = {*run.observables, *run.layout.names}
            for k, (name, look) in enumerate(drawn.curves):
                if name not in known:
                    continue
                (colour, marker), dash = LOOKS[look], DASHES[k % len(DASHES)]
                words = drawn.words[k] if drawn.words else ""
                label = f"{_label(notation.label(name), drawn, run, name)} {words}".strip()
                time, values = positive_time(run, _shown(drawn, run, name))
                absent = _invisible(drawn, values)
                panel.plot(
                    time, values, color=colour, ls="" if absent else dash, label=label + absent
                )
                if seeds:
                    band(panel, seeds, name, colour, ":")
                if markers is not None and name in markers.observables.keys() | set(
                    markers.layout.names
                ):
                    _mark(panel, markers, _shown(drawn, markers, name), colour, marker)
            if drawn.logarithmic:
                logarithmic(panel)
            if len(drawn.curves) > MOST_INSIDE:
                panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
            elif len(drawn.curves) > 1:
                panel.legend(loc="best")
            letters = ",  ".join(map(notation.label, drawn.names))
            panel.set_ylabel(drawn.label or letters)
            _level(panel, run, drawn)
        shade(axes, run)
        time_axis(axes[-1], run)
        for panel, drawn in zip(axes, panels, strict=True):
            if not drawn.logarithmic:
                offset_in_label(panel)
        for panel in axes[:-1]:
            panel.set_xlabel("")
    return axes


def _shown(drawn: Panel, run: Trajectory, name: str) -> Any:
    """A series, or its size where it is negative on a logarithmic axis; to `LARGEST`."""
    series = np.where(np.abs(run[name]) > LARGEST, np.nan, run[name])
    return np.abs(series) if drawn.logarithmic else series


def _invisible(drawn: Panel, values: Any) -> str:
    """What a curve is instead of one that can be seen; empty where it can."""
    if not np.isfinite(values).any():
        return ": no value"
    return ": zero" if drawn.logarithmic and not (values > 0).any() else ""


def _label(letter: str, drawn: Panel, run: Trajectory, name: str) -> str:
    negative = drawn.logarithmic and bool((run[name] < 0).any())
    return f"$|${letter}$|$" if negative else letter


def _level(panel: Axes, run: Trajectory, drawn: Panel) -> None:
    """A line at a level, named on the left."""
    if not drawn.level:
        return
    plain = drawn.level == PLAIN
    level = float(Expression(drawn.level, "level").value(run.parameters))
    style = {"lw": 0.6} if plain else {"lw": 0.8, "ls": ":"}
    panel.axhline(level, color=GREY, **style)
    if not plain:
        first = run.time[run.time > 0].min()
        panel.annotate(
            f"${drawn.level}$", (first, level), (4, 2), textcoords="offset points", color=GREY,
            fontsize=8,
        )  # fmt: skip


def _mark(panel: Axes, run: Trajectory, series: Any, colour: str, marker: str) -> None:
    time, values = positive_time(run, series)
    chosen = sparse(time)
    panel.plot(
        time[chosen], values[chosen], marker, color=colour, mfc="white", ms=4.5, mew=1.1, zorder=3
    )


def shade(axes: Any, run: Trajectory) -> None:
    """Shade the phases and name the events that divide them above the first panel.

    An event at the start divides nothing, and has no place on a logarithmic axis.
    """
    plot = run.presentation.plot
    first, last = run.time[run.time > 0].min(), run.time[-1]
    at = {name: max(event.time, first) for name, event in run.events.items() if event is not None}
    before = True
    for (name, begins, ends), shade in zip(plot.spans, SHADES.values(), strict=False):
        begin = first if begins is None else at.get(begins)
        if begin is None:
            _absent(axes[0], run, name)
            before = False
            continue
        end = last if ends is None else at.get(ends, last)
        if end > begin:
            for panel in axes:
                panel.axvspan(begin, end, color=shade, lw=0, zorder=0)
            called = name if before else plot.alone.get(name, name)
            _above(axes[0], np.sqrt(begin * end), called, 14)
        before = end > begin
    for name, label in {**plot.marks, **plot.asides}.items():
        event = run.events.get(name)
        if event is not None and event.time > 0:
            dotted = name in plot.asides
            for panel in axes:
                panel.axvline(at[name], color="black", lw=0.8, ls=":" if dotted else "-", zorder=1)
            if dotted:
                axes[0].annotate(
                    label, (at[name], 0.02), (3, 2), xycoords=("data", "axes fraction"),
                    textcoords="offset points", fontsize=7,
                    bbox={"fc": "white", "ec": "none", "alpha": 0.7, "pad": 0.8},
                )  # fmt: skip
            else:
                _above(axes[0], at[name], label, 2)


def _absent(panel: Axes, run: Trajectory, name: str) -> None:
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
    ended = spans[number - 1][2]
    event = None if ended is None else run.events.get(ended)
    if event is not None:
        place = np.sqrt(max(event.time, run.time[run.time > 0].min()) * run.time[-1])
        _above(panel, place, f"no {name}:\n{reason}", 10, fontsize=7)


def _above(panel: Axes, place: float, text: str, height: float, fontsize: float = 8) -> None:
    panel.annotate(
        text, (place, 1.0), (0, height), xycoords=("data", "axes fraction"),
        textcoords="offset points", ha="center", va="bottom", fontsize=fontsize,
    )  # fmt: skip
