"""Parts of the evidence of checks: curves over time and straight lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Line:
    """A straight line through points: ``y = slope x + level``, and its share of the variance."""

    slope: float
    level: float
    r2: float


def line(x: ArrayLike, y: ArrayLike) -> Line:
    """Least squares; all NaN with fewer than three points, or values of y that are all equal."""
    from scipy.stats import linregress

    one, two = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if one.size < 3 or np.ptp(two) == 0 or np.ptp(one) == 0:
        return Line(float("nan"), float("nan"), float("nan"))
    fit = linregress(one, two)
    return Line(float(fit.slope), float(fit.intercept), float(fit.rvalue) ** 2)


def known(value: float) -> float | None:
    """A number of the evidence; None where it is none."""
    return None if np.isnan(value) else value


def curve(label: str, x: Any, y: Any) -> dict[str, Any]:
    """A curve of the evidence's plot."""
    return {"label": label, "x": np.asarray(x).tolist(), "y": np.asarray(y).tolist()}


def over_time(
    y_label: str, curves: Sequence[Any], lines: Sequence[Any] = (), y_scale: str = "log"
) -> dict[str, Any]:
    """The evidence's plot of curves over logarithmic time."""
    return {
        "x_label": r"time $\tau = \eta \times$ steps", "y_label": y_label, "x_scale": "log",
        "y_scale": y_scale, "curves": list(curves), "lines": list(lines),
    }  # fmt: skip
