"""Nullclines and fixed points: zero sets of functions on a rectangle, and where two of them meet.

The function is sampled on square cells, nine values each (corners, middles of the sides, centre).
A cell is divided in four where its second differences are not small beside its range, if both
signs occur in it or if a smooth function of that bend could still reach zero in it; so branches
that nearly touch, and loops smaller than a cell, get cells of their own size. The samples are
triangulated (Delaunay): a zero set passes a triangle in one way only, so there is no ambiguous
case. Every crossing of an edge is then polished onto the zero along that edge; a change of sign
through a pole or a jump is no crossing.

All of this is done again from cells half as large, until two resolutions in succession give the
same number of open and of closed branches; `Nullcline.converged` says whether they did. A zero set
where the function touches zero without a change of sign is not detected. Branches that cross are
returned as arcs that turn at the crossing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.problem import FloatArray
from dynamics.validation import integer, real, refuse

RESOLUTIONS = 4
"""Resolutions that are tried, each twice as fine as the one before."""
DIVISIONS, DOUBTFUL_DIVISIONS = 8, 5
"""How often a cell is divided in four; and one in which only one sign has been seen."""
BUDGET = 200_000
PLAIN = 0.25
"""A cell is plain where its second differences are below this part of its range."""
SAFETY = 4.0
"""On the bound by which second differences let a smooth function of one sign reach zero: a cone."""
SHRINKING, PATIENCE = 0.75, 4
"""A cell with both signs whose values do not shrink to this part, so many divisions in succession,
has a jump or a pole and is not divided."""
SHRUNK = 1e-3
"""At a zero, values at the ends of the last bracket are below this part of the first ones."""
SHEAR = np.array([(1.0, -0.01), (0.0, 1.0)])
"""Before squares are cut into triangles: all of them are cut along the same diagonal."""
NINE = np.array([(a, b) for b in range(3) for a in range(3)])
"""Nodes of a cell, in halves of its side, row by row from below."""

SINK, SADDLE, SOURCE, DEGENERATE = "sink", "saddle", "source", "degenerate"
NEAR = 0.05
"""How far Newton's method may go from a crossing of two polylines, as a part of the sides."""
WIDTH = 1e-5
"""Step of the differences that give a derivative, as a part of the sides."""
FLAT = 1e-9
"""An eigenvalue below this part of the other is indistinguishable from 0."""

Function = Callable[[float, float], float]
Field = Callable[[float, float], tuple[float, float]]
Box = tuple[tuple[float, float], tuple[float, float]]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Nullcline:
    """The zero set of a function on a rectangle.

    Attributes
    ----------
    branches : tuple of float array, shape (points, 2)
        One polyline each; of a closed one the last point is the first.
    converged : bool
        Whether two resolutions in succession gave the same numbers of open and closed branches.
    unresolved : int
        Smallest cells in which the function is still not plain: a crossing, a cusp, or branches
        closer than that.
    evaluations : int
        Number of times the function was called.
    """

    branches: tuple[FloatArray, ...]
    converged: bool
    unresolved: int
    evaluations: int

    @property
    def closed(self) -> tuple[bool, ...]:
        """Whether each branch is a loop."""
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
    """Every branch of the zero set of a function on a rectangle.

    Parameters
    ----------
    function : callable
        ``function(x, y)``, a float; NaN, or an ArithmeticError, where it is undefined.
    x, y : (float, float)
        The rectangle.
    grid : int
        Cells along each side at the first resolution; each has nine values.
    tolerance : float
        How far a point may be from the zero along its edge, as a part of the side.
    budget : int
        Evaluations after which cells are not divided and no finer resolution is begun. Polishing
        comes on top.

    Returns
    -------
    Nullcline

    Raises
    ------
    InvalidRequest
        If the rectangle is empty, or grid, tolerance or budget is out of range.

    Examples
    --------
    >>> circle = nullcline(lambda x, y: x * x + y * y - 1.0, (-2.0, 2.0), (-2.0, 2.0), grid=8)
    >>> circle.closed, circle.converged
    ((True,), True)
    """
    sides = interval("x", x), interval("y", y)
    grid = integer("grid", grid, at_least=2, at_most=4096)
    tolerance = real("tolerance", tolerance, above=0.0, at_most=1e-3)
    budget = integer("budget", budget, at_least=(2 * grid + 1) ** 2, at_most=10**9)
    samples = _Samples(function, sides, grid << (DIVISIONS + RESOLUTIONS))
    result = _resolution(samples, grid, tolerance, budget)
    for doubling in range(1, RESOLUTIONS):
        base = grid << doubling
        if result.converged or samples.evaluations + 3 * base**2 > budget:
            break
        coarser, result = result, _resolution(samples, base, tolerance, budget)
        exhausted = result.unresolved > 0 and samples.evaluations >= budget
        agree = coarser._counts == result._counts and not exhausted
        result = Nullcline(result.branches, agree, result.unresolved, samples.evaluations)
    return result


