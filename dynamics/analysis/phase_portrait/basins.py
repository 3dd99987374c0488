"""Basins of a plane: the end to which each start of a grid goes, and the separatrices between them.

Neighbours are in one basin where the end is a continuous function of the start between them. Parts
of their edge whose ends differ by more than `NEAR` are halved. Where a part is left after `DECIDED`
halvings, a separatrix crosses it, and bisection goes on to its place. So a basin may lead to a
curve of ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynamics.analysis.phase_portrait.nullclines import edge_contours
from dynamics.analysis.phase_portrait.roots import Box
from dynamics.problem import FloatArray, IntArray, Problem
from dynamics.results.outcome import HORIZON
from dynamics.training.flow import integrate_flows
from theory.summary import summarized

RTOL = 1e-8
DECIDED, HALVINGS = 12, 24
"""Halvings of an edge after which ends that differ are of two basins; halvings to its crossing."""
EARLY, RESTS = 0.01, 1e-4
"""Part of the horizon at which flows are looked at first, and the relative change of a state over
half of that time up to which it rests."""
NEAR = 0.02
"""Distance of the ends of two neighbours, over the sides, up to which nothing divides them."""
SAME = 1e-3
"""Distance of the ends of two regions, as a part of the sides, up to which they are one end."""
OUTSIDE = -1
"""Label beyond the rectangle."""

Ends = Callable[[FloatArray], FloatArray]
"""Starts, shape (n, 2) -> where they end, shape (n, entries); NaN where they end nowhere."""


@summarized
@dataclass(frozen=True)
class Basin:
    """The starts of a plane that end alike.

    `starts`: nodes of the grid in it; `ends`, shape (starts, entries): the whole states at which
    they end; NaN where the flow is undefined; `outline`, shape (points, 2): closed polylines around
    it, and around its holes, within the rectangle; `separatrices`, shape (points, 2): the parts of
    its outline that divide it from basins after it.
    """

    starts: int
    ends: FloatArray
    outline: tuple[FloatArray, ...]
    separatrices: tuple[FloatArray, ...]


def ends_of(
    problem: Problem,
    state: Callable[[float, float], FloatArray],
    time: float,
    interrupted: threading.Event | None = None,
) -> Ends:
    """The ends of the gradient flow from points of a plane.

    `state`: point -> whole state, NaN where there is none; `time`: Horizon. A flow that rests from
    half of `EARLY` of it on is not followed further; `interrupted`: once set, flows are refused by
    KeyboardInterrupt.
    """

    def ends(points: FloatArray) -> FloatArray:
        starts = np.array([state(x, y) for x, y in points.tolist()])
        states, change = starts.copy(), np.full_like(starts, np.nan)
        defined = np.isfinite(states).all(axis=1)
        states[~defined], moving = np.nan, np.flatnonzero(defined)
        for end in (EARLY * time, time):
            paths = integrate_flows([problem] * moving.size, [*states[moving]], end, RTOL)
            for k, path in zip(moving, paths, strict=True):
                states[k] = np.nan
                if path.kind == HORIZON:
                    before, states[k] = path.states(np.array([end / 2, end]))
                    change[k] = np.abs(states[k] - before)
            if interrupted is not None and interrupted.is_set():
                raise KeyboardInterrupt
            scale = np.maximum(np.abs(starts[moving]), np.abs(states[moving]))
            moving = moving[(change[moving] > RESTS * scale).any(axis=1)]
        return states

    return ends


def bisected(
    ends: Ends, pairs: FloatArray, known: FloatArray, sides: FloatArray, near: float
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Places between pairs of starts at which the end jumps, NaN where it does not, and whether.

    `pairs`, shape (n, 2, 2): both starts of each pair; `known`, shape (n, 2, entries): their ends;
    `sides`, shape (entries,): sizes by which differences of ends are divided; `near`: greatest
    difference of ends that are one. Returns float array, shape (n, 2), and bool array, shape (n,).
    """
    places, jumps = np.full((len(pairs), 2), np.nan), np.zeros(len(pairs), dtype=bool)
    edge, points, found = np.arange(len(pairs)), np.asarray(pairs, dtype=float), np.asarray(known)
    for halving in range(HALVINGS + 1):
        gaps = _distance(found[:, 0], found[:, 1], sides)
        kept = np.flatnonzero(gaps > near) if halving <= DECIDED else np.arange(edge.size)
        if halving >= DECIDED:  # of each edge the part whose ends differ most
            order = kept[np.lexsort((-gaps[kept], edge[kept]))]
            kept = order[np.unique(edge[order], return_index=True)[1]]
        if not kept.size or halving == HALVINGS:
            break
        edge, points, found = edge[kept], points[kept], found[kept]
        middle = points.mean(axis=1)
        there = ends(middle)
        edge = np.tile(edge, 2)
        points = np.concatenate([np.stack([points[:, 0], middle], 1),
                                 np.stack([middle, points[:, 1]], 1)])  # fmt: skip
        found = np.concatenate([np.stack([found[:, 0], there], 1),
                                np.stack([there, found[:, 1]], 1)])  # fmt: skip
    places[edge[kept]], jumps[edge[kept]] = points[kept].mean(axis=1), True
    return places, jumps


