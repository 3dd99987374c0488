"""Straight lines through measured points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Line:
    """A straight line through points: ``y = slope x + level``, and its share of the variance."""

    slope: float
    level: float
    r2: float


def line(x: ArrayLike, y: ArrayLike) -> Line:
    """The straight line through points by least squares.

    Parameters
    ----------
    x, y : float array, shape (n,)

    Returns
    -------
    Line
        All NaN with fewer than three points, or where all x or all y are equal.
    """
    from scipy.stats import linregress

    one, two = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if one.size < 3 or np.ptp(two) == 0 or np.ptp(one) == 0:
        return Line(float("nan"), float("nan"), float("nan"))
    fit = linregress(one, two)
    return Line(float(fit.slope), float(fit.intercept), float(fit.rvalue) ** 2)
