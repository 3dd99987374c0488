"""Two-phase against one-phase learning in the plane of two exponents."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.patheffects import withStroke

from dynamics.plotting.style import RC, new_figure
from dynamics.problem import FloatArray

HALO: list[Any] = [withStroke(linewidth=3.0, foreground="white")]
ALONE = 0.05
"""Width of a cell that has no neighbour."""
COLOURS = "PuOr_r"
"""Diverging, safe for colour-blind readers: orange where the ratio is above 1."""


def gap_plane(rows: Any, boundary: FloatArray, trained: FloatArray, held: str) -> Axes:
    """The ratio of both rates at the start in colour, the boundary and the line Delta = 0.

    Parameters
    ----------
    rows : sequence of (float, float array, float array)
        For every local size: kappa_s, the kappa_c, and the ratio there.
    boundary : float array, shape (points, 2)
        (kappa_c, kappa_s) where the ratio is 1; none where it passes 1 nowhere.
    trained : float array, shape (runs, 3)
        (kappa_c, kappa_s, 1 where the run had two phases, else 0).
    held : str
        What is held fixed.

    Returns
    -------
    Axes
    """
    with mpl.rc_context(RC):
        figure, axes = new_figure(6.6, 4.9)
        heights = _edges(np.array([row[0] for row in rows]))
        every = np.concatenate([np.log10(row[2]) for row in rows])
        norm = TwoSlopeNorm(0.0, min(every.min(), -0.1), max(every.max(), 0.1))
        for number, (_, places, ratio) in enumerate(rows):
            image = axes.pcolormesh(
                _edges(places), heights[number : number + 2], np.log10(ratio)[None, :],
                cmap=COLOURS, norm=norm, rasterized=True,
            )  # fmt: skip
        low, high = heights[0], heights[-1]
        local = np.linspace(low, high, 50)
        axes.plot(
            (1 + local) / 2, local, color="black", ls="--", label=r"$\Delta = 0$",
            path_effects=HALO,
        )  # fmt: skip
        if len(boundary):
            look = {"marker": "|", "ms": 12, "mew": 2.5, "ls": ""} if len(boundary) == 1 else {}
            axes.plot(
                *boundary.T, color="black", lw=2.0, label=r"measured: equal rates at $Q = 0$",
                path_effects=HALO, **look,
            )  # fmt: skip
        for value, marker, word in (
            (1, "^", "trained: two phases"),
            (0, "v", "trained: one phase"),
        ):
            kept = trained[trained[:, 2] == value]
            if len(kept):
                axes.plot(
                    kept[:, 0], kept[:, 1], marker, ms=6, mfc="white" if value == 0 else "black",
                    mec="black", label=word, ls="",
                )  # fmt: skip
        axes.set_ylim(low, high)
        # Sizes differ a little from row to row: what all of them reach is shown.
        sides = np.array([_edges(row[1])[[0, -1]] for row in rows])
        axes.set_xlim(sides[:, 0].max(), min(1.0, max(sides[:, 1].min(), places[-1])))
        axes.set_xlabel(r"$\kappa_c = \ln C_{\mathrm{global}} / \ln P$")
        axes.set_ylabel(r"$\kappa_s = \ln C_{\mathrm{local}} / \ln P$")
        bar = figure.colorbar(image, ax=axes, extend="neither")
        bar.set_label(r"$\log_{10}\; |\alpha_0| / \alpha_m$ at $Q = 0$")
        bar.ax.set_ylim(min(every.min(), 0.0), max(every.max(), 0.0))
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
