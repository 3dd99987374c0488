"""Times of events along a family of growing size, in the unit in which they should stay put."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from dynamics.plotting.marks import logarithmic
from dynamics.plotting.style import BLUE, GREEN, GREY, RC, VERMILION, new_figure
from dynamics.problem import FloatArray

TOP, STEP = 0.97, 0.06
"""Heights of the marks of what was not reached, in shares of the panel."""
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
        Label -> times in units of K P / C_s, shape (n,); NaN where an event was not seen, which
        is marked above everything that was.
    lines : mapping
        Label -> a predicted time, drawn dotted.
    held : str

    Returns
    -------
    Axes
    """
    with mpl.rc_context(RC):
        _, axes = new_figure(6.8, 3.6)
        height = TOP
        for (label, values), (colour, marker, dash) in zip(found.items(), LOOKS, strict=False):
            missing = np.isnan(values)
            if not missing.all():
                word = label if values.any() else f"{label}: at the start"
                axes.plot(
                    sizes, values, marker + dash, color=colour, mfc="white", label=word,
                    clip_on=False,
                )  # fmt: skip
            if missing.any():
                places = np.full(int(missing.sum()), height)
                axes.plot(
                    sizes[missing], places, "x", color=colour, label=f"{label}: not reached",
                    transform=axes.get_xaxis_transform(),
                )  # fmt: skip
                height -= STEP
        for label, value in lines.items():
            axes.axhline(value, color=GREY, lw=0.9, ls=":", label=label, zorder=0)
        axes.set_xscale("log")
        logarithmic(axes.xaxis, float(sizes[-1] / sizes[0]))
        # What was not reached has a strip of its own above the times.
        top = np.nanmax([1.0, *(np.nanmax(v) for v in found.values() if np.isfinite(v).any())])
        axes.set_ylim(0.0, 1.05 * top / (height if height < TOP else 1.0))
        axes.set_xlabel("patches $P$")
        axes.set_ylabel(r"time $\tau$ in units of $K P / C_{\mathrm{local}}$")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
        axes.set_title(held, fontsize=8, loc="left")
    return axes
