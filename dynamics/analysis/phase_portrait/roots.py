"""Fixed points of a field in a plane, and values of a scalar at which its rate is zero."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from dynamics.problem import FloatArray, Layout
from dynamics.validation import refuse
from theory.summary import summarized

TOLERANCE = 1e-14
"""Tolerance of a zero-rate value, relative to the larger absolute bound of the search."""
OPENINGS = 12
"""Maximum number of doublings of the bracket around a guess of a root."""
STEP, LEAP = 0.02, 0.5
"""Relative change of a root from one point of a branch to the next. `STEP` is the usual change; a
root that changes by more than `LEAP` is on another branch."""
SHRUNK = 1e-3
"""A sign change is a pole or a jump if the function there exceeds this fraction of its values at
the ends of the first bracket."""
SINK, SADDLE, SOURCE, DEGENERATE = "sink", "saddle", "source", "degenerate"
CONTINUUM = "continuum"
NEAR = 0.05
"""A fixed point is searched up to this distance from its start, relative to the rectangle's sides.
Zeros on a continuum closer than this form one cluster."""
WIDTH = 1e-5
"""Step of finite differences, relative to the sides of the rectangle."""
SLACK = 1e-9
"""Two chords cross if they meet after an extension by this fraction. A point is a zero if the rates
at the point are at most this fraction of the rates' change across the rectangle."""
FLAT = 1e-9
"""An eigenvalue counts as 0 if it is below this fraction of the other eigenvalue."""
ASIDE = (1e-4, 2e-4, 4e-4)
"""Distances from a zero, relative to the rectangle's sides, at which further zeros are searched."""
SHORT_STEPS, SINGULAR, VANISHING = 10, 1e-8, 1e-12
"""The search for a further zero takes at most `SHORT_STEPS` Newton steps. A singular value below
`SINGULAR` times the largest one counts as 0, because finite differences have this error. Rates
below `VANISHING` times the rates' change across the rectangle count as 0."""

Field = Callable[[float, float], tuple[float, float]]
Box = tuple[tuple[float, float], tuple[float, float]]
Scalar = Callable[[float], float]


class Rest(NamedTuple):
    """A value at which a gradient component is zero, and the slope of the component there."""

    value: float
    slope: float


class GradientField(Protocol):
    """Interface of the problems that have a phase portrait."""

    view: str
    layout: Layout

    def gradient(self, state: ArrayLike) -> FloatArray:
        """Gradient of the risk, of the same shape as the state."""
        ...


def scalar_names(problem: GradientField) -> tuple[str, ...]:
    """Names of the scalars of a state; raises InvalidRequest if a part of the state is an array."""
    layout = problem.layout
    for name, shape in zip(layout.names, layout.shapes, strict=True):
        if shape:
            refuse(
                "problem", problem.view, f"has {name} of shape {shape}", "a reduced problem", "none"
            )
    return layout.names


def partial_gradient(problem: GradientField, name: str, at: Mapping[str, float]) -> Scalar:
    """A scalar's own gradient component as a function of the scalar, cached at each value.

    The mapping `at` holds the values of all other scalars.
    """
    names = problem.layout.names
    position = names.index(name)
    state = np.array([at.get(other, 0.0) for other in names])

    @cache
    def component(value: float) -> float:
        state[position] = value
        return float(problem.gradient(state)[position])

    return component


def slope(component: Scalar, value: float, span: float) -> float:
    """Derivative of a component at `value` by central differences with steps scaled by `span`."""
    width = 1e-5 * max(abs(value), 1e-3 * span)
    return (component(value + width) - component(value - width)) / (2 * width)


