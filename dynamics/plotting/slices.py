"""Plots of a quantity of a sweep along one parameter, and of fitted power laws."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from dynamics.phase_diagrams.scaling import Scaling
from dynamics.phase_diagrams.selection import Slice
from dynamics.plotting import captions, labels, style
from dynamics.plotting.labels import FEW, CellAxis, logarithmic, mark, without
from dynamics.problem import FloatArray

COLOURS = (style.BLUE, style.VERMILION, style.GREEN, style.PURPLE, style.ORANGE, "black")
MARKERS = ("o", "s", "^", "v", "D", "p")
DECADES = 30.0
COINCIDE = 0.003
"""Lines are merged if their distance is at most this fraction of a panel's height, less than the
width of a drawn line."""
MOST_NAMES = 3
"""Maximum number of adjacent y values of merged lines that the legend lists one by one."""
LETTER = 0.085
"""Width of a character of a tick label, in inches."""
ROW = 0.11
"""Height of a row of marks below a panel, in inches."""
ABSENT: dict[str, dict[str, Any]] = {
    "not reached": {"ls": "", "marker": "^", "ms": 4},
    "no value": {"ls": "", "marker": "_", "ms": 6},
    "not valid": {"ls": "", "marker": "|", "ms": 5},
}


@style.styled
def slices(result: Slice) -> Any:
    """Plot a quantity along x: one line for each value of y, one panel for each facet value.

    Lines that coincide in every panel are merged, with a common label. Runs without a value have
    marks in a strip below the panel, one row for each line. With several seeds a line shows the
    median (for a yes-or-no quantity the share of yes) and a band the range.

    Raises
    ------
    TypeError
        If ``result`` is not a `Slice`.

    Examples
    --------
    >>> import xarray
    >>> from dynamics.phase_diagrams import select
    >>> dims = ("q", "D")
    >>> dataset = xarray.Dataset(
    ...     {"risk": (dims, [[0.3, 0.1], [0.4, 0.2]]), "outcome": (dims, [[1, 1], [1, 1]])},
    ...     {"q": [0.4, 0.6], "D": [4.0, 8.0]},
    ... )
    >>> len(slices(select(dataset, "risk", "D", "q")).lines)
    2
    """
    panels = len(result.values)
    rows, columns = captions.facet_shape(panels)
    width = 6.2 if panels == 1 else 1.3 + 2.6 * columns
    across, groups = CellAxis(result.x), _coinciding(result)
    firsts = [group[0] for group in groups]
    marked = {word: cells[:, firsts] for word, cells in without(result).items()}
    looks, names = _looks(result, groups), _names(result, groups)
    figure, grid, strips = _grid(rows, columns, width, _marked_rows(marked))
    every, below = grid.ravel(), strips.ravel() if strips is not None else grid.ravel()
    for k, panel in enumerate(every[:panels]):
        for row, (colour, marker) in zip(firsts, looks, strict=True):
            _line(panel, across, result, (k, row), {"color": colour, "marker": marker})
        if strips is not None:
            here = {word: cells[k] for word, cells in marked.items()}
            _strip(below[k], across, here, (_marked_rows(marked), looks))
        last = k + columns >= panels
        for part in {panel, below[k]}:
            across.draw(part, "x", result.presentation.notation, labelled=last and part is below[k])
            part.tick_params(labelbottom=last and part is below[k])
        if k % columns == 0:
            panel.set_ylabel(_name(result))
    _scale(every[0], result)
    for panel in below[panels:]:
        panel.set_visible(False)
    there = [bool(np.isfinite(result.values[:, row]).any()) for row in firsts]
    if strips is not None and names:
        _name_rows(below[:panels:columns], _marked_rows(marked), there, names)
    handles = [
        Line2D([], [], color=colour, marker=marker, mfc="white", label=name)
        for (colour, marker), name, visible in zip(looks, names, there, strict=False)
        if visible
    ]
    many = result.y is not None and not names
    _key(figure, every[:panels], result, None if many else handles, list(marked))
    captions.write_titles(figure, every, result, width)
    return every[:panels] if result.facet is not None else every[0]


def _grid(rows: int, columns: int, width: float, marked: list[int]) -> tuple[Any, Any, Any]:
    """Make a figure, its panels, and the strips below the panels (None without marks)."""
    height = 3.2 if rows * columns == 1 else 2.2
    strip = ROW * (len(marked) + 1)
    ratios = [height, strip] if marked else [height]
    figure, grid = style.new_figure(
        width, 1.0 + rows * sum(ratios), nrows=rows * len(ratios), ncols=columns,
        height_ratios=ratios * rows, squeeze=False, sharex=True,
    )  # fmt: skip
    panels = grid[:: len(ratios)]
    for panel in panels.ravel()[1:]:
        panel.sharey(panels[0, 0])
    for row in panels:
        for panel in row[1:]:
            panel.tick_params(labelleft=False)
    return figure, panels, grid[1::2] if marked else None


def _marked_rows(marked: dict[str, Any]) -> list[int]:
    """Indices of the lines that have a marked run in some panel."""
    if not marked:
        return []
    marked_lines = np.any([cells.any(axis=(0, 2)) for cells in marked.values()], axis=0)
    return [int(row) for row in np.flatnonzero(marked_lines)]


def _name(result: Slice) -> str:
    name = labels.quantity(result.presentation.notation, result.quantity)
    if result.quantity.yes_no and result.seeds > 1:
        return f"share of {result.seeds} seeds with\n{name}"
    return name


def _coinciding(result: Slice) -> list[list[int]]:
    """Group the lines that coincide in every panel, unless more groups than `COLOURS` remain."""
    heights = result.values[None]
    if result.seeds > 1 and not result.quantity.yes_no:
        heights = np.stack([result.values, result.low, result.high])
    if _logarithmic(result):
        heights = np.log(heights)
    finite = heights[np.isfinite(heights)]
    room = COINCIDE * float(np.ptp(finite)) if finite.size else 0.0
    groups: list[list[int]] = []
    for row in range(result.values.shape[1]):
        for group in groups:
            pair = [row, group[0]]
            one, other = heights[:, :, row], heights[:, :, group[0]]
            if (np.ptp(result.outcome[:, pair], axis=1) == 0).all() and np.allclose(
                one, other, rtol=0.0, atol=room, equal_nan=True
            ):
                group.append(row)
                break
        else:
            groups.append([row])
    if len(groups) > len(COLOURS):
        return [[row] for row in range(result.values.shape[1])]
    return groups


def _looks(result: Slice, groups: list[list[int]]) -> list[tuple[Any, str]]:
    """Colour and marker of each line; more lines than `COLOURS` follow a colour scale."""
    if len(groups) <= len(COLOURS):
        return list(zip(COLOURS, MARKERS, strict=True))[: len(groups)]
    assert result.y is not None
    norm = _norm(result)
    return [(mpl.colormaps["viridis"](0.92 * norm(value)), "o") for value in result.y.values]


def _names(result: Slice, groups: list[list[int]]) -> list[str]:
    """Legend label of each group of merged lines, or an empty list for more groups than colours."""
    if result.y is None or len(groups) > len(COLOURS):
        return []
    letter, names = labels.letter(result.presentation.notation, result.y.name), []
    for group in groups:
        written = [style.number(float(result.y.values[row])) for row in group]
        if len(group) > MOST_NAMES and group[-1] - group[0] + 1 == len(group):
            names.append(f"${letter} = {written[0]}$ to ${written[-1]}$, {len(group)} values")
        else:
            listed = r",\ ".join(written)
            names.append(f"${letter} = {listed}$")
    return names


def _name_rows(strips: Any, rows: list[int], there: list[bool], names: list[str]) -> None:
    """Name, on the left of its row of marks, each line without a drawn value."""
    absent = {height: names[row] for height, row in enumerate(reversed(rows)) if not there[row]}
    for strip in strips:
        strip.set_yticks(list(absent), list(absent.values()), fontsize=6)
        strip.tick_params(axis="y", length=0)


def _norm(result: Slice) -> Normalize:
    assert result.y is not None
    ends = float(result.y.values[0]), float(result.y.values[-1])
    return LogNorm(*ends) if result.y.logarithmic else Normalize(*ends)


def _line(
    panel: Axes, across: CellAxis, result: Slice, at: tuple[int, int], look: dict[str, Any]
) -> None:
    values = result.values[at]
    panel.plot(across.centres, values, mfc="white", ms=4.5, zorder=3, **look)
    if result.seeds > 1 and not result.quantity.yes_no:
        panel.fill_between(
            across.centres, result.low[at], result.high[at], color=look["color"], alpha=0.18, lw=0
        )


def _share(result: Slice) -> bool:
    return result.quantity.yes_no or result.quantity.name == "patch_association"


def _logarithmic(result: Slice) -> bool:
    values = result.values[np.isfinite(result.values)]
    wide = values.size and values.min() > 0 and values.max() > DECADES * values.min()
    return bool(wide) and not _share(result)


def _scale(panel: Axes, result: Slice) -> None:
    values = result.values[np.isfinite(result.values)]
    if _share(result):
        panel.set_ylim(-0.04, 1.04)
    elif _logarithmic(result):
        panel.set_yscale("log")
        logarithmic(panel.yaxis, float(values.max() / values.min()))


def _strip(
    panel: Axes, across: CellAxis, where: dict[str, Any], lines: tuple[list[int], list[Any]]
) -> None:
    """Draw the marks of one panel's runs without a value, one row for each line."""
    rows, colours = lines
    for height, row in enumerate(reversed(rows)):
        for word, cells in where.items():
            at = across.centres[cells[row]]
            look = _look(word) | {"color": colours[row][0], "mfc": colours[row][0]}
            panel.plot(at, np.full(len(at), height), label=word, **look)
    panel.set_ylim(-1, len(rows))
    panel.set_yticks([])
    panel.spines["left"].set_visible(False)


