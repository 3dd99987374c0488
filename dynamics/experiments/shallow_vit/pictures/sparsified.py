"""Test loss and test error against the share of tokens removed, a line for each rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from dynamics.plotting.style import BLUE, GREEN, RC, VERMILION, new_figure
from dynamics.problem import FloatArray

LOOKS = ((BLUE, "o", "-"), (VERMILION, "s", "--"), (GREEN, "^", "-."))


@dataclass(frozen=True, eq=False)
class Column:
    """One column.

    Attributes
    ----------
    title : str
    loss, error : mapping
        Rule -> values, shape (shares, seeds).
    """

    title: str
    loss: Mapping[str, FloatArray]
    error: Mapping[str, FloatArray]


def sparsified(shares: FloatArray, columns: Sequence[Column], held: str) -> Any:
    """Mean over the seeds, with its standard error; test loss above, test error below.

    Parameters
    ----------
    shares : float array, shape (shares,)
    columns : sequence of Column
    held : str

    Returns
    -------
    array of Axes, shape (2, columns)
    """
    many = len(columns)
    with mpl.rc_context(RC):
        figure, axes = new_figure(
            1.5 + 2.7 * many + 1.6 * (many == 1), 5.2, nrows=2, ncols=many, squeeze=False,
            sharex=True, sharey="row",
        )  # fmt: skip
        for k, column in enumerate(columns):
            for panel, found in zip(axes[:, k], (column.loss, column.error), strict=True):
                _lines(panel, shares, found)
            axes[0, k].set_title(column.title, fontsize=9, loc="left")
            axes[1, k].set_xlabel("share of tokens removed")
        axes[0, 0].set_ylabel("test loss over the margin")
        axes[1, 0].set_ylabel("test error")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
        figure.suptitle(held, fontsize=8, x=0.01, ha="left")
    return axes


def _lines(panel: Axes, shares: FloatArray, found: Mapping[str, FloatArray]) -> None:
    for (label, values), (colour, marker, dash) in zip(found.items(), LOOKS, strict=False):
        seeds = values.shape[1]
        error = values.std(axis=1, ddof=1) / np.sqrt(seeds) if seeds > 1 else None
        panel.errorbar(
            shares, values.mean(axis=1), yerr=error, color=colour, marker=marker, ls=dash, ms=5,
            mfc="white", capsize=2, elinewidth=1.0, label=label,
        )  # fmt: skip
    # A little below zero, so that marks on the axis are whole.
    panel.set_ylim(bottom=-0.03 * panel.get_ylim()[1])
