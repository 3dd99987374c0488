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
    legend_on_the_right,
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

    Examples
    --------
    >>> import dynamics
    >>> from dynamics import plotting
    >>> system = dynamics.load_system("positional_attention")
    >>> run = dynamics.descend(system.ReducedPopulation(system.Parameters(D=4, C=2)), 0.1, 20)
    >>> [len(panel.lines) for panel in plotting.training(run)][0]
    1
    """
    panels = run.presentation.plot.panels
    with mpl.rc_context(RC):
        _, grid = new_figure(6.4, 1.9 * len(panels), nrows=len(panels), sharex=True, squeeze=False)
        axes = grid[:, 0]
        for panel, description in zip(axes, panels, strict=True):
            _draw(panel, description, run, markers, seeds)
        shade(axes, run)
        time_axis(axes[-1], run)
        for panel, description in zip(axes, panels, strict=True):
            if not description.logarithmic:
                offset_in_label(panel)
        for panel in axes[:-1]:
            panel.set_xlabel("")
    return axes


def _draw(
    panel: Axes,
    description: Panel,
    run: Trajectory,
    markers: Trajectory | None,
    seeds: Sequence[Trajectory],
) -> None:
    """The curves of one panel, their legend, and the line at a level."""
    notation, words = run.presentation.notation, description.words
    for k, (name, look) in enumerate(description.curves):
        if not _has(run, name):
            continue
        (colour, marker), dash = LOOKS[look], DASHES[k % len(DASHES)]
        letter = notation.label(name)
        if description.logarithmic and (run[name] < 0).any():
            letter = f"$|${letter}$|$"
        label = f"{letter} {words[k] if words else ''}".strip()
        time, values = positive_time(run, _values(description, run, name))
        absent = ""
        if not np.isfinite(values).any():
            absent = ": no value"
        elif description.logarithmic and not (values > 0).any():
            absent = ": zero"
        panel.plot(time, values, color=colour, ls="" if absent else dash, label=label + absent)
        if seeds:
            band(panel, seeds, name, colour, ":")
        if markers is not None and _has(markers, name):
            time, values = positive_time(markers, _values(description, markers, name))
            records = sparse(time)
            style: dict[str, Any] = {"color": colour, "mfc": "white", "ms": 4.5, "mew": 1.1}
            panel.plot(time[records], values[records], marker, zorder=3, **style)
    if description.logarithmic:
        logarithmic(panel)
    if len(description.curves) > MOST_INSIDE:
        legend_on_the_right(panel)
    elif len(description.curves) > 1:
        panel.legend(loc="best")
    panel.set_ylabel(description.label or ",  ".join(map(notation.label, description.names)))
    if description.level:
        _draw_level(panel, run, description.level)


def _has(run: Trajectory, name: str) -> bool:
    return name in run.observables or name in run.layout.names


def _values(description: Panel, run: Trajectory, name: str) -> Any:
    """A series, or its size where it is negative on a logarithmic axis; to `LARGEST`."""
    series = np.where(np.abs(run[name]) > LARGEST, np.nan, run[name])
    return np.abs(series) if description.logarithmic else series


def _draw_level(panel: Axes, run: Trajectory, formula: str) -> None:
    """A line at a level, named on the left unless it is 0."""
    level = float(Expression(formula, "level").value(run.parameters))
    if formula == PLAIN:
        panel.axhline(level, color=GREY, lw=0.6)
        return
    panel.axhline(level, color=GREY, lw=0.8, ls=":")
    first = run.time[run.time > 0].min()
    panel.annotate(
        f"${formula}$", (first, level), (4, 2), textcoords="offset points", color=GREY, fontsize=8
    )


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
    at = {name: max(event.time, first) for name, event in run.events.items() if event is not None}
    before = True
    for (name, begins, ends), shade in zip(plot.spans, SHADES.values(), strict=False):
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
    for name, label in {**plot.marks, **plot.asides}.items():
        event = run.events.get(name)
        if event is None or event.time <= 0:
            continue
        aside = name in plot.asides
        for panel in axes:
            panel.axvline(at[name], color="black", lw=0.8, ls=":" if aside else "-", zorder=1)
        if aside:
            axes[0].annotate(
                label, (at[name], 0.02), (3, 2), xycoords=("data", "axes fraction"),
                textcoords="offset points", fontsize=7,
                bbox={"fc": "white", "ec": "none", "alpha": 0.7, "pad": 0.8},
            )  # fmt: skip
        else:
            _write_above(axes[0], at[name], label, 2)


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
    if event is not None:
        middle = np.sqrt(max(event.time, run.time[run.time > 0].min()) * run.time[-1])
        _write_above(panel, middle, f"no {name}:\n{reason}", 10, fontsize=7)


def _write_above(panel: Axes, time: float, text: str, height: float, fontsize: float = 8) -> None:
    panel.annotate(
        text, (time, 1.0), (0, height), xycoords=("data", "axes fraction"),
        textcoords="offset points", ha="center", va="bottom", fontsize=fontsize,
    )  # fmt: skip
