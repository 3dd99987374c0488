"""Arrays, entry by entry: attention matrices beside the true sets, trained arrays by class."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.patches import Patch
from numpy.typing import NDArray

from dynamics.plotting.style import BOXED, GREY, RC, new_figure
from dynamics.problem import FloatArray
from dynamics.results.trajectory import Trajectory

EVENTS = {"T0": "$T_0$", "T1": "$T_1$"}
FEW = 10
"""Classes that have colours of their own; more share a colour map."""
FROZEN = "#e8e8e8"
COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000",
    "#7F3C8D", "#8C613C",
)  # fmt: skip
SIGNED = 400
"""Entries of an array up to which signs are written into its cells."""
MOST_ARRAYS = 8
LEAST_WIDTH = 0.25
"""Width of the narrowest array, in the heights of a square one."""


def true_sets(panel: Axes, labels: NDArray[np.int64]) -> None:
    """Draw the pairs (i, j) in a common set, in dark grey.

    Parameters
    ----------
    panel : Axes
    labels : int array, shape (D,)
        Set of each patch.
    """
    same = labels[:, None] == labels[None, :]
    panel.imshow(np.where(same, 0.35, 1.0), cmap="gray", vmin=0, vmax=1)
    panel.set_title("true sets", fontsize=9)


def matrix_entries(
    figure: Any, panel: Axes, matrix: FloatArray, location: Literal["bottom", "right"] = "bottom"
) -> None:
    """Draw the entries of A, colours symmetric about zero; the diagonal is grey and sets no scale.

    Parameters
    ----------
    figure, panel : Figure, Axes
    matrix : float array, shape (D, D)
    location : str
        Where the colour bar stands.
    """
    off_diagonal = np.ma.masked_where(np.eye(len(matrix), dtype=bool), matrix)
    largest = float(np.abs(off_diagonal).max()) or 1.0
    colours = mpl.colormaps["PuOr_r"].with_extremes(bad=GREY)
    image = panel.imshow(off_diagonal, cmap=colours, vmin=-largest, vmax=largest)
    bar = figure.colorbar(image, ax=panel, location=location, shrink=0.9, aspect=14)
    bar.ax.tick_params(labelsize=7)
    bar.ax.locator_params(nbins=3)
    for axis in (bar.ax.xaxis, bar.ax.yaxis):
        axis.get_offset_text().set_fontsize(7)
    bar.formatter.set_powerlimits((-2, 3))
    bar.set_label("$A_{ij}$", fontsize=8)


def attention(run: Trajectory) -> Any:
    r"""The attention matrix of a full run: true sets, A at the start, at T0, T1 and at the end.

    The diagonal is not trained and drawn grey. Each matrix has its own colour scale, symmetric
    about zero, because its entries grow by orders of magnitude.

    Parameters
    ----------
    run : Trajectory
        With the part ``A`` in its states and ``sets`` in its settings.

    Returns
    -------
    array of Axes

    Examples
    --------
    >>> import dynamics
    >>> from dynamics import plotting
    >>> system = dynamics.load_system("positional_attention")
    >>> run = dynamics.descend(system.FullPopulation(system.Parameters(D=4, C=2)), 0.1, 20)
    >>> [panel.get_title() for panel in plotting.attention(run)]
    ['true sets', 'start', 'end: $\\tau = 2$']
    """
    moments = [("start", 0.0, run.states[0])]
    for name, title in EVENTS.items():
        event = run.events.get(name)
        if event is not None:
            moments.append((title, event.time, event.state))
    moments.append(("end", float(run.time[-1]), run.final_state))
    with mpl.rc_context(RC | BOXED):
        figure, axes = new_figure(2.1 * (1 + len(moments)), 2.6, ncols=1 + len(moments))
        true_sets(axes[0], np.asarray(run.settings["sets"]))
        for panel, (title, time, state) in zip(axes[1:], moments, strict=True):
            matrix_entries(figure, panel, run.layout.part(state, "A"))
            panel.set_yticklabels([])
            panel.set_title(title + (rf": $\tau = {time:.4g}$" if time else ""), fontsize=9)
        axes[0].set_ylabel("patch $i$")
        for panel in axes:
            panel.set_xlabel("patch $j$")
    return axes


def entry_classes(closure: Mapping[str, Any]) -> Any:
    """Arrays of a model, coloured by the scalar that each entry is.

    An entry that never moves is grey; a minus sign marks one that is minus its scalar. An array of
    more than two axes is drawn as a matrix of its first axis and the rest.

    Parameters
    ----------
    closure : mapping
        Of `theory.closure.Closure.document`.

    Returns
    -------
    array of Axes

    Examples
    --------
    Two scalars, a and b, of a matrix of four entries:

    >>> from dynamics import plotting
    >>> axes = plotting.entry_classes({
    ...     "labels": {"W": [[1, 2], [-2, 1]]}, "names": ["a", "b"], "sizes": [2, 2],
    ...     "scalars": 2, "entries": 4, "frozen": 0,
    ... })
    >>> axes[0, 0].get_title(), len(axes[0, 0].texts)
    ('W  (2 × 2)', 1)
    """
    arrays = {name: np.array(labels) for name, labels in closure["labels"].items()}
    matrices = {
        name: labels.reshape(len(labels), -1) if labels.ndim else labels.reshape(1, 1)
        for name, labels in list(arrays.items())[:MOST_ARRAYS]
    }
    count = max(1, closure["scalars"])
    spread = mpl.colormaps["nipy_spectral"](np.linspace(0.05, 0.95, count))
    colours = COLOURS[:count] if count <= FEW else spread
    palette = ListedColormap([FROZEN, *colours])
    norm = BoundaryNorm(np.arange(-0.5, count + 1.5), count + 1)
    columns = min(4, len(matrices))
    rows = ceil(len(matrices) / columns)
    shapes = [
        LEAST_WIDTH if labels.size == 1 else np.clip(labels.shape[1] / len(labels), LEAST_WIDTH, 2)
        for labels in matrices.values()
    ]
    widths = [max(shapes[k::columns]) for k in range(columns)]
    grid = {"nrows": rows, "ncols": columns, "squeeze": False, "width_ratios": widths}
    with mpl.rc_context(RC):
        figure, axes = new_figure(2.6 * sum(widths) + 2.0, 2.6 * rows, **grid)
        for panel in axes.ravel()[len(matrices) :]:
            panel.set_axis_off()
        for panel, (name, labels) in zip(axes.ravel(), matrices.items(), strict=False):
            panel.imshow(np.abs(labels), cmap=palette, norm=norm, interpolation="nearest")
            across = f" × {labels.shape[1]}" if labels.shape[1] > 1 else ""
            panel.set_title(f"{name}  ({len(labels)}{across})")
            panel.set(xticks=[], yticks=[])
            panel.spines[:].set_visible(False)
            for row, column in np.argwhere(labels < 0) if labels.size <= SIGNED else ():
                panel.text(column, row, "−", ha="center", va="center", color="white")
        keys: list[Any] = []
        if len(closure["names"]) <= FEW:
            classes = zip(closure["names"], closure["sizes"], colours, strict=False)
            keys = [Patch(color=colour, label=f"{name}: {size}") for name, size, colour in classes]
        if closure["frozen"]:
            keys.append(Patch(color=FROZEN, label=f"never move: {closure['frozen']}"))
        title = f"{closure['scalars']} scalars of {closure['entries']} entries"
        figure.legend(
            handles=keys, title=title, loc="outside right upper", fontsize=8, title_fontsize=8
        )
    return axes
