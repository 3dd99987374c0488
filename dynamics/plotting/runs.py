"""Plots of runs over time, in the panels of a plot description, and plots of comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from dynamics.plotting import captions, choices, style
from dynamics.plotting.phases import shade
from dynamics.presentation import Panel
from dynamics.problem import FloatArray
from dynamics.results.comparison import Comparison
from dynamics.results.event import Events
from dynamics.results.expression import Expression
from dynamics.results.outcome import DIVERGED
from dynamics.results.trajectory import Trajectory
from theory.model import HELD_OUT

COLOURS = (style.BLUE, style.VERMILION, style.GREEN, style.PURPLE, style.ORANGE, style.GREY)
LOOKS = tuple(zip(COLOURS, "os^Dvo", strict=True))
"""Colour and marker of each curve, by the number in `Panel.curves`."""
DASHES: tuple[Any, ...] = ("-", "--", "-.", (0, (5, 1.5, 1, 1.5, 1, 1.5)))
"""Line styles of the curves of a panel, in turn; curves of several seeds are dotted."""
ALONE = 3
"""A curve with fewer finite points than this number has markers."""
MOST_INSIDE = 2
"""Maximum number of curves of a panel with the legend inside; else the legend is on the right."""
HEIGHT = 1.9
"""Height of a panel with its margins, in inches."""
LABEL_ROOM = 1.4
"""A vertical label longer than this, in inches, would overlap the label of the next panel."""
LARGEST = 1e150
"""Maximum absolute value drawn, because matplotlib cannot draw larger axes."""
BLOWN = 1e3
"""A diverging run is drawn until its risk exceeds this multiple of the earlier maximum."""
ROUNDING = 64 * float(np.finfo(float).eps)
"""A risk that no longer falls counts as rounding below this fraction of the largest risk."""
WIDE = 5.0
"""A figure wider than this, in inches, has a legend of two columns."""
PLAIN = "0"
"""Formula of the level that is drawn without a label."""


@style.styled
def training(
    run: Trajectory, markers: Trajectory | None = None, seeds: Sequence[Trajectory] = ()
) -> Any:
    """Plot a run over logarithmic time in the panels of its `PlotDescription`.

    Parameters
    ----------
    run : Trajectory
        Run drawn as lines; curves that it does not have are omitted.
    markers : Trajectory, optional
        A second run, drawn as markers at some of its records.
    seeds : sequence of Trajectory
        Runs of several seeds: the median is a dotted line, the range a band.

    Raises
    ------
    TypeError
        If ``run`` is not a `Trajectory`.

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
    run, note = _finite_part(run)
    markers = markers and _finite_part(markers)[0]
    _, grid = style.new_figure(
        6.4, HEIGHT * len(panels), nrows=len(panels), sharex=True, squeeze=False
    )
    axes = grid[:, 0]
    for panel, description in zip(axes, panels, strict=True):
        _draw(panel, description, run, markers, seeds)
    style.time_axis(axes[-1], run)
    shade(axes, run)
    others = [run for run in (markers, *seeds) if run is not None]
    notes = filter(None, [note, run.presentation.plot.omission])
    captions.state_parameters(
        axes[0].figure, [run, *others], "samples", "seed", note="; ".join(notes)
    )
    for panel, description in zip(axes, panels, strict=True):
        if not description.logarithmic:
            style.offset_in_label(panel)
    for panel in axes[:-1]:
        panel.set_xlabel("")
    return axes


