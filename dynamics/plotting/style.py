"""What all pictures share: colours safe for colour-blind readers, time axes, writing files."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from dynamics.problem import FloatArray
from dynamics.results.trajectory import Trajectory

# Okabe and Ito (2008), distinguishable under the common colour deficiencies and in grey.
BLUE, VERMILION, GREEN, PURPLE, ORANGE = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
)
SHADES = {"I": "#DCEAF4", "II": "#FBEBD3", "III": "#DFF1EA"}
GREY = "#555555"

RC: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "savefig.dpi": 200,
    "mathtext.fontset": "cm",
}

BOXED: dict[Any, Any] = {"axes.spines.top": True, "axes.spines.right": True}
"""Beside `RC`, of panels that are images."""


P = ParamSpec("P")
R = TypeVar("R")


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """A function that draws, in the style `RC`."""

    @functools.wraps(draw)
    def drawing(*arguments: P.args, **options: P.kwargs) -> R:
        with mpl.rc_context(RC):
            return draw(*arguments, **options)

    return drawing


def new_figure(width: float, height: float, **grid: Any) -> tuple[Figure, Any]:
    """A figure outside pyplot with its axes.

    Parameters
    ----------
    width, height : float
        In inches.
    **grid
        Of ``Figure.subplots``.
    """
    with mpl.rc_context(RC):
        figure = Figure(figsize=(width, height), layout="constrained")
        return figure, figure.subplots(**grid)


def new_mosaic(width: float, height: float, panels: Any, **ratios: Any) -> tuple[Figure, Any]:
    """A figure outside pyplot with its axes by name.

    Parameters
    ----------
    width, height : float
        In inches.
    panels : list of lists of str
        Of ``Figure.subplot_mosaic``.
    **ratios
        Of ``Figure.subplot_mosaic``.
    """
    with mpl.rc_context(RC):
        figure = Figure(figsize=(width, height), layout="constrained")
        return figure, figure.subplot_mosaic(panels, **ratios)


def write(axes: Any, path: str | os.PathLike[str]) -> Path:
    """Write the figure that axes belong to.

    Parameters
    ----------
    axes : Axes or array of Axes
    path : str or path-like
        Its ending chooses the format: png, svg or pdf.

    Returns
    -------
    Path

    Examples
    --------
    >>> import pathlib
    >>> import tempfile
    >>> from dynamics import plotting
    >>> axes = plotting.entry_classes({
    ...     "labels": {"W": [1, 1]}, "names": ["a"], "sizes": [2],
    ...     "scalars": 1, "entries": 2, "frozen": 0,
    ... })
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plotting.write(axes, pathlib.Path(folder, "classes.svg")).name
    'classes.svg'
    """
    target = Path(path)
    with mpl.rc_context(RC):
        np.ravel(axes)[0].figure.savefig(target)
    return target


def time_axis(axes: Axes, run: Trajectory) -> None:
    """Logarithmic time from the first step on, labelled with its unit.

    Parameters
    ----------
    axes : Axes
    run : Trajectory
    """
    first = run.time[run.time > 0]
    axes.set_xscale("log")
    axes.set_xlim(first.min() / 1.1, first.max() * 1.1)
    eta = run.settings.get("eta")
    unit = "" if eta is None else rf",  $\eta = {eta:g}$" if isinstance(eta, float) else ""
    axes.set_xlabel(rf"time $\tau = \eta \times$ steps{unit}")


def legend_on_the_right(axes: Axes, **options: Any) -> None:
    """A legend outside of a panel, on its right; ``options`` go to ``Axes.legend``."""
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), **options)


POWER = re.compile(r"([\d.]*)e([+-]?\d+)")


MANY = 1e3
"""Ratio of the limits of an axis from which on decades alone have ticks."""


class Decades(LogLocator):
    """Ticks at 1, 2, 5 of every decade; at the decades alone where there are more than three."""

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """Ticks between two limits."""
        self.set_params(subs=(1.0,) if vmax > MANY * vmin else (1.0, 2.0, 5.0))
        return super().tick_values(vmin, vmax)


def logarithmic(axes: Axes) -> None:
    """A logarithmic vertical axis that may span less than a decade, or many."""

    def written(value: float, _: int) -> str:
        low, high = axes.get_ylim()
        return rf"$10^{{{np.log10(value):.0f}}}$" if high > MANY * low else f"{value:g}"

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(Decades(numticks=12))
    axes.yaxis.set_major_formatter(FuncFormatter(written))
    axes.yaxis.set_minor_formatter(NullFormatter())


def offset_in_label(axes: Axes) -> None:
    """Put the power of ten of a linear vertical axis into its label, not above the panel.

    Of an almost constant curve it is a power and a value, as ``1e-5+5e-1``.
    """
    axes.yaxis.get_major_formatter().set_locs(list(axes.get_yticks()))
    power = axes.yaxis.get_major_formatter().get_offset()
    if power:
        written = POWER.sub(
            lambda m: ("" if m[1] == "1" else m[1]) + rf"$\times 10^{{{int(m[2])}}}$",
            power.replace("\N{MINUS SIGN}", "-"),
        )
        axes.set_ylabel(f"{axes.get_ylabel()}  ({written})")
        axes.yaxis.get_offset_text().set_visible(False)


def positive_time(run: Trajectory, series: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Time and a series without the start, which a logarithmic axis cannot show.

    Parameters
    ----------
    run : Trajectory
    series : float array, shape (records,)
        May be shorter than the run.

    Returns
    -------
    float arrays
    """
    time = run.time[: len(series)]
    return time[time > 0], series[time > 0]


def sparse(time: FloatArray) -> np.ndarray:
    """Indices of about 28 records of positive times, evenly spread over a logarithmic axis."""
    if not time.size:
        return np.empty(0, dtype=np.int64)
    even = np.linspace(np.log(time[0]), np.log(time[-1]), 28)
    return np.unique(np.abs(np.log(time)[None, :] - even[:, None]).argmin(axis=1))


def band(axes: Axes, runs: Sequence[Trajectory], name: str, colour: str, dash: str = "-") -> None:
    """The median of several runs as a line, least to greatest as a band, over positive times.

    Parameters
    ----------
    axes : Axes
    runs : sequence of Trajectory
    name : str
        State or observable.
    colour, dash : str
        Of the line.
    """
    shortest = min(runs, key=lambda run: len(run.time))
    rows = np.stack([run[name][: len(shortest.time)] for run in runs])
    time, middle = positive_time(shortest, np.median(rows, axis=0))
    axes.plot(time, middle, dash, color=colour)
    if len(runs) > 1:
        low, high = (positive_time(shortest, edge)[1] for edge in (rows.min(0), rows.max(0)))
        axes.fill_between(time, low, high, color=colour, alpha=0.2, lw=0)
