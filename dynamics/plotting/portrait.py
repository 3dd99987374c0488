"""The plane of two scalars: rates, nullclines, slow manifold, fixed points and runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.patheffects import withStroke
from matplotlib.ticker import LogLocator, NullFormatter

from dynamics.analysis.phase_portrait.elimination import HELD, RUN, Elimination
from dynamics.analysis.phase_portrait.plane import Portrait
from dynamics.analysis.phase_portrait.roots import DEGENERATE, SADDLE, SINK, SOURCE
from dynamics.plotting.style import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION, new_figure, styled
from dynamics.problem import FloatArray
from dynamics.results.outcome import HORIZON
from dynamics.results.trajectory import Trajectory
from theory.notation import Notation

DIRECTIONS = 16
DISTANCES = (0.012, 0.03, 0.06, 0.1)
"""From the mark to the nearest side of the word."""
WIDE, HIGH = 0.0011, 0.0019
"""Half of a letter, for each point of its size, on axes of about 4 inches."""
ENOUGH = 0.025
"""More room than this is no better."""


class Words:
    """Words still to be written on axes, and what they may not cover.

    Parameters
    ----------
    axes : Axes
    obstacles : float array, shape (points, 2)
        Lines that are drawn, as points.
    """

    def __init__(self, axes: Axes, obstacles: FloatArray) -> None:
        self.axes = axes
        self._occupied = [obstacles]
        self._waiting: list[tuple[str, FloatArray, str, float]] = []

    def add(self, text: str, spot: FloatArray, colour: str, size: float) -> None:
        """A word for a mark; the mark is not covered by others either.

        Parameters
        ----------
        text : str
        spot : float array, shape (2,)
            Of the mark, in parts of the sides of the axes.
        colour : str
        size : float
            Of the letters, in points.
        """
        self._occupied.append(np.asarray(spot)[None, :])
        self._waiting.append((text, np.asarray(spot), colour, size))

    def write(self) -> None:
        """Write all of them, in the order in which they came."""
        for text, spot, colour, size in self._waiting:
            position = self._room(spot, len(plain(text)), size)
            self.axes.text(
                float(position[0]), float(position[1]), text, transform=self.axes.transAxes,
                color=colour, fontsize=size, ha="center", va="center", zorder=6,
                path_effects=[withStroke(linewidth=2.2, foreground="white")],
            )  # fmt: skip

    def _room(self, spot: FloatArray, letters: int, size: float) -> FloatArray:
        """The centre of a word where it has most room, near its mark."""
        half = np.array([WIDE * letters, HIGH]) * size
        angles = 2 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS
        directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        across = np.linspace(-1, 1, max(5, 2 * letters))
        spread = np.array([(x, y) for x in across for y in (-1, 0, 1)]) * half
        occupied = np.concatenate(self._occupied)
        best, position = -np.inf, spot
        for distance in DISTANCES:
            for direction in directions:
                centre = spot + direction * (half + distance)
                covered = centre + spread
                gaps = np.hypot(*(covered[:, None, :] - occupied[None, :, :]).transpose(2, 0, 1))
                room = min(float(gaps.min()), ENOUGH) - distance / 6
                room -= 1.0 * bool((covered < 0.005).any() or (covered > 0.995).any())
                if room > best:
                    best, position = room, centre
        self._occupied.append(position + spread)
        return position


def plain(text: str) -> str:
    """A text about as wide as a LaTeX label: a command counts as one letter, dots as none."""
    return re.sub(r"[${}_^\\ ]", "", re.sub(r"\\[a-z]+", "x", text.replace(r"\dot", "")))


RESTS = ((BLUE, (0, (5, 2))), (VERMILION, (0, (6, 2, 1, 2))))
"""Colour and dashes of the nullclines of the first and of the second scalar."""
MARKS = {
    SINK: ("o", "black"),
    SOURCE: ("o", "white"),
    SADDLE: ("D", "white"),
    DEGENERATE: ("X", GREY),
}
COLOURS = ListedColormap(mpl.colormaps["viridis"](np.linspace(0.0, 0.86, 200)))
"""Without the yellow that white paper swallows."""
ARROW = 0.6
"""Length of an arrow, as a part of the distance of two."""
APART = 0.07
"""Least distance of two times that are written, as a part of the sides."""
FIRST_TIME = -2
"""Times are written from this power of ten on."""


@styled
def portrait(
    result: Portrait, axes: Axes | None = None, parameters: Sequence[str] | None = None
) -> Axes:
    """Arrows coloured by speed, nullclines, slow manifold, fixed points and runs in their plane.

    Parameters
    ----------
    result : Portrait
    axes : Axes, optional
    parameters : sequence of str, optional
        Parameters that the title names; all of them by default.

    Returns
    -------
    Axes

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
    notation = result.presentation.notation
    if axes is None:
        _, axes = new_figure(5.4, 5.4)
    x, y = map(notation.label, result.plane)
    axes.set(xlim=result.box[0], ylim=result.box[1], xlabel=x, ylabel=y)
    _arrows(axes, result)
    _slow(axes, result, notation)
    for k, run in enumerate(result.runs[1:]):
        _run(axes, result, run, (GREEN, 1.1, "from other starts" if k == 0 else ""))
    _run(axes, result, result.runs[0], ("black", 1.9, "run from the start"))
    _fixed(axes, result)
    words = Words(axes, _obstacles(result))
    _events(axes, result, words)
    _times(axes, result, words)
    _nullclines(axes, result, notation, words)
    words.write()
    names = list(result.parameters) if parameters is None else parameters
    numbers = {n: v for n in names if not isinstance(v := result.parameters[n], str)}
    held = [rf"${notation.latex(n)} = {number:g}$" for n, number in numbers.items()]
    lines = [*_wrapped(held), *_elimination_lines(result.eliminated, notation)]
    axes.set_title("\n".join(lines), fontsize=8, loc="left")
    axes.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=3, fontsize=7.5,
        handlelength=2.2, columnspacing=1.4,
    )  # fmt: skip
    return axes