def refine_root(
    component: Scalar, guess: float, width: float, bounds: tuple[float, float]
) -> Rest | None:
    """Zero of a component near a guess, and the mean slope of the component around the zero.

    The half width of the bracket around the guess is `width` at first, and doubles until the sign
    changes. Returns None if the sign does not change within the bounds.
    """
    low, high = bounds
    largest = max(abs(low), abs(high))
    half = max(width, 1e-9 * largest)
    for _ in range(OPENINGS):
        ends = max(low, guess - half), min(high, guess + half)
        values = component(ends[0]), component(ends[1])
        if not all(map(math.isfinite, values)):
            break
        if (values[0] >= 0) != (values[1] >= 0):
            root = bracketed_root(component, ends, TOLERANCE * largest)
            rise = (values[1] - values[0]) / (ends[1] - ends[0])
            return None if root is None else Rest(root, rise)
        if ends == bounds:
            break
        half *= 2.0
    return None


def branch_bounds(guess: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """Bounds within which a value counts as on the same branch as a guess."""
    reach = max(LEAP * abs(guess), STEP * (bounds[1] - bounds[0]))
    return max(bounds[0], guess - reach), min(bounds[1], guess + reach)


def bracketed_root(component: Scalar, ends: tuple[float, float], tolerance: float) -> float | None:
    """Zero of a component between ends of different sign, or None at a pole or a jump."""
    from scipy.optimize import brentq

    largest = max(abs(component(end)) for end in ends)
    root = float(brentq(component, *ends, xtol=tolerance, rtol=4 * np.finfo(float).eps))
    return root if abs(component(root)) <= SHRUNK * largest else None


@summarized
@dataclass(frozen=True)
class FixedPoint:
    """A zero of a field on the plane."""

    position: FloatArray
    """Coordinates of the zero, shape (2,)."""
    eigenvalues: np.ndarray
    """Eigenvalues of the field's derivative, shape (2,), per unit of time, by ascending real
    part."""
    kind: str
    """One of ``sink``, ``saddle``, ``source``, ``degenerate`` (an eigenvalue is 0),
    ``continuum``."""


def fixed_points(
    field: Field, box: Box, first: Sequence[FloatArray], second: Sequence[FloatArray]
) -> tuple[FixedPoint, ...]:
    """Fixed points in a rectangle, its edges included: common zeros of two rates.

    Newton's method starts from the crossings of the nullclines, from the nullclines' ends on the
    edges, and from the corners. A zero is classified by the eigenvalues of the field's derivative.
    A zero with further zeros at three small distances in one direction is on a continuum. One point
    is kept for each cluster of zeros on a continuum.

    The call ``field(x, y)`` returns the two rates, NaN where undefined. The polylines `first` and
    `second`, each of shape (points, 2), are the nullclines of the two rates. The fixed points are
    returned from left to right.

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

    meetings = [point for a in first for b in second for point in crossings(a, b)]
    ends = [line[k] for line in (*first, *second) for k in (0, -1) if (line[0] != line[-1]).any()]
    corners = map(np.array, itertools.product(*box))
    for start in (*meetings, *ends, *corners):
        zero = _newton(scaled, (start - low) / sides)
        if zero is not None and all(np.abs(zero - other).max() > 1e-6 for other in zeros):
            zeros.append(zero)
    several = [not _isolated(scaled, zero) for zero in zeros]
    of_continua = _one_of_each([zero for zero, many in zip(zeros, several, strict=True) if many])
    alone = [(zero, "") for zero, many in zip(zeros, several, strict=True) if not many]
    points = []
    kept = alone + [(zero, CONTINUUM) for zero in of_continua]
    for zero, kind in sorted(kept, key=lambda pair: tuple(pair[0])):
        values = np.linalg.eigvals(_derivative(scaled, zero)).astype(complex)
        values = values[np.argsort(values.real)]
        points.append(FixedPoint(low + zero * sides, values, kind or kind_of(values)))
    return tuple(points)


def _isolated(field: Callable[[FloatArray], FloatArray], zero: FloatArray) -> bool:
    """Whether no line of zeros, with a zero at each distance in `ASIDE`, goes through `zero`."""
    directions = np.linalg.svd(_derivative(field, zero))[2]
    return not any(
        all(_has_zero_near(field, zero + sign * part * direction, part / 2) for part in ASIDE)
        for direction in directions[::-1]
        for sign in (1.0, -1.0)
    )


def _has_zero_near(
    field: Callable[[FloatArray], FloatArray], place: FloatArray, distance: float
) -> bool:
    """Whether Newton's method with minimal-norm steps finds a zero within `distance` of `place`."""
    point = place.copy()
    for _ in range(SHORT_STEPS):
        if (point < 0).any() or (point > 1).any() or np.abs(point - place).max() > distance:
            return False
        slopes, value = _derivative(field, point), field(point)
        if not (np.isfinite(slopes).all() and np.isfinite(value).all()):
            return False
        if (np.abs(value) <= VANISHING * np.abs(slopes).sum(axis=1)).all():
            return True
        point = point + np.linalg.lstsq(slopes, -value, rcond=SINGULAR)[0]
    return False


def _one_of_each(zeros: Sequence[FloatArray]) -> list[FloatArray]:
    """The most central zero of each cluster; zeros closer than `NEAR` are in one cluster."""
    groups: list[list[FloatArray]] = []
    for zero in zeros:
        linked = [g for g in groups if any(np.abs(zero - other).max() <= NEAR for other in g)]
        groups = [g for g in groups if all(g is not one for one in linked)]
        groups.append([zero, *itertools.chain.from_iterable(linked)])
    return [min(g, key=lambda zero: float(np.abs(zero - np.mean(g, axis=0)).max())) for g in groups]


def kind_of(eigenvalues: np.ndarray) -> str:
    """Classify a fixed point by its eigenvalues as sink, saddle, source or degenerate."""
    real_parts = np.asarray(eigenvalues).real
    if np.abs(real_parts).min() <= FLAT * np.abs(eigenvalues).max():
        return DEGENERATE
    if (real_parts < 0).all():
        return SINK
    return SOURCE if (real_parts > 0).all() else SADDLE


def crossings(first: FloatArray, second: FloatArray) -> FloatArray:
    """Crossings of two polylines, shape (crossings, 2); a crossing at a vertex may appear twice."""
    a, u = first[:-1, None, :], np.diff(first, axis=0)[:, None, :]
    b, w = second[None, :-1, :], np.diff(second, axis=0)[None, :, :]
    across = _cross(u, w)
    parallel = across == 0
    across = np.where(parallel, 1.0, across)
    s, t = _cross(b - a, w) / across, _cross(b - a, u) / across
    meet = ~parallel & (np.abs(s - 0.5) <= 0.5 + SLACK) & (np.abs(t - 0.5) <= 0.5 + SLACK)
    points: FloatArray = (a + s[..., None] * u)[meet]
    return points


def _cross(u: FloatArray, w: FloatArray) -> FloatArray:
    crossed: FloatArray = u[..., 0] * w[..., 1] - u[..., 1] * w[..., 0]
    return crossed


def _derivative(field: Callable[[FloatArray], FloatArray], point: FloatArray) -> FloatArray:
    """Derivative of a field by central differences, or one-sided next to unknown values."""
    columns = []
    for step in WIDTH * np.eye(2):
        column = (field(point + step) - field(point - step)) / (2 * WIDTH)
        for width in (WIDTH, -WIDTH):
            if not np.isfinite(column).all():
                near, far = (field(point + k * width / WIDTH * step) for k in (1, 2))
                column = (4 * near - far - 3 * field(point)) / (2 * width)
        columns.append(column)
    return np.array(columns).T


def _newton(field: Callable[[FloatArray], FloatArray], start: FloatArray) -> FloatArray | None:
    """Zero of a field in the unit square near a start, by Newton's method, or None if not found."""
    point = start.copy()
    for _ in range(30):
        slopes, value = _derivative(field, point), field(point)
        if not (np.isfinite(slopes).all() and np.isfinite(value).all()):
            return None
        step = np.linalg.lstsq(slopes, -value, rcond=1e-14)[0]
        point = np.clip(point + step, 0.0, 1.0)
        if np.abs(point - start).max() > NEAR:
            return None
        if np.abs(step).max() < 1e-11:
            solved = np.abs(value) <= SLACK * np.abs(slopes).sum(axis=1)  # a zero, not a minimum
            return point if solved.all() else None
    return None
