"""Nullclines: zero sets of functions on a rectangle.

The function is sampled at nine points of each cell of a grid (corners, midpoints, centre). Cells
that may contain a zero are bisected, with the whole column or row of cells, if second differences
are large relative to the function's range. Bisection resolves close branches and small loops.
`contourpy` connects the sign changes on the edges of cells to polylines. On each edge with a sign
change the zero is located, and sign changes at poles and jumps are dropped. Chords are bisected
until the polylines follow the curve.

The cells are halved until two successive resolutions give the same numbers of open and closed
branches. `Nullcline.converged` tells whether two resolutions agreed. A zero without a sign change
is found only on the edge of the rectangle. Branches that cross are returned as arcs that turn at
the crossing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.analysis.phase_portrait.roots import SHRUNK, Box
from dynamics.problem import FloatArray
from theory.summary import summarized

RESOLUTIONS = 4
"""Maximum number of resolutions; each doubles the number of cells along a side."""
DIVISIONS = 8
"""Maximum number of bisections of a column or row of cells."""
BUDGET = 200_000
PLAIN = 0.25
"""A cell is resolved if its second differences are below this fraction of the function's range in
it."""
CHORD = 2e-4
"""A chord is bisected if it is farther from the curve than this fraction of the rectangle's
side."""
HALVINGS = 4
"""Maximum number of bisections of a chord; at a corner of the curve more bisections do not help."""
SAFETY = 4.0
"""A cell may contain a zero if its smallest absolute sample is below `SAFETY` times the distance of
the function from linear interpolation, which second differences bound."""

Function = Callable[[float, float], float]
IntArray = NDArray[np.int64]


@summarized
@dataclass(frozen=True)
class Nullcline:
    """Zero set of a function on a rectangle."""

    branches: tuple[FloatArray, ...]
    """Polylines, each of shape (points, 2); a closed branch repeats its first point."""
    converged: bool
    """Whether two successive resolutions gave the same numbers of open and closed branches."""
    unresolved: int
    """Number of cells left unresolved because of a crossing, a cusp or very close branches."""

    @property
    def closed(self) -> tuple[bool, ...]:
        """Whether each branch is closed."""
        return tuple(bool((line[0] == line[-1]).all()) for line in self.branches)

    @property
    def _counts(self) -> tuple[int, int]:
        return len(self.branches), sum(self.closed)


def nullcline(
    function: Function,
    x: tuple[float, float],
    y: tuple[float, float],
    grid: int = 32,
    tolerance: float = 1e-12,
    budget: int = BUDGET,
) -> Nullcline:
    """All branches of the zero set of a function on the rectangle with sides `x` and `y`.

    Where `function` is undefined, it must return NaN or raise ArithmeticError. The first resolution
    has `grid` cells along each side, and the finest grid at most `budget` nodes. Each point is on
    an edge of the grid; its error along the edge is at most `tolerance` times the side of the
    rectangle.

    Examples
    --------
    >>> circle = nullcline(lambda x, y: x * x + y * y - 1.0, (-2.0, 2.0), (-2.0, 2.0), grid=8)
    >>> circle.closed, circle.converged
    ((True,), True)
    """
    samples = _Samples(function, (x, y), grid << (DIVISIONS + RESOLUTIONS + 1))
    result = _resolution(samples, grid, tolerance, budget)
    for doubling in range(1, RESOLUTIONS):
        if result.converged or (2 * (grid << doubling) + 1) ** 2 > budget:
            break
        coarser, result = result, _resolution(samples, grid << doubling, tolerance, budget)
        result = replace(result, converged=coarser._counts == result._counts)
    return result


class _Samples:
    """A function sampled on a lattice of ``size`` steps along each side, cached at each point."""

    def __init__(self, function: Function, box: Box, size: int) -> None:
        self.function, self.size = function, size
        self.low, self.high = np.array(box).T
        self._values: dict[tuple[float, float], float] = {}

    def points(self, positions: NDArray[Any]) -> FloatArray:
        """Coordinates (x, y) of lattice positions, both of shape (..., 2)."""
        shares = np.asarray(positions, dtype=np.float64) / self.size
        coordinates: FloatArray = self.low * (1 - shares) + self.high * shares
        return coordinates

    def at(self, positions: NDArray[Any]) -> FloatArray:
        """Values of the function at lattice positions of shape (..., 2)."""
        flat, values = np.asarray(positions).reshape(-1, 2), self._values
        keys = list(zip(*flat.T.tolist(), strict=True))
        new = [number for number, key in enumerate(keys) if key not in values]
        for number, point in zip(new, self.points(flat[new]).tolist(), strict=True):
            if keys[number] not in values:
                values[keys[number]] = self._value(*point)
        return np.array([values[key] for key in keys]).reshape(np.shape(positions)[:-1])

    def put(self, positions: IntArray, value: float) -> None:
        """Replace the value of the function at lattice positions of shape (points, 2)."""
        self._values.update(dict.fromkeys(map(tuple, positions.tolist()), value))

    def _value(self, x: float, y: float) -> float:
        try:
            return float(self.function(x, y))
        except ArithmeticError:
            return np.nan


def _resolution(samples: _Samples, base: int, tolerance: float, budget: int) -> Nullcline:
    """Zero set found on a grid that starts with `base` cells along each side."""
    nodes, values, unresolved = _divided(samples, base, budget)
    branches: list[FloatArray] = []
    for chain in edge_contours(_above(samples, nodes, values, tolerance)):
        ends = nodes[chain[..., 0], chain[..., 1]]
        zeros = _polished(samples, ends, tolerance)
        arcs = _arcs(zeros, bool((ends[0] == ends[-1]).all()), 4 * tolerance * samples.size)
        branches += [_halved(samples, arc, tolerance) for arc in arcs]
    branches.sort(key=lambda arc: bool((arc[0] == arc[-1]).all()))
    lines = tuple(map(samples.points, branches))
    return Nullcline(lines, False, unresolved)


def _divided(samples: _Samples, base: int, budget: int) -> tuple[IntArray, FloatArray, int]:
    """Nodes of all cells, shape (y, x, 2), values at the nodes, and number of unresolved cells."""
    borders = [np.arange(0, samples.size + 1, samples.size // base)] * 2
    for division in range(DIVISIONS + 1):
        middles = [(side[1:] + side[:-1]) // 2 for side in borders]
        lines = [np.union1d(*pair) for pair in zip(borders, middles, strict=True)]
        nodes = np.stack(np.meshgrid(*lines), axis=-1)
        values = samples.at(nodes)
        bent = _bent(values)
        divided = [bent[axis].any(axis=axis) for axis in (0, 1)]
        wide, high = (
            len(line) + 2 * int(cut.sum()) for line, cut in zip(lines, divided, strict=True)
        )
        if division == DIVISIONS or not bent.any() or wide * high > budget:
            break
        borders = [
            np.union1d(side, middle[cut])
            for side, middle, cut in zip(borders, middles, divided, strict=True)
        ]
    return nodes, values, int(bent.any(axis=0).sum())


def _bent(values: FloatArray) -> NDArray[np.bool_]:
    """Mask of unresolved cells, shape (2, rows, columns), by second differences along x and y."""
    cells = np.lib.stride_tricks.sliding_window_view(values, (3, 3))[::2, ::2]
    low, high = cells.min(axis=(2, 3)), cells.max(axis=(2, 3))
    bends = np.stack([np.abs(np.diff(cells, 2, axis=axis)).max(axis=(2, 3)) for axis in (3, 2)])
    bend = bends.sum(axis=0)
    near = (np.minimum(np.abs(low), np.abs(high)) < SAFETY * bend / 8) | ((low < 0) & (high >= 0))
    return (bends > PLAIN * bend) & (bend > PLAIN * (high - low)) & near


def _above(samples: _Samples, nodes: IntArray, values: FloatArray, tolerance: float) -> FloatArray:
    """Sign of the function at each node: 0 if negative, NaN if unknown, else 1.

    A zero (within the tolerance) on the edge of the rectangle gets the sign opposite to the next
    inner node, so that branches along the edge are found.
    """
    above = np.where(np.isnan(values), np.nan, values >= 0)
    rows, columns = np.indices(values.shape)
    inner = tuple(
        np.clip(k, 1, length - 2) for k, length in zip((rows, columns), values.shape, strict=True)
    )
    away = np.abs(nodes - nodes[inner]).max(axis=-1) / samples.size
    size = np.abs(values[inner])
    zero = (away > 0) & (size > 0) & (np.abs(values) * away <= tolerance * size)
    above[zero] = 1.0 - above[inner][zero]
    samples.put(nodes[zero], 0.0)
    return above


def edge_contours(above: FloatArray) -> list[IntArray]:
    """Connect the boundaries between grid nodes with the values 1 and 0 to chains of grid edges.

    No boundary is drawn next to a node with NaN. If two boundaries meet in one cell, the corners
    with 1 are connected. Each chain, shape (edges, 2, 2), holds row and column of both ends of each
    crossed grid edge, in order; a closed chain repeats its first edge.
    """
    from contourpy import contour_generator

    generator = contour_generator(
        z=np.ma.masked_invalid(above), name="serial", corner_mask=False, line_type="Separate"
    )
    lines: Any = generator.lines(float(np.nextafter(0.5, 0.0)))
    ends = [np.stack([np.floor(line + 0.1), np.ceil(line - 0.1)], axis=1) for line in lines]
    return [pair[..., ::-1].astype(np.int64) for pair in ends]


def _polished(samples: _Samples, ends: NDArray[Any], tolerance: float) -> FloatArray:
    """Zero on each of the edges `ends`, shape (edges, 2, 2), or NaN if an edge has no zero."""
    from scipy.optimize.elementwise import find_root

    first, along = ends[:, 0], ends[:, 1] - ends[:, 0]

    def on_edge(share: FloatArray, *line: FloatArray) -> FloatArray:
        return samples.at(np.stack([line[k] + share * line[k + 2] for k in (0, 1)], axis=-1))

    near = tolerance * samples.size / np.abs(along).max()
    with np.errstate(all="ignore"):
        roots = find_root(
            on_edge, (np.zeros(len(ends)), np.ones(len(ends))), args=(*first.T, *along.T),
            tolerances={"xatol": near, "xrtol": 0.0, "fatol": 0.0, "frtol": 0.0},
        )  # fmt: skip
        last = np.abs(roots.f_bracket).max(axis=0)
    zero: NDArray[np.bool_] = np.asarray(roots.f_x == 0)
    zero |= last <= SHRUNK * np.abs(samples.at(ends)).max(axis=1)
    return np.where(zero[:, None], first + roots.x[:, None] * along, np.nan)


def _arcs(positions: FloatArray, closed: bool, near: float) -> list[FloatArray]:
    """Split a chain of positions at NaN, and drop repeated points at shared nodes."""
    finite = np.isfinite(positions[:, 0])
    if closed and not finite.all():
        positions = np.roll(positions[:-1], -int(finite.argmin()), axis=0)
        finite, closed = np.isfinite(positions[:, 0]), False
    arcs = []
    for arc in np.split(positions, np.flatnonzero(~finite)):
        arc = arc[np.isfinite(arc[:, 0])]
        if len(arc) > 1:
            moved = np.abs(np.diff(arc, axis=0)).max(axis=1) > near
            arc = arc[np.append(True, moved)]
            if closed:
                arc[-1] = arc[0]
        if len(arc) > 1:
            arcs.append(arc)
    return arcs


def _halved(samples: _Samples, arc: FloatArray, tolerance: float) -> FloatArray:
    """Add points to a polyline where the chords of the polyline are far from the curve."""
    closed = bool((arc[0] == arc[-1]).all())
    for _ in range(HALVINGS):
        chords = np.diff(arc, axis=0)
        following = np.roll(chords, -1, axis=0)
        lengths = np.hypot(*chords.T)
        turn = np.abs(chords[:, 0] * following[:, 1] - chords[:, 1] * following[:, 0])
        triangle = lengths * np.roll(lengths, -1) * np.hypot(*(chords + following).T)
        curvature = 2 * turn / np.maximum(triangle, np.finfo(float).tiny)
        if not closed:
            curvature[-1] = 0.0
        deviation = lengths**2 * np.maximum(curvature, np.roll(curvature, 1)) / 8
        far = np.flatnonzero(deviation > CHORD * samples.size)
        if not far.size:
            break
        across = chords[far, ::-1] * (-1, 1) * (4 * deviation / lengths)[far, None]
        middles = arc[far] + chords[far] / 2
        ends = np.stack([middles - across, middles + across], axis=1)
        zeros = _polished(samples, np.clip(ends, 0, samples.size), tolerance)
        on = np.isfinite(zeros[:, 0])
        arc = np.insert(arc, far[on] + 1, zeros[on], axis=0)
    return arc