def _finite_part(run: Trajectory) -> tuple[Trajectory, str]:
    """Cut a diverged run before its risk blows up, and note the cut; other runs are unchanged.

    The run is cut where its risk exceeds `BLOWN` times the largest risk before the final rise.
    """
    if run.outcome.kind != DIVERGED:
        return run, ""
    risk = np.abs(np.nan_to_num(run.series("risk"), nan=np.inf))
    falls = np.flatnonzero(risk[1:] <= risk[:-1])
    before = risk[: falls[-1] + 2] if falls.size else risk[:1]
    highest = float(before[np.isfinite(before)].max(initial=0.0))
    blown = risk > min(BLOWN * highest, LARGEST)
    last = max(2, int(np.argmax(blown)) if blown.any() else len(risk))
    end = run.time[:last][-1]
    part = replace(
        run, steps=run.steps[:last], time=run.time[:last], states=run.states[:last],
        observables={name: series[:last] for name, series in run.observables.items()},
        events=Events({name: e for name, e in run.events.items() if not e or e.time <= end}),
    )  # fmt: skip
    ends = [rf"\tau = {style.number(float(time))}" for time in (end, run.time[-1])]
    return part, f"diverged at ${ends[1]}$, drawn to ${ends[0]}$"


def _draw(
    panel: Axes,
    description: Panel,
    run: Trajectory,
    markers: Trajectory | None,
    seeds: Sequence[Trajectory],
) -> None:
    """Draw the curves of one panel, their legend, and a horizontal line at the panel's level."""
    notation, words = run.presentation.notation, description.words
    absent: list[str] = []
    for k, (name, number) in enumerate(description.curves):
        if not _has(run, name):
            continue
        (colour, marker), dash = LOOKS[number], DASHES[k % len(DASHES)]
        letter = notation.label(name)
        if description.logarithmic and (run.series(name) < 0).any():
            letter = f"$|${letter}$|$"
        label = f"{letter} {words[k] if words else ''}".strip()
        time, values = style.positive_time(run, _values(description, run, name))
        if not np.isfinite(values).any():
            absent.append(f"{label}: no value")
        elif description.logarithmic and not (values > 0).any():
            absent.append(f"{label}: zero")
        few = np.isfinite(values).sum() < ALONE
        alone: dict[str, Any] = {"marker": "o", "ms": 3.5} if few else {}
        panel.plot(time, values, color=colour, ls=dash, label=label, **alone)
        if seeds:
            style.band(panel, seeds, name, colour, ":")
        if markers is not None and _has(markers, name):
            time, values = style.positive_time(markers, _values(description, markers, name))
            records = style.sparse(time)
            look: dict[str, Any] = {"color": colour, "mfc": "white", "ms": 4.5, "mew": 1.1}
            panel.plot(time[records], values[records], marker, zorder=3, **look)
    if description.logarithmic:
        style.logarithmic(panel)
    if len(description.curves) > MOST_INSIDE:
        style.legend_on_the_right(panel)
    elif len(description.curves) > 1:
        style.legend(panel, loc="best")
    if absent:
        look = {"ha": "right", "color": style.GREY}
        style.note(panel, "\n".join(absent), (1.0, 0.0), (-4, 4), "axes fraction", **look)
    letters = [notation.label(name) for name in description.names]
    panel.set_ylabel(description.label or ",  ".join(letters))
    if not description.label and _too_long(panel):
        ends = f"{letters[0]},  \u2026,  {letters[-1]}"  # all symbols are in the legend
        panel.set_ylabel(ends if len(letters) > MOST_INSIDE else ",\n".join(letters))
    if description.level:
        _draw_level(panel, run, description.level)


def _too_long(panel: Axes) -> bool:
    """Whether the vertical label of a panel is longer than `LABEL_ROOM`."""
    figure = panel.figure
    return panel.yaxis.label.get_window_extent().height > LABEL_ROOM * figure.dpi


def _has(run: Trajectory, name: str) -> bool:
    return name in run.observables or name in run.layout.names


def _values(description: Panel, run: Trajectory, name: str) -> Any:
    """Values of a series (absolute on a logarithmic axis), NaN where |value| exceeds `LARGEST`."""
    series = run.series(name)
    series = np.where(np.abs(series) > LARGEST, np.nan, series)
    if not description.logarithmic:
        return series
    size = np.abs(series)
    return _above_rounding(series) if name.removeprefix(HELD_OUT) == "risk" else size


