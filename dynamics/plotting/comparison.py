"""Runs beside each other: reduced and full ones, their deviation, seeds of the empirical one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from dynamics.plotting.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RC,
    VERMILION,
    band,
    logarithmic,
    new_figure,
    positive_time,
    time_axis,
)
from dynamics.plotting.training import training
from dynamics.results.comparison import Comparison
from dynamics.results.trajectory import Trajectory

LOOKS = (
    (BLUE, "-", "o"), (VERMILION, "-", "s"), (GREEN, "--", "^"), (PURPLE, "-.", "D"),
    (ORANGE, ":", "v"), (GREY, "--", "x"),
)  # fmt: skip
"""Colour, dash and marker of each state."""
MOST = len(LOOKS)
REALISTIC = (
    ("patch_association", "share of associated rows", BLUE),
    ("test_error", "test error", VERMILION),
    ("cosine", r"cosine of $v$ and $w^\star$", GREEN),
)


def comparison(result: Comparison) -> Any:
    """The panels of the system over logarithmic time: see `dynamics.plotting.training`.

    The reduced run is drawn as lines, the full one as markers, seeds of the empirical one as bands.

    Parameters
    ----------
    result : Comparison

    Returns
    -------
    array of Axes

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
    kind = "entries" if any(reduced.layout.shapes) else "scalars"
    lines = f"{reduced.view}: {reduced.layout.size} {kind}{alone}"
    label = f"{full.view}: {full.layout.size} entries"
    look: dict[str, Any] = {"ls": "", "marker": "o", "mfc": "white"}
    if "samples" in full.settings:
        axes = training(reduced, seeds=result.fulls)
        seeds = f", {len(result.fulls)} seeds" if result.others else ""
        label += f", N = {full.settings['samples']:,}{seeds}"
        look = {"ls": ":"}
    else:
        axes = training(reduced, full)
    of_lines = Line2D([], [], color=GREY, label=lines)
    handles = [of_lines, Line2D([], [], color=GREY, label=label, **look)]
    axes[0].figure.legend(
        handles=handles, loc="outside lower center", ncols=2, fontsize=8, frameon=False
    )
    return axes


def deviation(result: Comparison, axes: Axes | None = None) -> Axes:
    """Largest distance over the entries of each orbit, with the rounding unit of double precision.

    Of more than six states those that are farthest apart are drawn, and the legend says so.

    Parameters
    ----------
    result : Comparison
    axes : Axes, optional

    Returns
    -------
    Axes

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
    with mpl.rc_context(RC):
        if axes is None:
            _, axes = new_figure(5.6, 3.4)
        farthest = sorted(result.deviation, key=lambda name: -result.deviation[name])[:MOST]
        names = [name for name in result.deviations if name in farthest]
        for name, (colour, dash, marker) in zip(names, LOOKS, strict=False):
            series = result.deviations[name]
            at = (result.time > 0) & (series > 0)
            axes.plot(
                result.time[at], series[at], dash, color=colour, label=notation.label(name),
                marker=marker, ms=3, markevery=0.08, mfc="white",
            )  # fmt: skip
        axes.set_yscale("log")
        time_axis(axes, result.reduced)
        unit = np.finfo(float).eps
        if max(result.deviation.values()) < 1e3 * unit:
            axes.axhline(unit, color=GREY, lw=0.8, ls=":")
            axes.annotate(
                "rounding unit", (axes.get_xlim()[0], unit), (4, 3), textcoords="offset points",
                color=GREY, fontsize=8,
            )  # fmt: skip
        axes.set_ylabel("largest |reduced $-$ full|")
        many = len(result.deviations)
        title = f"the {MOST} farthest of {many} states" if many > MOST else None
        axes.legend(loc="lower right", title=title, ncols=1 + (len(names) > 3), fontsize=8)
    return axes


def realistic(result: Comparison | Sequence[Trajectory]) -> Any:
    """Three panels over logarithmic time: association, test error, cosine of empirical runs.

    Parameters
    ----------
    result : Comparison or sequence of Trajectory
        The runs of the empirical problem, one for each seed; the median is drawn as a line, least
        and greatest as a band.

    Returns
    -------
    array of Axes

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
    with mpl.rc_context(RC):
        _, axes = new_figure(6.4, 6.0, nrows=3, sharex=True)
        for panel, (name, label, colour) in zip(axes, REALISTIC, strict=True):
            band(panel, runs, name, colour)
            panel.set_ylabel(label)
        axes[0].set_ylim(-0.03, 1.03)
        irreducible = float(runs[0]["bayes_error"][-1])
        errors = np.concatenate([positive_time(run, run["test_error"])[1] for run in runs])
        if errors.min() > 0 and errors.max() > 5 * errors.min():
            logarithmic(axes[1])
        if irreducible > 0:
            axes[1].axhline(irreducible, color=GREY, lw=0.9, ls=":", label="irreducible error")
            axes[1].legend(loc="upper right", fontsize=8)
        many = "" if len(runs) == 1 else f", {len(runs)} seeds: median, least to greatest"
        samples = runs[0].settings["samples"]
        axes[0].set_title(f"$N = {samples:,}$ samples{many}", fontsize=9, loc="left")
        time_axis(axes[-1], runs[0])
    return axes
