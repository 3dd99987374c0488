r"""Power laws (prefactor c, exponents e_k) of factors x_k, fitted to logarithms of values y.

.. math:: \log y = \log c + \sum_k e_k \log x_k + \text{residual}.

The fit is by least squares. Without errors of the values, the standard errors of the exponents
:math:`e_k` assume independent residuals of equal variance. If errors of the values are given, the
residuals are divided by these errors. If the residuals scatter more than the given errors explain,
the standard errors of the exponents are increased accordingly.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import ArrayLike

from dynamics.problem import FloatArray
from theory.summary import summarized

LEVEL = 0.95
"""Confidence level of the intervals."""


@summarized
@dataclass(frozen=True, kw_only=True)
class PowerLaw:
    """A power law fitted to values.

    The `exponents` and their standard errors `errors` have the shape (factors,). The 95 %
    confidence `intervals` by Student's distribution have the shape (factors, 2). The `prefactor`
    has the unit of the values; `r2` is the coefficient of determination of the logarithms; `spread`
    is the standard deviation of the residuals of log y; `fitted` has the power law's values at the
    points.
    """

    exponents: FloatArray
    errors: FloatArray
    intervals: FloatArray
    prefactor: float
    r2: float
    spread: float
    fitted: FloatArray

    @property
    def exponent(self) -> float:
        """Exponent of the first factor in the power law."""
        return float(self.exponents[0])

    @property
    def error(self) -> float:
        """Standard error of `exponent`."""
        return float(self.errors[0])

    def __str__(self) -> str:
        if np.isnan(self.exponent):
            return "not fitted (too few values)"
        return f"{self.exponent:.2f} +- {self.error:.2f}"


def power_law(factors: ArrayLike, values: ArrayLike, errors: ArrayLike | None = None) -> PowerLaw:
    """Fit ``values = prefactor * product of factors ** exponents``.

    `factors`, shape (n,) or (n, factors), and `values`, shape (n,), are positive; `errors` are
    standard errors of the logarithms of the values. Points with an infinite error or a NaN value
    are dropped. The result is NaN unless there are more points than factors.

    Examples
    --------
    >>> law = power_law([1.0, 2.0, 4.0], [3.0, 12.0, 48.0])
    >>> round(law.exponent, 9), round(law.prefactor, 9)
    (2.0, 3.0)
    """
    from scipy.special import stdtrit

    y = np.asarray(values, dtype=np.float64)
    x = np.asarray(factors, dtype=np.float64).reshape(len(y), -1 if y.size else 1)
    root = np.ones(len(y)) if errors is None else 1.0 / np.asarray(errors, dtype=np.float64)
    used = np.isfinite(y) & (root > 0)
    x, y, root = np.log(x[used]), np.log(y[used]), root[used]
    free = len(y) - x.shape[1] - 1
    if free < 0:
        none = np.full(x.shape[1], nan)
        return PowerLaw(
            exponents=none, errors=none, intervals=np.full((x.shape[1], 2), nan), prefactor=nan,
            r2=nan, spread=nan, fitted=np.full(len(y), nan),
        )  # fmt: skip
    design = root[:, None] * np.column_stack([np.ones(len(y)), x])
    (constant, *exponents), *_ = np.linalg.lstsq(design, root * y)
    fitted = constant + x @ exponents
    residuals = y - fitted
    misfit = float(((root * residuals) ** 2).sum()) / free if free else nan
    scale = misfit if errors is None else max(1.0, misfit if free else 1.0)
    covariance = scale * np.linalg.inv(design.T @ design)
    deviations = np.sqrt(np.diag(covariance))[1:]
    half = float(stdtrit(free, (1 + LEVEL) / 2)) * deviations if free else deviations * np.inf
    total = float(((y - y.mean()) ** 2).sum())
    squares = float(residuals @ residuals)
    return PowerLaw(
        exponents=np.array(exponents),
        errors=deviations,
        intervals=np.stack([exponents - half, exponents + half], axis=1),
        prefactor=float(np.exp(constant)),
        r2=1.0 - squares / total if total > 0 else nan,
        spread=float(np.sqrt(squares / free)) if free else nan,
        fitted=np.exp(fitted),
    )


def exponent(sizes: ArrayLike, values: ArrayLike) -> float:
    """Exponent e of the power law ``values = c * sizes ** e``, fitted by least squares.

    The sizes are positive. The result is NaN with fewer than two values, or if a value is not
    positive.

    Examples
    --------
    >>> round(exponent([1.0, 2.0, 4.0], [8.0, 4.0, 2.0]), 9)
    -1.0
    """
    y = np.asarray(values, dtype=np.float64)
    if len(y) < 2 or not np.all(np.isfinite(y) & (y > 0)):
        return nan
    return power_law(sizes, y).exponent
