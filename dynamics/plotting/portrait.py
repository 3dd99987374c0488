"""Plot of a phase portrait: rates, nullclines, slow manifold, fixed points and runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.ticker import LogLocator, NullFormatter

from dynamics.analysis.phase_portrait.elimination import RUN, Elimination
from dynamics.analysis.phase_portrait.plane import Portrait
from dynamics.analysis.phase_portrait.roots import CONTINUUM, DEGENERATE, SADDLE, SINK, SOURCE
from dynamics.plotting import style
from dynamics.plotting.basins import draw_basins
from dynamics.plotting.captions import fixed
from dynamics.plotting.words import Words
from dynamics.problem import FloatArray
from dynamics.results.outcome import HORIZON
from dynamics.results.trajectory import Trajectory
from theory.notation import Notation

MOST_LISTED = 4
"""Maximum number of scalars outside the plane that a title line lists individually."""
WIDTH = 5.4
"""Width of a portrait with its colour bar, in inches."""
RESTS = (
    (style.BLUE, (0, (5, 2))),
    (style.VERMILION, (0, (6, 2, 1, 2))),
    ("#7F3C8D", (0, (2, 1.2))),
    ("#8C613C", (0, (9, 2))),
)
"""Colour and line style of the nullcline of each scalar, by the scalar's index in the state."""
MARKS = {
    SINK: ("o", "black"),
    SOURCE: ("o", "white"),
    SADDLE: ("D", "white"),
    DEGENERATE: ("X", style.GREY),
    CONTINUUM: ("P", style.GREY),
}
COLOURS = ListedColormap(mpl.colormaps["viridis"](np.linspace(0.0, 0.86, 200)))
"""Viridis without its yellow end, which is hardly visible on white."""
ARROW = 0.6
"""Length of an arrow, relative to the distance between two arrows."""
APART = 0.07
"""Minimum distance between two labelled times on the main run, relative to the plane's sides."""
FIRST_TIME = -2
"""Exponent of the smallest power of ten that is labelled as a time on the main run."""


@style.styled
def portrait(result: Portrait, parameters: Sequence[str] | None = None) -> Axes:
    """Plot basins, arrows coloured by speed, nullclines, slow manifold, fixed points and runs.

    Parameters
    ----------
    result : Portrait
    parameters : sequence of str, optional
        Names of the parameters in the title; default: all parameters.

    Raises
    ------
    TypeError
        If ``result`` is not a `Portrait`.

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> problem = system.ReducedPopulation(system.Parameters(D=4, C=2))
    >>> from dynamics.analysis import phase_portrait
    >>> result = phase_portrait.portrait(problem, 100.0, starts=0, grid=4)
    >>> portrait(result).get_xlim() == result.box[0]
    True
    """
    _, axes = style.new_figure(WIDTH, WIDTH)
    _write([_draw(result, axes, parameters)])
    return axes


def _draw(result: Portrait, axes: Axes, parameters: Sequence[str] | None) -> Words:
    """Draw everything except the labels, which `_write` places after the layout of the figure."""
    notation = result.presentation.notation
    x, y = map(notation.label, result.plane)
    axes.set(xlim=result.box[0], ylim=result.box[1], xlabel=x, ylabel=y)
    names = result.runs[0].layout.names
    x_place, y_place = map(names.index, result.plane)
    draw_basins(axes, result.basins, (x_place, y_place))
    _arrows(axes, result)
    _slow(axes, result, notation)
    for k, run in enumerate(result.runs[1:]):
        _run(axes, result, run, (style.GREEN, 1.1, "from other starts" if k == 0 else ""))
    _run(axes, result, result.runs[0], ("black", 1.9, "run from the start"))
    _fixed(axes, result)
    words = Words(axes, _obstacles(result))
    _events(axes, result, words)
    _times(axes, result, words)
    _nullclines(axes, result, notation, words)
    held_names = list(result.parameters) if parameters is None else parameters
    held = fixed(notation, {name: result.parameters[name] for name in held_names}, {}, WIDTH)
    lines = [held, *_elimination_lines(result.eliminated, notation)]
    axes.set_title("\n".join(lines), fontsize=8, loc="left")
    style.legend(
        axes, loc="upper center", bbox_to_anchor=(0.5, -0.13), fontsize=7.5,
        ncols=2 if result.basins else 3,
        handlelength=2.2, columnspacing=1.4,
    )  # fmt: skip
    return words