def interval(name: str, ends: tuple[float, float]) -> tuple[float, float]:
    """Two finite ascending numbers, checked.

    Parameters
    ----------
    name : str
        Of the parameter, for the error.
    ends : (float, float)

    Returns
    -------
    (float, float)

    Raises
    ------
    InvalidRequest
        If they are not two, not finite or not ascending.
    """
    if np.shape(ends) != (2,):
        refuse(name, ends, "is not an interval", "two ascending numbers", (0.0, 1.0))
    low, high = real(name, ends[0]), real(name, ends[1])
    if not low < high:
        refuse(name, ends, "is empty", "two ascending numbers", (low, low + 1.0))
    return low, high


class _Samples:
    """A function on a lattice of ``size`` steps along each side of a rectangle, called once each.

    Positions are pairs in steps of the lattice, so cells of all sizes share their nodes exactly.
    """

    def __init__(self, function: Function, box: Box, size: int) -> None:
        self.function, self.size = function, size
        self.low, self.high = np.array(box).T
        self.evaluations = 0
        self._values: dict[tuple[float, float], float] = {}

    def points(self, positions: NDArray[Any]) -> FloatArray:
        """Coordinates of positions, shape (..., 2)."""
        shares = np.asarray(positions, dtype=np.float64) / self.size
        coordinates: FloatArray = self.low * (1 - shares) + self.high * shares
        return coordinates

    def at(self, positions: NDArray[Any]) -> FloatArray:
        """The function at positions, shape (..., 2)."""
        flat = np.asarray(positions).reshape(-1, 2)
        values = [self._value(*key) for key in zip(flat.tolist(), self.points(flat), strict=True)]
        return np.array(values).reshape(np.shape(positions)[:-1])

    def _value(self, position: list[float], point: FloatArray) -> float:
        key = position[0], position[1]
        if key not in self._values:
            self.evaluations += 1
            try:
                self._values[key] = float(self.function(float(point[0]), float(point[1])))
            except ArithmeticError:
                self._values[key] = np.nan
        return self._values[key]


def _resolution(samples: _Samples, base: int, tolerance: float, budget: int) -> Nullcline:
    """The zero set from ``base`` cells along each side."""
    from scipy.spatial import Delaunay

    nodes, unresolved = _divided(samples, base, budget)
    values = samples.at(nodes)
    triangles = Delaunay(nodes @ SHEAR).simplices
    positive = values[triangles] >= 0
    mixed = positive.any(axis=1) & ~positive.all(axis=1) & np.isfinite(values[triangles]).all(1)
    corners = triangles[mixed]
    pairs = np.sort(np.stack([corners, np.roll(corners, -1, axis=1)], axis=-1), axis=-1)
    crossed = (values[pairs] >= 0).sum(axis=-1) == 1
    edges, numbers = np.unique(pairs[crossed], axis=0, return_inverse=True)
    positions = _polished(samples, nodes[edges], values[edges], tolerance)
    branches: list[FloatArray] = []
    for chain in _chains(numbers.reshape(-1, 2), len(edges)):
        branches += _arcs(positions[chain], chain[0] == chain[-1], 4 * tolerance * samples.size)
    lines = tuple(samples.points(branch) for branch in branches)
    return Nullcline(lines, False, unresolved, samples.evaluations)