def _look(word: str) -> dict[str, Any]:
    return dict(ABSENT.get(word) or mark(word) | {"ms": 5.5, "mew": 0.5})


def _key(
    figure: Any, panels: Any, result: Slice, lines: list[Line2D] | None, marked: list[str]
) -> None:
    """Draw the legend of marks and lines; many lines have a colour bar instead."""
    if lines is None:
        assert result.y is not None
        shades = mpl.colors.ListedColormap(mpl.colormaps["viridis"](np.linspace(0, 0.92, 256)))
        bar = figure.colorbar(
            ScalarMappable(_norm(result), shades), ax=panels,
            label=labels.label(result.presentation.notation, result.y.name),
        )  # fmt: skip
        bar.outline.set_linewidth(0.6)
    grey = {"color": style.GREY, "mfc": style.GREY}
    marks = [Line2D([], [], label=word, **(_look(word) | grey)) for word in marked]
    style.legend_below(figure, [*(lines or []), *marks], 4)


@style.styled
def scaling(result: Scaling) -> Any:
    """Plot measured against fitted values, and the quantity against each factor of a power law.

    The panel of a factor shows the quantity divided by the fitted powers of all other factors, and
    its legend gives the exponent with standard error. The title counts the used and the excluded
    runs. For a single factor x a dashed line is the alternative fit ``a + b log(1/x)``.

    Raises
    ------
    TypeError
        If ``result`` is not a `Scaling`.

    Examples
    --------
    >>> import xarray
    >>> import dynamics.phase_diagrams
    >>> dataset = xarray.Dataset(
    ...     {"risk": ("D", [12.0, 48.0, 190.0]), "outcome": ("D", [1, 1, 1])}, {"D": [2, 4, 8]}
    ... )
    >>> len(scaling(dynamics.phase_diagrams.scaling(dataset, "risk", ["D"])))
    2
    """
    count = len(result.factors)
    width = 3.4 * (1 + count) if count < 3 else 2.8 * (1 + count)
    name = labels.quantity(result.presentation.notation, result.quantity)
    figure, axes = style.new_figure(width, 3.7, ncols=1 + count)
    _panel(axes[0], result.fitted, result.measured)
    ends = np.array([result.fitted.min(), result.fitted.max()])
    text = f"$R^2 = {result.r2:.4f}$\nspread {100 * result.spread:.2g} %"
    axes[0].plot(ends, ends, color=style.VERMILION, lw=1.2, label=text, zorder=1)
    axes[0].set_xlabel(f"fitted {name}")
    axes[0].set_ylabel(f"measured {name}")
    for k, panel in enumerate(axes[1:]):
        _factor(panel, result, k, name)
    for panel in axes:
        panel.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), fontsize=8, borderpad=0)
    captions.subtitle(figure, _title(figure, result, width))
    return axes


