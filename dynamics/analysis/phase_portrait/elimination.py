"""Elimination of the scalars outside a phase plane, as functions of its two coordinates.

- *slow*: a fast scalar takes its value on the attracting branch of its slow manifold, continued
  from the branch that the main run follows.
- *run*: a scalar takes the value that it has on the main run at the same value of one coordinate.
  Only the run's initial part with a monotone coordinate is used. Beyond the coordinate's values on
  the initial part of the run, the scalar is constant.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dynamics.analysis.phase_portrait.roots import (
    STEP,
    Box,
    GradientField,
    branch_bounds,
    partial_gradient,
    refine_root,
    slope,
)
from dynamics.problem import FloatArray
from dynamics.results.trajectory import Trajectory
from dynamics.validation import refuse
from theory.summary import summarized

SLOW, RUN = "slow", "run"
FAST = 1e-2
"""A scalar is fast if it stays closer to its zero-rate value than this fraction of its range."""
REACH = 10.0
"""Zero-rate values of a scalar are searched up to this multiple of its largest value along the
run."""
ROUNDING = 1e-9
"""The test for monotonicity ignores reversals of at most this fraction of the coordinate's
range."""
BEYOND = 0.2
"""Initial half width of the bracket around the end of a Newton step, relative to the step."""

PlaneFunction = Callable[[float, float], float]
Index = tuple[int, ...]


@summarized
@dataclass(frozen=True)
class Elimination:
    """Method by which a scalar outside a plane is eliminated."""

    kind: str
    """``"slow"`` (values on the slow manifold) or ``"run"`` (values on the main run)."""
    along: str = ""
    """Name of the coordinate that determines the scalar by the method ``"run"``."""
    until: float = math.nan
    """Time up to which the method ``"run"`` uses the main run."""


def is_fast(problem: GradientField, run: Trajectory, name: str) -> bool:
    """Whether a scalar stays near its zero-rate value over the last two thirds of a run."""
    values, names = run[name], problem.layout.names
    span = float(np.ptp(values))
    gaps = []
    for k in np.linspace(len(values) // 3, len(values) - 1, 9).astype(int):
        at = dict(zip(names, map(float, run.states[k]), strict=True))
        component = partial_gradient(problem, name, at)
        rate = slope(component, float(values[k]), span)
        gaps.append(abs(component(float(values[k])) / rate) if rate > 0 else math.inf)
    return bool(np.median(gaps) < FAST * span)


def eliminations(
    problem: GradientField, run: Trajectory, plane: tuple[str, str]
) -> dict[str, Elimination]:
    """Elimination of each scalar outside the plane: `SLOW` for one fast scalar, else `RUN`."""
    result: dict[str, Elimination] = {}
    slaved = False
    for name in problem.layout.names:
        if name in plane:
            continue
        if not slaved and is_fast(problem, run, name):
            slaved, result[name] = True, Elimination(SLOW)
        else:
            along, last = _monotone(run, plane)
            result[name] = Elimination(RUN, along=along, until=float(run.time[last - 1]))
    return result


def _monotone(run: Trajectory, plane: tuple[str, str]) -> tuple[str, int]:
    """Coordinate whose monotone initial part of the run is longest, and the part's length."""
    lasts = {}
    for name in plane:
        changes = np.diff(run[name])
        steps = np.sign(changes) * (np.abs(changes) > ROUNDING * np.ptp(run[name]))
        first = steps[np.flatnonzero(steps)[0]] if steps.any() else 1.0
        turned = np.flatnonzero(steps == -first)
        lasts[name] = int(turned[0]) + 1 if turned.size else len(run.time)
    along = max(lasts, key=lambda name: lasts[name])
    return along, lasts[along]


def along_run(
    run: Trajectory, name: str, plane: tuple[str, str], elimination: Elimination
) -> PlaneFunction:
    """Function of the plane with a scalar's values on the run, constant outside the run's range."""
    from scipy.interpolate import PchipInterpolator

    used = run.time <= elimination.until
    levels, first = np.unique(run[elimination.along][used], return_index=True)
    values = run[name][used][first]
    if len(levels) < 2:
        return lambda x, y: float(values[0])
    curve = PchipInterpolator(levels, values)
    axis = plane.index(elimination.along)
    low, high = float(levels[0]), float(levels[-1])
    return lambda x, y: float(curve(min(max((x, y)[axis], low), high)))


