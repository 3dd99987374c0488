"""Plots on learning rates and stability: overlays, period doubling, limits, perturbations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from dynamics.analysis.period_doubling import Branches
from dynamics.analysis.transverse_growth import TransverseGrowth
from dynamics.plotting import captions, choices, style
from dynamics.problem import FloatArray
from dynamics.results.comparison import Overlay
from dynamics.results.trajectory import Trajectory

COLOURS = (style.VERMILION, style.BLUE, style.GREEN, style.PURPLE, style.ORANGE)
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
SHAPES = "os^Dv*PX"
"""Markers of events, in turn."""
BELOW = "#BBBBBB"
WORDS = {"error_estimate": "error / gross gradient"}
LOGARITHMIC = ("risk", "error_estimate")
ROUNDING = 1e-12
"""Curvatures, and growth factors minus 1, are drawn as 0 below this absolute value."""
LEAVES = 2.0
"""The curve of a failed run is cut at this multiple of the largest value of the other runs."""


@style.styled
def overlay(result: Overlay, names: Sequence[str] | None = None) -> Any:
    """Plot gradient descent at several learning rates, with the flow as a broad line behind.

    An overlay without a flow shows several update rules over steps, with a mark at each event.

    Parameters
    ----------
    result : Overlay
    names : sequence of str, optional
        States and observables, one panel each; default: the selection of the plot description.

    Raises
    ------
    TypeError
        If ``result`` is not an `Overlay`.
    KeyError
        If the runs have no state or observable of a given name.

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> problem = system.ReducedPopulation(system.Parameters(D=4, C=2))
    >>> len(overlay(dynamics.overlay(problem, [0.2, 0.1], time=10.0), ["alpha"]))
    1
    """
    scalars, note = result.first.layout.scalars, ""
    if names is None:
        names = result.first.presentation.plot.overlaid
        drawn = len(set(names).intersection(scalars))
        if 0 < drawn < len(scalars):
            note = f"shown: {drawn} of {len(scalars)} scalars"
    labelled = {} if result.flow is None else {"flow": result.flow}
    for run, rule in zip(result.runs, result.rules, strict=True):
        ended = f", {run.outcome.kind}" if run.outcome.failed else ""
        before = f"{rule}, ".replace("_", r"\_") if result.flow is None else ""
        labelled[rf"{before}$\eta = {run.settings['eta']:g}${ended}"] = run
    return several(labelled, names, note, result.flow is None)


@style.styled
def several(
    runs: Mapping[str, Trajectory], names: Sequence[str], note: str = "", rules: bool = False
) -> Any:
    """Plot labelled runs, the first as a broad line behind all other runs.

    Parameters
    ----------
    runs : mapping
        Label -> `Trajectory`; a failed run is cut at twice the largest value of the other runs.
    names : sequence of str
        States and observables, one panel each; runs without the name are omitted.
    note : str
        Line of text above the panels.
    rules : bool
        Whether to compare update rules over steps, without a broad line.

    Raises
    ------
    TypeError
        If ``runs`` is not a nonempty mapping of `Trajectory`.
    KeyError
        If no run has a state or observable of a given name.

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> problem = system.ReducedPopulation(system.Parameters(D=4, C=2))
    >>> len(several({"flow": dynamics.flow(problem, 10.0)}, ["alpha", "gamma"]))
    2
    """
    first = next(iter(runs.values()))
    notation, plot = first.presentation.notation, first.presentation.plot
    logarithmic_names = [name for panel in plot.panels if panel.logarithmic for name in panel.names]
    steep = {*LOGARITHMIC, *(name for name in logarithmic_names if name in plot.overlaid)}
    figure, grid = style.new_figure(5.6, 1.0 + 1.45 * len(names), nrows=len(names), sharex=True)
    axes = np.atleast_1d(grid)
    for panel, name in zip(axes, names, strict=True):
        _draw_state(panel, runs, name, name in steep, rules)
        panel.set_ylabel(WORDS.get(name) or notation.label(name))
        if name in steep or name == "alpha" or (rules and _spans_decades(runs, name)):
            style.logarithmic(panel)
    axis = [_along(run, rules) for run in runs.values()]
    choices.scale(axes[-1], min(t[t > 0].min() for t in axis), max(t[-1] for t in axis))
    axes[-1].set_xlabel("steps" if rules else r"time $\tau = \eta \times$ steps")
    figure.align_ylabels(axes)
    found = style.labelled(*axes)
    named = {label: found[label] for label in runs if label in found}
    columns = style.legend_columns(figure, named)
    if rules and (shapes := _shapes(runs.values())):
        columns, rows = 2, max(len(named), len(shapes))
        blank = Line2D([], [], ls="")
        for column in (named, shapes):  # pad to equal lengths
            column |= {" " * (k + 1): blank for k in range(rows - len(column))}
        named = {**named, **shapes}
    figure.legend([*named.values()], [*named], loc="outside lower center", ncols=columns)
    captions.state_parameters(figure, runs.values(), note=note)
    return axes


def _draw_state(
    panel: Axes, runs: Mapping[str, Trajectory], name: str, steep: bool, rules: bool
) -> None:
    """Draw the scalar `name` of each run that has it; the curve of a failed run is cut."""
    good = [run for run in runs.values() if not run.outcome.failed]
    top = _largest(good if rules else [next(iter(runs.values())), *good], name)
    for number, (label, run) in enumerate(runs.items(), int(rules)):
        if name not in run.layout.names and name not in run.observables:
            continue
        series, along = run.series(name), _along(run, rules)
        visible = choices.shown(along) & np.isfinite(series)
        if steep:
            visible &= series > 0
        line: dict[str, Any] = {"color": BELOW, "lw": 4.5, "solid_capstyle": "round"}
        if number:
            around, colour = divmod(number - 1, len(COLOURS))
            dash = DASHES[(colour + around) % len(DASHES)]
            line = {"color": COLOURS[colour], "ls": dash, "lw": 1.4}
            if run.outcome.failed:
                with np.errstate(invalid="ignore"):
                    visible &= np.abs(series) <= LEAVES * top
        panel.plot(along[visible], series[visible], label=label, **line)
        if rules:
            _mark_events(panel, run, along[visible], series[visible], line["color"])


def _along(run: Trajectory, steps: bool) -> FloatArray:
    return run.steps.astype(float) if steps else run.time


def _spans_decades(runs: Mapping[str, Trajectory], name: str) -> bool:
    """Whether a series is positive in all runs and spans more than two decades."""
    drawn = [r.series(name)[1:] for r in runs.values() if name in (*r.layout.names, *r.observables)]
    every = np.concatenate([each[np.isfinite(each)] for each in drawn] or [np.zeros(1)])
    return bool(every.size and every.min() > 0 and every.max() > 100 * every.min())


def _mark_events(panel: Axes, run: Trajectory, steps: Any, series: FloatArray, colour: str) -> None:
    """Mark the events of a run on the run's line, each event with its own marker."""
    for shape, event in zip(cycle(SHAPES), run.events.values(), strict=False):
        step = event.step or 0
        if event and steps.size and steps[0] <= step <= steps[-1]:
            height = float(np.interp(step, steps, series))
            panel.plot(step, height, shape, color=colour, ms=5.5, mec="white", mew=0.6, zorder=3)


