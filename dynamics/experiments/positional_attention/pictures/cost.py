"""What one gradient costs against the size, for every way to take the expectation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np

from dynamics.plotting.style import BLUE, GREEN, ORANGE, RC, VERMILION, new_figure

LOOKS = {
    "exact": (VERMILION, "s"),
    "truncated": (ORANGE, "^"),
    "spectral": (BLUE, "o"),
    "sampled": (GREEN, "v"),
}


def cost(panels: Mapping[str, Mapping[str, Mapping[float, float]]], size: str = "D") -> Any:
    """One panel per accuracy; ``auto`` is a broad grey line below the others.

    Parameters
    ----------
    panels : mapping
        Title -> expectation -> size -> seconds of one gradient; a size at which there is none, or
        none within the limits of memory, is left out.
    size : str
        Label of the horizontal axis.

    Returns
    -------
    array of Axes
    """
    with mpl.rc_context(RC):
        figure, grid = new_figure(3.4 * len(panels), 3.3, ncols=len(panels), sharey=True)
        axes = np.atleast_1d(grid)
        for panel, (title, rows) in zip(axes, panels.items(), strict=True):
            for name, points in rows.items():
                colour, marker = LOOKS.get(name, ("#BBBBBB", ""))
                look = {"color": colour, "marker": marker, "ms": 5, "mfc": "white", "label": name}
                if name == "auto":
                    look |= {"lw": 6, "solid_capstyle": "round", "zorder": 1}
                panel.plot(list(points), [1e3 * value for value in points.values()], **look)
            panel.set_xscale("log", base=2)
            panel.set_yscale("log")
            panel.set_title(title, fontsize=9)
            panel.set_xlabel(f"${size}$")
            panel.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes[0].set_ylabel("one gradient, ms")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))
    return axes
