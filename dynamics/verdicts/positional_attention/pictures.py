"""Patches on their grid, and the pictures of Figures 2 and 4.

On a grid of patches the colour is the set, a word stands in every square, and a frame follows the
sides between its members and the others, because sets need not be contiguous.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import ListedColormap, to_rgb
from numpy.typing import NDArray

from dynamics.plotting import style
from dynamics.plotting.arrays import matrix_entries, number_patches, true_sets
from dynamics.verdicts.figure import page
from theory.symmetry import Partition

TINTS = (
    (style.BLUE, 0.65),
    (style.ORANGE, 0.6),
    (style.GREEN, 0.24),
    (style.PURPLE, 0.75),
    ("#56B4E9", 0.5),
    ("#F0E442", 0.6),
    ("#999999", 0.5),
)
"""Hues and their shares; the rest is white. They differ in grey too, and black is read on them."""
RED = "#C8102E"
LOOKS = {
    3: ((style.BLUE, "-"), (style.VERMILION, "-"), (style.GREEN, "--")),
    4: ((style.BLUE, "-"), (style.VERMILION, "-"), (style.ORANGE, "-."), (style.GREEN, "--")),
}
"""Colour and dash of each kind of run, by their number."""
NARROW = 100.0
"""Up to this ratio a logarithmic axis has room for labels at 1, 2, 5."""
# Patches and matrices of patches.


def localised(parameters: Any) -> tuple[Partition, int]:
    """Spatially localised sets, and the columns of their grid.

    The squarest grid with D squares, and the squarest blocks with C that tile it.

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


def patches(
    panel: Axes,
    labels: NDArray[np.int64],
    columns: int,
    words: Sequence[str] | None = None,
    framed: NDArray[np.bool_] | None = None,
) -> None:
    """Draw the patches of one data point, row by row.

    Parameters
    ----------
    panel : Axes
    labels : int array, shape (D,)
        Set of each patch. After seven sets lighter tints of the same hues follow.
    columns : int
        Of the grid; divides D.
    words : sequence of str, optional
        What stands in each square; numbers from 1 by default.
    framed : bool array, shape (D,), optional
        The patches to draw a red frame around.
    """
    rows = len(labels) // columns
    shades = ListedColormap([_tinted(k) for k in range(int(labels.max()) + 1)])
    panel.imshow(labels.reshape(rows, columns), cmap=shades, vmin=-0.5, vmax=shades.N - 0.5)
    panel.set(xticks=[], yticks=[])
    panel.spines[:].set_visible(False)
    inner = [[(k - 0.5, -0.5), (k - 0.5, rows - 0.5)] for k in range(1, columns)]
    inner += [[(-0.5, k - 0.5), (columns - 0.5, k - 0.5)] for k in range(1, rows)]
    panel.add_collection(LineCollection(inner, colors="white", linewidths=2))
    for k, word in enumerate(words or [str(k + 1) for k in range(len(labels))]):
        panel.text(k % columns, k // columns, word, ha="center", va="center", fontsize=11)
    if framed is not None:
        sides = LineCollection(
            border(framed.reshape(rows, columns)),
            colors=RED, linewidths=3, capstyle="projecting", clip_on=False, zorder=3,
        )  # fmt: skip
        sides.set_label("frame")
        panel.add_collection(sides)


def border(inside: NDArray[np.bool_]) -> list[list[tuple[float, float]]]:
    """The unit sides between squares inside and outside, as segments (x, y).

    Parameters
    ----------
    inside : bool array, shape (rows, columns)
    """
    padded = np.pad(inside, 1)
    sides = []
    for y, x in np.argwhere(padded[1:] != padded[:-1]) - 0.5:
        sides.append([(float(x - 1), float(y)), (float(x), float(y))])
    for y, x in np.argwhere(padded[:, 1:] != padded[:, :-1]) - 0.5:
        sides.append([(float(x), float(y - 1)), (float(x), float(y))])
    return sides


def _tinted(index: int) -> tuple[float, float, float]:
    hue, share = TINTS[index % len(TINTS)]
    share /= 1 + index // len(TINTS)
    red, green, blue = (1 - share * (1 - part) for part in to_rgb(hue))
    return red, green, blue


# Figures of the paper.


def association(data: Mapping[str, Any]) -> Any:
    """Draw Figure 4: sets, learned A, test error and cosine of one empirical run.

    Parameters
    ----------
    data : mapping
        Of the figure.

    Returns
    -------
    array of Axes
    """
    steps, labels = np.array(data["steps"][1:]), np.array(data["sets"])
    cosine, share = data["cosine"][1:], data["patch_association"][1:]
    with page(11.0, 2.7, ncols=4, width_ratios=(1.06, 1.2, 1.3, 1.3)) as (figure, axes):
        figure.set_layout_engine("constrained", w_pad=0.08, h_pad=0.05)
        true_sets(axes[0], labels)
        number_patches(axes[0], len(labels))
        matrix_entries(figure, axes[1:2], [np.array(data["A"])])
        axes[1].set_title(f"learned $A$, step {steps[-1]:,}", fontsize=9)
        _test_error(axes[2], steps, np.array(data["test_error"][1:]), data["bayes_error"])
        axes[3].plot(steps, cosine, color=style.VERMILION, label="cosine of $v$ and $w^\\star$")
        axes[3].plot(steps, share, "--", color=style.PURPLE, label="rows of $A$ associated")
        axes[3].set_ylim(min(0.0, *cosine) - 0.04, 1.04)
        axes[3].set_ylabel("cosine; share of rows")
        axes[3].legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), fontsize=8)
        for panel in axes[2:]:
            panel.set(xscale="log", xlabel="steps")
    return axes


