"""Interpolation through looks at a step, and roots and minima of functions of the time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from dynamics.problem import FloatArray, IntArray

GRID = 48
"""Points of a step at which an interpolant is computed."""
OF_TAIL = 10.0
"""Error of an interpolant that counts, over its last coefficients."""
PREDICTED = 0.1
"""Part of a value by which a prediction of it may be wrong."""
ROOT_STEP = 1e-12
"""Part of a time within which its root is found."""


class Interpolation(NamedTuple):
    """Positions of looks in a step, and what makes of values there those on a grid, and a tail."""

    looks: FloatArray
    grid: FloatArray
    on_grid: FloatArray
    tail: FloatArray
    gap: IntArray
    """For every point of the grid, the look before it."""


@cache
def interpolation(count: int) -> Interpolation:
    """Interpolation through a number of looks at a step, by Chebyshev polynomials."""
    looks = 0.5 - 0.5 * np.cos(np.pi * np.arange(count) / (count - 1))
    grid = (np.arange(GRID) + 0.5) / GRID
    values = chebyshev.chebvander(2 * looks - 1, count - 1)
    of_values = np.asarray(np.linalg.inv(values), dtype=np.float64)
    on_grid = chebyshev.chebvander(2 * grid - 1, count - 1) @ of_values
    gap = np.searchsorted(looks, grid) - 1
    return Interpolation(looks, grid, on_grid, of_values[count // 2 + 1 :], gap)


def suspicion(values: FloatArray) -> tuple[Any, ...]:
    """Of values at the looks of steps: where to look once more, and why.

    Whether the interpolant may change its sign between two looks where it has the same; the place
    in the step, and the value, where it is nearest to that; whether it tells little.
    """
    known = interpolation(values.shape[1])
    between = values @ known.on_grid.T
    tail = OF_TAIL * np.abs(values @ known.tail.T).sum(axis=1)
    holds = values > 0
    left, right = holds[:, known.gap], holds[:, known.gap + 1]
    turned = np.where(left == right, np.where(left, -between, between), -np.inf)
    place = np.argmax(turned, axis=1)
    every = np.arange(len(values))
    near = turned[every, place] + tail > 0
    rough = tail > PREDICTED * np.ptp(values, axis=1)
    return near, known.grid[place], between[every, place], rough


def root_between(
    function: Callable[[float], float], low: float, high: float
) -> tuple[float, float]:
    """Times next to each other between which a function becomes positive.

    Two steps of regula falsi in turn with one of bisection.

    Parameters
    ----------
    function : callable
        Time -> value; not positive at ``low``, positive at ``high``.
    low, high : float
    """
    at_low, at_high = function(low), function(high)
    for turn in range(3 * 64):
        least = ROOT_STEP * high
        if high - low <= least:
            break
        time = 0.5 * (low + high)
        if turn % 3 and np.isfinite(at_high - at_low):
            # A little beyond the chord, so that both ends come near.
            chord = low + (high - low) * (at_low / (at_low - at_high))
            time = min(max(chord + (0.5 if turn % 3 == 1 else -0.5) * least, low), high)
            time = time if low < time < high else 0.5 * (low + high)
        value = function(time)
        if value > 0:
            high, at_high = time, value
        else:
            low, at_low = time, value
    return low, high


def least(function: Callable[[float], float], low: float, high: float) -> float:
    """The time between two others at which a function is least, to a part of 1e-9.

    Parameters
    ----------
    function : callable
    low, high : float
    """
    from scipy.optimize import minimize_scalar

    options = {"xatol": 1e-9 * high}
    found = minimize_scalar(function, bounds=(low, high), method="bounded", options=options)
    return float(found.x)
