"""Phase diagrams: a quantity of a sweep over two parameters, in colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Colormap, ListedColormap, LogNorm, Normalize
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from matplotlib.ticker import LogLocator, MaxNLocator

from dynamics.phase_diagrams.boundaries import Refined, check_yes_no, crossings
from dynamics.phase_diagrams.selection import Slice
from dynamics.plotting import words
from dynamics.plotting.marks import Place, draw_marks, logarithmic, without
from dynamics.plotting.style import RC, VERMILION, new_figure
from dynamics.problem import FloatArray
from dynamics.validation import InvalidRequest

DECADES = 30.0
"""Positive values farther apart than this have a logarithmic colour."""
NO_COLOUR, YES_COLOUR = "#E6E6E6", "#7FB8DC"
SHARES = ("patch_association",)
DASHES = ("-", "--", ":")
COLUMNS = 3
SHORTEST = 0.4
"""Inches below which a line of equal value has no room for a label."""
STAGGERED = (0.5, 0.3, 0.7)
HALO: list[Any] = [withStroke(linewidth=2.6, foreground="white")]


def phase(
    result: Slice, contours: Sequence[Slice] = (), boundary: Slice | Refined | None = None
) -> Any:
    """Heat map of a quantity over two axes, one panel for each value of the facet.

    Every cell without a value says why: an event that was not reached is grey, a combination that
    is not valid is hatched, a run that failed has the mark of its outcome, and one that is not
    computed yet is white with a dot. All panels share one scale of colours, logarithmic where
    positive values span more than 1.5 decades.

    Parameters
    ----------
    result : Slice
        Over two axes.
    contours : sequence of Slice
        Over the same axes; each is drawn as labelled lines of equal value.
    boundary : Slice or Refined, optional
        A yes or no over the same axes, whose boundary is drawn; a refined one only without facets.

    Returns
    -------
    Axes, or array of Axes with a facet

    Raises
    ------
    InvalidRequest
        If there is no second axis, the others are not over the same axes, or the boundary is that
        of no yes or no.
    """
    _check(result, [*contours, *([boundary] if boundary is not None else [])])
    if isinstance(boundary, Slice):
        check_yes_no(boundary)
    assert result.y is not None
    x, y, panels = Place(result.x), Place(result.y), len(result.values)
    columns = min(panels, COLUMNS if panels != 4 else 2)
    rows = -(-panels // columns)
    width = 5.8 if panels == 1 else 1.3 + 2.7 * columns
    colours, norm = _colours(result)
    marked = without(result)
    handles: dict[str, Any] = {}
    with mpl.rc_context(RC):
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
            shown = np.ma.masked_invalid(result.values[k])
            image = panel.pcolormesh(x.edges, y.edges, shown, cmap=colours, norm=norm)
            here = {word: cells[k] for word, cells in marked.items()}
            handles |= draw_marks(panel, x, y, here)
            for curve, dash in zip(contours, DASHES * len(contours), strict=False):
                handles |= _contour(panel, (x, y), curve, curve.values[k], dash)
            if boundary is not None:
                handles |= _boundary(panel, (x, y), boundary, k)
            if result.facet is not None:
                value = words.number(float(result.facet.values[k]))
                name = words.letter(result.presentation.notation, result.facet.name)
                panel.set_title(f"${name} = {value}$", fontsize=9)
        for panel in every[panels:]:
            panel.set_visible(False)
        _key(figure, every[:panels], image, result, handles)
        seeds = result.seeds if not result.quantity.yes_no else 0
        held = words.fixed(result.presentation.notation, result.held, result.derived, width, seeds)
        _title(figure, every, held, panels)
    return every[:panels] if result.facet is not None else every[0]


def _check(result: Slice, others: Sequence[Slice | Refined]) -> None:
    text = result.quantity.text
    if result.y is None:
        raise InvalidRequest(f"y of {text} is missing; a phase diagram needs a second axis")
    names = result.x.name, result.y.name
    for other in others:
        if other.y is None or (other.x.name, other.y.name) != names:
            over = f"{other.x.name}, {other.y.name if other.y else None}"
            raise InvalidRequest(f"what is drawn over {text} has the axes {over}, not {names}")
        panels = 1 if isinstance(other, Refined) else len(other.values)
        if panels != len(result.values):
            raise InvalidRequest(
                f"what is drawn over {text} has {panels} panels, not {len(result.values)}"
            )


def _two_colours(result: Slice) -> bool:
    return result.quantity.yes_no and result.seeds <= 1


def _colours(result: Slice) -> tuple[Colormap, Normalize]:
    """Colour map and scale shared by all panels."""
    if _two_colours(result):
        return ListedColormap([NO_COLOUR, YES_COLOUR]), Normalize(0.0, 1.0)
    viridis, values = mpl.colormaps["viridis"], result.values[np.isfinite(result.values)]
    if result.quantity.yes_no or result.quantity.name in SHARES:
        return viridis, Normalize(0.0, 1.0)
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    above = values[values > 0]
    if low == 0 and above.size and high > DECADES * above.min():
        # What is 0 has the lowest colour: the bar says so with its pointed end.
        return viridis, LogNorm(float(above.min()), high, clip=True)
    if low < 0 < high:
        largest = max(-low, high)
        return mpl.colormaps["PuOr_r"], Normalize(-largest, largest)
    if low > 0 and high > DECADES * low:
        return viridis, LogNorm(low, high)
    half = 0.0 if high > low else max(0.05 * abs(low), 1e-12)
    return viridis, Normalize(low - half, high + half)


def _contour(
    panel: Axes, places: tuple[Place, Place], curve: Slice, values: FloatArray, dash: str
) -> dict[str, Any]:
    """Lines of equal value, labelled; nothing where there are none."""
    shown = np.ma.masked_invalid(values)
    if shown.count() < 4 or min(shown.shape) < 2 or shown.min() == shown.max():
        return {}
    decades = shown.min() > 0 and shown.max() > 10 * shown.min()
    locator = LogLocator() if decades else MaxNLocator(4)
    levels = [v for v in locator.tick_values(shown.min(), shown.max())
              if shown.min() < v < shown.max()]  # fmt: skip
    if not levels:
        return {}
    drawn = panel.contour(
        places[0].centres, places[1].centres, shown, levels=levels, colors="black",
        linewidths=1.1, linestyles=[dash],
    )  # fmt: skip
    drawn.set_path_effects(HALO)
    if spots := _spots(panel, drawn):
        texts = panel.clabel(drawn, fontsize=7, inline=False, fmt=_level, manual=spots)
        for text in texts:
            text.set_path_effects(HALO)
    name = words.quantity(curve.presentation.notation, curve.quantity)
    return {name: Line2D([], [], color="black", lw=1.1, ls=dash, label=name)}


def _spots(panel: Axes, drawn: Any) -> list[Any]:
    """Where lines of equal value are labelled: neighbours at different shares of their length."""
    figure: Any = panel.figure
    found = []
    for k, lines in enumerate(drawn.allsegs):
        for line in lines:
            seen = panel.transData.transform(line) / figure.dpi
            along = np.append(0.0, np.cumsum(np.hypot(*np.diff(seen, axis=0).T)))
            if along[-1] > SHORTEST:
                at = along[-1] * STAGGERED[k % len(STAGGERED)]
                middle = [np.interp(at, along, side) for side in seen.T]
                spot = panel.transData.inverted().transform(np.array(middle) * figure.dpi)
                found.append(tuple(spot))
    return found


def _level(value: float) -> str:
    return f"${words.number(value)}$"


def _boundary(
    panel: Axes, places: tuple[Place, Place], found: Slice | Refined, k: int
) -> dict[str, Any]:
    """The boundary: a refined one as it is, that of a grid along the sides of its cells."""
    x, y = places
    style: dict[str, Any] = {"color": VERMILION, "lw": 2.0}
    if isinstance(found, Refined):
        name = f"boundary, refined with {found.runs} runs"
        for line in found.lines:
            at = x.at(line[:, 0]), y.at(line[:, 1])
            panel.plot(*at, path_effects=HALO, zorder=3, **style)
    else:
        name = f"boundary: {words.quantity(found.presentation.notation, found.quantity)}"
        sides = [
            [(x.edges[c + (way == 0)], y.edges[r + (way == 1)]), (x.edges[c + 1], y.edges[r + 1])]
            for r, c, way in crossings(found.values[k])
        ]
        drawn = LineCollection(sides, zorder=3, capstyle="projecting", **style)
        panel.add_collection(drawn, autolim=False)
    if not (found.lines if isinstance(found, Refined) else sides):
        return {}
    return {name: Line2D([], [], label=name, **style)}


def _key(figure: Any, panels: Any, image: Any, result: Slice, handles: dict[str, Any]) -> None:
    """The colour bar, or the two colours of a yes or no; the legend of everything else."""
    name = words.quantity(result.presentation.notation, result.quantity)
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
            logarithmic(bar.ax.yaxis, high / low)
        bar.outline.set_linewidth(0.6)
    if handles:
        figure.legend(
            handles=list(handles.values()), loc="outside lower center", ncols=min(3, len(handles)),
            fontsize=8,
        )  # fmt: skip


def _title(figure: Any, panels: Any, held: str, count: int) -> None:
    if count == 1:
        panels[0].set_title(held, fontsize=8, loc="left")
    else:
        figure.suptitle(held, fontsize=8, x=0.01, ha="left")
