"""Phase diagrams: a quantity of a sweep over two parameters, and refined boundaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import Colormap, ListedColormap, LogNorm, Normalize
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from matplotlib.ticker import LogLocator, MaxNLocator

from dynamics.phase_diagrams.boundaries import NOT_VALID, YES, Refined, check_yes_no, crossings
from dynamics.phase_diagrams.selection import Slice
from dynamics.plotting import captions, labels
from dynamics.plotting.labels import CellAxis, draw_marks, hatch, logarithmic, without
from dynamics.plotting.style import VERMILION, legend_below, new_figure, number, styled
from dynamics.problem import FloatArray
from dynamics.validation import InvalidRequest

DECADES, DECADES_OF_TIMES = 30.0, 5.0
"""Colours are logarithmic if the ratio of the largest to the smallest value exceeds `DECADES`, or
for times `DECADES_OF_TIMES`."""
NO_COLOUR, YES_COLOUR = "#E6E6E6", "#7FB8DC"
SHARES = ("patch_association",)
LOOKS = (("black", "-"), ("#B0006D", "--"), ("#8C4A00", ":"))
"""Colour and line style of the contour lines of each quantity drawn as contours, in turn."""
HALO: list[Any] = [withStroke(linewidth=2.6, foreground="white")]


@styled
def phase(result: Slice, contours: Sequence[Slice] = (), boundary: Slice | None = None) -> Any:
    """Heat map of a quantity over two axes, one panel for each value of the facet.

    A cell is grey if an event was not reached, and hatched if the combination of parameters is
    invalid. A failed run has the mark of its outcome, and a run not computed yet a dot. The colour
    scale of all panels is logarithmic if positive values span a factor above 30, or times a factor
    above 5.

    Parameters
    ----------
    result : Slice
        Quantity over two axes.
    contours : sequence of Slice
        Quantities over the same axes, each drawn as labelled contour lines.
    boundary : Slice, optional
        Yes-or-no quantity over the same axes, whose boundary is drawn.

    Raises
    ------
    TypeError
        If ``result`` is not a `Slice`.
    InvalidRequest
        If the second axis is missing, the slices have different axes, or the boundary belongs to a
        quantity other than yes or no.

    Examples
    --------
    >>> import xarray
    >>> from dynamics.phase_diagrams import select
    >>> dims = ("q", "D")
    >>> dataset = xarray.Dataset(
    ...     {"risk": (dims, [[0.3, 0.1], [0.4, 0.2]]), "outcome": (dims, [[1, 1], [1, 1]])},
    ...     {"q": [0.4, 0.6], "D": [4.0, 8.0]},
    ... )
    >>> phase(select(dataset, "risk", "D", "q")).get_xlabel()
    '$D$'
    """
    _check(result, [*contours, *([boundary] if boundary is not None else [])])
    if boundary is not None:
        check_yes_no(boundary)
    assert result.y is not None
    x, y, panels = CellAxis(result.x), CellAxis(result.y), len(result.values)
    rows, columns = captions.facet_shape(panels)
    width = 5.8 if panels == 1 else 1.3 + 2.7 * columns
    colours, norm = _colours(result)
    marked = without(result)
    handles: dict[str, Any] = {}
    figure, grid = new_figure(
        width, 4.4 if panels == 1 else 1.0 + 2.5 * rows, nrows=rows, ncols=columns,
        squeeze=False, sharex=True, sharey=True,
    )  # fmt: skip
    every = grid.ravel()
    image: Any = None
    for k, panel in enumerate(every[:panels]):
        panel.spines[:].set_visible(True)
        x.draw(panel, "x", result.presentation.notation, labelled=k + columns >= panels)
        y.draw(panel, "y", result.presentation.notation, labelled=k % columns == 0)
        panel.tick_params(labelbottom=k + columns >= panels)
        masked = np.ma.masked_invalid(result.values[k])
        image = panel.pcolormesh(x.edges, y.edges, masked, cmap=colours, norm=norm)
        here = {word: cells[k] for word, cells in marked.items()}
        handles |= draw_marks(panel, x, y, here)
        for curve, look in zip(contours, cycle(LOOKS), strict=False):
            handles |= _contour(panel, (x, y), curve, curve.values[k], look)
        if boundary is not None:
            handles |= _boundary(panel, (x, y), boundary, k)
    _key(figure, every[:panels], image, result, handles)
    captions.write_titles(figure, every, result, width)
    return every[:panels] if result.facet is not None else every[0]


def _check(result: Slice, others: Sequence[Slice]) -> None:
    text = result.quantity.text
    if result.y is None:
        raise InvalidRequest(f"slice of {text} has no y; a phase diagram needs a second axis")
    names = result.x.name, result.y.name
    for other in others:
        if other.y is None or (other.x.name, other.y.name) != names:
            over = f"{other.x.name}, {other.y.name if other.y else None}"
            raise InvalidRequest(f"slice drawn over {text} has the axes {over}, not {names}")
        panels, wanted = len(other.values), len(result.values)
        if panels != wanted:
            raise InvalidRequest(f"slice drawn over {text} has {panels} panels, not {wanted}")


def _two_colours(result: Slice) -> bool:
    return result.quantity.yes_no and result.seeds <= 1


def _colours(result: Slice) -> tuple[Colormap, Normalize]:
    """Colour map and normalization that all panels share."""
    if _two_colours(result):
        return ListedColormap([NO_COLOUR, YES_COLOUR]), Normalize(0.0, 1.0)
    viridis, values = mpl.colormaps["viridis"], result.values[np.isfinite(result.values)]
    if result.quantity.yes_no or result.quantity.name in SHARES:
        return viridis, Normalize(0.0, 1.0)
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    above = values[values > 0]
    if low == 0 and above.size and high > DECADES * above.min():
        # Values of 0 get the lowest colour, shown by the pointed end of the colour bar.
        return viridis, LogNorm(float(above.min()), high, clip=True)
    if low < 0 < high:
        largest = max(-low, high)
        return mpl.colormaps["PuOr_r"], Normalize(-largest, largest)
    if low > 0 and high > (DECADES_OF_TIMES if result.quantity.is_time else DECADES) * low:
        return viridis, LogNorm(low, high)
    half = 0.0 if high > low else max(0.05 * abs(low), 1e-12)
    return viridis, Normalize(low - half, high + half)


def _contour(
    panel: Axes, axes: tuple[CellAxis, CellAxis], curve: Slice, values: FloatArray,
    look: tuple[str, str],
) -> dict[str, Any]:  # fmt: skip
    """Draw labelled contour lines of a quantity in a panel, if any; return the legend handle."""
    masked = np.ma.masked_invalid(values)
    if masked.count() < 4 or min(masked.shape) < 2 or masked.min() == masked.max():
        return {}
    decades = masked.min() > 0 and masked.max() > 10 * masked.min()
    locator = LogLocator() if decades else MaxNLocator(4)
    levels = [v for v in locator.tick_values(masked.min(), masked.max())
              if masked.min() < v < masked.max()]  # fmt: skip
    if not levels:
        return {}
    artist = panel.contour(
        axes[0].centres, axes[1].centres, masked, levels=levels, colors=look[0],
        linewidths=1.3, linestyles=[look[1]],
    )  # fmt: skip
    artist.set_path_effects(HALO)
    options: dict[str, Any] = {"fmt": lambda value: f"${number(value)}$", "fontsize": 7}
    for text in panel.clabel(artist, inline=False, **options):
        text.set_path_effects(HALO)
    name = labels.quantity(curve.presentation.notation, curve.quantity)
    return {name: Line2D([], [], color=look[0], lw=1.3, ls=look[1], label=name)}


def _boundary(
    panel: Axes, axes: tuple[CellAxis, CellAxis], outline: Slice, k: int
) -> dict[str, Any]:
    """Draw the yes-no boundary of slice `outline` along sides of cells; return a legend handle."""
    x, y = axes
    sides = [
        [(x.edges[c + (way == 0)], y.edges[r + (way == 1)]), (x.edges[c + 1], y.edges[r + 1])]
        for r, c, way in crossings(outline.values[k])
    ]
    if not sides:
        return {}
    style: dict[str, Any] = {"color": VERMILION, "lw": 2.0}
    panel.add_collection(LineCollection(sides, zorder=3, capstyle="projecting", **style), False)
    name = f"boundary: {labels.quantity(outline.presentation.notation, outline.quantity)}"
    return {name: Line2D([], [], label=name, **style)}


def _key(figure: Any, panels: Any, image: Any, result: Slice, handles: dict[str, Any]) -> None:
    """Draw the colour bar (or the two colours of a yes-or-no quantity) and the legend."""
    name = labels.quantity(result.presentation.notation, result.quantity)
    if _two_colours(result):
        pair = {
            name: Patch(facecolor=YES_COLOUR, label=name),
            "no": Patch(facecolor=NO_COLOUR, label="otherwise"),
        }
        handles = pair | handles
    elif np.isfinite(result.values).any():
        share = f"share of {result.seeds} seeds with\n{name}"
        low = isinstance(image.norm, LogNorm) and bool((result.values == 0).any())
        label = share if result.quantity.yes_no else name
        bar = figure.colorbar(image, ax=panels, label=label, extend="min" if low else "neither")
        low, high = image.get_clim()
        if isinstance(image.norm, LogNorm):
            logarithmic(bar.ax.yaxis, high / low, powers=True)
        bar.outline.set_linewidth(0.6)
    legend_below(figure, list(handles.values()))


REFINED_WIDTH = 5.4


@styled
def refined(
    result: Refined,
    name: str,
    notation: labels.Letters | None = None,
    held: Mapping[str, Any] | None = None,
) -> Axes:
    """Plot a refined yes-or-no quantity in two colours with its boundary and evaluated points.

    Parameters
    ----------
    result : Refined
    name : str
        Text of the quantity in the legend (``"$T_1$ reached"``).
    notation : Notation, optional
        Symbols for the axis labels.
    held : mapping, optional
        Name -> value of the constants of all runs.

    Raises
    ------
    TypeError
        If ``result`` is not a `Refined`.

    Examples
    --------
    >>> from dynamics.phase_diagrams import Axis, refine
    >>> unit = Axis.of("x", [0, 1]), Axis.of("y", [0, 1])
    >>> refined(refine(lambda p: p.sum(axis=1) > 0.7, *unit), "large").get_xlabel()
    '$x$'
    """
    letters = notation or {}
    x, y = result.x.values, result.y.values
    line: dict[str, Any] = {"color": VERMILION, "lw": 1.8, "path_effects": HALO}
    dot: dict[str, Any] = {"ls": "", "marker": ".", "ms": 2.4, "color": "black", "mew": 0}
    figure, axes = new_figure(REFINED_WIDTH, 4.4)
    axes.spines[:].set_visible(True)
    for which, axis in (("x", result.x), ("y", result.y)):
        axes.set(**{
            f"{which}scale": "log" if axis.logarithmic else "linear",
            f"{which}label": labels.label(letters, axis.name),
            f"{which}lim": (axis.values[0], axis.values[-1]),
        })  # fmt: skip
        if axis.logarithmic:
            logarithmic(getattr(axes, f"{which}axis"), axis.values[-1] / axis.values[0])
    handles: list[Any] = [*_areas(axes, result, name)]
    rows, columns = np.nonzero(result.evaluated & (result.values != NOT_VALID))
    axes.plot(x[columns], y[rows], zorder=3, clip_on=False, **dot)
    for path in result.lines:
        axes.plot(path[:, 0], path[:, 1], zorder=4, **line)
    title = captions.fixed(letters, held or {}, {}, REFINED_WIDTH)
    axes.set_title(captions.cut(axes.figure, title), fontsize=8, loc="left")
    runs = f"{len(rows)} of {result.values.size} points run"
    if result.runs > len(rows):
        runs += f", {result.runs - len(rows)} more on the boundary"
    handles.insert(2, Line2D([], [], label=_boundary_label(result, letters), **line))
    handles.insert(3, Line2D([], [], label=runs, **dot | {"ms": 5}))
    legend_below(figure, handles, 2, fontsize=7.5, handlelength=1.6, columnspacing=1.0)
    return axes


def _areas(axes: Axes, result: Refined, name: str) -> list[Patch]:
    """Colour the squares of the lattice; the boundary cuts the squares that it crosses."""
    x, y, values = result.x.values, result.y.values, result.values
    corners = np.stack([values[:-1, :-1], values[:-1, 1:], values[1:, 1:], values[1:, :-1]])
    barred = (corners == NOT_VALID).any(axis=0)
    masked = np.ma.masked_where(barred, (corners == YES).all(axis=0))
    colours = ListedColormap([NO_COLOUR, YES_COLOUR])
    axes.pcolormesh(x, y, masked, cmap=colours, vmin=0, vmax=1)
    mixed = ~barred & (corners == YES).any(axis=0) & (corners != YES).any(axis=0)
    pieces = [_piece(result, int(row), int(column)) for row, column in np.argwhere(mixed)]
    style: dict[str, Any] = {"facecolor": YES_COLOUR, "lw": 0}
    axes.add_collection(PolyCollection(pieces, **style), autolim=False)
    handles = [Patch(**style, label=name), Patch(facecolor=NO_COLOUR, label="otherwise")]
    if barred.any():
        handles.append(hatch(axes, x, y, barred))
    return handles


def _piece(result: Refined, row: int, column: int) -> Any:
    """Corners (x and y) of the polygon in a lattice square on which the quantity is "yes"."""
    positions = []
    for down, right, edge, along in (
        (0, 0, (row, column, 0), (0, 1)),
        (0, 1, (row, column + 1, 1), (1, 0)),
        (1, 1, (row + 1, column, 0), (0, -1)),
        (1, 0, (row, column, 1), (-1, 0)),
    ):
        at = np.array([row + down, column + right], dtype=np.float64)
        if result.values[row + down, column + right] == YES:
            positions.append(at)
        if edge in result.crossed:
            share = result.crossed[edge]
            positions.append(at + np.array(along) * (share if sum(along) > 0 else 1.0 - share))
    rows, columns = np.array(positions).T
    return np.column_stack([result.x.at(columns), result.y.at(rows)])


def _boundary_label(result: Refined, notation: labels.Letters) -> str:
    parts = [
        rf"{100 * width:.2g} % in" if axis.logarithmic else f"{width:.2g} in"
        for axis, width in zip((result.x, result.y), result.tolerance, strict=True)
    ]
    names = [labels.letter(notation, axis.name) for axis in (result.x, result.y)]
    return rf"boundary, $\pm$ {parts[0]} ${names[0]}$, {parts[1]} ${names[1]}$"
