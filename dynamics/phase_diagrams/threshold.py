r"""Level at which half of the trials succeed, by logistic regression on the logarithm of the level.

For k successes in n trials at level N, slope s and half-success level :math:`N_{50}`, the success
probability p and the log-likelihood :math:`\ell` are

.. math:: p(N) = \frac{1}{1 + (N_{50}/N)^s}, \qquad
   \ell(N_{50}, s) = \sum_N k \ln p + (n - k) \ln (1 - p), \qquad 0 \leq s \leq 50.

The confidence set of the profile likelihood holds every :math:`N_{50}` with :math:`\max_s \ell \geq
\max \ell - \tfrac12 \chi^2_{95\,\%}`. The set is valid even if no trial succeeds at one level and
all succeed at the next. The set is an interval, as :math:`\ell` is concave in the slope s and in
:math:`s \ln N_{50}`. If the fitted :math:`N_{50}` is outside all levels, a bound is reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log, nan

import numpy as np
from numpy.typing import ArrayLike

from dynamics.problem import FloatArray
from dynamics.validation import InvalidRequest
from theory.summary import summarized

MOST_SLOPE = 50.0
"""Maximum slope s of the fit; success then rises from 12 % to 88 % while the level grows by 8 %."""
DROP = 1.920729410347062
"""Log-likelihood at its maximum minus that at an end of the confidence interval: half the 95 %
quantile of chi^2_1."""
NORMAL = 1.959963984540054
"""The 97.5 % quantile of the standard normal distribution."""
THIRDS = 60
BEYOND = 12.0
"""Maximum distance in ln(level) of an end of the confidence interval beyond all levels."""
MEASURED, ABOVE, BELOW, NOWHERE = "measured", "above", "below", "nowhere"


@summarized
@dataclass(frozen=True, eq=False)
class Threshold:
    """Level N50 at which half of the trials succeed, with its 95 % confidence interval.

    The `kind` is ``"measured"``, or ``"above"`` or ``"below"`` if N50 is outside all levels, or
    ``"nowhere"`` if success does not grow with the level. The `value` N50 is NaN unless measured.
    The confidence interval from `low` to `high` may end at 0 or infinity. The arrays `levels`
    (ascending), `shares` of successful trials and `trials`, the numbers of trials, have the shape
    (n,).
    """

    kind: str
    value: float
    low: float
    high: float
    slope: float
    levels: FloatArray
    shares: FloatArray
    trials: FloatArray

    @property
    def error(self) -> float:
        """Standard error of ln N50 from the confidence interval; infinite if it is unbounded."""
        if self.kind != MEASURED or self.low == 0 or self.high == inf:
            return inf
        return log(self.high / self.low) / (2 * NORMAL)

    def chance(self, levels: ArrayLike) -> FloatArray:
        """Fitted probability of success at given levels; NaN if N50 was not measured."""
        z = self.slope * (np.log(np.asarray(levels, dtype=np.float64)) - log(self.value))
        return np.asarray(0.5 * (1 + np.tanh(0.5 * z)))

    def __str__(self) -> str:
        if self.kind == MEASURED:
            return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"
        bounds = {ABOVE: f"> {self.bound:g}", BELOW: f"< {self.bound:g}"}
        return bounds.get(self.kind, "no rise")

    @property
    def bound(self) -> float:
        """Largest level if the threshold N50 is above all levels, smallest if it is below."""
        ends = {ABOVE: -1, BELOW: 0}
        return float(self.levels[ends[self.kind]]) if self.kind in ends else nan


def threshold(levels: ArrayLike, successes: ArrayLike, trials: ArrayLike) -> Threshold:
    """Level N50 at which half of the trials succeed, with a 95 % confidence interval.

    The `levels`, shape (n,), such as numbers of samples, are positive and distinct. The
    `successes`, shape (n,), are numbers of successful trials. The `trials`, shape (n,), may be one
    number. Levels without trials are dropped. Raises InvalidRequest if no level is left, a level is
    not positive, or a level has more successes than trials.

    Examples
    --------
    >>> result = threshold([10, 20, 40, 80], successes=[0, 2, 8, 10], trials=10)
    >>> result.kind, round(result.value)
    ('measured', 28)
    """
    N, k = np.asarray(levels, dtype=np.float64), np.asarray(successes, dtype=np.float64)
    n = np.broadcast_to(np.asarray(trials, dtype=np.float64), N.shape)
    used = np.isfinite(k) & (n > 0)
    order = np.argsort(N[used])
    N, k, n = N[used][order], k[used][order], n[used][order]
    if not N.size or (N <= 0).any() or (k < 0).any() or (k > n).any():
        raise InvalidRequest(
            "threshold needs positive levels, with 0 to all trials of a level successful; "
            f"got levels {N.tolist()}, successes {k.tolist()}, trials {n.tolist()}"
        )
    fit = _Fit(np.log(N), k, n)
    position, slope = fit.best()
    low, high = fit.interval(position)
    kind = MEASURED
    if position > fit.x[-1]:
        kind = ABOVE
    elif position < fit.x[0]:
        kind = BELOW
    if 0 < k.sum() < n.sum() and not fit.grows():
        kind, low, high = NOWHERE, 0.0, inf
    value = exp(position) if kind == MEASURED else nan
    return Threshold(kind, value, low, high, slope, N, k / n, n)


@dataclass(frozen=True, eq=False)
class _Fit:
    """Log-likelihood of the successes by the threshold, u = ln N50, and the slope s of the fit."""

    x: FloatArray
    k: FloatArray
    n: FloatArray

    def grows(self) -> bool:
        """Whether the share of successful trials grows with ln N."""
        centred = self.x - (self.n * self.x).sum() / self.n.sum()
        return float((self.k * centred).sum()) > 0

    def profile(self, u: float) -> tuple[float, float]:
        """Maximum of the log-likelihood at the threshold u = ln N50 over all slopes; its slope."""
        from scipy.optimize import brentq

        z, s = self.x - u, MOST_SLOPE
        if self._rise(z, 0.0) <= 0:
            s = 0.0
        elif self._rise(z, s) < 0:
            s = float(brentq(lambda s: self._rise(z, s), 0.0, s, xtol=1e-10))
        return self._value(z, s), s

    def best(self) -> tuple[float, float]:
        """Most likely threshold u = ln N50, and slope, as `profile` has only one maximum."""
        low, high = self.x[0] - BEYOND, self.x[-1] + BEYOND
        for _ in range(THIRDS):
            one, two = low + (high - low) / 3, high - (high - low) / 3
            low, high = (one, high) if self.profile(one)[0] < self.profile(two)[0] else (low, two)
        u = 0.5 * (low + high)
        return u, self.profile(u)[1]

    def interval(self, top: float) -> tuple[float, float]:
        """Both ends of the threshold's confidence interval; 0 and infinity if unbounded."""
        from scipy.optimize import brentq

        least = self.profile(top)[0] - DROP
        ends = []
        for outside, none in ((self.x[0] - BEYOND, 0.0), (self.x[-1] + BEYOND, inf)):
            if self.profile(outside)[0] >= least:
                ends.append(none)
            else:
                ends.append(exp(brentq(lambda u: self.profile(u)[0] - least, outside, top)))
        return ends[0], ends[1]

    def _value(self, z: FloatArray, s: float) -> float:
        lost = self.k * np.logaddexp(0.0, -s * z) + (self.n - self.k) * np.logaddexp(0.0, s * z)
        return -float(lost.sum())

    def _rise(self, z: FloatArray, s: float) -> float:
        """Derivative of the log-likelihood by the slope s; z = ln(level / N50) for every level."""
        p = 0.5 * (1 + np.tanh(0.5 * s * z))
        return float(((self.k - self.n * p) * z).sum())
