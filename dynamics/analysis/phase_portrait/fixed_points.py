"""Fixed points of a field on a plane: where its two nullclines meet.

Crossings of the polylines are the starts of Newton's method; the eigenvalues of the field's
derivative there say what the point is to trajectories in the plane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dynamics.problem import FloatArray

SINK, SADDLE, SOURCE, DEGENERATE = "sink", "saddle", "source", "degenerate"
NEAR = 0.05
"""How far Newton's method may go from a crossing, as a part of the sides."""
WIDTH = 1e-5
FLAT = 1e-9
"""An eigenvalue below this part of the other is not told from 0."""

Field = Callable[[float, float], tuple[float, float]]
Box = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True)
class FixedPoint:
    """A point at which a field on the plane is zero.

    Attributes
    ----------
    place : float array, shape (2,)
    eigenvalues : complex array, shape (2,)
        Of the derivative of the field, per unit of time, by their real parts.
    kind : str
        ``"sink"``, ``"saddle"``, ``"source"``; ``"degenerate"`` where one of them is 0.
    """

    place: FloatArray
    eigenvalues: np.ndarray
    kind: str


def fixed_points(
    field: Field, box: Box, first: Sequence[FloatArray], second: Sequence[FloatArray]
) -> tuple[FixedPoint, ...]:
    """Where two nullclines meet inside a rectangle.

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
    """
    low, sides = np.array(box)[:, 0], np.ptp(np.array(box), axis=1)
    found: list[FloatArray] = []

    def scaled(place: FloatArray) -> FloatArray:
        x, y = low + place * sides
        return np.asarray(field(float(x), float(y))) / sides

    for start in (spot for a in first for b in second for spot in crossings(a, b)):
        place = _newton(scaled, (start - low) / sides)
        if place is None or not ((place >= 0) & (place <= 1)).all():
            continue
        if all(np.abs(place - other).max() > 1e-6 for other in found):
            found.append(place)
    points = []
    for place in sorted(found, key=lambda spot: tuple(spot)):
        values = np.linalg.eigvals(_derivative(scaled, place)).astype(complex)
        values = values[np.argsort(values.real)]
        points.append(FixedPoint(low + place * sides, values, kind_of(values)))
    return tuple(points)


def kind_of(eigenvalues: np.ndarray) -> str:
    """What a fixed point with these eigenvalues is."""
    real = np.asarray(eigenvalues).real
    if np.abs(real).min() <= FLAT * np.abs(eigenvalues).max():
        return DEGENERATE
    if (real < 0).all():
        return SINK
    return SOURCE if (real > 0).all() else SADDLE


def crossings(first: FloatArray, second: FloatArray) -> FloatArray:
    """Points at which two polylines cross, shape (crossings, 2)."""
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


def _derivative(field: Callable[[FloatArray], FloatArray], place: FloatArray) -> FloatArray:
    steps = WIDTH * np.eye(2)
    columns = [(field(place + step) - field(place - step)) / (2 * WIDTH) for step in steps]
    return np.array(columns).T


def _newton(field: Callable[[FloatArray], FloatArray], start: FloatArray) -> FloatArray | None:
    """The zero near a start, in units of the sides; None if it is not reached."""
    place = start.copy()
    for _ in range(30):
        slopes, value = _derivative(field, place), field(place)
        if not (np.isfinite(slopes).all() and np.isfinite(value).all()):
            return None
        step = np.linalg.lstsq(slopes, -value, rcond=1e-14)[0]
        place = place + step
        if np.abs(place - start).max() > NEAR:
            return None
        if np.abs(step).max() < 1e-11:
            return place
    return None
