"""Basins of attraction in a plane, found from the limits of flows that start on a grid.

Neighbouring starts are in one basin if the limit of the flow is a continuous function of the start
along the grid edge between them. An edge is bisected if the flows from its two nodes have limits
that differ by more than `NEAR`. If the limit still jumps after `DECIDED` bisections, a separatrix
crosses the edge, and bisection locates the crossing.
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
"""If the limit jumps on an edge after `DECIDED` bisections, the edge's nodes are in two basins.
After `HALVINGS` bisections the separatrix on the edge is located."""
EARLY, RESTS = 0.01, 1e-4
"""The first check of convergence is at the time `EARLY` times the horizon. A flow has converged if
no entry changed by more than `RESTS` times the entry over the second half of the time up to the
check."""
NEAR = 0.02
"""Neighbouring starts are in one basin if their limits differ by at most this fraction of the
rectangle's sides."""
SAME = 1e-3
"""Two regions are merged into one basin if their limits differ by at most this fraction of the
rectangle's sides."""
OUTSIDE = -1
"""Label of grid points outside the rectangle."""

Ends = Callable[[FloatArray], FloatArray]
"""Function that maps starts, shape (n, 2), to limit states, shape (n, entries). A limit is NaN
where the flow is undefined."""


@summarized
@dataclass(frozen=True)
class Basin:
    """Region of a plane whose starts have one limit, or limits that vary continuously."""

    starts: int
    """Number of grid nodes in the basin."""
    ends: FloatArray
    """Limit states of the nodes, shape (starts, entries), or NaN where the flow is undefined."""
    outline: tuple[FloatArray, ...]
    """Closed polylines around the basin and its holes, each of shape (points, 2)."""
    separatrices: tuple[FloatArray, ...]
    """Parts of the outline shared with basins of higher index, each of shape (points, 2)."""


def ends_of(
    problem: Problem,
    state: Callable[[float, float], FloatArray],
    time: float,
    interrupted: threading.Event | None = None,
) -> Ends:
    """Make a function that maps points of a plane to the limits of the gradient flows from them.

    The function `state` maps a point of the plane to a whole state, or NaN. Flows that have
    converged at `EARLY` times the horizon `time` are not continued. The event `interrupted`, once
    set, makes the integration raise KeyboardInterrupt.
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
    """Bisect edges between starts to find jumps of the limit.

    The array `pairs`, shape (n, 2, 2), holds both starts of each edge; `known`, shape (n, 2,
    entries), holds the limits of these starts. Limits closer than `near`, in units of `sides`,
    count as equal. Returns the place of the jump on each edge, shape (n, 2), NaN without a jump,
    and the mask of edges with a jump.
    """
    places, jumps = np.full((len(pairs), 2), np.nan), np.zeros(len(pairs), dtype=bool)
    edge, points, found = np.arange(len(pairs)), np.asarray(pairs, dtype=float), np.asarray(known)
    for halving in range(HALVINGS + 1):
        gaps = _distance(found[:, 0], found[:, 1], sides)
        kept = np.flatnonzero(gaps > near) if halving <= DECIDED else np.arange(edge.size)
        if halving >= DECIDED:  # of each edge, keep the part between the most different limits
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
    """Largest difference of two limits in units of `sides`; infinite if only one is NaN."""
    defined = np.isfinite(one).all(axis=-1), np.isfinite(other).all(axis=-1)
    off = np.abs(np.where(np.isfinite(one - other), one - other, 0.0) / sides).max(axis=-1)
    return np.where(defined[0] == defined[1], off, np.inf)


def basins(ends: Ends, box: Box, plane: tuple[int, int], count: int) -> tuple[Basin, ...]:
    """Basins of the rectangle `box`, sorted by decreasing number of starts.

    The pair `plane` holds the indices of the two entries of a state that are the coordinates. The
    grid has `count` starts along each side, corners included; an even count avoids starts on the
    axes of a rectangle centred at the origin.

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
    """Unit of each entry of a limit: a coordinate's side of `box`, else the range of the entry."""
    finite = known[np.isfinite(known).all(axis=1)]
    sides = np.ones(known.shape[1])
    if len(finite):
        sides = np.maximum(np.ptp(finite, axis=0), SAME * np.abs(finite).max(axis=0))
        sides[sides == 0] = 1.0
    sides[list(plane)] = np.ptp(np.array(box), axis=1)
    return sides


def _edges(count: int) -> IntArray:
    """Pairs of neighbouring nodes of a square grid, the smaller index first."""
    number = np.arange(count * count).reshape(count, count)
    across = np.stack([number[:, :-1], number[:, 1:]], axis=-1)
    up = np.stack([number[:-1], number[1:]], axis=-1)
    return np.concatenate([across.reshape(-1, 2), up.reshape(-1, 2)])


def _labels(known: FloatArray, edges: list[list[int]]) -> IntArray:
    """Basin index of each node, by falling size; nodes joined by edges or equal limits share it."""
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
    """Outlines of the regions of equal label on a grid framed by nodes labelled `OUTSIDE`."""

    def __init__(
        self, labels: IntArray, nodes: FloatArray, crossed: dict[tuple[int, ...], FloatArray]
    ) -> None:
        self._labels, self._nodes, self._crossed = labels, nodes, crossed
        self._count = labels.shape[0] - 2

    def of(self, label: int) -> tuple[tuple[FloatArray, ...], tuple[FloatArray, ...]]:
        """Closed outlines of the regions of a label, and their parts shared with larger labels."""
        outlines, parts = [], []
        for chain in edge_contours((self._labels == label).astype(float)):
            points = [*self._along(chain, label)]
            outlines.append(np.array([place for place, _ in points]))
            parts += _runs(points)
        return tuple(outlines), tuple(parts)

    def _along(self, chain: IntArray, label: int) -> Iterator[tuple[FloatArray, bool]]:
        """Yield each point of an outline, and whether the point borders on a larger label."""
        for k, edge in enumerate(chain):
            if k and (corner := self._corner(np.concatenate([chain[k - 1], edge]))) is not None:
                yield corner, True
            beyond = max(self._labels[tuple(node)] for node in edge.tolist())
            yield self._place(edge.tolist()), bool(beyond > label)

    def _number(self, node: list[int]) -> int:
        return (node[0] - 1) * self._count + node[1] - 1

    def _place(self, edge: list[list[int]]) -> FloatArray:
        """Crossing of an outline with an edge, or the inner node if the other node is outside."""
        inner = [node for node in edge if self._labels[tuple(node)] != OUTSIDE]
        numbers = sorted(map(self._number, inner))
        return self._nodes[numbers[0]] if len(numbers) == 1 else self._crossed[tuple(numbers)]

    def _corner(self, nodes: IntArray) -> FloatArray | None:
        """Point at which three or more labels meet in the grid cell of the `nodes`, or None."""
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
    """Split a closed chain into maximal runs of at least two points that separate basins."""
    divides = np.array([each for _, each in points[:-1]], dtype=bool)
    places = np.array([place for place, _ in points[:-1]])
    if divides.all():
        return [np.array([place for place, _ in points])]
    first = int(np.argmin(divides))
    divides, places = np.roll(divides, -first), np.roll(places, -first, axis=0)
    cuts = np.flatnonzero(np.diff(divides.astype(int))) + 1
    pieces = zip(np.split(places, cuts), np.split(divides, cuts), strict=True)
    return [piece for piece, inside in pieces if inside[0] and len(piece) > 1]