def portraits(results: Sequence[Portrait], parameters: Sequence[str] | None = None) -> Any:
    """Several planes side by side.

    Parameters
    ----------
    results : sequence of Portrait
    parameters : sequence of str, optional
        As in `portrait`.

    Returns
    -------
    array of Axes

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
    _, axes = new_figure(5.4 * len(results), 5.4, ncols=len(results), squeeze=False)
    for one, panel in zip(results, axes[0], strict=True):
        portrait(one, panel, parameters)
    return axes[0]


def _elimination_lines(eliminated: Mapping[str, Elimination], notation: Notation) -> list[str]:
    """What is done with each scalar that the plane does not show, one line each."""
    lines = []
    for name, how in eliminated.items():
        label = notation.label(name)
        if how.kind == HELD:
            lines.append(rf"${notation.latex(name)} = {how.value:g}$, held")
        elif how.kind == RUN:
            along, until = notation.label(how.along), moment(how.until)
            lines.append(
                rf"{label} as on the black run, a function of {along} up to $\tau$ = {until}, "
                "constant beyond"
            )
        else:
            rate = _dotted(name, notation)
            lines.append(rf"{label} slaved: on its attracting slow manifold, {rate[:-1]} = 0$")
    return lines


def _dotted(name: str, notation: Notation) -> str:
    """The letter of a scalar with the dot of a rate."""
    return rf"$\dot{{{notation.latex(name)}}}$"


def moment(time: float) -> str:
    """A time in few letters: a power of ten as one."""
    power = np.log10(time) if time > 0 else 0.5
    if abs(power - round(power)) < 1e-9 and abs(power) >= 3:
        return rf"$10^{{{round(power)}}}$"
    return f"{time:.0f}" if time >= 1000 else f"{time:.3g}"


def _wrapped(words: Sequence[str], width: int = 6) -> list[str]:
    return [",  ".join(words[k : k + width]) for k in range(0, len(words), width)]


def _scaled(result: Portrait, points: FloatArray) -> FloatArray:
    """Points of the plane in units of the rectangle."""
    low, high = np.array(result.box).T
    return (np.asarray(points, dtype=float) - low) / (high - low)


def _obstacles(result: Portrait) -> FloatArray:
    """Points along everything that words shall not cover."""
    lines = [_path(result, run) for run in result.runs]
    lines += [branch for line in result.nullclines.values() for branch in line.branches]
    lines += [point.position[None, :] for point in result.fixed_points]
    return np.concatenate([_dense(_scaled(result, line)) for line in lines])


def _dense(line: FloatArray, step: float = 0.01) -> FloatArray:
    """Points along a polyline, no farther apart than a step."""
    lengths = np.concatenate([[0.0], np.hypot(*np.diff(line, axis=0).T).cumsum()])
    distinct = np.concatenate([[True], np.diff(lengths) > 0])
    at = np.linspace(0.0, lengths[-1], max(2, int(min(lengths[-1], 20.0) / step)))
    return np.stack([np.interp(at, lengths[distinct], line[distinct, k]) for k in range(2)], axis=1)


def _path(result: Portrait, run: Trajectory) -> FloatArray:
    return np.stack([run[name] for name in result.plane], axis=1)


def _arrows(axes: Axes, result: Portrait) -> None:
    """Arrows of one length on paper, coloured by speed; crosses where there is no gradient."""
    x, y = np.meshgrid(result.x, result.y)
    sides = np.ptp(np.array(result.box), axis=1)
    speed = np.hypot(*result.rates)
    there = np.isfinite(speed) & (speed > 0)
    if not there.all():
        axes.plot(x[~there], y[~there], "x", color=GREY, ms=3, label="no gradient, or none known")
    if not there.any():
        return
    along = result.rates / sides[:, None, None]
    length = ARROW / len(result.x) / np.hypot(*along)
    u, v = (length * part * side for part, side in zip(along, sides, strict=True))
    arrows = axes.quiver(
        x[there], y[there], u[there], v[there], speed[there], cmap=COLOURS,
        norm=LogNorm(speed[there].min(), speed[there].max()), angles="xy", scale_units="xy",
        scale=1.0, pivot="mid", width=0.0032, headwidth=3.6, headlength=4.2, headaxislength=3.8,
        zorder=1,
    )  # fmt: skip
    bar = axes.figure.colorbar(arrows, ax=axes, pad=0.02, aspect=32)
    bar.outline.set_color(GREY)
    bar.ax.yaxis.set_major_locator(LogLocator(numticks=12))
    bar.ax.yaxis.set_minor_formatter(NullFormatter())
    bar.set_label(r"speed in the plane, per unit of $\tau$")


def _slow(axes: Axes, result: Portrait, notation: Notation) -> None:
    """The slow manifold of a scalar of the plane, where it attracts and where it repels."""
    slow = result.slow
    if slow is None or slow.name not in result.plane:
        return
    name = notation.label(slow.name)
    other = slow.at[next(n for n in result.plane if n != slow.name)]
    kinds = ((True, ORANGE, "slow manifold"), (False, PURPLE, "repelling rest"))
    for attracts, colour, word in kinds:
        label = f"{word} of {name}"
        for values, attracting in zip(slow.values, slow.attracting, strict=True):
            if attracting == attracts:
                pair = (values, other) if slow.name == result.plane[0] else (other, values)
                axes.plot(*pair, color=colour, lw=5, alpha=0.45, label=label, zorder=1.5)
                label = ""


def _nullclines(axes: Axes, result: Portrait, notation: Notation, words: Words) -> None:
    """Every branch, and the name of each nullcline where it has most room."""
    runs = [_scaled(result, _path(result, run)) for run in result.runs]
    frame = [_dense(np.array([(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)], dtype=float), 0.02)]
    for (name, line), (colour, dash) in zip(result.nullclines.items(), RESTS, strict=True):
        if not line.branches:
            continue
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
    """A run with its start, its direction, and a cross where it ended before its horizon."""
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
        label = f"{run.outcome.kind} before the horizon"
        axes.plot(*path[-1], "X", color=VERMILION, ms=7, label=label, zorder=5)


def _times(axes: Axes, result: Portrait, words: Words) -> None:
    """Powers of ten along the main run, the last ones first, where there is room for them."""
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
    """Events of the main run, those that the problem's rules name, at their states."""
    run = result.runs[0]
    positions = [run.layout.slice_of(name).start for name in result.plane]
    label = "events"
    for name in sorted(run.events):
        event = run.events[name]
        if not event or event.time <= 0:
            continue
        spot = event.state[positions]
        axes.plot(*spot, "*", color=PURPLE, mec="black", mew=0.6, ms=10, label=label, zorder=5)
        label = ""
        words.add(_named(name), _scaled(result, spot), "black", 8.5)


def _named(name: str) -> str:
    """``T1`` as a letter with an index; any other name in words."""
    head, _, tail = name.partition("_")
    if len(head) == 2 and head[1].isdigit():
        return f"${head[0]}_{head[1]}$" + (f" ({tail})" if tail else "")
    return name.replace("_", " ")


def _fixed(axes: Axes, result: Portrait) -> None:
    named: set[str] = set()
    for point in result.fixed_points:
        marker, colour = MARKS[point.kind]
        label = "" if point.kind in named else f"{point.kind} of the plane"
        named.add(point.kind)
        axes.plot(
            *point.position, marker, color="black", mfc=colour, ms=7.5, mew=1.5, label=label,
            zorder=5, ls="none",
        )  # fmt: skip
