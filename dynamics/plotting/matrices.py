"""One matrix in one panel: the pairs of patches in a common set, the entries of A."""

from __future__ import annotations

from typing import Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from dynamics.plotting.style import GREY
from dynamics.problem import FloatArray


def true_sets(panel: Axes, labels: NDArray[np.int64]) -> None:
    """The pairs (i, j) in a common set, in dark grey.

    Parameters
    ----------
    panel : Axes
    labels : int array, shape (D,)
        Set of each patch.
    """
    same = labels[:, None] == labels[None, :]
    panel.imshow(np.where(same, 0.35, 1.0), cmap="gray", vmin=0, vmax=1)
    panel.set_title("true sets", fontsize=9)


def entries(
    figure: Any,
    panel: Axes,
    matrix: FloatArray,
    label: str = "$A_{ij}$",
    location: Literal["bottom", "right"] = "bottom",
) -> None:
    """Entries of a matrix, colours symmetric about zero; the diagonal is grey and sets no scale.

    Parameters
    ----------
    figure, panel : Figure, Axes
    matrix : float array, shape (D, D)
    label : str
        Of the colour bar.
    location : str
        Where the colour bar stands.
    """
    shown = np.ma.masked_where(np.eye(len(matrix), dtype=bool), matrix)
    largest = float(np.abs(shown).max()) or 1.0
    colours = mpl.colormaps["PuOr_r"].with_extremes(bad=GREY)
    image = panel.imshow(shown, cmap=colours, vmin=-largest, vmax=largest)
    bar = figure.colorbar(image, ax=panel, location=location, shrink=0.9, aspect=14)
    bar.ax.tick_params(labelsize=7)
    bar.ax.locator_params(nbins=3)
    for axis in (bar.ax.xaxis, bar.ax.yaxis):
        axis.get_offset_text().set_fontsize(7)
    bar.formatter.set_powerlimits((-2, 3))
    bar.set_label(label, fontsize=8)
