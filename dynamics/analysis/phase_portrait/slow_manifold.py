"""Slow manifolds: where one scalar rests while the others stand still.

A scalar that relaxes fast sits where its own gradient component is zero; there the others drag it
along. There may be several such values, attracting where the component grows with the scalar and
repelling where it falls. Over a grid of the others they form branches, which end in folds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from dynamics.analysis.phase_portrait.roots import Scalar, between, scan
from dynamics.problem import FloatArray, Layout
from dynamics.validation import integer, refuse

TOLERANCE = 1e-14
"""Of the values, as a part of the larger end of the bracket."""
STRIDE = 4
"""Every such point of a grid is scanned; those between only where their neighbours differ."""
SMALL = 1e-3
"""Nodes of a scan are spaced evenly below this part of the bracket, by ratios above it."""
OPENINGS = 12
"""How often an interval around a guess is doubled."""
STEP, LEAP = 0.02, 0.5
"""Parts by which a value is expected, and at most allowed, to miss what neighbours let expect."""

Index = tuple[int, ...]
Rest = tuple[float, float]
"""A value, and the derivative of its own gradient component there."""


class Graded(Protocol):
    """What is asked of a problem here."""

    view: str
    layout: Layout

    def gradient(self, state: ArrayLike) -> FloatArray:
        """What gradient descent subtracts, over the learning rate."""
        ...

    def gradient_bound(self, state: ArrayLike) -> FloatArray | None:
        """Bound on the error of each entry of the gradient, where one is known."""
        ...


@dataclass(frozen=True)
class SlowManifold:
    """Where one scalar rests, as a function of the others.

    Attributes
    ----------
    name : str
        The scalar.
    at : mapping
        Name -> float array of the shape of the grid: values of the others.
    values : float array, shape (branches, *grid)
        NaN where a branch is not.
    slopes : float array, shape (branches, *grid)
        Derivative of the scalar's own gradient component: its rate of relaxation, negative where it
        is repelled.
    """

    name: str
    at: Mapping[str, FloatArray]
    values: FloatArray
    slopes: FloatArray

    @property
    def attracting(self) -> tuple[bool, ...]:
        """Whether each branch attracts: a branch has one sign, folds are where branches end."""
        return tuple(bool((row[np.isfinite(row)] > 0).all()) for row in self.slopes)


def slow_manifold(
    problem: Graded,
    name: str,
    at: Mapping[str, ArrayLike],
    bracket: tuple[float, float],
    nodes: int = 60,
) -> SlowManifold:
    """All values of one scalar at which its gradient component is zero, with the others given.

    Parameters
    ----------
    problem : Problem, or what has its gradient and layout
        With scalar states.
    name : str
        The scalar.
    at : mapping
        Name -> value of every other scalar, numbers or arrays that broadcast to one grid.
    bracket : (float, float)
        Where to look.
    nodes : int
        Of one scan of the bracket, which divides further where the gradient is not plain: keep away
        from where it is noise.

    Returns
    -------
    SlowManifold

    Raises
    ------
    InvalidRequest
        If a name is unknown or missing, the bracket is empty, or there are too few nodes.
    """
    names = scalars(problem)
    if name not in names:
        refuse("name", name, "is no scalar of the state", ", ".join(names), names[0])
    others = [other for other in names if other != name]
    if set(at) != set(others) or not others:
        refuse("at", sorted(at), "are not the other scalars", ", ".join(others), others)
    low, high = bracket
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        refuse("bracket", bracket, "is empty", "two ascending numbers", (-1.0, 1.0))
    grids = np.broadcast_arrays(*(np.asarray(at[other], dtype=np.float64) for other in others))
    looked = _nodes(low, high, integer("nodes", nodes, at_least=4))
    point = dict.fromkeys(others, 0.0)

    def component(index: Index) -> Scalar:
        here = point | {k: float(grid[index]) for k, grid in zip(others, grids, strict=True)}
        return own(problem, name, here)

    rests = _rests(component, grids[0].shape, looked)
    values, slopes = _linked(rests, grids[0].shape)
    return SlowManifold(name, dict(zip(others, map(np.array, grids), strict=True)), values, slopes)


def followed(
    problem: Graded,
    name: str,
    at: Mapping[str, FloatArray],
    seed: tuple[Index, float],
    bounds: tuple[float, float],
) -> SlowManifold:
    """One attracting branch, from a point of a grid outwards, without a scan for others.

    Parameters
    ----------
    problem : Problem
    name : str
        The scalar.
    at : mapping
        Name -> float array of the grid: values of every other scalar.
    seed : (index, float)
        A point of the grid, and a value near the branch there.
    bounds : (float, float)
        No value beyond is taken.

    Returns
    -------
    SlowManifold
        Of one branch; of none if there is nothing near the seed.
    """
    first, guess = seed
    shape = next(iter(at.values())).shape
    values, slopes = np.full(shape, np.nan), np.full(shape, np.nan)
    waiting, seen = [first], {first}
    while waiting:
        index = waiting.pop(0)
        start = _expected(values, index, guess)
        here = own(problem, name, {other: float(grid[index]) for other, grid in at.items()})
        rest = settle(here, start, STEP * abs(start), within(start, bounds))
        if rest is None or rest[1] <= 0:
            continue
        values[index], slopes[index] = rest
        onwards = [k for k in _neighbours(index, shape) if k not in seen]
        seen.update(onwards)
        waiting += onwards
    there = np.isfinite(values).any()
    return SlowManifold(name, dict(at), values[None][: int(there)], slopes[None][: int(there)])


def polished(
    problem: Graded,
    name: str,
    at: Mapping[str, FloatArray],
    guesses: Sequence[Sequence[float]],
    bounds: tuple[float, float],
) -> SlowManifold:
    """Every branch along a line, from values that are near all rests at each of its points.

    Parameters
    ----------
    problem : Problem
    name : str
        The scalar.
    at : mapping
        Name -> float array, shape (points,): values of every other scalar.
    guesses : sequence of sequences of float
        At each point, a value near each rest.
    bounds : (float, float)
        No value beyond is taken.
    """
    span = bounds[1] - bounds[0]
    rests: dict[Index, list[Rest]] = {}
    for k, near in enumerate(guesses):
        here = own(problem, name, {other: float(line[k]) for other, line in at.items()})
        found: list[Rest] = []
        for guess in sorted(near):
            around = max(bounds[0], guess - STEP * span), min(bounds[1], guess + STEP * span)
            rest = settle(here, guess, STEP * STEP * span, around)
            if rest is not None and all(abs(rest[0] - other) > 1e-9 * span for other, _ in found):
                found.append(rest)
        rests[(k,)] = found
    values, slopes = _linked(rests, (len(guesses),))
    return SlowManifold(name, dict(at), values, slopes)


def _expected(values: FloatArray, index: Index, guess: float) -> float:
    """What lines through known values expect at a point of the grid."""
    lines = []
    for near in _neighbours(index, values.shape):
        beyond = tuple(2 * n - k for n, k in zip(near, index, strict=True))
        inside = all(0 <= b < n for b, n in zip(beyond, values.shape, strict=True))
        far = values[beyond] if inside else np.nan
        lines.append(2 * values[near] - far if np.isfinite(far) else values[near])
    known = [value for value in lines if np.isfinite(value)]
    return float(np.mean(known)) if known else guess


def scalars(problem: Any) -> tuple[str, ...]:
    """Names of the state's parts.

    Raises
    ------
    InvalidRequest
        If one of them is not a scalar.
    """
    layout = problem.layout
    for name, shape in zip(layout.names, layout.shapes, strict=True):
        if shape:
            refuse("problem", problem.view, f"has {name} of shape {shape}", "a reduced one", "none")
    return layout.names


def own(problem: Graded, name: str, at: Mapping[str, float]) -> Scalar:
    """A scalar's own gradient component as a function of it."""
    names = problem.layout.names
    place = names.index(name)
    state = np.array([at.get(other, 0.0) for other in names])

    def component(value: float) -> float:
        state[place] = value
        return float(problem.gradient(state)[place])

    return component