def _distance(one: FloatArray, other: FloatArray, sides: FloatArray) -> FloatArray:
    """Largest difference of ends over the sides; infinite of an end and none, 0 of two of none."""
    defined = np.isfinite(one).all(axis=-1), np.isfinite(other).all(axis=-1)
    off = np.abs(np.where(np.isfinite(one - other), one - other, 0.0) / sides).max(axis=-1)
    return np.where(defined[0] == defined[1], off, np.inf)


def basins(ends: Ends, box: Box, plane: tuple[int, int], count: int) -> tuple[Basin, ...]:
    """The basins of a rectangle, that of most starts first.

    `box`: the rectangle; `plane`: entries of an end that are the coordinates of the plane; `count`:
    starts along each side, the corners among them; an even number has none on the axes of a
    rectangle around the origin.

    Examples
    --------
    >>> def ends(points):
    ...     return np.where(points[:, :1] > 0.1, [[1.0, 0.0]], [[-1.0, 0.0]])
    >>> first, second = basins(ends, ((-1.0, 1.0), (-1.0, 1.0)), (0, 1), 4)
    >>> first.starts, second.starts, first.separatrices[0][:, 0].round(6).tolist()
    (8, 8, [0.1, 0.1, 0.1, 0.1])
    """
    x, y = (np.linspace(*side, count) for side in box)
    nodes = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    known = ends(nodes)
    sides = _sides(known, box, plane)
    edges = _edges(count)
    places, jumps = bisected(ends, nodes[edges], known[edges], sides, NEAR)
    crossed = dict(zip(map(tuple, edges[jumps].tolist()), places[jumps], strict=True))
    whole = [edge for edge in edges.tolist() if tuple(edge) not in crossed]
    labels = _labels(known / sides, whole)
    padded = np.pad(labels.reshape(count, count), 1, constant_values=OUTSIDE)
    outlines = _Outlines(padded, nodes, crossed)
    return tuple(
        Basin(int((labels == k).sum()), known[labels == k], *outlines.of(k))
        for k in range(labels.max() + 1)
    )


def _sides(known: FloatArray, box: Box, plane: tuple[int, int]) -> FloatArray:
    """Sizes of the entries of ends: the sides of the plane, and ranges of what it does not show."""
    finite = known[np.isfinite(known).all(axis=1)]
    sides = np.ones(known.shape[1])
    if len(finite):
        sides = np.maximum(np.ptp(finite, axis=0), SAME * np.abs(finite).max(axis=0))
        sides[sides == 0] = 1.0
    sides[list(plane)] = np.ptp(np.array(box), axis=1)
    return sides


def _edges(count: int) -> IntArray:
    """Pairs of neighbours of a square grid, the smaller number first."""
    number = np.arange(count * count).reshape(count, count)
    across = np.stack([number[:, :-1], number[:, 1:]], axis=-1)
    up = np.stack([number[:-1], number[1:]], axis=-1)
    return np.concatenate([across.reshape(-1, 2), up.reshape(-1, 2)])


