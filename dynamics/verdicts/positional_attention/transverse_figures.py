"""Curvature across the three scalars along a run, and association over the spread of a start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, SymmetricalLogLocator
from numpy.typing import NDArray

from dynamics.analysis.transverse_stability import Transverse
from dynamics.plotting import style
from dynamics.system import System
from dynamics.verdicts.figure import Drawing, FigureRequest, edges, page, state, stated
from dynamics.verdicts.positional_attention.grid import SHOWN
from dynamics.verdicts.positional_attention.transverse import HORIZON, perturbed, spectrum

KINDS = {
    "patches": (style.VERMILION, "patches of one set differ"),
    "sets": (style.BLUE, "sets differ"),
    "gamma": (style.ORANGE, r"other, inside sets ($\gamma$)"),
    "rho": (style.GREEN, r"other, between sets ($\rho$)"),
}
"""What a transverse direction moves -> colour, label."""
EXACT_FIRST = ("sets", "patches", "gamma", "rho")
SMALLEST = 1e-5
"""Curvatures below this are on a linear scale."""


def transverse_figure(system: System, request: FigureRequest) -> Drawing:
    """Transverse stability along the reduced flow. Options: ``time``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    options = request.options({"time": HORIZON})
    law = request.make_parameters(system, D=8, C=2, q=0.5)
    result = spectrum(system, law, options["time"])
    names = ("time", "eigenvalues", "amplification", "peak", "attracting_from")
    caption = (
        f"Curvature of the population risk across the symmetric manifold along the reduced flow "
        f"({stated(law, 'D', 'C', 'q')}): negative is repelling. A "
        f"deviation grows up to {result.peak:.4g}-fold, against 1/omega = "
        f"{1 / max(law.omega, 1e-300):.4g}."
    )
    data = {name: getattr(result, name) for name in names}
    axes = state(transverse_picture(result, law.omega), system, law, *SHOWN, "omega")
    return Drawing(axes, data, caption)


