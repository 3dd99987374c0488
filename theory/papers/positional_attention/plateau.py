r"""The plateau of Event I: sign of the rate of gamma - rho.

While v grows, A is still 0 off its diagonal beta. With :math:`E = e^{s\beta}` and the scale s, an
entry of the attention S is :math:`\xi = 1/(E + D - 1)` off the diagonal and :math:`E\xi` on the
diagonal. With Z the sum of all values, a patch of value x has the preactivation

.. math:: O_x = \alpha U_x, \qquad U_x = D\,\xi\,(\kappa x + Z), \qquad \kappa = E - 1. \qquad (1)

**Rates.** Let :math:`\varsigma = 1/(1+e^F)`, and let :math:`z_i` be the sum of the set of patch i.
The derivative of the softmax gives

.. math:: \dot\gamma - \dot\rho = s\,\alpha\,\xi\, E\Big[\varsigma \sum_i act'(O_i)
   \Big(\frac{z_i - x_i}{C-1} - \frac{Z - z_i}{D-C}\Big)\Big]. \qquad (2)

The sum of the bracket over i is 0, so the linear part of act does not contribute, and (2) equals
:math:`s\,p\,\xi\,\alpha^p E[\varsigma T]` with

.. math:: T = \sum_i U_i^{p-1}
   \Big(\frac{(D-1)(z_i - x_i)}{(C-1)(D-C)} - \frac{Z - x_i}{D-C}\Big). \qquad (3)

At beta = 0 all :math:`U_i` of (1) are equal, so T is 0, and A does not move.

**Assumption 1.** F depends only on the numbers of random patches at +1 and at -1, and all
arrangements with the same numbers are equally likely. Let :math:`\bar x` be the mean of all random
patches, and :math:`\bar x_{-i}` that of all except patch i, which is also the expected mean of the
other patches in its set. Equation (3) becomes

.. math:: T = C\,\Big\{U_{+}^{p-1} (1 - \bar x) - \frac{1}{D-C} \sum_{i\ random}
   U_i^{p-1} (1 - \bar x_{-i})\Big\}, \qquad (4)

and the expectation of T is a sum over :math:`O(D^2)` pairs of numbers. If random sets are mixed,
only whole sets are exchangeable. The expectation of T is then a sum over the types of one set, and
the law of all other sets is a convolution.

**Many patches at fixed q.** Let :math:`\sigma^2 = q(D-C)`; for large D, :math:`\zeta = Z/\sigma` is
normal with mean :math:`C/\sigma`. On the plateau the output is small, :math:`F = \tau\zeta^p +
r\tau\zeta` with coefficients :math:`\tau` and :math:`r\tau`. The rate of alpha is zero if

.. math:: \tau = \frac{2C}{\sigma}\,\frac{p\,p!! + r}{N}, \qquad
   N = p\,(2p-1)!! + (p+1)\,p!!\,r + r^2, \qquad
   r^{p/(p-1)}\,\tau = \nu^{p/(p-1)} D. \qquad (5)

To leading order, :math:`E[\varsigma T]` is then a positive factor times :math:`\kappa` times

.. math:: h\,C - q + \frac{\kappa}{4}(1-q), \qquad
   h = \frac12 - \frac{(p\,p!! + r)\,((2p-3)!!/(p-2)!! + r)}{2N}. \qquad (6)

For beta > 0, gamma grows faster than rho if q is below :math:`q_c = (hC + \kappa/4)/(1 +
\kappa/4)`. As :math:`\nu D^{3(p-1)/(2p)} \to 0`, the number h of (6) tends to
:math:`(p-1)/(2(2p-1))`; gamma then grows faster than rho at every q if p = 3 and C >= 5. At a fixed
nu > 0 the linear part of F dominates for large D, h tends to 0, and :math:`q_c` tends to
:math:`\kappa/(4+\kappa)`.

**Many patches at a fixed mean** :math:`\lambda = q(D-C)`. For large D, F becomes a polynomial
:math:`F(Z) = a Z^p + b Z`, and T of (4) becomes :math:`C\{(\kappa + Z)^{p-1} - Z^{p-1}\}`. Let
:math:`w(k) = P(Z = k)/(1 + e^{F(k)})`. With Bessel functions I for the law of Z, and at a zero rate
of alpha,

.. math:: \frac{w(k)}{w(-k)} = \frac{I_{k-C}(\lambda)}{I_{k+C}(\lambda)}\,e^{-F(k)}, \qquad
   \sum_{k>0} k\,F'(k)\,(w(k) - w(-k)) = 0. \qquad (7)

In (7) the logarithm of the quotient of Bessel functions, divided by k, decreases with k (measured,
not proved), but F(k)/k does not decrease. Hence w(k) - w(-k) changes its sign once as k grows, from
+ to -. For p = 3, F' increases with k, so the sum in (7) implies :math:`E[\varsigma Z] \geq 0`. For
p = 3 and beta > 0, therefore :math:`E[\varsigma T] = C\kappa\,E[\varsigma(\kappa + 2Z)] > 0`, and
gamma grows faster than rho at every mean :math:`\lambda`.

With the a and b of F(Z), the plateau has :math:`\alpha^p = a/D`, or :math:`\alpha = b/(\nu D)` if
:math:`\nu D^{1-1/p}` is large. The rate (2) of gamma - rho therefore falls like :math:`D^{-2}`
first, and like :math:`\nu^{-p} D^{-(p+1)}` for larger D. Whether this rate's sign predicts the end
of training is measured in `dynamics.verdicts.positional_attention.plateau`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import exp, inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, factorial2, gammaln, xlogy

from theory.papers.positional_attention.data_law import ANY, SetLaw

Array = NDArray[np.float64]
STEP = 1.1
"""Ratio of consecutive values of alpha in the search for a sign change of its rate."""


class Numbers(NamedTuple):
    """Joint law of the numbers of random patches at +1 and at -1, and sums over these patches.

    The array `chance`, shape (D - C + 1, D - C + 1), holds the probability that (a, b) random
    patches are at +1 and -1. For each value x, `mates` holds an array of the shape of `chance`. The
    entry (a, b) of `mates[x]` is the expectation of the indicator of (a, b) times the sum of z_i -
    x over all random patches i of value x, with z_i the sum of the set of patch i.
    """

    chance: Array
    mates: Mapping[int, Array]


def exchangeable(random: int, law: SetLaw) -> Numbers:
    """`Numbers` for `random` = D - C random patches, which Assumption 1 makes exchangeable."""
    plus, minus = np.ogrid[: random + 1, : random + 1]
    zero = random - plus - minus
    with np.errstate(invalid="ignore", divide="ignore"):
        logarithm = (
            gammaln(random + 1) - gammaln(plus + 1) - gammaln(minus + 1) - gammaln(zero + 1.0)
            + xlogy(plus + minus, law.q / 2) + xlogy(zero, 1 - law.q)
        )  # fmt: skip
    chance = np.where(zero >= 0, np.exp(logarithm), 0.0)
    others = (law.C - 1) / max(random - 1, 1)
    counts = {1: plus, -1: minus, 0: zero}
    mates = {x: chance * count * (plus - minus - x) * others for x, count in counts.items()}
    return Numbers(chance, mates)


def one_set_apart(random: int, law: SetLaw) -> Numbers:
    """`Numbers` for `random` = D - C random patches, if the random sets are independent."""
    sets = random // law.C
    rest = np.zeros((random + 1, random + 1))
    rest[0, 0] = 1.0
    possible = law.probabilities > 0
    types, chance = law.types[possible], law.probabilities[possible]

    def with_set(weights: Array) -> Array:
        """Convolve the law `rest` of the other random sets with the weighted types of one set."""
        total = np.zeros_like(rest)
        for (a, b, _), weight in zip(types, weights, strict=True):
            total[a:, b:] += weight * rest[: random + 1 - a, : random + 1 - b]
        return total

    a, b, c = types.T
    for _ in range(sets - 1):
        rest = with_set(chance)
    counts = {1: a, -1: b, 0: c}
    mates = {x: sets * with_set(chance * count * (a - b - x)) for x, count in counts.items()}
    return Numbers(with_set(chance), mates)


@dataclass(frozen=True)
class Plateau:
    """Training with A = 0 off the diagonal; the rates are exact.

    `law` is the law of a random set. The activation has the odd degree `p` and the linear part `nu`
    >= 0. `beta` is the diagonal of A, and `scale` the factor in the softmax.

    Examples
    --------
    >>> plateaus = [Plateau(16, SetLaw(4, q)) for q in (0.69, 0.71)]
    >>> [each.lead(each.alpha(0.03)) > 0 for each in plateaus]
    [True, False]
    """

    D: int
    law: SetLaw
    p: int = 3
    nu: float = 1e-3
    beta: float = 1.0
    scale: float = 1.0

    @cached_property
    def numbers(self) -> Numbers:
        """Joint law of the numbers of random patches at +1 and at -1."""
        count = exchangeable if self.law.random_sets == ANY else one_set_apart
        return count(self.D - self.law.C, self.law)

    @property
    def entry(self) -> float:
        """Entry xi of the attention S off the diagonal."""
        return 1 / (exp(self.scale * self.beta) + self.D - 1)

    @cached_property
    def attended(self) -> Mapping[int, Array]:
        """Mapping from each value x of a patch to its attended value U_x of equation (1)."""
        plus, minus = np.ogrid[: self.D - self.law.C + 1, : self.D - self.law.C + 1]
        kappa, total = np.expm1(self.scale * self.beta), self.law.C + plus - minus
        return {x: self.D * self.entry * (kappa * x + total) for x in (1, -1, 0)}

    @cached_property
    def powers(self) -> tuple[Array, Array]:
        """Sums of U^p and of U of (1) over all patches, if (a, b) random patches are at +1 and -1.

        The output F is alpha^p times the first sum, plus nu alpha times the second sum.
        """
        plus, minus = np.ogrid[: self.D - self.law.C + 1, : self.D - self.law.C + 1]
        counts = {1: self.law.C + plus, -1: minus, 0: self.D - self.law.C - plus - minus}
        main = sum(counts[x] * seen**self.p for x, seen in self.attended.items())
        linear = sum(counts[x] * seen for x, seen in self.attended.items())
        return np.asarray(main), np.asarray(linear)

    def weights(self, alpha: float) -> Array:
        """Weight 1/(1 + e^F) of equation (2), if (a, b) random patches are at +1 and -1."""
        main, linear = self.powers
        return np.asarray(expit(-(alpha**self.p * main + self.nu * alpha * linear)))

    def rate(self, alpha: float) -> float:
        """Rate of alpha under the gradient flow, which is the negative derivative of the risk."""
        main, linear = self.powers
        slope = self.p * alpha ** (self.p - 1) * main + self.nu * linear
        return float((self.weights(alpha) * self.numbers.chance * slope).sum())

    def alpha(self, start: float) -> float:
        """First value with rate 0 that alpha reaches under the gradient flow from `start` > 0.

        Returns inf if F is positive on every sample, because alpha then grows without bound.
        """
        if (self.powers[0][self.numbers.chance > 0] >= 0).all():
            return inf
        step = STEP if self.rate(start) > 0 else 1 / STEP
        end = start * step
        while (self.rate(end) > 0) == (step > 1):
            end *= step
        return float(brentq(self.rate, *sorted((end / step, end)), xtol=1e-300, rtol=1e-14))

    @cached_property
    def moments(self) -> Array:
        """Mean of T of (3) if (a, b) random patches are at +1 and -1, times its probability."""
        D, C, random = self.D, self.law.C, self.D - self.law.C
        plus, minus = np.ogrid[: random + 1, : random + 1]
        chance, mates = self.numbers
        counts, total = {1: plus, -1: minus, 0: random - plus - minus}, C + plus - minus
        even = {x: seen ** (self.p - 1) for x, seen in self.attended.items()}
        moments = C * even[1] * (D - total) * chance  # the signal set has z = C and x = 1
        for x, count in counts.items():
            among = (D - 1) / (C - 1) * mates[x] - count * (total - x) * chance
            moments = moments + even[x] * among
        return np.asarray(moments / random)

    def tilt(self, alpha: float) -> float:
        """Expectation of T / (1 + e^F), T of (3); it has the sign of the rate of gamma - rho."""
        return float((self.weights(alpha) * self.moments).sum())

    def lead(self, alpha: float) -> float:
        """Rate of gamma - rho by equation (2), for rates per entry of A."""
        return self.scale * self.p * self.entry * alpha**self.p * self.tilt(alpha)


def tilt_of_many_patches(law: SetLaw, p: int, kappa: float, linear: float = 0.0) -> float:
    """Limit of `Plateau.tilt` for large D at fixed q, divided by a positive factor (equation (6)).

    `law` is the law of a random set under Assumption 1, and `p` the degree of the activation.
    `kappa` is e^(s beta) - 1, and `linear` the limit of nu D^(3(p-1)/(2p)).

    Examples
    --------
    >>> [round(tilt_of_many_patches(SetLaw(4, q), 3, 1.0), 3) for q in (0.8, 0.88)]
    [0.05, -0.05]
    """
    odd, even, power = factorial2(p), factorial2(p - 2), p / (p - 1)

    def scatter(r: float) -> float:
        return float(p * factorial2(2 * p - 1) + (p + 1) * odd * r + r**2)  # N of equation (5)

    def excess(r: float) -> float:
        wanted = linear**power * law.q**0.5 / law.C
        return float(r**power * 2 * (p * odd + r) / scatter(r) - wanted)

    r, most = 0.0, 1.0
    if linear:
        while excess(most) < 0:
            most *= 10
        r = float(brentq(excess, 0.0, most))
    skew = (p * odd + r) * (factorial2(2 * p - 3) / even + r) / scatter(r)
    return float(kappa * ((1 - skew) / 2 * law.C - law.q + kappa / 4 * (1 - law.q)))