def _shapes(runs: Iterable[Trajectory]) -> dict[str, Line2D]:
    """Legend handle of each reached event, by the event's name in plots."""
    first, *others = runs
    names = {**first.presentation.plot.marks, **first.presentation.plot.asides}
    return {
        names.get(name, name): Line2D([], [], ls="", marker=shape, color=style.GREY, ms=5.5)
        for shape, name in zip(cycle(SHAPES), first.events, strict=False)
        if any(run.events[name] and run.events[name].step for run in (first, *others))
    }


def _largest(runs: Sequence[Trajectory], name: str) -> float:
    """Largest absolute value of a series over runs, or infinity if no run has the series."""
    found = [
        np.abs(run.series(name)).max(initial=0.0, where=np.isfinite(run.series(name)))
        for run in runs
        if name in run.layout.names or name in run.observables
    ]
    return float(max(found, default=np.inf))


@style.styled
def branches(result: Branches) -> Axes:
    """Plot a bifurcation diagram, the stability limit, and learning rates with non-finite states.

    Raises
    ------
    TypeError
        If ``result`` is not a `Branches`.

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> problem = system.ReducedPopulation(system.Parameters(D=4, C=2))
    >>> from dynamics.analysis import period_doubling
    >>> state = dynamics.flow(problem, 10.0).final_state
    >>> result = period_doubling.branches(problem, state, "alpha", count=8, steps=256)
    >>> bool(branches(result).get_xlim()[0] == result.etas[0])
    True
    """
    label, onsets = result.presentation.notation.label(result.name), result.onsets
    figure, axes = style.new_figure(5.6, 3.4)
    captions.constants(figure, result.presentation.notation, result.parameters)
    etas = np.repeat(result.etas, result.values.shape[1])
    axes.plot(etas, result.values.ravel(), ",", color=style.GREY)
    axes.plot(etas[::7], result.values.ravel()[::7], ".", color=style.GREY, ms=1.5)
    axes.axvline(
        onsets.limit, color=style.BLUE, lw=1.2,
        label=rf"predicted limit $2/\lambda_{{max}}$ = {onsets.limit:.4g}",
    )  # fmt: skip
    axes.axvline(
        onsets.period_two, color="black", lw=1.2, ls=":",
        label=f"period two observed from {onsets.period_two:.4g}",
    )  # fmt: skip
    if np.isfinite(onsets.non_finite):
        axes.axvspan(
            onsets.non_finite, max(result.etas[-1], onsets.non_finite), color=style.VERMILION,
            alpha=0.2, lw=0, label=f"not finite from {onsets.non_finite:.4g}",
        )  # fmt: skip
    axes.set_xlim(result.etas[0], result.etas[-1])
    axes.set_xlabel(r"learning rate $\eta$")
    axes.set_ylabel(f"{label}, last {result.values.shape[1]} steps")
    style.legend(axes, loc="lower left", bbox_to_anchor=(0.0, 1.0), fontsize=8)
    return axes


