r"""Hoeffding's inequality for sub-Gaussian variables (Lemma 1), with an explicit constant.

Let X be centered with :math:`E|X|^p \leq (K \sqrt p)^p` for all :math:`p \geq 1`. Then

.. math:: E e^{\lambda X} \leq 1 + \sum_{p \geq 2} \frac{(|\lambda| K)^p p^{p/2}}{p!}
   \leq e^{C \lambda^2 K^2}, \qquad
   C = \sup_x \frac{1}{x^2} \ln\Big(1 + \sum_{p \geq 2} \frac{x^p p^{p/2}}{p!}\Big),

so sums of independent such variables satisfy :math:`P(\sum_i a_i X_i \geq t) \leq e^{-t^2 / (4 C
K^2 \|a\|^2)}`. The inequality is Lemma 1 with c = 1/(4C), without the factor e of the lemma.
"""

from __future__ import annotations

from math import lgamma

import numpy as np

TERMS = 400
"""Number of summed terms of the series; at x = `LARGEST`, its terms decrease for p > e x^2."""
LARGEST = 6.0
"""The supremum C is searched up to this x; `exponent_of_series` then decreases to e/2."""


def exponent_of_series(x: float) -> float:
    """Quotient ln(1 + sum of x^p p^(p/2) / p! over all integers p >= 2) / x^2, for x > 0."""
    powers = np.arange(2, TERMS)
    logs = powers * np.log(x) + powers / 2 * np.log(powers)
    logs -= [lgamma(p + 1) for p in powers]
    return float(np.logaddexp.reduce(np.append(logs, 0.0))) / x**2


def hoeffding_constant() -> float:
    """Constant c = 1/(4C) of Lemma 1, to six digits.

    Examples
    --------
    >>> 0.1 < hoeffding_constant() < 0.25
    True
    """
    points = np.linspace(0.01, LARGEST, 2000)
    return 1 / (4 * max(exponent_of_series(float(x)) for x in points))


def norm_of_rare_signs(chance: float) -> float:
    """Sub-Gaussian norm of X in {-1, 0, 1} with P(X != 0) = `chance`."""
    best = max(1.0, -2 * np.log(chance))
    return float(best**-0.5 * chance ** (1 / best))