def _factor(panel: Axes, result: Scaling, k: int, name: str) -> None:
    """Plot the quantity against factor k, divided by the fitted powers of all other factors."""
    level, exponent = result.levels[:, k], result.exponents[k]
    others = [i for i in range(len(result.factors)) if i != k]
    divided = np.prod(result.levels[:, others] ** result.exponents[others], axis=1)
    _panel(panel, level, result.measured / divided)
    ends = np.array([level.min(), level.max()])
    factor = labels.formula(result.presentation.notation, result.factors[k])
    decimals = [_decimals(v, result.errors[k]) for v in (exponent, result.errors[k])]
    low, high = (_decimals(v, result.errors[k]) for v in result.intervals[k])
    text = f"exponent ${decimals[0]} \\pm {decimals[1]}$\n95 %: ${low}$ to ${high}$"
    panel.plot(
        ends, result.prefactor * ends**exponent, color=style.VERMILION, lw=1.2, label=text, zorder=1
    )
    if result.logarithmic is not None:
        a, b, r2 = result.logarithmic
        sign = "+" if b >= 0 else "-"
        x, limits = np.geomspace(ends[0], ends[1], 100), panel.get_ylim()
        law = rf"${style.number(a)} {sign} {style.number(abs(b))}\,\log(1/{factor})$"
        law += f", $R^2 = {r2:.4f}$"
        panel.plot(x, a - b * np.log(x), color=style.GREY, lw=1.2, ls="--", label=law, zorder=1)
        panel.set_ylim(limits)
    if _fit(np.unique(level), panel):
        panel.xaxis.set_major_locator(FixedLocator(list(np.unique(level))))
        panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))
        panel.xaxis.set_minor_locator(NullLocator())
    panel.set_xlabel(f"${factor}$")
    product = r"\,".join(_power(result, i) for i in others)
    panel.set_ylabel(rf"{name} $/\;[{product}]$" if product else name)


