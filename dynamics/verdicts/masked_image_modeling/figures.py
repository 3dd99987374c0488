r"""Figures of masked image modelling; those of one run are in `phases` and `maps`.

- ``gap``: two-phase against one-phase learning over (kappa_c, kappa_s);
- ``scaling``: times of the events in units of :math:`K P / C_s` against P.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import log
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.patheffects import withStroke

from dynamics.plotting.labels import logarithmic
from dynamics.plotting.style import BLUE, GREEN, GREY, VERMILION, legend_on_the_right
from dynamics.problem import FloatArray
from dynamics.system import System
from dynamics.validation import InvalidRequest, integer, real
from dynamics.verdicts.figure import Drawing, FigureRequest, edges, page
from dynamics.verdicts.masked_image_modeling import runs
from theory.papers.masked_image_modeling.information_gap import leading_motion, rho0

CORE, MOST_LOCAL = (0.5, 0.98), 0.5
"""Ranges of the exponents, as the paper has them: kappa_c from 1/2, kappa_s up to 1/2."""
LEAST_PATCHES = 64
"""Patches below which the plane has hardly any sizes."""
GRID = {"local": 9, "core": 20}
FINE_GRID = {"local": 21, "core": 56}
HALO: list[Any] = [withStroke(linewidth=3.0, foreground="white")]
ALONE = 0.05
"""Width of a cell that has no neighbour."""
COLOURS = "PuOr_r"
"""Diverging, safe for colour-blind readers: orange where the ratio is above 1."""
LARGE = 1e12
"""A ratio of rates at which its limit is reached."""
LEAST_SIZE = 16
"""Patches below which areas hardly have sizes of their own."""
EVENTS = {
    "E1": r"$E_1$, end of stage 1", "E2": r"$E_2$, switch", "E4": r"$E_4$, end of rapid growth",
}  # fmt: skip
LOOKS = ((BLUE, "o", "-"), (VERMILION, "s", "--"), (GREEN, "^", "-."))
TOP, STEP = 0.97, 0.06
"""Heights of the marks of events that did not happen, in shares of the panel."""


def plane(system: System, law: Any, local: int, core: int) -> dict[str, Any]:
    """The ratio of both rates at the start over the plane, at the patches and masks of a law.

    Parameters
    ----------
    system : System
    law : Parameters
        Of one cluster.
    local, core : int
        Sizes on each axis, evenly spread over its logarithm; fewer where they coincide.

    Returns
    -------
    dict
        ``rows``: for every local size kappa_s, the kappa_c, and |alpha_0| / alpha_m there.
        ``boundary``, shape (points, 2): (kappa_c, kappa_s) where it is 1, between the two nearest
        sizes. ``trained``, shape (runs, 4): (kappa_c, kappa_s) on either side of it, whether the
        run had two phases, and whether the ratio is above 1 at the start.
    """
    sizes = np.unique(np.geomspace(2, law.P**MOST_LOCAL, local).round().astype(int))
    rows, boundary, sides = [], [], []
    for size in sizes.tolist():
        # Whole local areas beside a global one that grows.
        left = law.P - (law.P ** np.linspace(*CORE, core)).round().astype(int)
        wholes = np.unique(law.P - np.maximum(size, left - left % size))
        laws = [
            replace(law, C_global=int(whole), C_local=size, d=None) for whole in wholes if whole > 0
        ]
        ratios = np.array([system.ReducedPopulation(one).rho0 for one in laws])
        kappas, kappa_s = np.array([one.kappa_c for one in laws]), log(size) / log(law.P)
        rows.append((kappa_s, kappas.tolist(), ratios.tolist()))
        for k in np.flatnonzero(np.diff(np.sign(np.log(ratios)))):
            share = np.log(ratios[k]) / np.log(ratios[k] / ratios[k + 1])
            boundary.append((kappas[k] + share * (kappas[k + 1] - kappas[k]), kappa_s))
            for one in laws[k : k + 2]:
                case = runs.trained(system, one, horizon=5.0)
                above = case.run["rho"][0] > 1
                sides.append((one.kappa_c, one.kappa_s, float(case.two_phases), float(above)))
    return {
        "rows": rows,
        "boundary": np.reshape(boundary, (-1, 2)),
        "trained": np.reshape(sides, (-1, 4)),
    }


def gap_figure(system: System, request: FigureRequest) -> Drawing:
    """Two-phase against one-phase learning. Options: ``local``, ``core``, the sizes on each axis.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    options = request.options(GRID, FINE_GRID, local=2, core=2)
    patches = integer(
        "P", request.user_parameters.get("P", runs.POSITIVE["P"]), at_least=LEAST_PATCHES
    )
    default = {"P": patches, "C_global": patches // 2, "C_local": 1}
    law = request.make_parameters(system, axes=("family", "C_global", "C_local"), **default)
    runs.only_one_cluster(law)
    data = plane(system, law, **options)
    held = (
        f"one cluster, $P = {law.P}$, {law.masked} masked; two phases where the global feature "
        "moves faster at first"
    )
    caption = (
        f"Ratio of the rates of Phi_0 and Phi_m at Q = 0 over the exponents of both sizes at "
        f"P={law.P}. {_words_of_boundary(data)}"
    )
    return Drawing(plane_picture(data, held), data, caption)


def _words_of_boundary(data: Mapping[str, Any]) -> str:
    """Where the rates are equal, and what training on either side of it shows, in words."""
    boundary, sides = data["boundary"], data["trained"]
    if not len(boundary):
        ratios = np.concatenate([row[2] for row in data["rows"]])
        side = "everywhere on one side of 1 along every row, not the same of all"
        if ratios.max() < 1:
            side = "everywhere below 1: one phase"
        elif ratios.min() >= 1:
            side = "everywhere above 1: two phases"
        return (
            f"It goes from {ratios.min():.3g} to {ratios.max():.3g}, {side}, and no row passes "
            "equal rates."
        )
    off = 2 * boundary[:, 0] - (1 + boundary[:, 1])
    agree = int((sides[:, 2] == sides[:, 3]).sum())
    return (
        f"Phase I exists to the right of the measured line, which is at Delta = {off.min():.2g} to "
        f"{off.max():.2g}. Training on either side of it, {agree} of {len(sides)} runs "
        "have as many phases as the start says."
    )


def plane_picture(data: Mapping[str, Any], held: str) -> Axes:
    """The ratio of both rates at the start in colour, the boundary and the line Delta = 0.

    Parameters
    ----------
    data : mapping
        Of `plane`.
    held : str
        What is held fixed.

    Returns
    -------
    Axes
    """
    rows, boundary = data["rows"], data["boundary"]
    heights = edges(np.array([row[0] for row in rows]), ALONE)
    sides = [edges(np.array(kappas), ALONE) for _, kappas, _ in rows]
    logs = [np.log10(ratios) for _, _, ratios in rows]
    least, most = min(map(np.min, logs)), max(map(np.max, logs))
    norm = TwoSlopeNorm(0.0, min(least, -0.1), max(most, 0.1))
    with page(6.6, 4.9) as (figure, axes):
        for k, values in enumerate(logs):
            image = axes.pcolormesh(
                sides[k], heights[k : k + 2], values[None, :], cmap=COLOURS, norm=norm,
                rasterized=True,
            )  # fmt: skip
        local = np.linspace(heights[0], heights[-1], 50)
        look: dict[str, Any] = {"color": "black", "path_effects": HALO}
        axes.plot((1 + local) / 2, local, ls="--", label=r"$\Delta = 0$", **look)
        if len(boundary):
            alone = {"marker": "|", "ms": 12, "mew": 2.5, "ls": ""} if len(boundary) == 1 else {}
            label = r"measured: equal rates at $Q = 0$"
            axes.plot(*boundary.T, lw=2.0, label=label, **look, **alone)
        for phases, marker, face, word in (
            (1, "^", "black", "two phases"),
            (0, "v", "white", "one phase"),
        ):
            points = data["trained"][data["trained"][:, 2] == phases]
            if len(points):
                axes.plot(
                    points[:, 0], points[:, 1], marker, ms=6, mfc=face, mec="black", ls="",
                    label=f"trained: {word}",
                )  # fmt: skip
        axes.set_ylim(heights[0], heights[-1])
        # Sizes differ a little from row to row: the axis shows what all of them have.
        right = max(min(row[-1] for row in sides), rows[-1][1][-1])
        axes.set_xlim(max(row[0] for row in sides), min(1.0, right))
        axes.set_xlabel(r"$\kappa_c = \ln C_{\mathrm{global}} / \ln P$")
        axes.set_ylabel(r"$\kappa_s = \ln C_{\mathrm{local}} / \ln P$")
        bar = figure.colorbar(image, ax=axes, extend="neither")
        bar.set_label(r"$\log_{10}\; |\alpha_0| / \alpha_m$ at $Q = 0$")
        bar.ax.set_ylim(min(least, 0.0), max(most, 0.0))
        bar.outline.set_linewidth(0.6)
        nowhere = "" if len(boundary) else "\nequal rates at $Q = 0$: in no row of this plane"
        axes.set_title(held + nowhere, fontsize=8, loc="left")
        figure.legend(loc="outside lower center", ncols=2, fontsize=8)
    return axes


def scaling_figure(system: System, request: FigureRequest) -> Drawing:
    """Times of events along P. Options: ``sizes``, ``kappa_c``, ``kappa_s``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    default = {
        "kappa_c": runs.EXPONENTS[0],
        "kappa_s": runs.EXPONENTS[1],
        "sizes": runs.MORE_SIZES[:6],
    }
    options = request.options(default, {"sizes": runs.MORE_SIZES}, sizes=LEAST_SIZE)
    for name in request.user_parameters or ["parameters"] * (request.parameters is not None):
        raise InvalidRequest(
            f"{name} cannot be set: sizes and exponents give every law of this figure"
        )
    core, local = (real(n, options[n], above=0.0, at_most=1.0) for n in ("kappa_c", "kappa_s"))
    patches = sorted(set(options["sizes"]))
    cases = [runs.trained(system, runs.along(system, P, (core, local))) for P in patches]
    sizes = np.array([case.parameters.P for case in cases], dtype=np.float64)
    times = {name: np.array([case.time(name) / case.unit for case in cases]) for name in EVENTS}
    limit, levels = None, {}
    if any(case.two_phases for case in cases):
        # alpha_m starts at gamma (1 - gamma) C_s / (K P), as C_s grows; rho far above 1.
        gamma = cases[-1].parameters.gamma
        limit = float(leading_motion().switch.subs(rho0, LARGE)) / (gamma * (1 - gamma))
        levels = {f"switch at a large gap, {limit:.3g}": limit}
    held = (
        rf"one cluster, half masked, $\kappa_c = {core:g}$, $\kappa_s = {local:g}$ "
        rf"($\Delta = {(1 - local) - 2 * (1 - core):.3g}$), $z = 1$"
    )
    words = "; ".join(_words_of_times(name, values) for name, values in times.items())
    caption = (
        f"Times of the events in units of K P / C_s at P={', '.join(f'{P:g}' for P in sizes)}: "
        f"{words}."
    )
    powers = runs.compared(sizes.tolist(), {name: v.tolist() for name, v in times.items()})
    caption += f" {powers[0].upper()}{powers[1:]}." if powers else ""
    labelled = {EVENTS[name]: values for name, values in times.items()}
    data = {"P": sizes, **labelled, "limit": limit}
    return Drawing(times_picture(sizes, labelled, levels, held), data, caption)


def _words_of_times(name: str, values: FloatArray) -> str:
    """Times of an event along P, in words."""
    if np.isnan(values).all():
        return f"{name} not reached"
    if not values.any():
        return f"{name} at the start, there is no phase before it"
    words = ("not reached" if np.isnan(value) else f"{value:.3g}" for value in values)
    return f"{name} {', '.join(words)}"


def times_picture(
    sizes: FloatArray, times: Mapping[str, FloatArray], levels: Mapping[str, float], held: str
) -> Axes:
    """Times of events against the number of patches.

    Parameters
    ----------
    sizes : float array, shape (n,)
        P.
    times : mapping
        Label -> times in units of K P / C_s, shape (n,); NaN where an event did not happen, which
        is marked above all times.
    levels : mapping
        Label -> a predicted time, as a dotted line.
    held : str
        What is held fixed.

    Returns
    -------
    Axes
    """
    with page(6.8, 3.6) as (_, axes):
        height = TOP
        for (label, values), (colour, marker, dash) in zip(times.items(), LOOKS, strict=False):
            missing = np.isnan(values)
            if not missing.all():
                word = label if values.any() else f"{label}: at the start"
                style: dict[str, Any] = {"color": colour, "mfc": "white", "clip_on": False}
                axes.plot(sizes, values, marker + dash, label=word, **style)
            if missing.any():
                axes.plot(
                    sizes[missing], np.full(int(missing.sum()), height), "x", color=colour,
                    label=f"{label}: not reached", transform=axes.get_xaxis_transform(),
                )  # fmt: skip
                height -= STEP
        for label, value in levels.items():
            axes.axhline(value, color=GREY, lw=0.9, ls=":", label=label, zorder=0)
        axes.set_xscale("log")
        logarithmic(axes.xaxis, float(sizes[-1] / sizes[0]))
        # Events that did not happen have a strip of their own above the times.
        top = np.nanmax([1.0, *np.concatenate(list(times.values()))])
        axes.set_ylim(0.0, 1.05 * top / (height if height < TOP else 1.0))
        axes.set_xlabel("patches $P$")
        axes.set_ylabel(r"time $\tau$ in units of $K P / C_{\mathrm{local}}$")
        legend_on_the_right(axes, fontsize=8)
        axes.set_title(held, fontsize=8, loc="left")
    return axes
