"""The plane of exponents (kappa_c, kappa_s): where training starts with Phase I, and where not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.patheffects import withStroke

from dynamics.experiments.figure import Drawing, FigureRequest
from dynamics.experiments.masked_image_modeling.runs import POSITIVE, trained
from dynamics.plotting.style import RC, new_figure
from dynamics.problem import FloatArray
from dynamics.validation import integer, refuse

if TYPE_CHECKING:
    from dynamics.registry import System

CORE, MOST_LOCAL = (0.5, 0.98), 0.5
"""Ranges of the exponents, as the paper has them: kappa_c from 1/2, kappa_s up to 1/2."""
LEAST_PATCHES = 64
"""Patches below which the plane has hardly any sizes."""
MOST_SIZES = 200
"""Sizes on an axis of the plane."""
GRID = {"local": 9, "core": 20}
FINE_GRID = {"local": 21, "core": 56}
HALO: list[Any] = [withStroke(linewidth=3.0, foreground="white")]
ALONE = 0.05
"""Width of a cell that has no neighbour."""
COLOURS = "PuOr_r"
"""Diverging, safe for colour-blind readers: orange where the ratio is above 1."""


@dataclass(frozen=True)
class Plane:
    """The ratio of both rates at the start over the plane.

    Attributes
    ----------
    rows : tuple of (float, float array, float array)
        For every local size kappa_s, the kappa_c, and |alpha_0| / alpha_m there.
    boundary : float array, shape (points, 2)
        (kappa_c, kappa_s) where it is 1, between the two nearest sizes.
    trained : float array, shape (runs, 4)
        (kappa_c, kappa_s) on either side of it, whether the run had two phases, and whether the
        ratio is above 1 at the start.
    """

    rows: tuple[tuple[float, FloatArray, FloatArray], ...]
    boundary: FloatArray
    trained: FloatArray


def plane(system: System, law: Any, local: int, core: int) -> Plane:
    """Measure the plane at the patches and masks of a law.

    Parameters
    ----------
    system : System
    law : Parameters
        Of one cluster.
    local, core : int
        Sizes on each axis, evenly spread over its logarithm; fewer where they coincide.
    """
    sizes = np.unique(np.geomspace(2, law.P**MOST_LOCAL, local).round().astype(int))
    rows, boundary, runs = [], [], []
    for size in sizes.tolist():
        # Whole local areas beside a global one that grows.
        left = law.P - (law.P ** np.linspace(*CORE, core)).round().astype(int)
        wholes = np.unique(law.P - np.maximum(size, left - left % size))
        laws = [
            replace(law, C_global=int(whole), C_local=size, d=None) for whole in wholes if whole > 0
        ]
        ratios = np.array([system.ReducedPopulation(one).rho0 for one in laws])
        kappas, kappa_s = np.array([one.kappa_c for one in laws]), log(size) / log(law.P)
        rows.append((kappa_s, kappas, ratios))
        for k in np.flatnonzero(np.diff(np.sign(np.log(ratios)))):
            share = np.log(ratios[k]) / np.log(ratios[k] / ratios[k + 1])
            boundary.append((kappas[k] + share * (kappas[k + 1] - kappas[k]), kappa_s))
            for one in laws[k : k + 2]:
                case = trained(system, one, horizon=5.0)
                above = case.run["rho"][0] > 1
                runs.append((one.kappa_c, one.kappa_s, float(case.two_phases), float(above)))
    return Plane(tuple(rows), np.reshape(boundary, (-1, 2)), np.reshape(runs, (-1, 4)))


def gap_figure(system: System, request: FigureRequest) -> Drawing:
    """Two-phase against one-phase learning. Options: ``local``, ``core``, the sizes on each axis.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    options = request.settled(GRID, FINE_GRID)
    local, core = (integer(n, options[n], at_least=2, at_most=MOST_SIZES) for n in GRID)
    patches = integer("P", request.given.get("P", POSITIVE["P"]), at_least=LEAST_PATCHES)
    default = {"P": patches, "C_global": patches // 2, "C_local": 1}
    law = request.law(system, axes=("family", "C_global", "C_local"), **default)
    only_one_cluster(law)
    result = plane(system, law, local, core)
    held = (
        f"one cluster, $P = {law.P}$, {law.masked} masked; two phases where the global feature "
        "moves faster at first"
    )
    data = {
        "rows": [(kappa, cores.tolist(), rho.tolist()) for kappa, cores, rho in result.rows],
        "boundary": result.boundary, "trained": result.trained,
    }  # fmt: skip
    caption = (
        f"Ratio of the rates of Phi_0 and Phi_m at Q = 0 over the exponents of both sizes at "
        f"P={law.P}. {_words_of_boundary(result)}"
    )
    return Drawing(plane_picture(result, held), data, caption)


def only_one_cluster(law: Any) -> None:
    """Refuse parameters of another family than one cluster."""
    if law.family != "one_cluster":
        reason = "is not what this figure is about"
        refuse("family", law.family, reason, "one_cluster", "one_cluster")


def _words_of_boundary(result: Plane) -> str:
    """Where the rates are equal, and what training on either side of it shows, in words."""
    if not len(result.boundary):
        ratios = np.concatenate([row[2] for row in result.rows])
        side = (
            "everywhere below 1: one phase"
            if ratios.max() < 1
            else "everywhere above 1: two phases"
        )
        if ratios.min() < 1 < ratios.max():
            side = "everywhere on one side of 1 along every row, not the same of all"
        return (
            f"It goes from {ratios.min():.3g} to {ratios.max():.3g}, {side}, and no row passes "
            "equal rates."
        )
    off = 2 * result.boundary[:, 0] - (1 + result.boundary[:, 1])
    agree = int((result.trained[:, 2] == result.trained[:, 3]).sum())
    return (
        f"Phase I exists to the right of the measured line, which is at Delta = {off.min():.2g} to "
        f"{off.max():.2g}. Training on either side of it, {agree} of {len(result.trained)} runs "
        "have as many phases as the start says."
    )


def plane_picture(result: Plane, held: str) -> Axes:
    """The ratio of both rates at the start in colour, the boundary and the line Delta = 0.

    Parameters
    ----------
    result : Plane
    held : str
        What is held fixed.

    Returns
    -------
    Axes
    """
    boundary, trained_runs = result.boundary, result.trained
    with mpl.rc_context(RC):
        figure, axes = new_figure(6.6, 4.9)
        heights = _edges(np.array([row[0] for row in result.rows]))
        logs = [np.log10(row[2]) for row in result.rows]
        least, most = min(map(np.min, logs)), max(map(np.max, logs))
        norm = TwoSlopeNorm(0.0, min(least, -0.1), max(most, 0.1))
        edges = [_edges(kappas) for _, kappas, _ in result.rows]
        for k, values in enumerate(logs):
            image = axes.pcolormesh(
                edges[k], heights[k : k + 2], values[None, :], cmap=COLOURS, norm=norm,
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
            runs = trained_runs[trained_runs[:, 2] == phases]
            if len(runs):
                axes.plot(
                    runs[:, 0], runs[:, 1], marker, ms=6, mfc=face, mec="black", ls="",
                    label=f"trained: {word}",
                )  # fmt: skip
        axes.set_ylim(heights[0], heights[-1])
        # Sizes differ a little from row to row: what all of them have is shown.
        right = max(min(row[-1] for row in edges), result.rows[-1][1][-1])
        axes.set_xlim(max(row[0] for row in edges), min(1.0, right))
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


def _edges(centres: FloatArray) -> FloatArray:
    """Edges of cells around ascending centres; a single one has a cell of its own."""
    if centres.size == 1:
        return centres[0] + np.array([-0.5, 0.5]) * ALONE
    middle = (centres[1:] + centres[:-1]) / 2
    first, last = 2 * centres[0] - middle[0], 2 * centres[-1] - middle[-1]
    return np.concatenate([[first], middle, [last]])
