"""Style of all plots: colours safe for colour-blind readers, time axes, writing of files."""

from __future__ import annotations

import functools
import inspect
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from dynamics.plotting import choices
from dynamics.problem import FloatArray
from dynamics.results.trajectory import Trajectory
from dynamics.validation import path_of

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

CAPTION, CAPTION_ENDING = "caption", ".caption.txt"
"""Attribute of a figure that holds the figure's caption, and suffix of the caption's file."""
FEW = 20
"""A line with fewer points than this number has a marker at each point."""
PIXELS = 1200
"""Width of an inline figure in pixels; files have the resolution of `RC`."""
BOXED: dict[Any, Any] = {"axes.spines.top": True, "axes.spines.right": True}
"""Settings added to `RC` for panels that are images."""


P = ParamSpec("P")
R = TypeVar("R")


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Decorator: draw in the style `RC`, and check the type of the first argument.

    The decorated function raises TypeError if its first argument lacks the annotated type.
    """
    first = next(iter(inspect.signature(draw).parameters.values()))
    kinds = set(re.findall(r"\w+", first.annotation)) - {"Sequence", "Mapping", "str", "Any"}

    @functools.wraps(draw)
    def drawing(*arguments: P.args, **options: P.kwargs) -> R:
        result = arguments[0] if arguments else options.get(first.name)
        each = [*result.values()] if isinstance(result, Mapping) else [result]
        if isinstance(result, list | tuple) and "Sequence" in first.annotation:
            each = [*result]
        matches = all(kinds & {kind.__name__ for kind in type(item).__mro__} for item in each)
        if kinds and not (each and matches):
            kind = type(result).__name__ if each else f"empty {type(result).__name__}"
            raise TypeError(f"plotting.{draw.__name__} draws {first.annotation}, not {kind}")
        with mpl.rc_context(RC):
            return draw(*arguments, **options)

    return drawing


def new_figure(
    width: float, height: float, images: bool = False, **grid: Any
) -> tuple[Figure, Any]:
    """Create a figure, outside pyplot, and its axes from the options of ``Figure.subplots``.

    The width and the height, in inches, are scaled if `look` sets a width. With ``images=True`` the
    panels keep their aspect ratio.
    """
    width, height = choices.size(width, height, grid.get("nrows", 1), grid.get("ncols", 1), images)
    with mpl.rc_context(RC):
        figure = Figure((width, height), dpi=PIXELS / width, layout="constrained")
        return figure, figure.subplots(**grid)


def new_mosaic(width: float, height: float, panels: Any, **ratios: Any) -> tuple[Figure, Any]:
    """Create a figure, outside pyplot, and its axes by name, as ``Figure.subplot_mosaic`` does.

    The width and the height, in inches, are scaled if `look` sets a width.
    """
    width, height = choices.size(width, height, len(panels), len(panels[0]), images=False)
    with mpl.rc_context(RC):
        figure = Figure((width, height), dpi=PIXELS / width, layout="constrained")
        return figure, figure.subplot_mosaic(panels, **ratios)


def write(axes: Any, path: str | os.PathLike[str]) -> Path:
    """Write the figure of the axes, and a caption file if the figure's title was truncated.

    Parameters
    ----------
    axes : Axes or array of Axes
    path : str or path-like
        File whose suffix selects the format: png, svg or pdf.

    Raises
    ------
    TypeError
        If ``axes`` is not an Axes or an array of Axes.
    ValueError
        If the format is unknown, or ``path`` is not a path.

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
    target, parts = path_of("path", path), np.ravel(axes)
    if not parts.size or not hasattr(parts[0], "figure"):
        raise TypeError(f"plotting.write writes Axes, not {type(axes).__name__}")
    with mpl.rc_context(RC):
        parts[0].figure.savefig(target)
    if caption := getattr(parts[0].figure, CAPTION, ""):
        target.with_suffix(CAPTION_ENDING).write_text(f"{caption}\n", encoding="utf-8")
    return target