def _above_rounding(risk: FloatArray) -> FloatArray:
    """Absolute risk, NaN where it stays below `ROUNDING` times its maximum and no longer falls."""
    size = np.abs(risk)
    if not np.isfinite(size).any():
        return size
    large = np.flatnonzero(size >= ROUNDING * np.nanmax(size))
    tail = np.arange(large[-1] + 1, len(size))
    falls = (risk[tail] > 0) & (risk[tail] < risk[tail - 1])
    end = tail[np.argmin(falls)] if not falls.all() else len(size)
    return np.where(np.arange(len(size)) < end, size, np.nan)


def _draw_level(panel: Axes, run: Trajectory, formula: str) -> None:
    """Draw a horizontal line at the height `formula`, labelled on the left unless it is "0"."""
    level = float(Expression(formula, "level").value(run.parameters))
    if formula == PLAIN:
        panel.axhline(level, color=style.GREY, lw=0.6)
        return
    panel.axhline(level, color=style.GREY, lw=0.8, ls=":")
    first = 0.0 if choices.linear() else run.time[run.time > 0].min()
    style.note(panel, f"${formula}$", (first, level), (4, 2), color=style.GREY)


STATE_LOOKS = tuple(zip(COLOURS, ("-", "-", "--", "-.", ":", "--"), "os^Dvx", strict=True))
"""Colour, line style and marker of each scalar of the state, in turn."""
MOST_STATES = len(STATE_LOOKS)
REALISTIC = (
    ("patch_association", "share of associated rows", style.BLUE),
    ("test_error", "test error", style.VERMILION),
    ("cosine", r"cosine of $v$ and $w^\star$", style.GREEN),
)


@style.styled
def comparison(result: Comparison) -> Any:
    """Plot a comparison: the reduced run as lines, the full run as markers, seeds as bands.

    Raises
    ------
    TypeError
        If ``result`` is not a `Comparison`.

    Examples
    --------
    >>> import dynamics
    >>> from dynamics import plotting
    >>> system = dynamics.load_system("positional_attention")
    >>> law = system.Parameters(D=4, C=2)
    >>> reduced, full = system.ReducedPopulation(law), system.FullPopulation(law)
    >>> axes = plotting.comparison(dynamics.compare(reduced, full, 0.1, 20))
    >>> [text.get_text() for text in axes[0].figure.legends[0].get_texts()]
    ['reduced population: 3 scalars', 'full population: 17 entries']
    """
    reduced, full = result.reduced, result.full
    alone = f", seed {reduced.settings['seed']}" if result.partners else ""
    size = reduced.layout.size
    kind = "entries" if any(reduced.layout.shapes) else f"scalar{'s' if size > 1 else ''}"
    lines = f"{reduced.view}: {size} {kind}{alone}"
    label = f"{full.view}: {full.layout.size} entries"
    look: dict[str, Any] = {"ls": "", "marker": "o", "mfc": "white"}
    if "samples" in full.settings:
        axes = training(reduced, seeds=result.fulls)
        seeds = f", {len(result.fulls)} seeds" if result.others else ""
        label += f", N = {full.settings['samples']:,}{seeds}"
        look = {"ls": ":"}
    else:
        axes = training(reduced, full)
    of_lines = Line2D([], [], color=style.GREY, label=lines)
    handles = [of_lines, Line2D([], [], color=style.GREY, label=label, **look)]
    figure = axes[0].figure
    style.legend_below(figure, handles, 2 if figure.get_figwidth() > WIDE else 1)
    return axes


