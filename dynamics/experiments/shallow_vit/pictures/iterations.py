"""Steps to zero training loss, against the paper's variable and against what orders them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from dynamics.plotting.marks import logarithmic
from dynamics.plotting.style import BLUE, GREEN, GREY, PURPLE, RC, VERMILION, new_figure
from dynamics.problem import FloatArray

LOOKS = ((VERMILION, "o"), (BLUE, "s"), (GREEN, "^"), (PURPLE, "D"))


@dataclass(frozen=True, eq=False)
class Family:
    """Runs over alpha_*, alpha_# going with it in one way.

    Attributes
    ----------
    label : str
        How.
    alphas, gaps : float array, shape (rows,)
        alpha_*, and alpha_* - alpha_#.
    steps : float array, shape (rows, seeds)
        NaN where zero training loss was not reached.
    """

    label: str
    alphas: FloatArray
    gaps: FloatArray
    steps: FloatArray

    @property
    def mean(self) -> FloatArray:
        """Over the seeds, shape (rows,)."""
        return np.asarray(self.steps.mean(axis=1))


def iterations(families: Sequence[Family], held: str) -> Any:
    """Steps against 1/alpha_* and against 1/(alpha_* - alpha_#).

    Parameters
    ----------
    families : sequence of Family
    held : str

    Returns
    -------
    array of Axes, shape (2,)
    """
    with mpl.rc_context(RC):
        figure, axes = new_figure(8.4, 4.0, ncols=2, sharey=True)
        for family, (colour, marker) in zip(families, LOOKS, strict=False):
            for panel, at in zip(axes, (family.alphas, family.gaps), strict=True):
                _points(panel, 1 / at, family, colour, marker)
        axes[0].set_xlabel(r"$1/\alpha_*$")
        axes[1].set_xlabel(r"$1/(\alpha_* - \alpha_\#)$")
        axes[0].set_ylabel("steps to zero training loss")
        axes[0].set_title("the paper's variable", fontsize=9, loc="left")
        axes[1].set_title("what orders the data", fontsize=9, loc="left")
        for panel in axes:
            panel.set(xscale="log", yscale="log")
            logarithmic(panel.xaxis, panel.get_xlim()[1] / panel.get_xlim()[0])
        handles, labels = axes[0].get_legend_handles_labels()
        line = _proportional(axes[1], families)
        handles, labels = [*handles, line], [*labels, line.get_label()]
        figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=8)
        figure.suptitle(held, fontsize=8, x=0.01, ha="left")
    return axes


def _points(panel: Axes, x: FloatArray, family: Family, colour: str, marker: str) -> None:
    known = np.isfinite(family.mean)
    low, high = family.steps.min(axis=1), family.steps.max(axis=1)
    bars = np.stack([family.mean - low, high - family.mean])[:, known]
    panel.errorbar(
        x[known], family.mean[known], yerr=bars, color=colour, marker=marker, ls="", ms=5.5,
        mfc="white", capsize=2, elinewidth=1.0, label=family.label,
    )  # fmt: skip
    if not known.all():
        top = np.full(int((~known).sum()), np.nanmax(family.steps) if known.any() else 1.0)
        panel.plot(x[~known], top, "x", color=colour, label=f"{family.label}: not reached")


def _proportional(panel: Axes, families: Sequence[Family]) -> Any:
    """One line in proportion to 1/(alpha_* - alpha_#) through all points, by their logarithms."""
    x = np.concatenate([1 / family.gaps for family in families])
    y = np.concatenate([family.mean for family in families])
    factor = float(np.exp(np.nanmean(np.log(y / x))))
    ends = np.array([x.min(), x.max()])
    label = rf"${factor:.3g} / (\alpha_* - \alpha_\#)$"
    return panel.plot(ends, factor * ends, "--", color=GREY, lw=1.1, zorder=0, label=label)[0]
