"""Zeros of a function of one number: one between two signs, or all in a bracket.

`between` is Chandrupatla's (1997): inverse quadratic where that is safe, bisection elsewhere. It
keeps the values at both ends of its last interval, by which a zero is told from a pole or a jump.
`scan` looks at nodes, and again between two of them where the function is not plain: the sign does
not change but a parabola may reach zero, or it changes and there may be more than one zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

Scalar = Callable[[float], float]

SHRUNK = 1e-3
"""At a zero, both values at the ends of the last interval are below this part of the first ones."""
PLAIN = 0.25
"""Signs that differ count as resolved where second differences are below this part of the range."""
DEEPEST = 12
"""How often `scan` halves an interval that is not plain."""


def between(
    function: Scalar, ends: tuple[float, float], values: tuple[float, float], tolerance: float
) -> float:
    """The zero between two points at which the signs differ.

    Parameters
    ----------
    function : callable
        Of one float; what is not a number where it is undefined.
    ends, values : two floats each
        Where to look, and the function there; a value of 0 counts as positive.
    tolerance : float
        Width of the last interval.

    Returns
    -------
    float
        NaN where the sign changes at a pole or a jump, not at a zero.
    """
    (a, b), (fa, fb) = ends, values
    largest = max(abs(fa), abs(fb))
    c, fc, t = a, fa, 0.5
    while fa != 0.0 and fb != 0.0:
        x = a + t * (b - a)
        fx = function(x)
        if not math.isfinite(fx):
            return math.nan
        if (fx > 0) == (fa > 0):
            c, fc = a, fa
        else:
            c, b, fc, fb = b, a, fb, fa
        a, fa = x, fx
        width = abs(b - a)
        near = max(tolerance, 4e-16 * max(abs(a), abs(b)))
        if width <= near or fa == 0.0:
            break
        t = _step((a, b, c), (fa, fb, fc))
        t = min(max(t, 0.5 * near / width), 1 - 0.5 * near / width)
    best = a if abs(fa) < abs(fb) else b
    shrunk = 0.0 in (fa, fb) or max(abs(fa), abs(fb)) <= SHRUNK * largest
    return best if shrunk else math.nan


def _step(points: tuple[float, float, float], values: tuple[float, float, float]) -> float:
    """Where in the interval to look next, as a part of it."""
    (a, b, c), (fa, fb, fc) = points, values
    if c in (a, b) or fc in (fa, fb):
        return 0.5
    along, height = (a - b) / (c - b), (fa - fb) / (fc - fb)
    if not (1 - math.sqrt(1 - along) < height < math.sqrt(along)):
        return 0.5
    first = fa / (fb - fa) * fc / (fb - fc)
    return first + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)


def scan(function: Scalar, nodes: Sequence[float], tolerance: float) -> list[float]:
    """All zeros between the first and the last of some nodes, ascending.

    Two zeros closer than about 1e-4 of a node's distance, between which the function stays near
    zero, may be missed.

    Parameters
    ----------
    function : callable
    nodes : sequence of float
        Ascending, at least three.
    tolerance : float
        As in `between`.
    """
    values = [function(x) for x in nodes]
    bends = [
        abs(before - 2 * here + after)
        for before, here, after in zip(values, values[1:], values[2:], strict=False)
    ]
    found: list[float] = []
    for k, ends in enumerate(pairwise(nodes)):
        bend = max(bends[max(0, k - 1) : k + 1])
        found += _inside(function, ends, (values[k], values[k + 1]), bend, tolerance)
    return found


def _inside(
    function: Scalar,
    ends: tuple[float, float],
    values: tuple[float, float],
    bend: float,
    tolerance: float,
    depth: int = DEEPEST,
) -> list[float]:
    """Zeros in one interval whose second difference is about ``bend``; halved if not plain."""
    (a, b), (fa, fb) = ends, values
    if not (math.isfinite(fa) and math.isfinite(fb)):
        return []
    bend = bend if math.isfinite(bend) else 0.0
    crossed = (fa >= 0) != (fb >= 0)
    plain = bend <= PLAIN * abs(fb - fa) or (not crossed and min(abs(fa), abs(fb)) > bend / 2)
    if plain or depth == 0:
        zero = between(function, ends, values, tolerance) if crossed else math.nan
        return [] if math.isnan(zero) else [zero]
    middle = 0.5 * (a + b)
    value = function(middle)
    bend = abs(fa - 2 * value + fb)
    left = _inside(function, (a, middle), (fa, value), bend, tolerance, depth - 1)
    return left + _inside(function, (middle, b), (value, fb), bend, tolerance, depth - 1)
