"""Figures 1b and 3: the sets on the grid of patches, and one data point.

The paper draws D = 16 patches on a 4 x 4 grid, numbered row by row from 1, in L = 4 sets of C = 4.
Other sizes take the squarest grid with D squares, and the squarest blocks with C that tile it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np

from dynamics.experiments.figure import Drawing, FigureRequest
from dynamics.experiments.positional_attention.pictures.patches import patches
from dynamics.plotting.style import RC, new_figure
from dynamics.systems.positional_attention.empirical.sampling import SignalSets
from theory.symmetry import Partition

if TYPE_CHECKING:
    from dynamics.registry import System

DRAWS = 1000
"""Data points among which Figure 3 seeks one like that of the paper."""
WORDS = {0: "0", 1: "1", -1: "\N{MINUS SIGN}1"}


def localised(parameters: Any) -> tuple[Partition, int]:
    """Spatially localised sets, and the columns of their grid.

    Parameters
    ----------
    parameters : Parameters
        With D and C; C divides D, so some h divides the rows while C/h divides the columns.

    Returns
    -------
    partition : Partition
    columns : int
    """
    size, members = parameters.D, parameters.C
    rows = max(k for k in range(1, int(size**0.5) + 1) if size % k == 0)
    columns = size // rows
    heights = [
        h
        for h in range(1, members + 1)
        if members % h == 0 and rows % h == 0 and columns % (members // h) == 0
    ]
    height = min(heights, key=lambda h: (abs(h - members / h), h))
    return Partition.grid(rows, columns, height, members // height), columns


def partitions(system: System, request: FigureRequest) -> Drawing:
    """Figure 1b: (1) spatially localised sets, (2) sets of the same sizes drawn at random.

    No options. ``data``: ``localised`` and ``random``, the set of each patch; ``columns``.
    """
    request.settled({}, {})
    parameters = request.law(system)
    near, columns = localised(parameters)
    far = near.shuffled(np.random.default_rng(request.seed))
    numbers = [str(k + 1) for k in range(parameters.D)]
    with mpl.rc_context(RC):
        figure, axes = new_figure(5.6, 2.9 * max(0.6, near.size / columns**2), ncols=2)
        figure.set_layout_engine("constrained", w_pad=0.1, h_pad=0.08)
        titles = ("(1) spatially localised sets", "(2) sets drawn at random")
        for panel, partition, title in zip(axes, (near, far), titles, strict=True):
            patches(panel, partition.labels, columns, numbers)
            panel.set_title(title)
    caption = (
        f"Figure 1b. Partitions of D = {parameters.D} patches into {parameters.L} sets of "
        f"C = {parameters.C}; patches are numbered row by row, squares of one colour belong to one "
        f"set. (1) Spatially localised sets. (2) The same sizes, members drawn at random (seed "
        f"{request.seed}): Definition 2.1 covers both."
    )
    labels = {"localised": near.labels.tolist(), "random": far.labels.tolist()}
    return Drawing(axes, labels | {"columns": columns}, caption)


def data_point(system: System, request: FigureRequest) -> Drawing:
    """Figure 3: the values of one data point under Assumption 1 with localised sets.

    The first draw of the seed with label +1 and more -1 than +1; where there is none among 1000,
    the first with label +1. No options. ``data``: ``values``, ``sets``, ``signal`` (the patches
    of the signal set), ``label``, ``draw`` (its number), ``columns``.
    """
    request.settled({}, {})
    parameters = request.law(system)
    partition, columns = localised(parameters)
    law = SignalSets(partition, parameters.q, parameters.sigma)
    generator = np.random.default_rng(request.seed)
    values, labels, signals = law.drawn(DRAWS, generator)
    minus, plus = (values == -1).sum(axis=1), (values == 1).sum(axis=1)
    misleading = (labels > 0) & (minus > plus)
    wanted = misleading if misleading.any() else labels > 0
    chosen = int(np.argmax(wanted))
    point, signal = values[chosen].astype(int), partition.sets[signals[chosen]]
    framed = np.isin(np.arange(parameters.D), signal)
    with mpl.rc_context(RC):
        figure, panel = new_figure(2.9, 3.2 * max(0.6, partition.size / columns**2))
        figure.set_layout_engine("constrained", w_pad=0.1, h_pad=0.1)
        patches(panel, partition.labels, columns, [WORDS[x] for x in point], framed)
        panel.set_title("label $y = +1$")
    which = "with label +1 and more -1 than +1" if misleading.any() else "with label +1"
    caption = (
        f"Figure 3. A data point X under Assumption 1 (D = {parameters.D}, C = {parameters.C}, "
        f"q = {parameters.q:g}): the first draw of seed {request.seed} {which} (number "
        f"{chosen + 1}). Colours are sets; 0: no feature, 1: feature w*, -1: feature -w*; the red "
        f"frame is the signal set. There are {minus[chosen]} patches with -1 and {plus[chosen]} "
        "with 1, but the label is +1, because the signal set holds only 1."
    )
    data = {
        "values": point.tolist(),
        "sets": partition.labels.tolist(),
        "signal": signal.tolist(),
        "label": int(labels[chosen]),
        "draw": chosen + 1,
        "columns": columns,
    }
    return Drawing(panel, data, caption)