@style.styled
def stability(run: Trajectory, calm: Trajectory, limits: FloatArray, name: str = "alpha") -> Any:
    """Plot learning rate and stability limit over time and, below, the scalar `name` of the run.

    Times with a learning rate above the stability limit are shaded.

    Parameters
    ----------
    run : Trajectory
        Gradient descent at one learning rate.
    calm : Trajectory
        Gradient flow, whose states do not oscillate.
    limits : float array, shape (records of the flow,)
        Result of `dynamics.training.stability_limit.limits_along` on the flow.
    name : str
        Name of the state in the lower panel.

    Raises
    ------
    TypeError
        If ``run`` is not a `Trajectory`.
    KeyError
        If the run has no state of the given name.

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> problem = system.ReducedPopulation(system.Parameters(D=4, C=2))
    >>> run, calm = dynamics.descend(problem, 0.1, 100), dynamics.flow(problem, 10.0)
    >>> len(stability(run, calm, np.full(len(calm.time), 0.5)))
    2
    """
    notation, eta = run.presentation.notation, float(run.settings["eta"])
    begin = run.time[run.time > 0].min()
    used = (calm.time >= begin) & (limits > 0) & np.isfinite(limits)
    time, limit, visible = calm.time[used], limits[used], run.time > 0
    figure, axes = style.new_figure(5.6, 4.6, nrows=2, sharex=True)
    captions.state_parameters(figure, [run])
    axes[0].plot(time, limit, color=style.BLUE, label="stability limit $2/\\lambda_{max}$")
    axes[0].axhline(eta, color=style.VERMILION, ls="--", label=rf"learning rate $\eta = {eta:g}$")
    style.logarithmic(axes[0])
    axes[0].set_ylabel(r"$\eta$")
    style.legend(axes[0], loc="best")
    axes[1].plot(run.time[visible], run.series(name)[visible], ".", color=style.GREY, ms=3)
    axes[1].set_ylabel(notation.label(name))
    for panel in axes:
        panel.fill_between(
            time, 0, 1, where=np.asarray(limit < eta), transform=panel.get_xaxis_transform(),
            color=style.VERMILION, alpha=0.12, lw=0, step="mid",
        )  # fmt: skip
    style.time_axis(axes[1], run)
    return axes


@style.styled
def transverse_growth(growth: TransverseGrowth, run: Trajectory) -> Any:
    """Plot the least curvature in directions that leave a reduction; below, perturbation growth.

    Times with negative curvature are shaded.

    Parameters
    ----------
    growth : TransverseGrowth
    run : Trajectory
        The reduced run along which the growth was computed.

    Raises
    ------
    TypeError
        If ``growth`` is not a `TransverseGrowth`.

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> run = dynamics.flow(system.ReducedPopulation(system.Parameters(D=4, C=2)), 10.0)
    >>> ones = np.ones(len(run.time))
    >>> len(transverse_growth(TransverseGrowth(run.time, ones, ones), run))
    2
    """
    used = growth.time > 0
    time, least = growth.time[used], growth.least[used]
    figure, axes = style.new_figure(5.6, 4.6, nrows=2, sharex=True)
    captions.state_parameters(figure, [run])
    axes[0].plot(time, least, "o-", ms=3, color=style.BLUE)
    axes[0].axhline(0.0, color=style.GREY, lw=0.6)
    if least.min() < 0:
        axes[0].fill_between(
            time, least, 0, where=least < 0, color=style.VERMILION, alpha=0.15, lw=0
        )
    axes[0].set_ylabel("least curvature\nacross the closed space")
    axes[1].plot(time, growth.amplification[used], color=style.VERMILION)
    style.logarithmic(axes[1])
    # Curvatures at rounding level are drawn as 0.
    if np.abs(least).max() < ROUNDING:
        axes[0].set_ylim(-ROUNDING, ROUNDING)
    if np.abs(growth.amplification[used] - 1.0).max() < ROUNDING:
        axes[1].set_ylim(0.5, 2.0)
    axes[1].set_ylabel("bound on the growth\nof a deviation")
    style.time_axis(axes[1], run)
    axes[0].set_xlabel("")
    return axes
