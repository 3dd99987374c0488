"""Boundaries of yes-or-no quantities: traced on a grid, or refined by further runs.

On a grid, a boundary crosses every edge with different answers at its two nodes: at the midpoint
between yes and no, or, if nodes hold the share of seeds with yes, at the interpolated share 1/2.
Cells with an unknown or invalid corner have no boundary. In a cell with two boundary lines, each
line cuts off one corner with the answer no.

Refinement leads from a coarse to a fine lattice: a cell with different answers at its corners or on
its sides is divided into four. Values inside an undivided cell are set to the value of its corners.
Refined values equal an evaluation of the whole fine lattice, except for islands and bays inside one
coarse cell with four equal corners. A larger number ``coarse`` of points per side resolves smaller
islands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.analysis.phase_portrait.nullclines import edge_contours
from dynamics.phase_diagrams.selection import Axis, Slice
from dynamics.problem import FloatArray
from dynamics.validation import InvalidRequest, integer, real, refuse
from theory.summary import summarized

HALF = 0.5
NO, YES, NOT_VALID = 0, 1, -1
"""Codes of answers: 0 no, 1 yes, -1 invalid combination of parameters."""
FINEST = 1e-9
Edge = tuple[int, int, int]
"""Lattice edge: row and column of its first node, and direction (0 along x, 1 along y)."""
Cell = tuple[int, int, int]
"""Lattice cell: row and column of its first corner, and side in fine cells."""


def boundary(result: Slice, facet: int = 0) -> tuple[FloatArray, ...]:
    """Boundary lines between yes and no in one panel of a slice, each of shape (points, 2).

    The columns of a line are x and y, and a closed line repeats its first point. The `result` is a
    slice of a yes-or-no quantity over two axes, and `facet` the index of the panel. Raises
    InvalidRequest if the quantity is not yes or no, or y is missing.

    Examples
    --------
    >>> import xarray
    >>> from dynamics.phase_diagrams import select
    >>> dims = ("q", "D")
    >>> dataset = xarray.Dataset(
    ...     {"risk": (dims, [[0.3, 0.1], [0.3, 0.1]]), "outcome": (dims, [[1, 1], [1, 1]])},
    ...     {"q": [0.4, 0.6], "D": [4.0, 8.0]},
    ... )
    >>> (line,) = boundary(select(dataset, "risk<0.2", "D", "q"))
    >>> line[:, 0]
    array([6., 6.])
    """
    check_yes_no(result)
    if result.y is None:
        refuse("y", None, "is needed for a boundary", "a second axis", "select(..., y=NAME)")
    panel = integer("facet", facet, 0, at_most=len(result.values) - 1)
    return trace(result.values[panel], result.x, result.y)


def check_yes_no(result: Slice) -> None:
    """Raise InvalidRequest if the quantity of a slice is not yes or no."""
    question = result.quantity
    if not question.yes_no:
        near = f"{question.name}<1"
        refuse("quantity", question.text, "has no boundary", f"a yes or no such as {near}", near)


def crossings(values: FloatArray) -> dict[Edge, float]:
    """Edge with nodes on both sides of 1/2 -> position of the crossing on the edge, 0 to 1."""
    crossed: dict[Edge, float] = {}
    sides = ((values[:, :-1], values[:, 1:]), (values[:-1], values[1:]))
    for direction, (first, second) in enumerate(sides):
        finite = np.isfinite(first) & np.isfinite(second)
        for row, column in np.argwhere(finite & ((first >= HALF) != (second >= HALF))):
            a, b = first[row, column], second[row, column]
            crossed[int(row), int(column), direction] = float((HALF - a) / (b - a))
    return crossed


def trace(
    values: FloatArray, x: Axis, y: Axis, crossed: Mapping[Edge, float] | None = None
) -> tuple[FloatArray, ...]:
    """Lines along which values on a grid cross 1/2, each of shape (points, 2) with columns x and y.

    The array `values`, shape (rows, columns), holds values at the grid nodes, NaN if unknown; `x`
    and `y` are the axes of its columns and rows. The mapping `crossed` gives the crossing's
    position on each crossed edge (see `crossings`). A closed line repeats its first point.
    """
    if min(values.shape) < 2:
        return ()
    crossed = crossings(values) if crossed is None else crossed
    lines = []
    for chain in edge_contours(np.where(np.isnan(values), np.nan, values >= HALF)):
        first, along = chain[:, 0], chain[:, 1] - chain[:, 0]
        edges = zip(*first.T.tolist(), along[:, 0].tolist(), strict=True)
        at = first + np.array([crossed[edge] for edge in edges])[:, None] * along
        lines.append(np.column_stack([x.at(at[:, 1]), y.at(at[:, 0])]))
    return tuple(lines)


@summarized
@dataclass(frozen=True)
class Refined:
    """A yes-or-no quantity over a rectangle, with its refined boundary.

    The axes `x` and `y` of the fine lattice have ``cells + 1`` values each. The array `values` of
    shape (cells + 1, cells + 1), with rows along y, holds 1 for yes, 0 for no, -1 for invalid. The
    array `evaluated` is False where a value was inferred from the corners of its cell. The number
    `runs` counts the evaluated valid points, `waves` the batches of points. Each of the `lines` has
    shape (points, 2). The maximum error of a line in x and in y, relative on a logarithmic axis, is
    `tolerance`. The mapping `crossed` gives the position, 0 to 1, of the crossing on each crossed
    edge. The number `missed` counts points given to `refine` as `known` whose answer differs from
    all corners of their fine cell.
    """

    x: Axis
    y: Axis
    values: NDArray[np.int8]
    evaluated: NDArray[np.bool_]
    runs: int
    waves: int
    lines: tuple[FloatArray, ...]
    tolerance: tuple[float, float]
    crossed: Mapping[Edge, float]
    missed: int = 0


def refine(
    evaluate: Callable[[FloatArray], Any],
    x: Axis,
    y: Axis,
    coarse: int = 9,
    cells: int = 64,
    tolerance: float | None = None,
    known: FloatArray | None = None,
) -> Refined:
    """Refine the boundary of a yes-or-no quantity over a rectangle by dividing cells.

    The function `evaluate` maps n points of shape (n, 2), with columns x and y, to n answers: true,
    false, or -1 for an invalid combination. Each point is evaluated once. The axes `x` and `y` are
    the sides of the rectangle. Each side has `coarse` points in the first lattice, and `cells`
    cells in the finest lattice, ``coarse - 1`` times a power of 2. Crossings are bisected until
    their error, relative to each side, is below `tolerance`, or a point is invalid. By default
    crossings are not bisected, and have errors of half a fine cell. Given points `known`, shape (n,
    3), have the columns x, y and answer. A cell is also divided if a point of `known` inside has
    another answer than the corners. Raises InvalidRequest if the coarse lattice is not part of the
    fine lattice, or `evaluate` returns an invalid answer.

    Examples
    --------
    >>> unit = Axis.of("x", [0, 1]), Axis.of("y", [0, 1])
    >>> result = refine(lambda points: points.sum(axis=1) > 0.7, *unit)
    >>> result.values.size, result.runs < 1000, len(result.lines)
    (4225, True, 1)
    """
    cells, size = _sizes(coarse, cells)
    halvings = _halvings(tolerance, cells)
    lattice = _Lattice(evaluate, _divided(x, cells), _divided(y, cells))
    if known is not None:
        rows, columns = lattice.y.index(known[:, 1]), lattice.x.index(known[:, 0])
        lattice.known = np.column_stack([rows, columns, known[:, 2]])
    corners = range(0, cells, size)
    parts: list[Cell] = [(row, column, size) for row in corners for column in corners]
    lattice.evaluate_corners(parts)
    while split := [part for part in parts if part[2] > 1 and lattice.mixed(part)]:
        done = set(split)
        children = [child for part in split for child in _quarters(part)]
        parts = [part for part in parts if part not in done] + children
        lattice.evaluate_corners(children)
    evaluated = lattice.answered.copy()
    for part in parts:
        lattice.fill(part)
    values = np.where(lattice.values == NOT_VALID, np.nan, lattice.values.astype(np.float64))
    crossed = lattice.bisect(crossings(values), halvings)
    share = 0.5 / cells / 2**halvings
    return Refined(
        x=lattice.x,
        y=lattice.y,
        values=lattice.values,
        evaluated=evaluated,
        runs=lattice.runs,
        waves=lattice.waves,
        lines=trace(values, lattice.x, lattice.y, crossed),
        tolerance=(_width(x, share), _width(y, share)),
        crossed=crossed,
        missed=lattice.missed(),
    )


class _Lattice:
    """Answers at the nodes of the fine lattice that are evaluated or inferred so far."""

    def __init__(self, evaluate: Callable[[FloatArray], Any], x: Axis, y: Axis) -> None:
        self.evaluate, self.x, self.y = evaluate, x, y
        self.values = np.zeros((len(y.values), len(x.values)), dtype=np.int8)
        self.answered = np.zeros(self.values.shape, dtype=bool)
        self.runs = self.waves = 0
        self.known = np.zeros((0, 3))
        """Fractional row, fractional column and answer of each point given as ``known``."""

    def evaluate_corners(self, parts: list[Cell]) -> None:
        """Evaluate in one batch those corners of the cells `parts` that have no answer yet."""
        new = np.zeros_like(self.answered)
        for row, column, size in parts:
            new[row : row + size + 1 : size, column : column + size + 1 : size] = True
        new &= ~self.answered
        rows, columns = np.nonzero(new)
        self.values[new] = self._wave(columns, rows)
        self.answered |= new

    def mixed(self, part: Cell) -> bool:
        """Whether two answers at the corners, on the sides or inside a cell differ."""
        row, column, size = part
        inside = np.s_[row : row + size + 1, column : column + size + 1]
        answers = self.values[inside][self.answered[inside]]
        return bool((answers != answers[0]).any() or (self._known_in(part) != answers[0]).any())

    def _known_in(self, part: Cell) -> FloatArray:
        """Answers that were given as `known` for points inside a cell."""
        row, column, size = part
        low = np.array([row, column])
        at = self.known[:, :2]
        return self.known[((at >= low) & (at <= low + size)).all(axis=1), 2]

    def missed(self) -> int:
        """Number of points of `known` whose answer differs from all corners of their fine cell."""
        cells = np.array(self.values.shape) - 1
        number = 0
        for *at, answer in self.known:
            row, column = np.clip(np.floor(at), 0, cells - 1).astype(int)
            number += bool((self.values[row : row + 2, column : column + 2] != answer).all())
        return number

    def fill(self, part: Cell) -> None:
        """Infer the values inside a cell with equal corners."""
        row, column, size = part
        inside = np.s_[row : row + size + 1, column : column + size + 1]
        if size > 1:
            self.values[inside] = self.values[row, column]
            self.answered[inside] = True

    def bisect(self, crossed: dict[Edge, float], halvings: int) -> dict[Edge, float]:
        """Bisect the positions of all crossings, with one batch of points for each halving."""
        edges = list(crossed)
        low, high = np.zeros(len(edges)), np.ones(len(edges))
        at = np.array(edges, dtype=np.int64).reshape(-1, 3)
        first = self.values[at[:, 0], at[:, 1]]
        open_ = np.ones(len(edges), dtype=bool)
        for _ in range(halvings):
            middle, live = (low + high) / 2, np.flatnonzero(open_)
            row, column, way = at[live].T
            answers = self._wave(
                column + middle[live] * (way == 0), row + middle[live] * (way == 1)
            )
            open_[live[answers == NOT_VALID]] = False
            same = answers == first[live]
            low[live[same]] = middle[live[same]]
            other = ~same & (answers != NOT_VALID)
            high[live[other]] = middle[live[other]]
        return dict(zip(edges, ((low + high) / 2).tolist(), strict=True))

    def _wave(self, columns: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.int8]:
        """Evaluate one batch of points, given by fractional lattice indices."""
        if not len(columns):
            return np.empty(0, dtype=np.int8)
        answers = np.asarray(self.evaluate(np.column_stack([self.x.at(columns), self.y.at(rows)])))
        if answers.shape != (len(columns),) or not np.isin(answers, (NO, YES, NOT_VALID)).all():
            raise InvalidRequest(
                f"evaluate={answers.tolist()!r:.60} is not one answer for each of {len(columns)} "
                "points; an answer can be true, false or -1; nearest: a bool array"
            )
        self.waves += 1
        self.runs += int((answers != NOT_VALID).sum())
        return answers.astype(np.int8)


def _divided(axis: Axis, cells: int) -> Axis:
    """Axis of `cells` equal steps (equal ratios if logarithmic) between the ends of `axis`."""
    low, high = float(axis.values[0]), float(axis.values[-1])
    if not high > low:
        refuse(axis.name, low, "is its only value", "an axis of two values or more", "a wider one")
    space = np.geomspace if axis.logarithmic else np.linspace
    return replace(axis, values=space(low, high, cells + 1))


def _width(axis: Axis, share: float) -> float:
    """Length of a share of an axis; on a logarithmic axis, ratio of the share's ends minus 1."""
    low, high = float(axis.values[0]), float(axis.values[-1])
    return (high / low) ** share - 1.0 if axis.logarithmic else share * (high - low)


def _quarters(part: Cell) -> list[Cell]:
    row, column, size = part
    half = size // 2
    return [(row + half * down, column + half * right, half) for down in (0, 1) for right in (0, 1)]


def _sizes(coarse: int, cells: int) -> tuple[int, int]:
    """Number of fine cells along a side of the lattice, and along a side of a coarse cell."""
    sides = integer("coarse", coarse, 2, at_most=1025) - 1
    fine = integer("cells", cells, 1, at_most=4096)
    halvings = max(0, round(np.log2(fine / sides)))
    if sides * 2**halvings != fine:
        refuse(
            "cells", cells, f"does not fit the {coarse} coarse points",
            f"{sides} times a power of 2", sides * 2**halvings,
        )  # fmt: skip
    return fine, 2**halvings


def _halvings(tolerance: float | None, cells: int) -> int:
    if tolerance is None:
        return 0
    share = real("tolerance", tolerance, at_least=FINEST, at_most=1.0)
    return max(0, int(np.ceil(np.log2(0.5 / cells / share))))