@style.styled
def deviation(result: Comparison) -> Axes:
    """Plot the largest distance of full-run entries from each scalar over time.

    At most six scalars are drawn, those with the largest deviations.

    Raises
    ------
    TypeError
        If ``result`` is not a `Comparison`.

    Examples
    --------
    >>> import dynamics
    >>> from dynamics import plotting
    >>> system = dynamics.load_system("positional_attention")
    >>> law = system.Parameters(D=4, C=2)
    >>> reduced, full = system.ReducedPopulation(law), system.FullPopulation(law)
    >>> axes = plotting.deviation(dynamics.compare(reduced, full, 0.1, 20))
    >>> axes.get_yscale(), axes.get_ylabel()
    ('log', 'largest |reduced $-$ full|')
    """
    notation = result.reduced.presentation.notation
    figure, axes = style.new_figure(5.6, 3.4)
    captions.state_parameters(figure, [result.reduced])
    farthest = sorted(result.deviation, key=lambda name: -result.deviation[name])[:MOST_STATES]
    names = [name for name in result.deviations if name in farthest]
    for name, (colour, dash, marker) in zip(names, STATE_LOOKS, strict=False):
        series = result.deviations[name]
        at = choices.shown(result.time) & (series > 0)
        axes.plot(
            result.time[at], series[at], dash, color=colour, label=notation.label(name),
            marker=marker, ms=3, markevery=0.08, mfc="white",
        )  # fmt: skip
    style.time_axis(axes, result.reduced)
    unit = np.finfo(float).eps
    if not any(result.deviation.values()):
        look = {"ha": "center", "color": style.GREY}
        words = "equal to the last bit at every record"
        style.note(axes, words, (0.5, 0.75), (0, 0), "axes fraction", **look)
        axes.set_ylim(unit / 10, unit * 10)
    axes.set_yscale("log")
    if max(result.deviation.values()) < 1e3 * unit:
        axes.axhline(unit, color=style.GREY, lw=0.8, ls=":")
        style.note(axes, "rounding unit", (axes.get_xlim()[0], unit), (4, 3), color=style.GREY)
    axes.set_ylabel("largest |reduced $-$ full|")
    many = len(result.deviations)
    title = f"the {MOST_STATES} farthest\nof {many} states" if many > MOST_STATES else None
    style.legend_on_the_right(axes, title=title, fontsize=8)
    return axes


@style.styled
def realistic(result: Comparison | Sequence[Trajectory]) -> Any:
    """Plot patch association, test error and cosine of empirical runs over logarithmic time.

    The runs, one for each seed, are drawn as the median (a line) and the range (a band).

    Raises
    ------
    TypeError
        If ``result`` is not a `Comparison` or a nonempty sequence of `Trajectory`.

    Examples
    --------
    >>> import dynamics
    >>> from dynamics import plotting
    >>> system = dynamics.load_system("positional_attention")
    >>> law = system.Parameters(D=4, C=2)
    >>> runs = [dynamics.descend(system.FullEmpirical(law, 20, k), 0.02, 20) for k in range(2)]
    >>> plotting.realistic(runs)[0].get_title(loc="left")
    '$N = 20$ samples, 2 seeds: median, least to greatest'
    """
    runs = result.fulls if isinstance(result, Comparison) else tuple(result)
    figure, axes = style.new_figure(6.4, 6.0, nrows=3, sharex=True)
    captions.state_parameters(figure, runs)
    for panel, (name, label, colour) in zip(axes, REALISTIC, strict=True):
        style.band(panel, runs, name, colour)
        panel.set_ylabel(label)
    axes[0].set_ylim(-0.03, 1.03)
    irreducible = float(runs[0]["bayes_error"][-1])
    errors = np.concatenate([style.measured(run.time, run["test_error"])[1] for run in runs])
    if errors.min() > 0 and errors.max() > 5 * errors.min():
        style.logarithmic(axes[1])
    if irreducible > 0:
        axes[1].axhline(irreducible, color=style.GREY, lw=0.9, ls=":", label="irreducible error")
        style.legend(axes[1], loc="best", fontsize=8)
    many = "" if len(runs) == 1 else f", {len(runs)} seeds: median, least to greatest"
    samples = runs[0].settings["samples"]
    axes[0].set_title(f"$N = {samples:,}$ samples{many}", fontsize=9, loc="left")
    style.time_axis(axes[-1], runs[0])
    return axes