class SlavedScalar:
    """A scalar on an attracting branch of its slow manifold, as a function of the plane.

    The mapping `others` gives every other eliminated scalar as a function of the plane. The last
    state of the main run inside the rectangle `box` selects the branch. The scalar's largest value
    along the run limits the search. Values on the branch are tabulated on `grid` cells along each
    side. Raises InvalidRequest if no branch attracts the scalar near that state.
    """

    def __init__(
        self,
        problem: GradientField,
        name: str,
        plane: tuple[str, str],
        box: Box,
        others: Mapping[str, PlaneFunction],
        run: Trajectory,
        grid: int,
    ) -> None:
        self.problem, self.name, self.plane, self.others = problem, name, plane, others
        self.axes = tuple(np.linspace(low, high, grid + 1) for low, high in box)
        x, y = np.meshgrid(*self.axes, indexing="ij")
        at: dict[str, FloatArray] = {plane[0]: x, plane[1]: y}
        for other, function in others.items():
            at[other] = np.vectorize(function, otypes=[float])(x, y)
        largest = REACH * float(np.abs(run[name]).max())
        self.bounds = (-largest, largest)
        path = np.stack([run[part] for part in plane], axis=1)
        low, high = np.array(box).T
        inside = np.flatnonzero(((path >= low) & (path <= high)).all(axis=1))
        end = int(inside[-1]) if inside.size else -1
        nearest = [int(np.abs(a - v).argmin()) for a, v in zip(self.axes, path[end], strict=True)]
        seed = (nearest[0], nearest[1]), float(run[name][end])
        branch = follow_branch(problem, name, at, seed, self.bounds)
        if not np.isfinite(branch[0]).any():
            what = f"has no attracting {name} along the run"
            refuse("plane", plane, what, "two other scalars", f"one with {name}")
        self._cell_values = np.stack(branch)

    def __call__(self, x: float, y: float) -> float:
        """Value of the scalar on the branch, or NaN if the branch does not exist at the point."""
        shares = [
            min(max((v - axis[0]) / (axis[1] - axis[0]), 0.0), len(axis) - 1.0)
            for v, axis in zip((x, y), self.axes, strict=True)
        ]
        i, j = (min(int(p), len(axis) - 2) for p, axis in zip(shares, self.axes, strict=True))
        s, t = shares[0] - i, shares[1] - j
        corners = self._cell_values[:, i : i + 2, j : j + 2]
        finite = np.isfinite(corners[0])
        if not finite.any():
            return math.nan
        weights = np.where(finite, np.outer([1 - s, s], [1 - t, t]) + 1e-12, 0.0)
        guess, rise = np.where(finite, weights * corners, 0.0).sum(axis=(1, 2)) / weights.sum()
        at = {self.plane[0]: x, self.plane[1]: y}
        at |= {other: function(x, y) for other, function in self.others.items()}
        component = partial_gradient(self.problem, self.name, at)
        step = component(float(guess)) / rise
        low, high = branch_bounds(guess, self.bounds)
        if not low < guess - step < high:
            return math.nan
        rest = refine_root(component, float(guess - step), BEYOND * abs(step), (low, high))
        return math.nan if rest is None or rest.slope <= 0 else rest.value


def follow_branch(
    problem: GradientField,
    name: str,
    at: Mapping[str, FloatArray],
    seed: tuple[Index, float],
    bounds: tuple[float, float],
) -> tuple[FloatArray, FloatArray]:
    """Continue an attracting branch of zero-rate values of a scalar over a grid, from a seed.

    The mapping `at` gives the values of every other scalar on the grid. The seed is the index of a
    grid point and a value near the branch at that point. Values outside `bounds` are discarded.
    Returns the values on the branch, NaN where the branch does not exist, and the slopes of the
    scalar's own gradient component.
    """
    first, guess = seed
    shape = next(iter(at.values())).shape
    values, slopes = np.full(shape, np.nan), np.full(shape, np.nan)
    waiting, visited = deque([first]), {first}
    while waiting:
        index = waiting.popleft()
        start = _extrapolated(values, index, guess)
        point = {other: float(grid[index]) for other, grid in at.items()}
        component = partial_gradient(problem, name, point)
        rest = refine_root(component, start, STEP * abs(start), branch_bounds(start, bounds))
        if rest is None or rest.slope <= 0:
            continue
        values[index], slopes[index] = rest
        onwards = [k for k in _neighbours(index, shape) if k not in visited]
        visited.update(onwards)
        waiting.extend(onwards)
    return values, slopes


def _extrapolated(values: FloatArray, index: Index, guess: float) -> float:
    """Mean of the linear extrapolations to a grid point from neighbours with known values."""
    lines = []
    for near in _neighbours(index, values.shape):
        beyond = tuple(2 * n - k for n, k in zip(near, index, strict=True))
        inside = all(0 <= b < n for b, n in zip(beyond, values.shape, strict=True))
        far = values[beyond] if inside else np.nan
        lines.append(2 * values[near] - far if np.isfinite(far) else values[near])
    finite = [value for value in lines if np.isfinite(value)]
    return float(np.mean(finite)) if finite else guess


def _neighbours(index: Index, shape: Index) -> list[Index]:
    moved = [
        (*index[:axis], index[axis] + step, *index[axis + 1 :])
        for axis in range(len(shape))
        for step in (-1, 1)
    ]
    return [near for near in moved if all(0 <= k < n for k, n in zip(near, shape, strict=True))]
