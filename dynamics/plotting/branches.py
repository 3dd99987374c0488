"""Where gradient descent settles against the learning rate: one value, two, many, none."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from dynamics.analysis.period_doubling import Branches
from dynamics.plotting.style import BLUE, GREY, RC, VERMILION, new_figure


def branches(result: Branches, axes: Axes | None = None) -> Axes:
    """The last values of a state, the predicted limit, and where no state is finite.

    Parameters
    ----------
    result : Branches
    axes : Axes, optional

    Returns
    -------
    Axes
    """
    label, onsets = result.presentation.notation.label(result.name), result.onsets
    with mpl.rc_context(RC):
        if axes is None:
            _, axes = new_figure(5.6, 3.4)
        etas = np.repeat(result.etas, result.values.shape[1])
        axes.plot(etas, result.values.ravel(), ",", color=GREY)
        axes.plot(etas[::7], result.values.ravel()[::7], ".", color=GREY, ms=1.5)
        axes.axvline(
            onsets.limit, color=BLUE, lw=1.2,
            label=rf"predicted limit $2/\lambda_{{max}}$ = {onsets.limit:.4g}",
        )  # fmt: skip
        axes.axvline(
            onsets.period_two, color="black", lw=1.2, ls=":",
            label=f"period two observed from {onsets.period_two:.4g}",
        )  # fmt: skip
        if np.isfinite(onsets.non_finite):
            axes.axvspan(
                onsets.non_finite, max(result.etas[-1], onsets.non_finite), color=VERMILION,
                alpha=0.2, lw=0, label=f"not finite from {onsets.non_finite:.4g}",
            )  # fmt: skip
        axes.set_xlim(result.etas[0], result.etas[-1])
        axes.set_xlabel(r"learning rate $\eta$")
        axes.set_ylabel(f"{label}, last {result.values.shape[1]} steps")
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), fontsize=8)
    return axes
