"""Plot of the relative deviation of runs on samples from the reduced run, with events."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from dynamics.plotting import captions, choices, style
from dynamics.plotting.phases import LABEL, ROW, shade
from dynamics.plotting.runs import COLOURS, DASHES
from dynamics.problem import FloatArray
from dynamics.results.comparison import DEPARTURE_SHARES, Comparison

SMALLEST, LARGEST = 1e-5, 1e2
"""Minimum and maximum of the axis of relative deviations."""
MARGIN = 1.5
"""Ratio of the upper limit of the axis to the largest deviation."""
LOW = 0.05
"""Maximum fraction of the deviations below the lower limit of the axis."""
HIGHEST_FLOOR = 1e-3
"""Maximum of the lower limit of the axis of relative deviations."""


@style.styled
def departure(result: Comparison) -> Axes:
    """Plot the relative deviation of every scalar of an empirical run from the reduced run.

    Lines are medians over seeds, and bands are ranges. At most six scalars are drawn, those with
    the largest final deviations. Phases and event lines belong to the reduced run; triangles mark
    the events of each seed. Deviations too small for the axis are drawn at the axis's lower end.

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
    >>> runs = [system.FullEmpirical(law, samples=20, seed=k) for k in range(2)]
    >>> result = dynamics.compare(system.ReducedPopulation(law), runs, eta=0.1, steps=20)
    >>> axes = plotting.departure(result)
    >>> axes.get_yscale(), len(axes.get_legend().get_texts())
    ('log', 3)
    """
    reduced, notation = result.reduced, result.reduced.presentation.notation
    _, axes = style.new_figure(6.4, 3.8)
    relative = result.relative_deviations
    farthest = sorted(relative, key=lambda name: -float(np.median(relative[name][:, -1])))
    names = [name for name in relative if name in farthest[: len(COLOURS)]]
    low, high = _limits([relative[name][:, 1:] for name in names])
    below = False
    for name, colour, dash in zip(names, COLOURS, cycle(DASHES), strict=False):
        rows = relative[name]
        time = reduced.time[: rows.shape[1]]
        late = choices.shown(time)
        within = np.clip(rows[:, late], low, high)
        below = below or bool((rows[:, late] < low).any())
        middle = np.median(within, axis=0)
        axes.plot(time[late], middle, ls=dash, color=colour, label=notation.label(name))
        if len(rows) > 1:
            edges = within.min(axis=0), within.max(axis=0)
            axes.fill_between(time[late], *edges, color=colour, alpha=0.2, lw=0)
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    style.time_axis(axes, reduced)
    for share in (share for share in DEPARTURE_SHARES if share < high):
        axes.axhline(share, color=style.GREY, lw=0.8, ls=":", zorder=1)
    if high > DEPARTURE_SHARES[-1]:
        at = ("axes fraction", "data")
        style.note(
            axes, "50 %", (1.0, DEPARTURE_SHARES[-1]), (2, 0), at, color=style.GREY, va="center"
        )
    shade([axes], reduced)
    captions.state_parameters(axes.figure, [reduced])
    marked = _mark_events(axes, result, low)
    seeds = f", {len(result.fulls)} seeds: median, least to greatest" if result.others else ""
    axes.set_ylabel("|full $-$ reduced| / |reduced|")
    samples = f"$N = {result.full.settings['samples']:,}$ samples{seeds}"
    title = f"{samples}; phases of the reduced run"
    whose = "the seeds" if result.others else "the run on samples"
    title += f"\ntriangles: events of {whose}" if marked else ""
    title += f"\nat the lower edge: {100 * low:g} % or less" if below else ""
    if len(names) < len(relative):
        title += f"\nthe {len(names)} of {len(relative)} states that end farthest"
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=4, title=title)
    return axes


def _limits(rows: Sequence[FloatArray]) -> tuple[float, float]:
    """Limits of the axis; at most the fraction `LOW` of the deviations is below the lower limit."""
    values = np.concatenate([np.ravel(row) for row in rows])
    values = np.clip(values[np.isfinite(values) & (values > 0)], SMALLEST, LARGEST)
    if not values.size:
        values = np.array(DEPARTURE_SHARES)
    low = 10 ** np.floor(np.log10(min(np.quantile(values, LOW), HIGHEST_FLOOR)))
    return float(low), float(min(LARGEST, MARGIN * max(values.max(), DEPARTURE_SHARES[0])))


def _mark_events(axes: Axes, result: Comparison, low: float) -> int:
    """Draw a triangle at the lower edge for every event of every seed; return the number drawn."""
    marked, plot, row = 0, result.reduced.presentation.plot, 0
    positive = result.reduced.time[result.reduced.time > 0]
    ends, before = (positive.min(), positive.max()), -np.inf
    occurred = {}
    for name in {**plot.marks, **plot.asides}:
        events = [run.events[name] for run in result.fulls if run.events.get(name)]
        times = [event.time for event in events if event.time > 0]
        if times:
            occurred[name] = times
    for name, times in sorted(occurred.items(), key=lambda item: float(np.median(item[1]))):
        marked += len(times)
        axes.plot(times, [low] * len(times), "^", color="black", ms=5, clip_on=False)
        middle, own = float(np.median(times)), result.reduced.events.get(name)
        place = float(choices.share(middle, *ends))
        if own and own.time > 0 and abs(place - choices.share(own.time, *ends)) < LABEL:
            continue
        row = row + 1 if place - before < LABEL else 0
        before = place
        paper = {"fc": "white", "ec": "none", "alpha": 0.7, "pad": 0.8}
        at, look = (0, 6 + ROW * row), {"fontsize": 7, "ha": "center", "bbox": paper}
        style.note(axes, {**plot.marks, **plot.asides}[name], (middle, low), at, **look)
    return marked
