"""Whether the symmetric manifold holds a run: curvatures across it, and what deviations become."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, SymmetricalLogLocator

from dynamics.analysis.transverse_stability import Transverse
from dynamics.plotting.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RC,
    VERMILION,
    logarithmic,
    new_figure,
    time_axis,
)

KINDS = {
    "patches": (VERMILION, "patches of one set differ"),
    "sets": (BLUE, "sets differ"),
    "gamma": (ORANGE, r"other, inside sets ($\gamma$)"),
    "rho": (GREEN, r"other, between sets ($\rho$)"),
}
EXACT_FIRST = ("sets", "patches", "gamma", "rho")
SMALLEST = 1e-5
"""Curvatures below this are drawn on a linear scale."""


def transverse(result: Transverse, omega: float | None = None) -> Any:
    """Transverse eigenvalues over time, coloured by what they move; below, the amplification.

    Parameters
    ----------
    result : Transverse
        Along a run whose events T0 and T1 are marked where they happened.
    omega : float, optional
        Spread of a random start: the amplification 1/omega is marked.

    Returns
    -------
    array of Axes
    """
    kept = result.time > 0
    time = result.time[kept]
    with mpl.rc_context(RC):
        _, axes = new_figure(6.4, 6.2, nrows=2, sharex=True, height_ratios=(1.5, 1))
        _curvatures(axes[0], result, kept)
        axes[1].plot(time, result.amplification[kept], color=VERMILION, label="worst start")
        label = "random start (r.m.s.)"
        axes[1].plot(time, result.typical[kept], color=GREY, ls="--", label=label)
        if omega is not None:
            axes[1].axhline(1 / omega, color=GREY, lw=0.8, ls=":")
            place = axes[1].get_yaxis_transform()
            text = rf"$1/\omega$, $\omega = {omega:g}$"
            axes[1].text(0.01, 1.06 / omega, text, transform=place, color=GREY, va="bottom")
        _peak(axes[1], result)
        logarithmic(axes[1])
        axes[1].yaxis.set_major_locator(LogLocator())
        axes[1].set_ylabel(r"amplification $\Phi$")
        axes[1].legend(loc="upper left", bbox_to_anchor=(0, 0.86), fontsize=8)
        time_axis(axes[1], result.run)
        for panel in axes:
            _events(panel, result, named=panel is axes[0])
    return axes


def _curvatures(axes: Axes, result: Transverse, kept: np.ndarray) -> None:
    time, branches = result.time[kept], result.branches(EXACT_FIRST)
    for name, (colour, label) in KINDS.items():
        shown = branches[name][kept]
        if shown.shape[1]:
            axes.plot(time, shown, color=colour, lw=1.1)
            axes.plot([], [], color=colour, label=f"{label}: {shown.shape[1]}")
    along = result.symmetric[kept, 0]
    axes.plot(time, along, color="black", lw=1.2, ls=(0, (4, 2)), label="lowest along the manifold")
    extent = [result.eigenvalues[kept].min(), result.eigenvalues[kept].max()]
    axes.set_yscale("symlog", linthresh=SMALLEST, linscale=0.4)
    axes.yaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=SMALLEST))
    axes.yaxis.set_major_formatter(FuncFormatter(_power))
    axes.set_ylim(min(2.0 * extent[0], -SMALLEST), max(2.0 * extent[1], SMALLEST))
    axes.axhspan(axes.get_ylim()[0], 0, color=GREY, alpha=0.10, lw=0)
    place = axes.get_yaxis_transform()
    style: dict[str, Any] = {"transform": place, "color": GREY, "ha": "right", "style": "italic"}
    axes.text(0.99, 0.6 * axes.get_ylim()[0], "repelling", va="bottom", **style)
    _name_the_worst(axes, result)
    axes.set_ylabel("curvature across the manifold")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.05), ncols=2, fontsize=8, handlelength=1.6)


def _name_the_worst(axes: Axes, result: Transverse) -> None:
    """Name the most repelling mode where it fades, if it is row competition."""
    lowest = result.eigenvalues[:, 0]
    k = int(lowest.argmin())
    if result.shares.get("rows", np.zeros_like(result.eigenvalues))[k, 0] < 0.9:
        return
    fading = k + int((lowest[k:] > lowest[k] / 8).argmax())
    times = result.multiplets(k)[0].multiplicity
    text = rf"row competition, $\times {times}$"
    spot = (result.time[fading], lowest[fading])
    style: dict[str, Any] = {"textcoords": "offset points", "color": VERMILION, "fontsize": 8}
    axes.annotate(text, spot, xytext=(7, -4), va="center", **style)


def _power(value: float, _: int | None = None) -> str:
    """A power of ten with its sign, or 0."""
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    return rf"${sign}10^{{{round(np.log10(abs(value)))}}}$"


def _peak(axes: Axes, result: Transverse) -> None:
    k = int(result.amplification.argmax())
    if k == 0:
        return
    axes.plot(result.time[k], result.peak, "o", color=VERMILION, ms=5)
    axes.annotate(
        rf"$\Phi_{{max}} = {result.peak:.0f}$",
        (result.time[k], result.peak),
        xytext=(7, 4),
        textcoords="offset points",
        color=VERMILION,
    )


def _events(axes: Axes, result: Transverse, named: bool) -> None:
    """Vertical lines at T0 and T1, named at the top."""
    for name, text in (("T0", "$T_0$"), ("T1", "$T_1$")):
        event = result.run.events.get(name)
        if event is None:
            continue
        axes.axvline(event.time, color=GREY, lw=0.8, ls="-.", zorder=0)
        if named:
            place = axes.get_xaxis_transform()
            axes.text(event.time, 1.01, text, transform=place, ha="center", va="bottom", color=GREY)