def _test_error(panel: Axes, steps: Any, error: Any, least: float) -> None:
    """Test error; an error of zero is not on a logarithmic axis."""
    positive = error > 0
    panel.plot(steps[positive], error[positive], color=style.BLUE)
    panel.set(yscale="log", ylabel="test error, share of samples")
    if error[positive].max(initial=0.0) < NARROW * min([*error[positive], least or 1.0]):
        style.logarithmic(panel)
    if least > 0:
        panel.axhline(least, color=style.GREY, lw=0.9, ls=":")
        panel.annotate(
            f"Bayes error {least:.2g}", (steps[0], least), (3, 3),
            textcoords="offset points", color=style.GREY, fontsize=8,
        )  # fmt: skip


def convolution(
    data: Mapping[str, Any], kinds: Sequence[tuple[str, list[dict[str, Any]]]], columns: int
) -> Any:
    """Draw Figure 2: errors on the left, the sets above, the learned matrices below.

    Parameters
    ----------
    data : mapping
        Of the figure.
    kinds : sequence of (label, runs)
        One colour and dash each; the matrix is that of the first run.
    columns : int
        Of the grid.

    Returns
    -------
    array of Axes
        Errors; grid; sets; one matrix a kind.
    """
    matrices = [f"A{k}" for k in range(len(kinds))]
    beside = ["legend"] * (len(kinds) - 2)
    layout = [["error", "grid", "sets", *beside], ["error", *matrices]]
    looks = dict(zip((label for label, _ in kinds), LOOKS[len(kinds)], strict=True))
    sets, ratios = np.array(data["sets"]), (1.7, *(1.0 for _ in kinds))
    with mpl.rc_context(style.RC):
        width = 4.1 + 2.1 * len(kinds)
        figure, named = style.new_mosaic(width, 5.0, layout, width_ratios=ratios)
        panel = named["error"]
        for label, runs in kinds:
            colour, dash = looks[label]
            for k, run in enumerate(runs):
                steps, error = np.array(run["steps"]), np.array(run["test_error"])
                visible = (steps > 0) & (error > 0)
                panel.plot(
                    steps[visible], error[visible], dash, color=colour,
                    lw=0.9 if k else 1.6, label=None if k else label,
                )  # fmt: skip
                if run["diverged"]:
                    panel.plot(steps[-1], error[-1], "x", color=colour, ms=9)
        panel.axhline(
            data["linear_error"], color=style.GREY, lw=1.0, ls=":", label="linear rule, sign($Z$)"
        )
        style.logarithmic(panel)
        panel.set(xscale="log", xlabel="steps", ylabel="test error (share of samples)")
        named["legend"].axis("off")
        named["legend"].legend(*panel.get_legend_handles_labels(), loc="center", fontsize=8)
        patches(named["grid"], sets, columns)
        named["grid"].set_title("sets on the grid of patches", fontsize=9)
        true_sets(named["sets"], sets)
        number_patches(named["sets"], len(sets))
        learned = [np.array(run["A"]) for _, (run, *_) in kinds]
        matrix_entries(figure, [named[name] for name in matrices], learned)
        for name, (label, (run, *_)) in zip(matrices, kinds, strict=True):
            below = named[name]
            share = f"seed {run['seed']}: {run['patch_association'][-1]:.0%} associated"
            head = label.partition(":")[0]
            below.set_title(f"{head}\n{'diverged' if run['diverged'] else share}", fontsize=8)
    return np.array([named[name] for name in ("error", "grid", "sets", *matrices)])
