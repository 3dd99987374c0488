"""Slow manifolds: values at which one scalar rests while the others stand still.

A scalar that relaxes fast sits where its own gradient component is zero; there the others drag it
along. There may be several such values, attracting where the component grows with the scalar and
repelling where it falls. Over a grid of the others they form branches, which end in folds.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from dynamics.analysis.phase_portrait.roots import (
    STEP,
    TOLERANCE,
    GradientField,
    Rest,
    Scalar,
    bracketed_root,
    branch_bounds,
    partial_gradient,
    refine_root,
    slope,
)
from dynamics.problem import FloatArray
from theory.summary import summarized

SMALL = 1e-3
"""Nodes of a scan are spaced evenly below this part of the bracket, by ratios above it."""
Index = tuple[int, ...]


@summarized
@dataclass(frozen=True)
class SlowManifold:
    """Values at which one scalar rests, as functions of the others.

    `name`: the scalar; `at`: name -> float array of the shape of the grid: values of the others;
    `values`, shape (branches, *grid): NaN where a branch does not exist; `slopes`, shape (branches,
    *grid): derivative of the scalar's own gradient component: its rate of relaxation, negative
    where the branch repels.
    """

    name: str
    at: Mapping[str, FloatArray]
    values: FloatArray
    slopes: FloatArray

    @property
    def attracting(self) -> tuple[bool, ...]:
        """Whether each branch attracts: a branch has one sign, folds are where branches end."""
        return tuple(bool((row[np.isfinite(row)] > 0).all()) for row in self.slopes)


def rests_on_grid(
    name: str,
    at: Mapping[str, FloatArray],
    bracket: tuple[float, float],
    component: Callable[[Index], Scalar],
    nodes: int = 60,
) -> SlowManifold:
    """Every branch of the zeros of a component over a grid.

    `name`: the scalar that rests; `at`: name -> float array of the grid; `bracket`: values that are
    searched; `component`: index into the grid -> the component there, as a function of the scalar.
    """
    shape = next(iter(at.values())).shape
    scan = _nodes(*bracket, nodes)
    rests = {index: _scan(component(index), scan) for index in np.ndindex(*shape)}
    return SlowManifold(name, dict(at), *_linked(rests, shape))


def follow_branch(
    problem: GradientField,
    name: str,
    at: Mapping[str, FloatArray],
    seed: tuple[Index, float],
    bounds: tuple[float, float],
) -> SlowManifold:
    """One attracting branch, from a point of a grid outwards, without a scan for others.

    `name`: the scalar; `at`: name -> float array of the grid: values of every other scalar; `seed`:
    a point of the grid, and a value near the branch there; `bounds`: values beyond are discarded.
    Returns SlowManifold: of one branch; of none if there is nothing near the seed.
    """
    first, guess = seed
    shape = next(iter(at.values())).shape
    values, slopes = np.full(shape, np.nan), np.full(shape, np.nan)
    waiting, visited = deque([first]), {first}
    while waiting:
        index = waiting.popleft()
        start = _extrapolated(values, index, guess)
        component = partial_gradient(problem, name, _point(at, index))
        rest = refine_root(component, start, STEP * abs(start), branch_bounds(start, bounds))
        if rest is None or rest.slope <= 0:
            continue
        values[index], slopes[index] = rest
        onwards = [k for k in _neighbours(index, shape) if k not in visited]
        visited.update(onwards)
        waiting.extend(onwards)
    count = int(np.isfinite(values).any())
    return SlowManifold(name, dict(at), values[None][:count], slopes[None][:count])


def _nodes(low: float, high: float, count: int) -> list[float]:
    """Nodes from end to end, dense around 0."""
    small = SMALL * max(abs(low), abs(high))
    inner = np.sinh(np.linspace(np.arcsinh(low / small), np.arcsinh(high / small), count))[1:-1]
    return [low, *(small * inner).tolist(), high]


def _scan(component: Scalar, nodes: Sequence[float]) -> list[Rest]:
    """All zeros between the first and the last node, ascending."""
    from scipy.optimize import minimize_scalar

    component = cache(component)
    span = max(abs(nodes[0]), abs(nodes[-1]))
    extrema = []
    for low, middle, high in zip(nodes, nodes[1:], nodes[2:], strict=False):
        values = [component(node) for node in (low, middle, high)]
        sign = math.copysign(1.0, values[1])
        before, here, after = (sign * value for value in values)
        if 0 < here <= min(before, after):
            least = minimize_scalar(
                lambda x, sign=sign: sign * component(x), bounds=(low, high), method="bounded",
                options={"xatol": 1e-9 * (high - low)},
            )  # fmt: skip
            extrema += [float(least.x)] if least.fun < 0 else []
    rests = []
    for ends in pairwise(sorted({*nodes, *extrema})):
        values = [component(end) for end in ends]
        if np.isfinite(values).all() and (values[0] >= 0) != (values[1] >= 0):
            root = bracketed_root(component, ends, TOLERANCE * span)
            if root is not None:
                rests.append(Rest(root, slope(component, root, span)))
    return rests


def _point(at: Mapping[str, FloatArray], index: Index) -> dict[str, float]:
    return {name: float(grid[index]) for name, grid in at.items()}


def _extrapolated(values: FloatArray, index: Index, guess: float) -> float:
    """Mean of the linear extrapolations from known neighbours to a point of the grid."""
    lines = []
    for near in _neighbours(index, values.shape):
        beyond = tuple(2 * n - k for n, k in zip(near, index, strict=True))
        inside = all(0 <= b < n for b, n in zip(beyond, values.shape, strict=True))
        far = values[beyond] if inside else np.nan
        lines.append(2 * values[near] - far if np.isfinite(far) else values[near])
    finite = [value for value in lines if np.isfinite(value)]
    return float(np.mean(finite)) if finite else guess


def _linked(rests: Mapping[Index, list[Rest]], shape: Index) -> tuple[FloatArray, FloatArray]:
    """Values and slopes, shape (branches, *shape): nearest rests of one sign at neighbours."""
    rows: list[FloatArray] = []
    unlinked: set[tuple[Index, int]] = {
        (index, k) for index in np.ndindex(*shape) for k in range(len(rests[index]))
    }
    while unlinked:
        start = min(unlinked)
        unlinked.remove(start)
        row, waiting = np.full((*shape, 2), np.nan), [start]
        rows.append(row)
        while waiting:
            index, k = waiting.pop()
            row[index] = rests[index][k]
            for near in _neighbours(index, shape):
                match = _nearest(rests[index][k], rests[near])
                if match is None or _nearest(rests[near][match], rests[index]) != k:
                    continue
                if (near, match) in unlinked and np.isnan(row[near]).all():
                    unlinked.remove((near, match))
                    row[near] = rests[near][match]
                    waiting.append((near, match))
    stacked = np.stack(rows) if rows else np.empty((0, *shape, 2))
    return stacked[..., 0], stacked[..., 1]


def _neighbours(index: Index, shape: Index) -> list[Index]:
    moved = [
        (*index[:axis], index[axis] + step, *index[axis + 1 :])
        for axis in range(len(shape))
        for step in (-1, 1)
    ]
    return [near for near in moved if all(0 <= k < n for k, n in zip(near, shape, strict=True))]


def _nearest(rest: Rest, others: Sequence[Rest]) -> int | None:
    """Number of the rest with the same sign of slope that is nearest; None without any."""
    alike = [k for k, other in enumerate(others) if (other.slope > 0) == (rest.slope > 0)]
    return min(alike, key=lambda k: abs(others[k].value - rest.value), default=None)
