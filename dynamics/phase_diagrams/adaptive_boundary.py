"""The boundary of a yes or no over a rectangle, from few runs: only where the answer changes.

A coarse lattice is run first. Every cell around which the answers differ is divided into four,
again and again, down to a fine lattice; a point found different on the side of a larger neighbour
divides that one too. Where all answers around a cell agree, its inside is inferred. So the values
are those of the whole fine lattice unless something lies entirely inside a coarse cell whose four
corners agree: an island, or a bay that comes in through one side, narrower than a coarse cell.
More coarse points (``coarse``) are the remedy.

The runs are asked for in waves of many points, which may run side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.phase_diagrams.axis import Axis, Span
from dynamics.phase_diagrams.boundary import Edge, crossings, placed, trace
from dynamics.problem import FloatArray
from dynamics.validation import InvalidRequest, integer, real, refuse

NO, YES, BARRED = 0, 1, -1
"""Answers: no, yes, not a valid combination (no run)."""
FINEST = 1e-9
Leaf = tuple[int, int, int]
"""Row and column of the first corner of a cell, and its size."""


@dataclass(frozen=True)
class Refined:
    """A yes or no over a rectangle.

    Attributes
    ----------
    x, y : Axis
        The fine lattice, ``cells + 1`` values each.
    values : int8 array, shape (cells + 1, cells + 1)
        Row by row of y: 1 yes, 0 no, -1 not valid.
    asked : bool array, same shape
        Where the answer was asked for; elsewhere it is inferred.
    runs, waves : int
        Points at which the answer was yes or no, and calls in which all points were asked for.
    lines : tuple of float arrays, shape (points, 2)
        The boundary between yes and no: x and y along each line.
    tolerance : (float, float)
        How far in x and in y a line may be from the boundary; relative on a logarithmic axis.
    crossed : mapping
        Edges of the lattice that the boundary crosses (row and column of the first end, 0 along x
        or 1 along y) -> how far along, 0 to 1.
    """

    x: Axis
    y: Axis
    values: NDArray[np.int8]
    asked: NDArray[np.bool_]
    runs: int
    waves: int
    lines: tuple[FloatArray, ...]
    tolerance: tuple[float, float]
    crossed: Mapping[Edge, float]


def refine(
    evaluate: Callable[[FloatArray], Any],
    x: Span,
    y: Span,
    coarse: int = 9,
    cells: int = 64,
    tolerance: float | None = None,
) -> Refined:
    """Find the boundary of a yes or no by dividing cells.

    Parameters
    ----------
    evaluate : callable
        Points, float array (n, 2) of x and y -> n answers: true, false, or -1 where x and y are
        no valid combination. No point is asked for twice.
    x, y : Span
        The rectangle.
    coarse : int
        Points along each side of the first lattice.
    cells : int
        Cells along each side of the finest one: ``coarse - 1`` times a power of 2.
    tolerance : float, optional
        Share of each span to which the crossings of the boundary are then bisected; without it
        they are half a fine cell wide. A bisection that meets a point that is not valid stops.

    Returns
    -------
    Refined

    Raises
    ------
    InvalidRequest
        If the lattices do not nest, or an answer is none.
    """
    cells, size = _sizes(coarse, cells)
    halvings = _halvings(tolerance, cells)
    lattice = _Lattice(evaluate, x.axis(cells), y.axis(cells))
    corners = range(0, cells, size)
    leaves: list[Leaf] = [(row, column, size) for row in corners for column in corners]
    lattice.ask(leaves)
    while split := [leaf for leaf in leaves if leaf[2] > 1 and lattice.mixed(leaf)]:
        done = set(split)
        children = [child for leaf in split for child in _quarters(leaf)]
        leaves = [leaf for leaf in leaves if leaf not in done] + children
        lattice.ask(children)
    asked = lattice.known.copy()
    for leaf in leaves:
        lattice.fill(leaf)
    values = np.where(lattice.values == BARRED, np.nan, lattice.values.astype(np.float64))
    crossed = lattice.bisect(crossings(values), halvings)
    share = 0.5 / cells / 2**halvings
    return Refined(
        x=lattice.x,
        y=lattice.y,
        values=lattice.values,
        asked=asked,
        runs=lattice.runs,
        waves=lattice.waves,
        lines=placed(trace(values, crossed), lattice.x, lattice.y),
        tolerance=(x.width(share), y.width(share)),
        crossed=crossed,
    )


class _Lattice:
    """Answers on the fine lattice, as far as they are known."""

    def __init__(self, evaluate: Callable[[FloatArray], Any], x: Axis, y: Axis) -> None:
        self.evaluate, self.x, self.y = evaluate, x, y
        self.values = np.zeros((len(y.values), len(x.values)), dtype=np.int8)
        self.known = np.zeros(self.values.shape, dtype=bool)
        self.runs = self.waves = 0

    def ask(self, leaves: list[Leaf]) -> None:
        """The corners of cells, as far as they are not known: one wave."""
        wanted = np.zeros_like(self.known)
        for row, column, size in leaves:
            wanted[row : row + size + 1 : size, column : column + size + 1 : size] = True
        wanted &= ~self.known
        rows, columns = np.nonzero(wanted)
        self.values[wanted] = self._wave(columns, rows)
        self.known |= wanted

    def mixed(self, leaf: Leaf) -> bool:
        """Whether two known answers in or around a cell differ."""
        row, column, size = leaf
        place = np.s_[row : row + size + 1, column : column + size + 1]
        answers = self.values[place][self.known[place]]
        return bool((answers != answers[0]).any())

    def fill(self, leaf: Leaf) -> None:
        """Infer what is inside a cell whose corners agree."""
        row, column, size = leaf
        place = np.s_[row : row + size + 1, column : column + size + 1]
        if size > 1:
            self.values[place] = self.values[row, column]
            self.known[place] = True

    def bisect(self, crossed: dict[Edge, float], halvings: int) -> dict[Edge, float]:
        """Better places along crossed edges: all edges at once, one wave for each halving."""
        edges = list(crossed)
        low, high = np.zeros(len(edges)), np.ones(len(edges))
        at = np.array(edges, dtype=np.int64).reshape(-1, 3)
        first = self.values[at[:, 0], at[:, 1]]
        open_ = np.ones(len(edges), dtype=bool)
        for _ in range(halvings):
            middle, kept = (low + high) / 2, np.flatnonzero(open_)
            row, column, way = at[kept].T
            found = self._wave(column + middle[kept] * (way == 0), row + middle[kept] * (way == 1))
            open_[kept[found == BARRED]] = False
            same = found == first[kept]
            low[kept[same]] = middle[kept[same]]
            other = ~same & (found != BARRED)
            high[kept[other]] = middle[kept[other]]
        return dict(zip(edges, ((low + high) / 2).tolist(), strict=True))

    def _wave(self, columns: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.int8]:
        """Answers at fractional indices."""
        if not len(columns):
            return np.empty(0, dtype=np.int8)
        answers = np.asarray(self.evaluate(np.column_stack([self.x.at(columns), self.y.at(rows)])))
        if answers.shape != (len(columns),) or not np.isin(answers, (NO, YES, BARRED)).all():
            raise InvalidRequest(
                f"evaluate={answers.tolist()!r:.60} is not one answer for each of {len(columns)} "
                "points; an answer can be true, false or -1; nearest: a bool array"
            )
        self.waves += 1
        self.runs += int((answers != BARRED).sum())
        return answers.astype(np.int8)


def _quarters(leaf: Leaf) -> list[Leaf]:
    row, column, size = leaf
    half = size // 2
    return [(row + half * down, column + half * right, half) for down in (0, 1) for right in (0, 1)]


def _sizes(coarse: int, cells: int) -> tuple[int, int]:
    """Cells of the fine lattice, and how many of them make the side of a coarse one."""
    sides = integer("coarse", coarse, 2, at_most=1025) - 1
    fine = integer("cells", cells, 1, at_most=4096)
    halvings = max(0, round(np.log2(fine / sides)))
    if sides * 2**halvings != fine:
        refuse(
            "cells", cells, f"does not nest the {coarse} coarse points",
            f"{sides} times a power of 2", sides * 2**halvings,
        )  # fmt: skip
    return fine, 2**halvings


def _halvings(tolerance: float | None, cells: int) -> int:
    if tolerance is None:
        return 0
    share = real("tolerance", tolerance, at_least=FINEST, at_most=1.0)
    return max(0, int(np.ceil(np.log2(0.5 / cells / share))))
