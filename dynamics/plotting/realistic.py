"""Realistic runs against time: patch association, test error and cosine, a band over the seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np

from dynamics.plotting.style import (
    BLUE,
    GREEN,
    GREY,
    RC,
    VERMILION,
    band,
    logarithmic,
    new_figure,
    positive_time,
    time_axis,
)
from dynamics.results.comparison import Comparison
from dynamics.results.trajectory import Trajectory

PANELS = (
    ("patch_association", "share of associated rows", BLUE),
    ("test_error", "test error", VERMILION),
    ("cosine", r"cosine of $v$ and $w^\star$", GREEN),
)


def realistic(result: Comparison | Sequence[Trajectory]) -> Any:
    """Three panels over logarithmic time: association, test error, cosine.

    Parameters
    ----------
    result : Comparison or sequence of Trajectory
        The runs of the empirical problem, one for each seed; the median is drawn as a line, least
        and greatest as a band.

    Returns
    -------
    array of Axes
    """
    runs = result.fulls if isinstance(result, Comparison) else tuple(result)
    with mpl.rc_context(RC):
        _, axes = new_figure(6.4, 6.0, nrows=3, sharex=True)
        for panel, (name, label, colour) in zip(axes, PANELS, strict=True):
            band(panel, runs, name, colour)
            panel.set_ylabel(label)
        axes[0].set_ylim(-0.03, 1.03)
        irreducible = float(runs[0]["bayes_error"][-1])
        errors = np.concatenate([positive_time(run, run["test_error"])[1] for run in runs])
        if errors.min() > 0 and errors.max() > 5 * errors.min():
            logarithmic(axes[1])
        if irreducible > 0:
            axes[1].axhline(irreducible, color=GREY, lw=0.9, ls=":", label="irreducible error")
            axes[1].legend(loc="upper right", fontsize=8)
        settings = runs[0].settings
        many = "" if len(runs) == 1 else f", {len(runs)} seeds: median, least to greatest"
        axes[0].set_title(f"$N = {settings['samples']:,}$ samples{many}", fontsize=9, loc="left")
        time_axis(axes[-1], runs[0])
    return axes