def _write(words: Sequence[Words]) -> None:
    """Lay out the figure, then write the labels of all panels."""
    figure: Any = words[0].axes.figure
    if (engine := figure.get_layout_engine()) is not None:
        engine.execute(figure)
    for each in words:
        each.write()


@style.styled
def portraits(results: Sequence[Portrait], parameters: Sequence[str] | None = None) -> Any:
    """Plot phase portraits in a row; a scalar's nullcline has the same style in all panels.

    Parameters
    ----------
    results : sequence of Portrait
    parameters : sequence of str, optional
        Names of the parameters in the titles; default: all parameters.

    Raises
    ------
    TypeError
        If ``results`` is not a nonempty sequence of `Portrait`.

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> problem = system.ReducedPopulation(system.Parameters(D=4, C=2))
    >>> from dynamics.analysis import phase_portrait
    >>> result = phase_portrait.portrait(problem, 100.0, starts=0, grid=4)
    >>> len(portraits([result, result]))
    2
    """
    _, axes = style.new_figure(WIDTH * len(results), WIDTH, ncols=len(results), squeeze=False)
    _write([_draw(one, panel, parameters) for one, panel in zip(results, axes[0], strict=True)])
    return axes[0]


def _elimination_lines(eliminated: Mapping[str, Elimination], notation: Notation) -> list[str]:
    """Title lines on scalars outside the plane; one line for all that follow one coordinate."""
    lines, follow = [], dict[tuple[str, float], list[str]]()
    for name, how in eliminated.items():
        if how.kind == RUN:
            follow.setdefault((how.along, how.until), []).append(notation.label(name))
        else:
            rate = _dotted(name, notation)
            label = notation.label(name)
            lines.append(rf"{label} slaved: on its attracting slow manifold, {rate[:-1]} = 0$")
    for (along, until), labels in follow.items():
        many = len(labels) > MOST_LISTED
        named = f"{labels[0]}, ..., {labels[-1]}" if many else ", ".join(labels)
        lines.append(
            rf"{named} as on the black run at equal {notation.label(along)}, "
            rf"to $\tau$ = {moment(until)}; then constant"
        )
    return lines


def _dotted(name: str, notation: Notation) -> str:
    """LaTeX of the rate of a scalar: the scalar's symbol with a dot."""
    return rf"$\dot{{{notation.latex(name)}}}$"


def moment(time: float) -> str:
    """Short text of a time; a power of ten is written as 10 with an exponent."""
    power = np.log10(time) if time > 0 else 0.5
    if abs(power - round(power)) < 1e-9 and abs(power) >= 3:
        return rf"$10^{{{round(power)}}}$"
    return f"{time:.0f}" if time >= 1000 else f"{time:.3g}"


def _scaled(result: Portrait, points: FloatArray) -> FloatArray:
    """Scale points of the plane to coordinates from 0 to 1 along the sides of the rectangle."""
    low, high = np.array(result.box).T
    return (np.asarray(points, dtype=float) - low) / (high - low)


def _obstacles(result: Portrait) -> FloatArray:
    """Points along all drawn elements, which labels must not cover."""
    lines = [_path(result, run) for run in result.runs]
    lines += [branch for line in result.nullclines.values() for branch in line.branches]
    lines += [point.position[None, :] for point in result.fixed_points]
    return np.concatenate([_dense(_scaled(result, line)) for line in lines])


