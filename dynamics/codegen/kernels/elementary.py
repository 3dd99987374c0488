r"""The exponential of a whole array, and the logistic loss of one number.

The exponential is in a form that compilers turn into vector instructions.

:math:`e^x = 2^n e^r` with n the integer nearest to x/ln 2 and r the rest, at most ln(2)/2 in size;
e^r is its Taylor polynomial of degree 13, whose remainder is below 1e-17. numba calls the C library
once per element, which takes about five times as long.

The logistic loss is :math:`\log(1 + e^{-F})`, its weight :math:`\varsigma(-F) = 1/(1+e^F)`.
"""

from math import exp, log1p

import numpy as np

from dynamics.codegen.kernels import fused

LOG2_E = 1.4426950408889634
# ln 2 in two parts: n * LN2_HIGH is exact for |n| < 2^20.
LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10
# 1.5 * 2^52: adding it rounds to an integer, which then stands in the low bits.
ROUNDING = 6755399441055744.0
LEAST = -700.0  # of an exponent


@fused
def exponentials(values, scratch):  # type: ignore[no-untyped-def]
    """Replace x by e^x, for -700 <= x <= 700; relative error below 3e-16.

    Parameters
    ----------
    values : float array, shape (n,)
    scratch : float array, shape (n,)
        Overwritten.
    """
    bits = scratch.view(np.int64)
    for k in range(values.size):
        shifted = values[k] * LOG2_E + ROUNDING
        whole = shifted - ROUNDING
        rest = (values[k] - whole * LN2_HIGH) - whole * LN2_LOW
        series = rest * (1.0 / 6227020800.0) + 1.0 / 479001600.0
        series = series * rest + 1.0 / 39916800.0
        series = series * rest + 1.0 / 3628800.0
        series = series * rest + 1.0 / 362880.0
        series = series * rest + 1.0 / 40320.0
        series = series * rest + 1.0 / 5040.0
        series = series * rest + 1.0 / 720.0
        series = series * rest + 1.0 / 120.0
        series = series * rest + 1.0 / 24.0
        series = series * rest + 1.0 / 6.0
        series = series * rest + 0.5
        series = series * rest + 1.0
        values[k] = series * rest + 1.0
        scratch[k] = shifted
    for k in range(values.size):
        bits[k] = (bits[k] + 1023) << 52
    for k in range(values.size):
        values[k] *= scratch[k]


def logistic(u: float) -> float:
    """1/(1+exp(-u)); exp overflows to infinity for very negative u, and the quotient to 0."""
    return 1.0 / (1.0 + exp(-u))


def logistic_loss(margin: float) -> float:
    """log(1 + exp(-margin)), without overflow on either side."""
    if margin > 0.0:
        return log1p(exp(-margin))
    return log1p(exp(margin)) - margin