def settle(
    component: Scalar, guess: float, width: float, bounds: tuple[float, float]
) -> Rest | None:
    """A zero of a component near a guess, and its mean slope there.

    An interval around the guess is opened until the sign changes; None if it does not within the
    bounds.
    """
    low, high = bounds
    tolerance = TOLERANCE * max(abs(low), abs(high))
    half = max(width, 1e-9 * max(abs(low), abs(high)))
    for _ in range(OPENINGS):
        ends = max(low, guess - half), min(high, guess + half)
        values = component(ends[0]), component(ends[1])
        if not all(map(math.isfinite, values)):
            break
        if (values[0] >= 0) != (values[1] >= 0):
            value = between(component, ends, values, tolerance)
            rise = (values[1] - values[0]) / (ends[1] - ends[0])
            return None if math.isnan(value) else (value, rise)
        if ends == bounds:
            break
        half *= 2.0
    return None


def within(guess: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """The part of some bounds in which a value is still that of the branch of a guess."""
    reach = max(LEAP * abs(guess), STEP * (bounds[1] - bounds[0]))
    return max(bounds[0], guess - reach), min(bounds[1], guess + reach)


def _nodes(low: float, high: float, count: int) -> list[float]:
    """Nodes from end to end, dense around 0."""
    small = SMALL * max(abs(low), abs(high))
    inner = np.sinh(np.linspace(np.arcsinh(low / small), np.arcsinh(high / small), count))[1:-1]
    return [low, *(small * inner).tolist(), high]


def slope(component: Scalar, value: float, span: float) -> float:
    """Derivative of a component at a value, by differences; ``span`` is the size of values."""
    width = 1e-5 * max(abs(value), 1e-3 * span)
    return (component(value + width) - component(value - width)) / (2 * width)


def _scanned(component: Scalar, looked: list[float]) -> list[Rest]:
    span = max(abs(looked[0]), abs(looked[-1]))
    values = scan(component, looked, TOLERANCE * span)
    return [(value, slope(component, value, span)) for value in values]


def _rests(
    component: Callable[[Index], Scalar], shape: Index, looked: list[float]
) -> dict[Index, list[Rest]]:
    """What a scan finds on a coarse grid; between, continued where the coarse corners agree."""
    span = max(abs(looked[0]), abs(looked[-1]))
    coarse = [sorted({*range(0, n, STRIDE), n - 1}) for n in shape]
    found = {index: _scanned(component(index), looked) for index in product(*coarse)}
    for index in np.ndindex(*shape):
        if index in found:
            continue
        below = [max(c for c in line if c <= k) for k, line in zip(index, coarse, strict=True)]
        above = [min(c for c in line if c >= k) for k, line in zip(index, coarse, strict=True)]
        corners = [found[corner] for corner in product(*zip(below, above, strict=True))]
        signs = {tuple(rise > 0 for _, rise in rests) for rests in corners}
        here = component(index)
        rests: list[Rest] | None = None
        if len(signs) == 1:
            parts = [
                (k - a) / (b - a) if b > a else 0.0
                for k, a, b in zip(index, below, above, strict=True)
            ]
            weights = [math.prod(w) for w in product(*((1 - t, t) for t in parts))]
            rests = _continued(here, corners, weights, looked)
        if rests is not None:
            rests = [(value, slope(here, value, span)) for value, _ in rests]
        found[index] = _scanned(here, looked) if rests is None else rests
    return found


def _continued(
    component: Scalar, corners: list[list[Rest]], weights: list[float], looked: list[float]
) -> list[Rest] | None:
    """The values that corners of the coarse grid let expect; None if one is not there."""
    rests: list[Rest] = []
    for branch in zip(*corners, strict=True):
        values = [value for value, _ in branch]
        guess = sum(w * value for w, value in zip(weights, values, strict=True))
        rest = settle(component, guess, 0.05 * (max(values) - min(values)), (looked[0], looked[-1]))
        if rest is None or (rest[1] > 0) != (branch[0][1] > 0):
            return None
        rests.append(rest)
    ascending = all(a[0] < b[0] for a, b in pairwise(rests))
    return rests if ascending else None


def _linked(rests: Mapping[Index, list[Rest]], shape: Index) -> tuple[FloatArray, FloatArray]:
    """Branches: rests of one sign of slope at neighbours that are nearest to each other."""
    label: dict[tuple[Index, int], int] = {}
    members: list[dict[Index, int]] = []
    for index in np.ndindex(*shape):
        for k in range(len(rests[index])):
            if (index, k) in label:
                continue
            number, branch = len(members), {index: k}
            members.append(branch)
            waiting, label[index, k] = [(index, k)], number
            while waiting:
                here, j = waiting.pop()
                for near in _neighbours(here, shape):
                    m = _match(rests, here, j, near)
                    if m is not None and (near, m) not in label and near not in branch:
                        label[near, m], branch[near] = number, m
                        waiting.append((near, m))
    values, slopes = (np.full((len(members), *shape), np.nan) for _ in range(2))
    for number, branch in enumerate(members):
        for index, k in branch.items():
            values[(number, *index)], slopes[(number, *index)] = rests[index][k]
    return values, slopes


def _neighbours(index: Index, shape: Index) -> list[Index]:
    moved = [
        (*index[:axis], index[axis] + step, *index[axis + 1 :])
        for axis in range(len(shape))
        for step in (-1, 1)
    ]
    return [near for near in moved if all(0 <= k < n for k, n in zip(near, shape, strict=True))]


def _match(rests: Mapping[Index, list[Rest]], here: Index, k: int, near: Index) -> int | None:
    """The rest at a neighbour that is nearest to one here, if that one is nearest to it too."""
    m = _nearest(rests[here][k], rests[near])
    return m if m is not None and _nearest(rests[near][m], rests[here]) == k else None


def _nearest(rest: Rest, others: list[Rest]) -> int | None:
    alike = [k for k, other in enumerate(others) if (other[1] > 0) == (rest[1] > 0)]
    return min(alike, key=lambda k: abs(others[k][0] - rest[0]), default=None)