def _dense(line: FloatArray, step: float = 0.01) -> FloatArray:
    """Points along a polyline, at most `step` apart."""
    lengths = np.concatenate([[0.0], np.hypot(*np.diff(line, axis=0).T).cumsum()])
    distinct = np.concatenate([[True], np.diff(lengths) > 0])
    at = np.linspace(0.0, lengths[-1], max(2, int(min(lengths[-1], 20.0) / step)))
    return np.stack([np.interp(at, lengths[distinct], line[distinct, k]) for k in range(2)], axis=1)


def _path(result: Portrait, run: Trajectory) -> FloatArray:
    return np.stack([run[name] for name in result.plane], axis=1)


def _arrows(axes: Axes, result: Portrait) -> None:
    """Draw arrows of equal length coloured by speed, and crosses at points without a gradient."""
    x, y = np.meshgrid(result.x, result.y)
    sides = np.ptp(np.array(result.box), axis=1)
    speed = np.hypot(*result.rates)
    there = np.isfinite(speed) & (speed > 0)
    if not there.all():
        axes.plot(x[~there], y[~there], "x", color=style.GREY, ms=3, label="no gradient known")
    if not there.any():
        return
    along = result.rates / sides[:, None, None]
    length = ARROW / len(result.x) / np.where(there, np.hypot(*along), 1.0)
    u, v = (length * part * side for part, side in zip(along, sides, strict=True))
    arrows = axes.quiver(
        x[there], y[there], u[there], v[there], speed[there], cmap=COLOURS,
        norm=LogNorm(speed[there].min(), speed[there].max()), angles="xy", scale_units="xy",
        scale=1.0, pivot="mid", width=0.0032, headwidth=3.6, headlength=4.2, headaxislength=3.8,
        zorder=1,
    )  # fmt: skip
    bar = axes.figure.colorbar(arrows, ax=axes, pad=0.02, aspect=32)
    bar.outline.set_color(style.GREY)
    bar.ax.yaxis.set_major_locator(LogLocator(numticks=12))
    bar.ax.yaxis.set_minor_formatter(NullFormatter())
    bar.set_label(r"speed in the plane, per unit of $\tau$")


def _slow(axes: Axes, result: Portrait, notation: Notation) -> None:
    """Draw the slow manifold of a fast scalar: lines that attract it and lines that repel it."""
    slow = result.slow
    if slow is None:
        return
    name = notation.label(slow.name)
    kinds = (
        (slow.attracting, style.ORANGE, f"slow manifold of {name}"),
        (slow.repelling, style.PURPLE, f"repelling branch of {name}"),
    )
    for lines, colour, label in kinds:
        for k, line in enumerate(lines):
            axes.plot(
                *line.T, color=colour, lw=5, alpha=0.45, zorder=1.5, label=label if k == 0 else None
            )


def rest_look(result: Portrait, name: str) -> tuple[str, Any]:
    """Colour and line style of the nullcline of the scalar `name`."""
    names = result.runs[0].layout.names
    first, second = (names.index(each) % len(RESTS) for each in result.plane)
    number = first if name == result.plane[0] else second
    return RESTS[(number + (first == second and name != result.plane[0])) % len(RESTS)]


def _nullclines(axes: Axes, result: Portrait, notation: Notation, words: Words) -> None:
    """Draw all branches of the nullclines, and name each nullcline where there is most room."""
    runs = [_scaled(result, _path(result, run)) for run in result.runs]
    frame = [_dense(np.array([(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)], dtype=float), 0.02)]
    for name, line in result.nullclines.items():
        if not line.branches:
            continue
        colour, dash = rest_look(result, name)
        text = rf"{_dotted(name, notation)[:-1]} = 0$"
        for k, branch in enumerate(line.branches):
            label = text if k == 0 else None
            axes.plot(*branch.T, color=colour, ls=dash, lw=1.7, label=label, zorder=2.5)
        others = [
            _scaled(result, branch)
            for other, each in result.nullclines.items()
            for branch in each.branches
            if other != name
        ]
        points = _scaled(result, np.concatenate(line.branches))
        apart = points[:, None, :] - np.concatenate([*runs, *others, *frame])[None, :, :]
        room = np.hypot(*apart.transpose(2, 0, 1)).min(axis=1)
        words.add(text, points[room.argmax()], colour, 10)


