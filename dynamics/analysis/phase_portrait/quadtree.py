"""A function on a rectangle, looked at in square cells that are divided where it is not plain.

A cell is judged by its nine values: corners, middles of its sides, its centre.

- The values bend little beside their range: there is no extremum inside, and the zero set crosses
  plainly or not at all.
- All of one sign, and a bend cannot reach zero: nothing is inside.
- Else the cell is divided in four, unless the signs change through a pole.

So branches that nearly touch, and loops smaller than a cell, get cells of their own size. Nodes
are pairs of whole numbers on a lattice, so that cells of all sizes share theirs exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dynamics.analysis.phase_portrait.roots import PLAIN

Function = Callable[[float, float], float]
Node = tuple[int, int]
Cell = tuple[int, int, int]
"""Lower left node, and side."""

SAFETY = 4.0
"""On the bound by which second differences let a smooth function of one sign reach zero: a cone."""
DOUBTS = 5
"""Cells of one sign are divided so often: along a line that touches zero all of them would be."""
HALVINGS = 6
"""After so many halvings of an interval, values around a zero are small, those at a pole not."""


class Surface:
    """A function on a rectangle, every node of a lattice evaluated once.

    Parameters
    ----------
    function : callable
        ``function(x, y)``, a float. An ArithmeticError counts as not a number.
    x, y : (float, float)
        The rectangle.
    size : int
        Steps of the lattice along each side.
    """

    def __init__(
        self, function: Function, x: tuple[float, float], y: tuple[float, float], size: int
    ) -> None:
        self.function, self.size = function, size
        self.x, self.y = x, y
        self.values: dict[Node, float] = {}
        self.evaluations = 0

    def point(self, i: float, j: float) -> tuple[float, float]:
        """Coordinates of a place on the lattice."""
        (x0, x1), (y0, y1) = self.x, self.y
        s, t = i / self.size, j / self.size
        return x0 * (1 - s) + x1 * s, y0 * (1 - t) + y1 * t

    def at(self, i: float, j: float) -> float:
        """The function at a place on the lattice, taken anew."""
        self.evaluations += 1
        try:
            return float(self.function(*self.point(i, j)))
        except ArithmeticError:
            return math.nan

    def value(self, node: Node) -> float:
        """The function at a node."""
        found = self.values.get(node)
        if found is None:
            found = self.values[node] = self.at(*node)
        return found

    def nine(self, cell: Cell) -> list[float]:
        """Values at corners, middles and centre, row by row from below."""
        i, j, side = cell
        half = side // 2
        return [self.value((i + a, j + b)) for b in (0, half, side) for a in (0, half, side)]

    def ring(self, cell: Cell) -> list[Node]:
        """Nodes on the edge of a cell, in order, with those that finer neighbours put there."""
        i, j, side = cell
        corners = [(i, j), (i + side, j), (i + side, j + side), (i, j + side)]
        found: list[Node] = []
        for first, second in zip(corners, corners[1:] + corners[:1], strict=True):
            found += self._divided(first, second)
        return found

    def _divided(self, first: Node, second: Node) -> Iterator[Node]:
        """Known nodes from one node up to, without, another, by halving."""
        i, j = first[0] + second[0], first[1] + second[1]
        middle = (i // 2, j // 2)
        if i % 2 or j % 2 or middle not in self.values:
            yield first
        else:
            yield from self._divided(first, middle)
            yield from self._divided(middle, second)


@dataclass(frozen=True)
class Cells:
    """The cells of one look.

    Attributes
    ----------
    leaves : list of Cell
        They cover the rectangle once.
    unresolved : int
        Those that should have been divided once more.
    exhausted : bool
        Whether that was for the budget.
    """

    leaves: list[Cell]
    unresolved: int
    exhausted: bool


def divide(surface: Surface, base: int, smallest: int, budget: int) -> Cells:
    """Cells of a look that starts with base x base of them.

    Parameters
    ----------
    surface : Surface
    base : int
        A divisor of its size.
    smallest : int
        Side of cells that are not divided, at least 2.
    budget : int
        Evaluations after which no cell is divided any more.
    """
    side = surface.size // base
    places = range(0, surface.size, side)
    leaves: list[Cell] = []
    unresolved = 0
    live = [(i, j, side) for j in places for i in places]
    while live:
        further: list[Cell] = []
        for cell in live:
            wanted, signs = _wants_division(surface, cell)
            least = smallest if signs else max(smallest, side >> DOUBTS)
            possible = cell[2] > least and surface.evaluations < budget
            (further if wanted and possible else leaves).append(cell)
            unresolved += wanted and not possible
        live = [part for cell in further for part in _quarters(cell)]
        if not live:
            live, leaves = _touched(surface, leaves, smallest)
    exhausted = unresolved > 0 and surface.evaluations >= budget
    return Cells(sorted(leaves), unresolved, exhausted)


def _quarters(cell: Cell) -> list[Cell]:
    i, j, side = cell
    half = side // 2
    return [(i + a, j + b, half) for b in (0, half) for a in (0, half)]


def _touched(surface: Surface, leaves: list[Cell], smallest: int) -> tuple[list[Cell], list[Cell]]:
    """Quarters of the cells on whose edge a finer neighbour found a sign that they do not see."""
    live: list[Cell] = []
    kept: list[Cell] = []
    for cell in leaves:
        seen = {value >= 0 for value in surface.nine(cell)}
        edge = {surface.values[node] >= 0 for node in surface.ring(cell)}
        if cell[2] > smallest and len(seen) == 1 and edge != seen:
            live += _quarters(cell)
        else:
            kept.append(cell)
    return live, kept


def _wants_division(surface: Surface, cell: Cell) -> tuple[bool, bool]:
    """Whether a cell is not plain, and whether it has both signs."""
    v = surface.nine(cell)
    if not all(map(math.isfinite, v)):
        return False, False
    low, high = min(v), max(v)
    rows = max(abs(v[k] - 2 * v[k + 1] + v[k + 2]) for k in (0, 3, 6))
    columns = max(abs(v[k] - 2 * v[k + 3] + v[k + 6]) for k in (0, 1, 2))
    bend = rows + columns
    plain = bend <= PLAIN * (high - low)
    if low >= 0 or high < 0:
        return not plain and min(map(abs, v)) < SAFETY * bend / 8, False
    return not plain and not _pole(surface, cell), True


def _pole(surface: Surface, cell: Cell) -> bool:
    """Whether on every side where the sign changes, it does so through infinity or a jump."""
    i, j, side = cell
    corners = [(i, j), (i + side, j), (i + side, j + side), (i, j + side)]
    crossed = [
        (a, b)
        for a, b in zip(corners, corners[1:] + corners[:1], strict=True)
        if (surface.value(a) >= 0) != (surface.value(b) >= 0)
    ]
    return bool(crossed) and all(_stays(surface, a, b) for a, b in crossed)


def _stays(surface: Surface, low: tuple[float, float], high: tuple[float, float]) -> bool:
    """Whether the values around a change of sign stay, or grow, as its interval is halved."""
    below, above = surface.at(*low), surface.at(*high)
    largest = max(abs(below), abs(above))
    for _ in range(HALVINGS):
        middle = ((low[0] + high[0]) / 2, (low[1] + high[1]) / 2)
        value = surface.at(*middle)
        if not math.isfinite(value):
            return True
        if (value >= 0) == (below >= 0):
            low, below = middle, value
        else:
            high, above = middle, value
    return max(abs(below), abs(above)) > largest / 2
