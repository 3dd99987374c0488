"""Nullclines: every branch of the zero set of a function on a rectangle.

`cells` says where to look closely. Every cell is cut into triangles from its centre to all nodes
on its edge, so neighbours of different size fit, and in a triangle the zero set can pass in one
way only: there is no ambiguous case. Every crossing of an edge is then polished onto the zero along
that edge; a change of sign through a pole or a jump is no crossing. All of this is done once more
from cells half as large, until two looks in succession find the same number of open and of closed
branches.

The zero set where a function touches zero without a change of sign is not found. Branches that
cross are returned as arcs that turn at the crossing.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np

from dynamics.analysis.phase_portrait.quadtree import Cells, Function, Node, Surface, divide
from dynamics.analysis.phase_portrait.roots import between
from dynamics.problem import FloatArray
from dynamics.validation import integer, real, refuse

LOOKS = 4
FINER = 8
"""A cell of a look may be divided so often."""
BUDGET = 200_000

Edge = tuple[Node, Node]
Point = tuple[float, float]


@dataclass(frozen=True)
class Nullcline:
    """The zero set of a function on a rectangle.

    Attributes
    ----------
    branches : tuple of float array, shape (points, 2)
        One polyline each; of a closed one the last point is the first.
    settled : bool
        Whether two looks in succession found the same branches.
    unresolved : int
        Smallest cells in which the function is still not plain: a crossing, a cusp, or branches
        closer than that.
    evaluations : int
        Of the function.
    """

    branches: tuple[FloatArray, ...]
    settled: bool
    unresolved: int
    evaluations: int

    @property
    def closed(self) -> tuple[bool, ...]:
        """Whether each branch is a loop."""
        return tuple(bool((line[0] == line[-1]).all()) for line in self.branches)


def nullcline(
    function: Function,
    x: tuple[float, float],
    y: tuple[float, float],
    grid: int = 32,
    tolerance: float = 1e-12,
    budget: int = BUDGET,
) -> Nullcline:
    """Every branch of the zero set of a function on a rectangle.

    Parameters
    ----------
    function : callable
        ``function(x, y)``, a float; not a number where it is undefined.
    x, y : (float, float)
        The rectangle.
    grid : int
        Cells along each side at the first look; each has nine values.
    tolerance : float
        How far a point may be from the zero along its edge, as a part of the side.
    budget : int
        Evaluations after which cells are not divided and no further look is begun. Polishing comes
        on top.

    Returns
    -------
    Nullcline

    Raises
    ------
    InvalidRequest
        If the rectangle, the grid, the tolerance or the budget cannot be.
    """
    sides = interval("x", x), interval("y", y)
    grid = integer("grid", grid, at_least=2, at_most=4096)
    tolerance = real("tolerance", tolerance, above=0.0, at_most=1e-3)
    budget = integer("budget", budget, at_least=(2 * grid + 1) ** 2, at_most=10**9)
    surface = Surface(function, *sides, size=grid << (FINER + LOOKS))
    cells, chains = _look(surface, grid, budget)
    settled = False
    for look in range(1, LOOKS):
        base = grid << look
        if settled or surface.evaluations + 3 * base**2 > budget:
            break
        before = chains
        cells, chains = _look(surface, base, budget)
        settled = _kinds(before) == _kinds(chains) or (
            _kinds(_lines(surface, before, tolerance)) == _kinds(_lines(surface, chains, tolerance))
        )
        settled = settled and not cells.exhausted
    branches = tuple(np.array(line) for line in _lines(surface, chains, tolerance))
    return Nullcline(branches, settled, cells.unresolved, surface.evaluations)


def interval(name: str, ends: tuple[float, float]) -> tuple[float, float]:
    """Two finite ascending numbers.

    Raises
    ------
    InvalidRequest
        If they are not.
    """
    if np.shape(ends) != (2,):
        refuse(name, ends, "is not an interval", "two ascending numbers", (0.0, 1.0))
    low, high = real(name, ends[0]), real(name, ends[1])
    if not low < high:
        refuse(name, ends, "is empty", "two ascending numbers", (low, low + 1.0))
    return low, high


def _look(surface: Surface, base: int, budget: int) -> tuple[Cells, list[list[Edge]]]:
    cells = divide(surface, base, surface.size // base >> FINER, budget)
    return cells, _chains(_neighbours(surface, cells))


def _kinds(chains: Sequence[Sequence[object]]) -> tuple[int, int]:
    """Number of open and of closed chains, or polylines."""
    closed = sum(chain[0] == chain[-1] for chain in chains)
    return len(chains) - closed, closed


def _neighbours(surface: Surface, cells: Cells) -> dict[Edge, list[Edge]]:
    """For every edge at which the sign changes, the at most two others of its triangles."""
    found: dict[Edge, list[Edge]] = defaultdict(list)
    for i, j, side in cells.leaves:
        ring = surface.ring((i, j, side))
        centre = (i + side // 2, j + side // 2)
        if len({surface.values[node] >= 0 for node in (centre, *ring)}) == 1:
            continue
        for a, b in pairwise([*ring, ring[0]]):
            edges = [edge for edge in ((a, b), (b, centre), (centre, a)) if _crossed(surface, edge)]
            if len(edges) == 2 and all(math.isfinite(surface.values[n]) for n in (a, b, centre)):
                first, second = (min(edge, edge[::-1]) for edge in edges)
                found[first].append(second)
                found[second].append(first)
    return found


def _crossed(surface: Surface, edge: Edge) -> bool:
    return (surface.values[edge[0]] >= 0) != (surface.values[edge[1]] >= 0)


def _chains(neighbours: Mapping[Edge, list[Edge]]) -> list[list[Edge]]:
    """Edges in the order of their branches: open ones from an end, then closed ones."""
    left = dict.fromkeys(sorted(neighbours, key=lambda edge: (len(neighbours[edge]), edge)))
    chains = []
    while left:
        chain = [next(iter(left))]
        del left[chain[0]]
        while onwards := [edge for edge in neighbours[chain[-1]] if edge in left]:
            chain.append(onwards[0])
            del left[onwards[0]]
        if len(chain) > 2 and chain[0] in neighbours[chain[-1]]:
            chain.append(chain[0])
        chains.append(chain)
    return chains


def _lines(surface: Surface, chains: list[list[Edge]], tolerance: float) -> list[list[Point]]:
    """The branches: chains polished, and cut where the sign changes through a pole or a jump."""
    lines = []
    for chain in chains:
        closed = chain[0] == chain[-1]
        places = [_zero(surface, edge, tolerance) for edge in (chain[:-1] if closed else chain)]
        if closed and None in places:
            k = places.index(None)
            places = places[k:] + places[:k]
        elif closed:
            places.append(places[0])
        for present, group in groupby(places, key=lambda place: place is not None):
            if present:
                points = [surface.point(*place) for place in group if place is not None]
                lines.append(_without_repeats(surface, points, tolerance))
    return [line for line in lines if len(line) > 1]


def _zero(surface: Surface, edge: Edge, tolerance: float) -> tuple[float, float] | None:
    """Where on an edge the function is zero; None at a pole or a jump."""
    (i, j), (k, m) = edge
    values = (surface.values[edge[0]], surface.values[edge[1]])
    near = tolerance * surface.size / max(abs(k - i), abs(m - j))
    t = between(lambda s: surface.at(i + s * (k - i), j + s * (m - j)), (0.0, 1.0), values, near)
    return None if math.isnan(t) else (i + t * (k - i), j + t * (m - j))


def _without_repeats(surface: Surface, points: list[Point], tolerance: float) -> list[Point]:
    """A polyline without points that are the one before: several edges meet at a node."""
    near = [4 * tolerance * (high - low) for low, high in (surface.x, surface.y)]
    kept = points[:1]
    for point in points[1:]:
        if any(abs(a - b) > width for a, b, width in zip(point, kept[-1], near, strict=True)):
            kept.append(point)
    if len(kept) > 1 and points[0] == points[-1]:
        kept[-1] = points[-1]
    return kept