def time_axis(axes: Axes, run: Trajectory) -> None:
    """Set scale, limits and label of a time axis; a logarithmic axis begins at the first step."""
    first = run.time[run.time > 0]
    choices.scale(axes, first.min(), first.max())
    eta = run.settings.get("eta")
    unit = "" if eta is None else rf",  $\eta = {number(eta)}$" if isinstance(eta, float) else ""
    axes.set_xlabel(rf"time $\tau = \eta \times$ steps{unit}")


def visible(artist: Any) -> bool:
    """Whether any part of a line is within its axes (always true for other artists)."""
    if not isinstance(artist, Line2D) or artist.axes is None:
        return True
    artist.axes.autoscale_view()  # sets the limits of the axes
    box = artist.axes.bbox.padded(1.0)
    path = artist.get_transform().transform_path(artist.get_path())
    corners = np.asarray(path.vertices)
    inside = ((corners >= np.array(box.min)) & (corners <= np.array(box.max))).all(axis=1)
    return bool(inside.any() or path.intersects_bbox(box, filled=False))


def labelled(*panels: Axes) -> dict[str, Any]:
    """Map each label in the panels to the first visible artist with the label."""
    named: dict[str, Any] = {}
    for panel in panels:
        for artist, label in zip(*panel.get_legend_handles_labels(), strict=True):
            if visible(artist):
                named.setdefault(label, artist)
    return named


def legend(axes: Axes, **options: Any) -> None:
    """Draw a legend of the visible artists of a panel, if any, with options of ``Axes.legend``."""
    named = labelled(axes)
    if named:
        axes.legend(list(named.values()), list(named), **options)


def legend_below(figure: Figure, handles: Sequence[Any], most: int = 3, **options: Any) -> None:
    """Draw a legend of up to `most` columns below all panels, by ``Figure.legend``."""
    if handles:
        look = {"fontsize": 8, "ncols": min(most, len(handles))} | options
        figure.legend(handles=list(handles), loc="outside lower center", **look)


def note(axes: Axes, text: str, at: Any, offset: Any, xycoords: Any = "data", **look: Any) -> None:
    """Write a small text at an offset in points from the place `at`, as ``Axes.annotate`` does."""
    look = {"fontsize": 8, "textcoords": "offset points", "xycoords": xycoords, **look}
    axes.annotate(text, at, offset, **look)


def legend_on_the_right(axes: Axes, **options: Any) -> None:
    """Draw a legend to the right of a panel, with options of ``Axes.legend``."""
    draw = axes.legend if "handles" in options else functools.partial(legend, axes)
    draw(loc="center left", bbox_to_anchor=(1.0, 0.5), **options)


def legend_columns(figure: Figure, names: Sequence[str] | Mapping[str, Any]) -> int:
    """Number of columns, at most four, in which legend entries fit the width of the figure."""
    longest = max((len(name) for name in names), default=1)
    return max(1, min(4, len(names), int(figure.get_figwidth() / (0.5 + 0.085 * longest))))


POWER = re.compile(r"([\d.]*)e([+-]?\d+)")


MANY = 1e3
"""An axis has ticks only at powers of ten if the ratio of its limits exceeds this number."""
NARROW = 1.1
"""Tick labels of a logarithmic axis have up to 15 digits unless the ratio of its limits is
larger."""
FLAT = 1e-14
"""Values count as constant if their relative range is at most this number."""


def number(value: float, digits: int = 4) -> str:
    """LaTeX of a number with at most `digits` digits, as 0.5 or 10^{5}, without dollar signs."""
    mantissa, _, power = f"{value:.{digits}g}".partition("e")
    if not power and value and float(f"{value:.0e}") == value and not 1e-2 <= abs(value) < 1e4:
        mantissa, _, power = f"{value:.0e}".partition("e")
    if not power:
        return mantissa
    ten = f"10^{{{int(power)}}}"
    return {"1": ten, "-1": f"-{ten}"}.get(mantissa, rf"{mantissa} \times {ten}")