def _labels(known: FloatArray, edges: list[list[int]]) -> IntArray:
    """Number of the basin of each node: joined by edges, or by an end; that of most nodes is 0."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    finite = np.flatnonzero(np.isfinite(known).all(axis=1))
    none = np.flatnonzero(~np.isfinite(known).all(axis=1))
    alike = cKDTree(known[finite]).query_pairs(SAME, p=np.inf, output_type="ndarray")
    joined = [np.array(edges, dtype=int).reshape(-1, 2), finite[alike],
              np.stack([none[:-1], none[1:]], axis=1)]  # fmt: skip
    one, other = np.concatenate(joined).T
    graph = coo_array((np.ones(one.size), (one, other)), shape=(len(known), len(known)))
    labels = connected_components(graph, directed=False)[1]
    order = np.argsort(-np.bincount(labels), kind="stable")
    return np.asarray(np.argsort(order)[labels])


class _Outlines:
    """Outlines of the labels of a grid with a frame that is outside."""

    def __init__(
        self, labels: IntArray, nodes: FloatArray, crossed: dict[tuple[int, ...], FloatArray]
    ) -> None:
        self._labels, self._nodes, self._crossed = labels, nodes, crossed
        self._count = labels.shape[0] - 2

    def of(self, label: int) -> tuple[tuple[FloatArray, ...], tuple[FloatArray, ...]]:
        """Closed outlines of a label, and their parts that divide it from later labels."""
        outlines, parts = [], []
        for chain in edge_contours((self._labels == label).astype(float)):
            points = [*self._along(chain, label)]
            outlines.append(np.array([place for place, _ in points]))
            parts += _runs(points)
        return tuple(outlines), tuple(parts)

    def _along(self, chain: IntArray, label: int) -> Iterator[tuple[FloatArray, bool]]:
        """Points of an outline, and whether they divide the label from a later one."""
        for k, edge in enumerate(chain):
            if k and (corner := self._corner(np.concatenate([chain[k - 1], edge]))) is not None:
                yield corner, True
            beyond = max(self._labels[tuple(node)] for node in edge.tolist())
            yield self._place(edge.tolist()), bool(beyond > label)

    def _number(self, node: list[int]) -> int:
        return (node[0] - 1) * self._count + node[1] - 1

    def _place(self, edge: list[list[int]]) -> FloatArray:
        """Where an outline crosses an edge: at the node itself where the other is outside."""
        inner = [node for node in edge if self._labels[tuple(node)] != OUTSIDE]
        numbers = sorted(map(self._number, inner))
        return self._nodes[numbers[0]] if len(numbers) == 1 else self._crossed[tuple(numbers)]

    def _corner(self, nodes: IntArray) -> FloatArray | None:
        """The point at which three or more labels meet, in the cell of two edges."""
        (row, column), (last, right) = nodes.min(axis=0), nodes.max(axis=0)
        cell = self._labels[row : last + 1, column : right + 1]
        if cell.shape != (2, 2) or (cell == OUTSIDE).any() or len(np.unique(cell)) < 3:
            return None
        a, b = [row, column], [row, right]
        c, d = [last, right], [last, column]
        pairs = [(a, b), (b, c), (d, c), (a, d)]
        keys = [tuple(map(self._number, pair)) for pair in pairs]
        return np.mean([self._crossed[key] for key in keys if key in self._crossed], axis=0)


def _runs(points: list[tuple[FloatArray, bool]]) -> list[FloatArray]:
    """Stretches of two points or more that divide, of a closed chain."""
    divides = np.array([each for _, each in points[:-1]], dtype=bool)
    places = np.array([place for place, _ in points[:-1]])
    if divides.all():
        return [np.array([place for place, _ in points])]
    first = int(np.argmin(divides))
    divides, places = np.roll(divides, -first), np.roll(places, -first, axis=0)
    cuts = np.flatnonzero(np.diff(divides.astype(int))) + 1
    pieces = zip(np.split(places, cuts), np.split(divides, cuts), strict=True)
    return [piece for piece, inside in pieces if inside[0] and len(piece) > 1]