def _run(axes: Axes, result: Portrait, run: Trajectory, look: tuple[str, float, str]) -> None:
    """Draw a run with its start and direction, and a cross if the run ended before its horizon."""
    colour, width, label = look
    path = _path(result, run)
    axes.plot(
        *path.T, color=colour, lw=width, label=label or None, zorder=3, marker="s", markevery=[0],
        mfc="white", ms=4.5, mew=1.2,
    )  # fmt: skip
    lengths = np.concatenate([[0.0], np.hypot(*np.diff(_scaled(result, path), axis=0).T).cumsum()])
    if lengths[-1] > APART:
        at = lengths[-1] * np.array([0.54, 0.56])
        tail, head = np.stack([np.interp(at, lengths, side) for side in path.T], axis=1)
        axes.annotate(
            "", head, tail, zorder=4,
            arrowprops={"arrowstyle": "-|>", "color": colour, "lw": width, "mutation_scale": 11},
        )  # fmt: skip
    if run.outcome.kind != HORIZON:
        axes.plot(*path[-1], "X", color=style.VERMILION, ms=7, label=run.outcome.kind, zorder=5)


def _times(axes: Axes, result: Portrait, words: Words) -> None:
    """Label powers of ten of time along the main run where they fit, the latest first."""
    run = result.runs[0]
    path, distinct = _path(result, run), [_path(result, run)[0]]
    if len(run.time) < 3:
        return
    for power in range(int(np.floor(np.log10(run.time[-1]))), FIRST_TIME - 1, -1):
        spot = np.array([np.interp(power, np.log10(run.time[1:]), path[1:, k]) for k in range(2)])
        if min(np.abs(_scaled(result, spot - other + np.array(result.box)[:, 0])).max()
               for other in distinct) < APART:  # fmt: skip
            continue
        label = r"times $\tau$" if len(distinct) == 1 else None
        distinct.append(spot)
        axes.plot(*spot, "o", color="black", mfc="white", ms=5, mew=1.2, label=label, zorder=4.5)
        words.add(moment(10.0**power), _scaled(result, spot), "black", 7.5)


def _events(axes: Axes, result: Portrait, words: Words) -> None:
    """Mark the events of the main run at their states in the plane."""
    run = result.runs[0]
    positions = [run.layout.slice_of(name).start for name in result.plane]
    label = "events"
    for name in sorted(run.events):
        event = run.events[name]
        if not event or event.time <= 0:
            continue
        spot = event.state[positions]
        axes.plot(
            *spot, "*", color=style.PURPLE, mec="black", mew=0.6, ms=10, label=label, zorder=5
        )
        label = ""
        words.add(_named(name), _scaled(result, spot), "black", 8.5)


def _named(name: str) -> str:
    """Format an event's name: ``T1`` as a symbol with an index, other names as words."""
    head, _, tail = name.partition("_")
    if len(head) == 2 and head[1].isdigit():
        return f"${head[0]}_{head[1]}$" + (f" ({tail})" if tail else "")
    return name.replace("_", " ")


def _fixed(axes: Axes, result: Portrait) -> None:
    named: set[str] = set()
    for point in result.fixed_points:
        marker, colour = MARKS[point.kind]
        where = "fixed points" if point.kind == CONTINUUM else "the plane"
        label = "" if point.kind in named else f"{point.kind} of {where}"
        named.add(point.kind)
        axes.plot(
            *point.position, marker, color="black", mfc=colour, ms=7.5, mew=1.5, label=label,
            zorder=5, ls="none",
        )  # fmt: skip
