"""Times of events along a family of growing size, in the unit in which they should stay put."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from dynamics.plotting.marks import logarithmic
from dynamics.plotting.style import BLUE, GREEN, GREY, RC, VERMILION, new_figure
from dynamics.problem import FloatArray

LOOKS = ((BLUE, "o", "-"), (VERMILION, "s", "--"), (GREEN, "^", "-."))


def times(
    sizes: FloatArray, found: Mapping[str, FloatArray], lines: Mapping[str, float], held: str
) -> Axes:
    """Times of events against the number of patches.

    Parameters
    ----------
    sizes : float array, shape (n,)
        P.
    found : mapping
        Label -> times in units of K P / C_s, shape (n,); NaN where an event was not seen.
    lines : mapping
        Label -> a predicted time, drawn dotted.
    held : str

    Returns
    -------
    Axes
    """
    with mpl.rc_context(RC):
        _, axes = new_figure(6.8, 3.6)
        for (label, values), (colour, marker, dash) in zip(found.items(), LOOKS, strict=False):
            missing = np.isnan(values)
            axes.plot(sizes, values, marker + dash, color=colour, mfc="white", label=label)
            if missing.any():
                zero = np.zeros(int(missing.sum()))
                axes.plot(sizes[missing], zero, "x", color=colour, label=f"{label}: not reached")
        for label, value in lines.items():
            axes.axhline(value, color=GREY, lw=0.9, ls=":", label=label, zorder=0)
        axes.set_xscale("log")
        logarithmic(axes.xaxis, float(sizes[-1] / sizes[0]))
        axes.set_ylim(bottom=0.0)
        axes.set_xlabel("patches $P$")
        axes.set_ylabel(r"time $\tau$ in units of $K P / C_{\mathrm{local}}$")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
        axes.set_title(held, fontsize=8, loc="left")
    return axes