def omega_figure(system: System, request: FigureRequest) -> Drawing:
    """Association over omega and time. Options: ``omegas``, ``seeds``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    law = request.make_parameters(system, ("omega",), D=8, C=2, q=0.5)
    few, many = np.geomspace(1e-3, 0.1, 7), np.geomspace(1e-3, 0.1, 13)
    options = request.options({"omegas": few, "seeds": 2}, {"omegas": many, "seeds": 5})
    peak, omegas = (
        spectrum(system, law, HORIZON).peak,
        np.asarray(options["omegas"]),
    )
    rows = []
    for omega in omegas:
        start = replace(law, omega=float(omega))
        runs = [perturbed(system, start, seed, HORIZON) for seed in request.seeds(options["seeds"])]
        late = runs[0].time >= 1e-1
        rows.append(np.mean([run["patch_association"][late] for run in runs], axis=0))
    time = runs[0].time[late]
    data = {"omega": omegas, "time": time, "association": np.array(rows), "amplification": peak}
    caption = (
        f"Exact population flow from A_ij ~ N(0, omega^2) ({stated(law, 'D', 'C', 'q')}, mean of "
        f"{options['seeds']} seeds): the share of rows that are "
        f"associated. The dashed line is 1/Phi_max = {1 / peak:.3g}."
    )
    axes = state(_omega_picture(data), system, law, *SHOWN, seeds=options["seeds"])
    return Drawing(axes, data, caption)


def _omega_picture(data: Mapping[str, Any]) -> Axes:
    """Share of associated rows over the spread of a random start and time.

    The line is the spread that the linear theory expects to survive.
    """
    time, safe = data["time"], 1 / data["amplification"]
    with page(6.0, 3.6, rc=style.RC | style.BOXED) as (figure, axes):
        sides = (np.exp(edges(np.log(centres))) for centres in (time, data["omega"]))
        look: dict[str, Any] = {"cmap": "viridis", "vmin": 0, "vmax": 1, "rasterized": True}
        image = axes.pcolormesh(*sides, data["association"], **look)
        axes.set(xscale="log", yscale="log")
        axes.axhline(safe, color=style.VERMILION, lw=1.2, ls="--")
        axes.annotate(
            r"$1/\Phi_{max}$", (time[0], safe), (3, 3), textcoords="offset points",
            color=style.VERMILION, fontsize=9,
        )  # fmt: skip
        axes.set(xlabel=r"time $\tau$", ylabel=r"spread of the random start $\omega$")
        figure.colorbar(image, ax=axes, label="share of associated rows").outline.set_color(
            style.GREY
        )
    return axes


def transverse_picture(result: Transverse, omega: float) -> Any:
    """Transverse eigenvalues over time, coloured by what they move; below, the amplification.

    Parameters
    ----------
    result : Transverse
        Along a run whose events T0 and T1 are marked where they happened.
    omega : float
        Spread of a random start: the amplification 1/omega is marked.

    Returns
    -------
    array of Axes
    """
    positive = result.time > 0
    time, peak = result.time[positive], int(result.amplification.argmax())
    with page(6.4, 6.2, nrows=2, sharex=True, height_ratios=(1.5, 1)) as (_, axes):
        _curvatures(axes[0], result, positive)
        below = axes[1]
        below.plot(time, result.amplification[positive], color=style.VERMILION, label="worst start")
        label = "random start (r.m.s.)"
        below.plot(time, result.typical[positive], color=style.GREY, ls="--", label=label)
        if omega > 0:
            below.axhline(1 / omega, color=style.GREY, lw=0.8, ls=":")
            text = rf"$1/\omega$, $\omega = {omega:g}$"
            side = below.get_yaxis_transform()
            below.text(0.01, 1.06 / omega, text, transform=side, color=style.GREY, va="bottom")
        if peak > 0:
            spot = result.time[peak], result.peak
            below.plot(*spot, "o", color=style.VERMILION, ms=5)
            _note(below, rf"$\Phi_{{max}} = {result.peak:.0f}$", spot, (7, 4))
        style.logarithmic(below)
        below.yaxis.set_major_locator(LogLocator())
        below.set_ylabel(r"amplification $\Phi$")
        below.legend(loc="upper left", bbox_to_anchor=(0, 0.86), fontsize=8)
        style.time_axis(below, result.run)
        for name, label in (("T0", "$T_0$"), ("T1", "$T_1$")):
            event = result.run.events.get(name)
            if not event:
                continue
            for panel in axes:
                panel.axvline(event.time, color=style.GREY, lw=0.8, ls="-.", zorder=0)
            top: Any = {"transform": axes[0].get_xaxis_transform(), "ha": "center"}
            axes[0].text(event.time, 1.01, label, va="bottom", color=style.GREY, **top)
    return axes


def _curvatures(axes: Axes, result: Transverse, visible: NDArray[np.bool_]) -> None:
    time, branches = result.time[visible], result.branches(EXACT_FIRST)
    for name, (colour, label) in KINDS.items():
        values = branches[name][visible]
        if values.shape[1]:
            axes.plot(time, values, color=colour, lw=1.1)
            axes.plot([], [], color=colour, label=f"{label}: {values.shape[1]}")
    along = result.symmetric[visible, 0]
    axes.plot(time, along, color="black", lw=1.2, ls=(0, (4, 2)), label="lowest along the manifold")
    axes.set_yscale("symlog", linthresh=SMALLEST, linscale=0.4)
    axes.yaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=SMALLEST))
    axes.yaxis.set_major_formatter(FuncFormatter(_power))
    low = min(2.0 * result.eigenvalues[visible].min(), -SMALLEST)
    axes.set_ylim(low, max(2.0 * result.eigenvalues[visible].max(), SMALLEST))
    axes.axhspan(low, 0, color=style.GREY, alpha=0.10, lw=0)
    corner: Any = {"color": style.GREY, "ha": "right", "va": "bottom", "style": "italic"}
    axes.text(0.99, 0.6 * low, "repelling", transform=axes.get_yaxis_transform(), **corner)
    # The most repelling mode is named where it fades, if it is row competition.
    lowest = result.eigenvalues[:, 0]
    k = int(lowest.argmin())
    if result.shares.get("rows", np.zeros_like(result.eigenvalues))[k, 0] >= 0.9:
        fading = k + int((lowest[k:] > lowest[k] / 8).argmax())
        text = rf"row competition, $\times {result.multiplets(k)[0].multiplicity}$"
        _note(axes, text, (result.time[fading], lowest[fading]), (7, -4), va="center", fontsize=8)
    axes.set_ylabel("curvature across the manifold")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.05), ncols=2, fontsize=8, handlelength=1.6)


def _note(
    axes: Axes, text: str, spot: tuple[float, float], offset: tuple[float, float], **look: Any
) -> None:
    """A word beside a spot, in the colour of what repels."""
    axes.annotate(text, spot, offset, textcoords="offset points", color=style.VERMILION, **look)


def _power(value: float, _: int | None = None) -> str:
    """A power of ten with its sign, or 0."""
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    return rf"${sign}10^{{{round(np.log10(abs(value)))}}}$"
