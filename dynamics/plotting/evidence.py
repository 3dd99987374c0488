"""Plot of the evidence of a verdict: measured curves and the levels of its bounds."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from math import lcm
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import SymmetricalLogLocator

from dynamics.plotting import captions, style
from dynamics.plotting.labels import logarithmic as ticks
from theory.notation import Notation

COLOURS = (style.BLUE, style.VERMILION, style.GREEN, style.PURPLE, style.ORANGE, "black")
DASHES = ("-", "--", "-.", ":")
MOST_INSIDE = 3
"""Maximum number of curves and levels for a legend inside the panel, instead of on the right."""
FEW = 12
"""A curve with at most this many points gets a marker at each point."""
NARROW = 100.0
"""A logarithmic axis has tick labels at 1, 2, 5 if the ratio of its limits is below this number."""


@style.styled
def evidence(verdict: Any) -> Axes | None:
    """Plot the evidence of a `Verdict`, or return None if the evidence is only a table.

    Raises
    ------
    TypeError
        If ``verdict`` is not a `Verdict`.

    Examples
    --------
    >>> import dynamics
    >>> from dynamics import plotting
    >>> system = dynamics.load_system("positional_attention")
    >>> (verdict,) = dynamics.verify(system, system.Parameters(D=16, C=4), ["Theorem 3.1"])
    >>> plotting.evidence(verdict).get_title(loc="left")
    'Theorem 3.1: does not hold here'
    """
    if not hasattr(verdict, "evidence"):
        raise TypeError(f"plotting.evidence draws a Verdict, not {type(verdict).__name__}")
    plot = verdict.evidence.get("plot")
    if not plot:
        return None
    many = len(plot["curves"]) + len(plot["lines"]) > MOST_INSIDE
    figure, axes = style.new_figure(7.4 if many else 5.6, 3.6)
    letters = Notation("", [(name, name, tex, "") for name, tex in plot.get("letters", {}).items()])
    captions.constants(figure, letters, plot.get("parameters", {}))
    chart(axes, plot)
    axes.set_title(f"{verdict.claim.source}: {verdict.word}", fontsize=9, loc="left")
    return axes


def chart(axes: Axes, plot: Mapping[str, Any]) -> None:
    """Draw curves and levels with their legend; short curves have markers.

    The mapping `plot` has the keys ``curves`` (each with ``label``, ``x``, ``y``, optional
    ``errors``), ``lines`` (each with ``label`` and ``y``), ``x_label``, ``y_label``, ``x_scale``
    and ``y_scale``.
    """
    curves, lines = plot["curves"], plot["lines"]
    for number, curve in enumerate(curves):
        colour, dash = _look(number)
        x, y, errors = curve["x"], curve["y"], curve.get("errors")
        axes.plot(
            x, y, dash, marker="o" if len(x) <= FEW else "",
            mfc="white", color=colour, label=curve["label"], ms=4.5,
        )  # fmt: skip
        if errors:
            axes.errorbar(x, y, errors, fmt="none", ecolor=colour, elinewidth=1, capsize=2.5)
    axes.set(xscale=plot["x_scale"], xlabel=plot["x_label"], ylabel=plot["y_label"])
    x = _finite(curves, "x")
    x = x[x > 0]
    if plot["x_scale"] == "log" and x.size and x.max() < NARROW * x.min():
        ticks(axes.xaxis, x.max() / x.min())
    _scale(axes, plot["y_scale"], _finite(curves, "y"))
    for line, dash in zip(lines, cycle((":", "--", "-.")), strict=False):
        if line["y"] > 0 or axes.get_yscale() != "log":
            grey: dict[str, Any] = {"color": style.GREY, "lw": 0.9, "ls": dash, "zorder": 0}
            axes.axhline(line["y"], label=line["label"], **grey)
    if len(curves) + len(lines) > MOST_INSIDE:
        style.legend_on_the_right(axes, fontsize=8)
    else:
        style.legend(axes, loc="best", fontsize=8)


def _look(number: int) -> tuple[str, str]:
    """Colour and line style of the curve with this number; the first 24 curves differ."""
    period = lcm(len(COLOURS), len(DASHES))
    return COLOURS[number % len(COLOURS)], DASHES[(number + number // period) % len(DASHES)]


def _finite(curves: Any, name: str) -> Any:
    """Finite nonzero values of the entry `name` of all curves."""
    values = np.concatenate([np.asarray(curve[name], dtype=float) for curve in curves])
    return values[np.isfinite(values) & (values != 0)]


def _scale(axes: Axes, scale: str, values: Any) -> None:
    """Set the vertical scale; a logarithmic scale is symmetric if there are negative values."""
    if scale == "linear" or not values.size:
        return
    if scale == "symlog" and (values < 0).any():
        least = max(float(np.abs(values).min()), float(np.abs(values).max()) * 1e-6)
        axes.set_yscale("symlog", linthresh=least)
        axes.yaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=10 * least))
    elif values.max() < NARROW * values.min():
        style.logarithmic(axes)
    else:
        axes.set_yscale("log")