def tick(value: float, power: bool = False, digits: int = 4) -> str:
    """Tick label of a number; `power` writes a power of ten in any case."""
    written = number(value, digits)
    if power and value and "^" not in written:
        mantissa, _, exponent = f"{value:.3e}".partition("e")
        factor = "" if abs(float(mantissa)) == 1 else rf"{abs(float(mantissa)):g} \times "
        written = f"{'-' if value < 0 else ''}{factor}10^{{{int(exponent)}}}"
    return rf"$\mathdefault{{{written}}}$" if "^" in written else written.replace("-", "\u2212")


class Decades(LogLocator):
    """Tick locator at 1, 2, 5 of every decade, or at powers of ten over more than 3 decades.

    Ticks are linear if at most one tick at 1, 2, 5 is visible.
    """

    def nonsingular(self, vmin: float, vmax: float) -> Any:
        """Axis limits around two values; values that differ only by rounding count as constant."""
        alike = vmin < vmax <= vmin * (1.0 + FLAT)
        return super().nonsingular(vmin, vmin if alike else vmax)

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """Ticks between two limits."""
        wide = vmax > MANY * vmin
        subs = (1.0,) if wide else (1.0, 2.0, 5.0)
        decades = 10.0 ** np.arange(math.floor(math.log10(vmin)), math.log10(vmax))
        marks = np.outer(decades, subs)
        if not wide and ((marks >= vmin) & (marks <= vmax)).sum() < 2:
            # The limits are scaled to their decade, because MaxNLocator fails below 1e-288.
            linear = MaxNLocator(5, steps=[1, 2, 5, 10])
            return decades[0] * linear.tick_values(vmin / decades[0], vmax / decades[0])
        self.set_params(subs=subs, numticks=7 if wide else 12)
        return super().tick_values(vmin, vmax)


def logarithmic(axes: Axes) -> None:
    """Make the vertical axis logarithmic, also for a range of less than one decade.

    The axis stays linear if no drawn value is positive.
    """
    if axes.has_data() and not np.isfinite(axes.dataLim.minposy):
        return

    def written(value: float, _: int) -> str:
        low, high = axes.get_ylim()
        return tick(value, high > MANY * low, 4 if high > NARROW * low else 15)

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(Decades())
    axes.autoscale_view(scalex=False)  # set the limits for the new scale and formatter
    axes.yaxis.set_major_formatter(FuncFormatter(written))
    axes.yaxis.set_minor_formatter(NullFormatter())


def offset_in_label(axes: Axes) -> None:
    """Move the power of ten of a linear vertical axis from above the panel into the axis label.

    The offset text of an almost constant curve has a power and a value, as ``1e-5+5e-1``.
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
    """Time and series without the start, which a logarithmic axis cannot show.

    The series, shape (records,), may be shorter than the run.
    """
    time = run.time[: len(series)]
    there = choices.shown(time)
    return time[there], series[there]


def sparse(time: FloatArray) -> np.ndarray:
    """Indices of about 28 records, evenly spaced on the time axis."""
    if len(time) < 2:
        return np.arange(len(time))
    places = choices.share(time, time[0], time[-1])
    even = np.linspace(places[0], 1.0, 28)
    return np.unique(np.abs(places[None, :] - even[:, None]).argmin(axis=1))


def band(axes: Axes, runs: Sequence[Trajectory], name: str, colour: str, dash: str = "-") -> None:
    """Draw the median of a state or observable over runs as a line, and the range as a band."""
    shortest = min(runs, key=lambda run: len(run.time))
    rows = np.stack([run.series(name)[: len(shortest.time)] for run in runs])
    time, rows = measured(shortest.time, rows)
    axes.plot(time, np.median(rows, axis=0), dash, color=colour, **marked(time))
    if len(runs) > 1:
        axes.fill_between(time, rows.min(0), rows.max(0), color=colour, alpha=0.2, lw=0)


def measured(time: FloatArray, series: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Times and series, shape (..., records), without records that are NaN or cannot be shown."""
    there = choices.shown(time) & ~np.isnan(series).all(axis=tuple(range(series.ndim - 1)))
    return time[there], series[..., there]


def marked(time: FloatArray) -> dict[str, Any]:
    """Marker options of a line with fewer than `FEW` points; empty for a line with more points."""
    return {"marker": "o", "ms": 3.5} if time.size < FEW else {}