def _fit(levels: FloatArray, panel: Axes) -> bool:
    """Whether the tick labels of all values of a factor fit on a logarithmic axis."""
    if len(levels) > FEW:
        return False
    width = panel.figure.get_figwidth() / len(panel.figure.axes) - 1.0  # type: ignore[union-attr]
    gaps = np.diff(np.log(levels)) / np.log(levels[-1] / levels[0]) * width
    return bool(gaps.min() > LETTER * max(len(f"{level:.4g}") + 1 for level in levels))


def _power(result: Scaling, k: int) -> str:
    """LaTeX of factor k with its fitted exponent, without dollar signs."""
    factor = labels.formula(result.presentation.notation, result.factors[k])
    base = factor if result.factors[k].isidentifier() else f"({factor})"
    return f"{base}^{{{_decimals(result.exponents[k], result.errors[k])}}}"


def _decimals(value: float, error: float) -> str:
    """Format a number to two digits of its error, with 2 to 6 decimals."""
    needed = 1 - int(np.floor(np.log10(error))) if error > 0 else 6
    return f"{value:.{min(6, max(2, needed))}f}"


def _panel(panel: Axes, x: FloatArray, y: FloatArray) -> None:
    panel.plot(x, y, "o", color=style.BLUE, mfc="white", ms=4, zorder=2)
    panel.set_xscale("log")
    panel.set_yscale("log")
    logarithmic(panel.xaxis, float(x.max() / x.min()))
    logarithmic(panel.yaxis, float(y.max() / y.min()))


def _title(figure: Any, result: Scaling, width: float) -> str:
    runs = f"{result.used} runs"
    if result.left_out:
        why = ", ".join(f"{count} {word}" for word, count in result.left_out.items())
        runs += f"; left out: {why}"
    if result.remark:
        runs += f"; {result.remark.replace('R^2', '$R^2$')}"
    used = captions.used(result.presentation, result.held)
    held = captions.fixed(result.presentation.notation, used, result.derived, width)
    return f"{captions.cut(figure, held)}\n{runs}" if held else runs
