"""How the realistic problem depends on the number of samples: deviation, and a phase picture."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from dynamics.plotting.style import BLUE, GREEN, GREY, RC, VERMILION, new_figure
from dynamics.problem import FloatArray

NAMES = {"alpha": r"$\alpha$", "gamma": r"$\gamma$", "rho": r"$\rho$"}


def against_samples(found: Any) -> Axes:
    """Deviation of each orbit's mean from the reduced run against N, with its exponent.

    Parameters
    ----------
    found : Deviation
        Of `dynamics.experiments.positional_attention.realistic`.
    """
    counts = np.asarray(found.samples, dtype=float)
    with mpl.rc_context(RC):
        _, axes = new_figure(6.6, 3.6)
        styles = zip((BLUE, VERMILION, GREEN), ("o", "s", "^"), found.distances, strict=False)
        for colour, marker, name in styles:
            seeds = np.abs(found.distances[name])
            axes.plot(
                np.repeat(counts, seeds.shape[1]), seeds.ravel(), ".", color=colour, ms=2.5,
                alpha=0.5, zorder=1,
            )  # fmt: skip
            label = f"{NAMES.get(name, name)}: exponent ${found.slope(name):.2f}$"
            axes.plot(
                counts, found.rms(name), marker=marker, color=colour, mfc="white", label=label
            )
            half = found.rms(name)[0] * np.sqrt(counts[0] / counts)
            axes.plot(counts, half, ":", color=GREY, lw=0.9, zorder=0)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("samples $N$")
        axes.set_ylabel("|orbit mean $-$ reduced run|")
        handles, labels = axes.get_legend_handles_labels()
        handles.append(mpl.lines.Line2D([], [], color=GREY, ls=":", lw=0.9))
        axes.legend(
            handles,
            [*labels, "$N^{-1/2}$"],
            fontsize=8,
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
        )
        many = next(iter(found.distances.values())).shape[1]
        axes.set_title(f"root mean square of {many} seeds (dots)", fontsize=9, loc="left")
    return axes


def association_phase(found: Any) -> Any:
    """Share of associated rows over N and q, and test error against the linear rule's.

    Parameters
    ----------
    found : Phase
        Of `dynamics.experiments.positional_attention.realistic`.

    Returns
    -------
    array of Axes
    """
    share = found.association.mean(axis=2)
    error = found.error.mean(axis=2) / found.linear[:, None]
    with mpl.rc_context(RC | {"axes.spines.top": True, "axes.spines.right": True}):
        figure, axes = new_figure(9.2, 3.4, ncols=2)
        _heat(figure, axes[0], found, share, "share of associated rows", 1.0)
        _heat(figure, axes[1], found, error, "test error / error of sign$(Z)$", None)
        axes[0].set_title("patch association", fontsize=9, loc="left")
        axes[1].set_title("generalisation", fontsize=9, loc="left")
    return axes


def _heat(
    figure: Any, panel: Axes, found: Any, values: FloatArray, label: str, top: float | None
) -> None:
    largest = max(1.0, float(np.nanmax(values))) if top is None else top
    colours = mpl.colormaps["viridis" if top else "viridis_r"].with_extremes(bad=GREY)
    image = panel.imshow(
        np.ma.masked_invalid(values), origin="lower", aspect="auto", cmap=colours, vmin=0.0,
        vmax=largest,
    )  # fmt: skip
    for row, column in np.ndindex(values.shape):
        value = float(values[row, column])
        dark = (value / largest < 0.5) == (top is not None)
        panel.text(
            column, row, f"{value:.2f}", ha="center", va="center", fontsize=7,
            color="white" if dark else "black",
        )  # fmt: skip
    panel.set_xticks(range(len(found.samples)), [f"{n:,}" for n in found.samples], fontsize=7)
    panel.set_yticks(range(len(found.chances)), [f"{q:g}" for q in found.chances])
    panel.set_xlabel("samples $N$")
    panel.set_ylabel("$q$")
    figure.colorbar(image, ax=panel, label=label)