def _divided(samples: _Samples, base: int, budget: int) -> tuple[IntArray, int]:
    """Nodes of all cells, and the number of cells that should have been divided once more."""
    side = samples.size // base
    steps = np.arange(0, samples.size, side)
    cells = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    former, stuck = np.full((len(cells), 2), np.inf), np.zeros(len(cells), dtype=int)
    nodes: list[IntArray] = []
    unresolved = 0
    for division in range(DIVISIONS + 1):
        corners = cells[:, None] + NINE * (side // 2)
        nodes.append(corners.reshape(-1, 2))
        values = samples.at(corners)
        doubtful, mixed = _needs_division(values)
        sizes = np.stack([rule(np.abs(values), axis=1) for rule in (np.max, np.median)], axis=1)
        stuck = np.where((sizes > SHRINKING * former).any(axis=1), stuck + 1, 0)
        doubtful &= ~mixed | (stuck < PATIENCE)
        deepest = np.where(mixed, DIVISIONS, DOUBTFUL_DIVISIONS)
        divisible = doubtful & (division < deepest)
        divisible &= divisible.cumsum() <= (budget - samples.evaluations) / 16
        unresolved += int((doubtful & ~divisible).sum())
        if not divisible.any():
            break
        side //= 2
        quarters = cells[divisible][:, None] + side * np.array([(0, 0), (1, 0), (0, 1), (1, 1)])
        cells = quarters.reshape(-1, 2)
        former, stuck = (np.repeat(each[divisible], 4, axis=0) for each in (sizes, stuck))
    return np.unique(np.concatenate(nodes), axis=0), unresolved


def _needs_division(values: FloatArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether each cell is not plain, and whether it has both signs; from values, shape (., 9)."""
    known = np.asarray(np.isfinite(values).all(axis=1))
    v = np.where(known[:, None], values, 0.0).reshape(-1, 3, 3)
    low, high = v.min(axis=(1, 2)), v.max(axis=(1, 2))
    bend = np.abs(np.diff(v, 2, axis=1)).max(axis=(1, 2))
    bend += np.abs(np.diff(v, 2, axis=2)).max(axis=(1, 2))
    mixed = (low < 0) & (high >= 0)
    near = np.minimum(np.abs(low), np.abs(high)) < SAFETY * bend / 8
    return known & (bend > PLAIN * (high - low)) & (mixed | near), mixed


def _polished(
    samples: _Samples, ends: IntArray, values: FloatArray, tolerance: float
) -> FloatArray:
    """Zeros along edges, shape (edges, 2); NaN where the sign changes at a pole or a jump."""
    from scipy.optimize.elementwise import find_root

    if not len(ends):
        return np.empty((0, 2))
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
    zero |= last <= SHRUNK * np.abs(values).max(axis=1)
    return np.where(zero[:, None], first + roots.x[:, None] * along, np.nan)


def _chains(pairs: IntArray, count: int) -> list[list[int]]:
    """Numbers in the order of their branches, open ones first; pairs of neighbours are given."""
    neighbours: list[list[int]] = [[] for _ in range(count)]
    for one, other in pairs.tolist():
        neighbours[one].append(other)
        neighbours[other].append(one)
    left = dict.fromkeys(sorted(range(count), key=lambda k: len(neighbours[k])))
    chains = []
    while left:
        chain = [next(iter(left))]
        del left[chain[0]]
        while onwards := [k for k in neighbours[chain[-1]] if k in left]:
            chain.append(onwards[0])
            del left[onwards[0]]
        if len(chain) > 2 and chain[0] in neighbours[chain[-1]]:
            chain.append(chain[0])
        chains.append(chain)
    return chains


def _arcs(positions: FloatArray, closed: bool, near: float) -> list[FloatArray]:
    """A chain of positions, cut where they are NaN, without repeats at nodes that edges share."""
    known = np.isfinite(positions[:, 0])
    if closed and not known.all():
        positions = np.roll(positions[:-1], -int(known.argmin()), axis=0)
        known, closed = np.isfinite(positions[:, 0]), False
    arcs = []
    for arc in np.split(positions, np.flatnonzero(~known)):
        arc = arc[np.isfinite(arc[:, 0])]
        if len(arc) > 1:
            moved = np.abs(np.diff(arc, axis=0)).max(axis=1) > near
            arc = arc[np.append(True, moved)]
            if closed:
                arc[-1] = arc[0]
        if len(arc) > 1:
            arcs.append(arc)
    return arcs


@dataclass(frozen=True)
class FixedPoint:
    """A point at which a field on the plane is zero.

    Attributes
    ----------
    position : float array, shape (2,)
    eigenvalues : complex array, shape (2,)
        Of the derivative of the field, per unit of time, by their real parts.
    kind : str
        ``"sink"``, ``"saddle"``, ``"source"``; ``"degenerate"`` where one of them is 0.
    """

    position: FloatArray
    eigenvalues: np.ndarray
    kind: str


def fixed_points(
    field: Field, box: Box, first: Sequence[FloatArray], second: Sequence[FloatArray]
) -> tuple[FixedPoint, ...]:
    """Where two nullclines meet inside a rectangle.

    Crossings of the polylines are the starts of Newton's method; the eigenvalues of the field's
    derivative there classify the point.

    Parameters
    ----------
    field : callable
        ``field(x, y)``, the rates of both.
    box : two pairs of float
        The rectangle.
    first, second : sequences of float array, shape (points, 2)
        Branches of the nullclines of the two rates.

    Returns
    -------
    tuple of FixedPoint
        From left to right.

    Examples
    --------
    >>> axis = np.array([[-1.0, 0.0], [1.0, 0.0]])
    >>> (point,) = fixed_points(lambda x, y: (-x, -2 * y), ((-1, 1), (-1, 1)), [axis[:, ::-1]],
    ...                         [axis])
    >>> point.kind
    'sink'
    """
    low, sides = np.array(box)[:, 0], np.ptp(np.array(box), axis=1)
    zeros: list[FloatArray] = []

    def scaled(share: FloatArray) -> FloatArray:
        x, y = low + share * sides
        return np.asarray(field(float(x), float(y))) / sides

    for start in (point for a in first for b in second for point in crossings(a, b)):
        zero = _newton(scaled, (start - low) / sides)
        if zero is None or not ((zero >= 0) & (zero <= 1)).all():
            continue
        if all(np.abs(zero - other).max() > 1e-6 for other in zeros):
            zeros.append(zero)
    points = []
    for zero in sorted(zeros, key=lambda share: tuple(share)):
        values = np.linalg.eigvals(_derivative(scaled, zero)).astype(complex)
        values = values[np.argsort(values.real)]
        points.append(FixedPoint(low + zero * sides, values, kind_of(values)))
    return tuple(points)


def kind_of(eigenvalues: np.ndarray) -> str:
    """Kind of a fixed point with these eigenvalues: sink, saddle, source or degenerate."""
    real_parts = np.asarray(eigenvalues).real
    if np.abs(real_parts).min() <= FLAT * np.abs(eigenvalues).max():
        return DEGENERATE
    if (real_parts < 0).all():
        return SINK
    return SOURCE if (real_parts > 0).all() else SADDLE


def crossings(first: FloatArray, second: FloatArray) -> FloatArray:
    """Points at which two polylines cross.

    Parameters
    ----------
    first, second : float array, shape (points, 2)

    Returns
    -------
    float array, shape (crossings, 2)
    """
    a, u = first[:-1, None, :], np.diff(first, axis=0)[:, None, :]
    b, w = second[None, :-1, :], np.diff(second, axis=0)[None, :, :]
    across = _cross(u, w)
    parallel = across == 0
    across = np.where(parallel, 1.0, across)
    s, t = _cross(b - a, w) / across, _cross(b - a, u) / across
    meet = ~parallel & (s >= 0) & (s <= 1) & (t >= 0) & (t <= 1)
    points: FloatArray = (a + s[..., None] * u)[meet]
    return points


def _cross(u: FloatArray, w: FloatArray) -> FloatArray:
    crossed: FloatArray = u[..., 0] * w[..., 1] - u[..., 1] * w[..., 0]
    return crossed


def _derivative(field: Callable[[FloatArray], FloatArray], point: FloatArray) -> FloatArray:
    steps = WIDTH * np.eye(2)
    columns = [(field(point + step) - field(point - step)) / (2 * WIDTH) for step in steps]
    return np.array(columns).T


def _newton(field: Callable[[FloatArray], FloatArray], start: FloatArray) -> FloatArray | None:
    """The zero near a start, in units of the sides; None if it is not reached."""
    point = start.copy()
    for _ in range(30):
        slopes, value = _derivative(field, point), field(point)
        if not (np.isfinite(slopes).all() and np.isfinite(value).all()):
            return None
        step = np.linalg.lstsq(slopes, -value, rcond=1e-14)[0]
        point = point + step
        if np.abs(point - start).max() > NEAR:
            return None
        if np.abs(step).max() < 1e-11:
            return point
    return None
