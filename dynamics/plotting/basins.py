"""Plot of the basins of a plane as tinted regions with separatrices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from dynamics.analysis.phase_portrait.basins import Basin
from dynamics.plotting import style

TINTS = ("#56B4E9", style.ORANGE, style.GREEN, style.PURPLE, style.GREY)
SEPARATRIX = "#7A0019"
ONE_END = 0.01
"""The end points of a basin's flows count as one point if their range is at most this fraction of
the window's sides."""
MOST_NAMED = 4
"""Maximum number of basins that the legend names."""


def draw_basins(
    axes: Axes,
    basins: Sequence[Basin],
    plane: tuple[int, int],
    looks: Sequence[tuple[Any, str]] = (),
) -> None:
    """Fill the basins in the window of `axes`, and draw the separatrices of the basins.

    The pair `plane` holds the indices of the entries of a state that are drawn along x and y. The
    pairs `looks` give colour and label of each basin. The default label is the limit of the basin's
    flows, and the default colours are `TINTS`.
    """
    sides = np.array([np.ptp(axes.get_xlim()), np.ptp(axes.get_ylim())])
    for k, (basin, tint) in enumerate(zip(basins, cycle(TINTS), strict=False)):
        parts = [Path(line, closed=True) for line in basin.outline]
        named = _ending(basin, plane, sides) if k < MOST_NAMED else ""
        colour, label = looks[k] if looks else (tint, named)
        look = {"facecolor": colour, "alpha": 0.22, "lw": 0.0, "zorder": 0.5}
        axes.add_patch(PathPatch(Path.make_compound_path(*parts), **look, label=label or None))
    label = "separatrix"
    for line in (line for basin in basins for line in basin.separatrices):
        axes.plot(*line.T, color=SEPARATRIX, lw=2.2, label=label, zorder=2.8)
        label = ""


def _ending(basin: Basin, plane: tuple[int, int], sides: np.ndarray) -> str:
    """Label of a basin: the limit of its flows, a point on the curve of limits, or no limit."""
    ends = basin.ends[:, list(plane)]
    if not np.isfinite(ends).all():
        return "basin without an end"
    off = np.abs((ends - np.median(ends, axis=0)) / sides).max(axis=1)
    digits = [int(np.ceil(2 - np.log10(side))) for side in sides]
    middle = [round(float(v), n) + 0.0 for v, n in zip(ends[off.argmin()], digits, strict=True)]
    alike = (np.ptp(ends, axis=0) <= ONE_END * sides).all()
    return f"basin of {'' if alike else 'a curve by '}({middle[0]:g}, {middle[1]:g})"
