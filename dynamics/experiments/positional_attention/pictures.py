"""Pictures that only positional attention needs: patches on their grid, Figures 2 and 4, verdicts.

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
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, SymmetricalLogLocator
from numpy.typing import NDArray

from dynamics.analysis.transverse_stability import Transverse
from dynamics.plotting.arrays import matrix_entries, true_sets
from dynamics.plotting.style import (
    BLUE,
    BOXED,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RC,
    VERMILION,
    legend_on_the_right,
    logarithmic,
    new_figure,
    new_mosaic,
    time_axis,
)
from dynamics.problem import FloatArray
from dynamics.results.trajectory import Trajectory
from theory.symmetry import Partition

TINTS = (
    (BLUE, 0.65),
    (ORANGE, 0.6),
    (GREEN, 0.24),
    (PURPLE, 0.75),
    ("#56B4E9", 0.5),
    ("#F0E442", 0.6),
    ("#999999", 0.5),
)
"""Hues and their shares; the rest is white. They differ in grey too, and black is read on them."""
RED = "#C8102E"
NARROW = 100.0
"""Up to this ratio a logarithmic axis has room for labels at 1, 2, 5."""
SMALL: Any = {"fontsize": 9, "loc": "left"}
NAMES = {"alpha": r"$\alpha$", "gamma": r"$\gamma$", "rho": r"$\rho$"}
KINDS = {
    "patches": (VERMILION, "patches of one set differ"),
    "sets": (BLUE, "sets differ"),
    "gamma": (ORANGE, r"other, inside sets ($\gamma$)"),
    "rho": (GREEN, r"other, between sets ($\rho$)"),
}
"""What a transverse direction moves -> colour, label."""
EXACT_FIRST = ("sets", "patches", "gamma", "rho")
SMALLEST = 1e-5
"""Curvatures below this are drawn on a linear scale."""


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


def _number_patches(panel: Axes, size: int) -> None:
    """Name the axes of a matrix of so many patches, numbered from 1 as in the paper."""
    visible = np.unique(np.linspace(0, size - 1, min(size, 4)).round().astype(int))
    numbers = [str(k + 1) for k in visible]
    panel.set_xticks(visible, numbers)
    panel.set_yticks(visible, numbers)
    panel.set(xlabel="patch $j$", ylabel="patch $i$")
    panel.spines[:].set_visible(True)


# Figures of the paper.


def association(run: Trajectory, labels: NDArray[np.int64]) -> Any:
    """Draw Figure 4: sets, learned A, test error and cosine of one empirical run.

    Parameters
    ----------
    run : Trajectory
    labels : int array, shape (D,)
        Set of each patch.

    Returns
    -------
    array of Axes
    """
    steps, cosine, share = run.steps[1:], run["cosine"][1:], run["patch_association"][1:]
    with mpl.rc_context(RC):
        figure, axes = new_figure(11.0, 2.7, ncols=4, width_ratios=(1.06, 1.2, 1.3, 1.3))
        figure.set_layout_engine("constrained", w_pad=0.08, h_pad=0.05)
        true_sets(axes[0], labels)
        matrix_entries(figure, axes[1], run["A"][-1], location="right")
        axes[1].set_title(f"learned $A$, step {run.steps[-1]:,}", fontsize=9)
        for panel in axes[:2]:
            _number_patches(panel, len(labels))
        _test_error(axes[2], run)
        axes[3].plot(steps, cosine, color=VERMILION, label="cosine of $v$ and $w^\\star$")
        axes[3].plot(steps, share, "--", color=PURPLE, label="rows of $A$ associated")
        axes[3].set_ylim(min(0.0, cosine.min()) - 0.04, 1.04)
        axes[3].set_ylabel("cosine; share of rows")
        axes[3].legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), fontsize=8)
        for panel in axes[2:]:
            panel.set(xscale="log", xlabel="steps")
    return axes


def _test_error(panel: Axes, run: Trajectory) -> None:
    """Test error; what no draw got wrong has no place on a logarithmic axis."""
    steps, error = run.steps[1:], run["test_error"][1:]
    positive = error > 0
    panel.plot(steps[positive], error[positive], color=BLUE)
    panel.set(yscale="log", ylabel="test error, share of samples")
    least = float(run["bayes_error"][-1])
    if error[positive].max(initial=0.0) < NARROW * min([*error[positive], least or 1.0]):
        logarithmic(panel)
    if least > 0:
        panel.axhline(least, color=GREY, lw=0.9, ls=":")
        panel.annotate(
            f"Bayes error {least:.2g}", (steps[0], least), (3, 3),
            textcoords="offset points", color=GREY, fontsize=8,
        )  # fmt: skip


def convolution(
    fits: Sequence[Sequence[Mapping[str, Any]]],
    labels: Sequence[str],
    grid: tuple[NDArray[np.int64], int],
    linear: float,
) -> Any:
    """Draw Figure 2: errors on the left, the sets above, the learned matrices below.

    Parameters
    ----------
    fits : sequence of sequences of mappings
        For each case one run a seed, with ``steps``, ``test_error``, ``patch_association``, ``A``
        and ``diverged``; the matrices are those of the first.
    labels : sequence of str
        Of the cases.
    grid : (int array, shape (D,), int)
        Set of each patch, columns of the grid.
    linear : float
        Error of sign(Z).

    Returns
    -------
    array of Axes
        Errors; grid; sets; one matrix a case.
    """
    layout = [["error", "grid", "sets", "legend"], ["error", "0", "1", "2"]]
    looks = ((BLUE, "-"), (VERMILION, "-"), (GREEN, "--"))
    sets, columns = grid
    with mpl.rc_context(RC):
        figure, named = new_mosaic(10.4, 5.0, layout, width_ratios=(1.7, 1, 1, 1))
        panel = named["error"]
        for label, runs, (colour, dash) in zip(labels, fits, looks, strict=True):
            for k, run in enumerate(runs):
                steps, error = np.array(run["steps"]), np.array(run["test_error"])
                visible = (steps > 0) & (error > 0)
                panel.plot(
                    steps[visible], error[visible], dash, color=colour,
                    lw=0.9 if k else 1.6, label=None if k else label,
                )  # fmt: skip
                if run["diverged"]:
                    panel.plot(steps[-1], error[-1], "x", color=colour, ms=9)
        panel.axhline(linear, color=GREY, lw=1.0, ls=":", label="linear rule, sign($Z$)")
        logarithmic(panel)
        panel.set(xscale="log", xlabel="steps", ylabel="test error (share of samples)")
        named["legend"].axis("off")
        named["legend"].legend(*panel.get_legend_handles_labels(), loc="center", fontsize=8)
        patches(named["grid"], sets, columns)
        named["grid"].set_title("sets on the grid of patches", fontsize=9)
        true_sets(named["sets"], sets)
        _number_patches(named["sets"], len(sets))
        for k, (label, (run, *_)) in enumerate(zip(labels, fits, strict=True)):
            below = named[str(k)]
            matrix_entries(figure, below, np.array(run["A"]))
            _number_patches(below, len(sets))
            share = f"{run['patch_association'][-1]:.0%} associated"
            below.set_title(f"{label}\n{'diverged' if run['diverged'] else share}", fontsize=8)
    return np.array([named[name] for name in ("error", "grid", "sets", "0", "1", "2")])


# Pictures of the verdicts.


def deviation(result: Any) -> Axes:
    """Deviation of each orbit's mean from the reduced run against N, with its exponent.

    Parameters
    ----------
    result : Deviation
        Of `dynamics.experiments.positional_attention.realistic`.
    """
    counts = np.asarray(result.samples, dtype=float)
    with mpl.rc_context(RC):
        _, axes = new_figure(6.6, 3.6)
        looks = zip((BLUE, VERMILION, GREEN), "os^", result.distances.items(), strict=False)
        for colour, marker, (name, distances) in looks:
            seeds = np.repeat(counts, distances.shape[1])
            axes.plot(
                seeds, np.abs(distances).ravel(), ".", color=colour, ms=2.5, alpha=0.5, zorder=1
            )
            label = f"{NAMES.get(name, name)}: exponent ${result.slope(name):.2f}$"
            rms = result.rms(name)
            axes.plot(counts, rms, marker=marker, color=colour, mfc="white", label=label)
            half = rms[0] * np.sqrt(counts[0] / counts)
            axes.plot(counts, half, ":", color=GREY, lw=0.9, zorder=0)
        axes.set(xscale="log", yscale="log")
        axes.set(xlabel="samples $N$", ylabel="|orbit mean $-$ reduced run|")
        handles, _ = axes.get_legend_handles_labels()
        half_handle = Line2D([], [], color=GREY, ls=":", lw=0.9, label="$N^{-1/2}$")
        legend_on_the_right(axes, handles=[*handles, half_handle], fontsize=8)
        axes.set_title(f"root mean square of {distances.shape[1]} seeds (dots)", **SMALL)
    return axes


def association_grid(result: Any) -> Any:
    """Share of associated rows over N and q, and test error against the linear rule's.

    Parameters
    ----------
    result : AssociationGrid
        Of `dynamics.experiments.positional_attention.realistic`.

    Returns
    -------
    array of Axes
    """
    error = result.error.mean(axis=2) / result.linear[:, None]
    labels = "share of associated rows", "test error / error of sign$(Z)$"
    with mpl.rc_context(RC | BOXED):
        _, axes = new_figure(9.2, 3.4, ncols=2)
        _heat(axes[0], result, result.association.mean(axis=2), labels[0], "viridis", 1.0)
        largest = max(1.0, float(np.nanmax(error)))
        _heat(axes[1], result, error, labels[1], "viridis_r", largest)
        axes[0].set_title("patch association", **SMALL)
        axes[1].set_title("generalisation", **SMALL)
    return axes


def _heat(
    panel: Axes, result: Any, values: FloatArray, label: str, colours: str, largest: float
) -> None:
    image = panel.imshow(
        np.ma.masked_invalid(values), origin="lower", aspect="auto", vmin=0.0, vmax=largest,
        cmap=mpl.colormaps[colours].with_extremes(bad=GREY),
    )  # fmt: skip
    for (row, column), value in np.ndenumerate(values):
        dark = (value / largest < 0.5) == (colours == "viridis")
        panel.text(
            column, row, f"{value:.2f}", ha="center", va="center", fontsize=7,
            color="white" if dark else "black",
        )  # fmt: skip
    panel.set_xticks(range(len(result.samples)), [f"{n:,}" for n in result.samples], fontsize=7)
    panel.set_yticks(range(len(result.chances)), [f"{q:g}" for q in result.chances])
    panel.set(xlabel="samples $N$", ylabel="$q$")
    panel.figure.colorbar(image, ax=panel, label=label)


def association_over_time(
    omegas: FloatArray, time: FloatArray, shares: FloatArray, safe: float
) -> Axes:
    """Share of associated rows over the spread of a random start and time.

    Parameters
    ----------
    omegas : float array, shape (spreads,)
        Equally spaced in their logarithm, ascending.
    time : float array, shape (records,)
        Positive.
    shares : float array, shape (spreads, records)
    safe : float
        1 / Phi_max: the spread that the linear theory expects to survive.
    """
    with mpl.rc_context(RC | BOXED):
        figure, axes = new_figure(6.0, 3.6)
        edges = _edges(time), _edges(omegas)
        image = axes.pcolormesh(*edges, shares, cmap="viridis", vmin=0, vmax=1, rasterized=True)
        axes.set(xscale="log", yscale="log")
        axes.axhline(safe, color=VERMILION, lw=1.2, ls="--")
        axes.annotate(
            r"$1/\Phi_{max}$", (time[0], safe), (3, 3), textcoords="offset points",
            color="white", fontsize=9,
        )  # fmt: skip
        axes.set(xlabel=r"time $\tau$", ylabel=r"spread of the random start $\omega$")
        figure.colorbar(image, ax=axes, label="share of associated rows").outline.set_color(GREY)
    return axes


def _edges(centres: FloatArray) -> FloatArray:
    """Edges of cells around logarithmically spaced centres."""
    middle = np.sqrt(centres[1:] * centres[:-1])
    return np.r_[centres[0] ** 2 / middle[0], middle, centres[-1] ** 2 / middle[-1]]


def transverse(result: Transverse, omega: float | None = None) -> Any:
    """Transverse eigenvalues over time, coloured by what they move; below, the amplification.

    Parameters
    ----------
    result : Transverse
        Along a run whose events T0 and T1 are marked where they happened.
    omega : float, optional
        Spread of a random start: the amplification 1/omega is marked.

    Returns
    -------
    array of Axes
    """
    positive = result.time > 0
    time, peak = result.time[positive], int(result.amplification.argmax())
    with mpl.rc_context(RC):
        _, axes = new_figure(6.4, 6.2, nrows=2, sharex=True, height_ratios=(1.5, 1))
        _curvatures(axes[0], result, positive)
        below = axes[1]
        below.plot(time, result.amplification[positive], color=VERMILION, label="worst start")
        label = "random start (r.m.s.)"
        below.plot(time, result.typical[positive], color=GREY, ls="--", label=label)
        if omega is not None:
            below.axhline(1 / omega, color=GREY, lw=0.8, ls=":")
            text = rf"$1/\omega$, $\omega = {omega:g}$"
            side: Any = {"transform": below.get_yaxis_transform(), "color": GREY, "va": "bottom"}
            below.text(0.01, 1.06 / omega, text, **side)
        if peak > 0:
            spot = result.time[peak], result.peak
            below.plot(*spot, "o", color=VERMILION, ms=5)
            _note(below, rf"$\Phi_{{max}} = {result.peak:.0f}$", spot, (7, 4))
        logarithmic(below)
        below.yaxis.set_major_locator(LogLocator())
        below.set_ylabel(r"amplification $\Phi$")
        below.legend(loc="upper left", bbox_to_anchor=(0, 0.86), fontsize=8)
        time_axis(below, result.run)
        for name, label in (("T0", "$T_0$"), ("T1", "$T_1$")):
            event = result.run.events.get(name)
            if event is None:
                continue
            for panel in axes:
                panel.axvline(event.time, color=GREY, lw=0.8, ls="-.", zorder=0)
            above: Any = {"transform": axes[0].get_xaxis_transform(), "color": GREY, "ha": "center"}
            axes[0].text(event.time, 1.01, label, va="bottom", **above)
    return axes


def _curvatures(axes: Axes, result: Transverse, visible: NDArray[np.bool_]) -> None:
    time, branches = result.time[visible], result.branches(EXACT_FIRST)
    for name, (colour, label) in KINDS.items():
        values = branches[name][visible]
        if values.shape[1]:
            axes.plot(time, values, color=colour, lw=1.1)
            axes.plot([], [], color=colour, label=f"{label}: {values.shape[1]}")
    along = result.symmetric[visible, 0]
    axes.plot(time, along, color="black", lw=1.2, ls=(0, (4, 2)), label="lowest along the manifold")
    axes.set_yscale("symlog", linthresh=SMALLEST, linscale=0.4)
    axes.yaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=SMALLEST))
    axes.yaxis.set_major_formatter(FuncFormatter(_power))
    low = min(2.0 * result.eigenvalues[visible].min(), -SMALLEST)
    axes.set_ylim(low, max(2.0 * result.eigenvalues[visible].max(), SMALLEST))
    axes.axhspan(low, 0, color=GREY, alpha=0.10, lw=0)
    style: Any = {"color": GREY, "ha": "right", "va": "bottom", "style": "italic"}
    axes.text(0.99, 0.6 * low, "repelling", transform=axes.get_yaxis_transform(), **style)
    # The most repelling mode is named where it fades, if it is row competition.
    lowest = result.eigenvalues[:, 0]
    k = int(lowest.argmin())
    if result.shares.get("rows", np.zeros_like(result.eigenvalues))[k, 0] >= 0.9:
        fading = k + int((lowest[k:] > lowest[k] / 8).argmax())
        text = rf"row competition, $\times {result.multiplets(k)[0].multiplicity}$"
        _note(axes, text, (result.time[fading], lowest[fading]), (7, -4), va="center", fontsize=8)
    axes.set_ylabel("curvature across the manifold")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.05), ncols=2, fontsize=8, handlelength=1.6)


def _note(
    axes: Axes, text: str, spot: tuple[float, float], offset: tuple[float, float], **style: Any
) -> None:
    """A word beside a spot, in the colour of what repels."""
    axes.annotate(text, spot, offset, textcoords="offset points", color=VERMILION, **style)


def _power(value: float, _: int | None = None) -> str:
    """A power of ten with its sign, or 0."""
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    return rf"${sign}10^{{{round(np.log10(abs(value)))}}}$"
