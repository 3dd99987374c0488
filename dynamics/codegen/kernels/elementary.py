r"""The exponential and the logistic loss of a whole array, and of one number.

Those of arrays are in a form that compilers turn into vector instructions.

:math:`e^x = 2^n e^r` with n the integer nearest to x/ln 2 and r the rest, at most ln(2)/2 in size;
e^r is its Taylor polynomial of degree 13, whose remainder is below 1e-17. numba calls the C library
once per element, which takes about five times as long.

The logistic loss is :math:`\log(1 + e^{-F})`, its weight :math:`\varsigma(-F) = 1/(1+e^F)`.
"""

from math import exp, log1p

import numpy as np

from dynamics.codegen.kernels import exact, fused

LOG2_E = 1.4426950408889634
# ln 2 in two parts: n * LN2_HIGH is exact for |n| < 2^20.
LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10
LN_2 = 0.6931471805599453
ROOT_2_LESS_1 = 0.41421356237309503
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


@exact
def decays(margins, out, scratch):  # type: ignore[no-untyped-def]
    """exp(-|F|) of many margins F; e^-700 where it is less.

    Parameters
    ----------
    margins : float array, shape (n,)
    out : float array, shape (n,)
        Filled.
    scratch : float array, shape (n,)
        Overwritten.
    """
    for k in range(margins.size):
        size = -abs(margins[k])
        out[k] = LEAST if size < LEAST else size
    exponentials(out, scratch)


@exact
def logistic_weights(margins, decayed, out):  # type: ignore[no-untyped-def]
    """1/(1 + e^F) of many margins F: e/(1 + e) or 1/(1 + e) with e = exp(-|F|); 0 above 700.

    Parameters
    ----------
    margins, decayed : float array, shape (n,)
        F, and `decays` of it.
    out : float array, shape (n,)
        Filled.
    """
    for k in range(margins.size):
        numerator = decayed[k] if margins[k] > 0.0 else 1.0
        if margins[k] > -LEAST:  # where every sample is right, training rests
            numerator = 0.0
        out[k] = numerator / (1.0 + decayed[k])


@fused
def losses_from_decays(margins, losses):  # type: ignore[no-untyped-def]
    """log(1 + exp(-F)) of many margins F, from exp(-|F|).

    With e = exp(-|F|) and f = e/(2 + e) it is max(-F, 0) + 2 artanh(f); where 1 + e is above the
    root of 2, log 2 is taken out: f = (e - 1)/(3 + e). So f is at most 0.172, and the series
    f + f^3/3 + f^5/5 + ... (Abramowitz, Stegun 4.1.27) ends at f^19.

    Parameters
    ----------
    margins : float array, shape (n,)
    losses : float array, shape (n,)
        `decays` of the margins; replaced.
    """
    for k in range(margins.size):
        out = 1.0 if losses[k] > ROOT_2_LESS_1 else 0.0
        f = (losses[k] - out) / (2.0 + losses[k] + out)
        square = f * f
        series = square * (1.0 / 19.0) + 1.0 / 17.0
        series = series * square + 1.0 / 15.0
        series = series * square + 1.0 / 13.0
        series = series * square + 1.0 / 11.0
        series = series * square + 1.0 / 9.0
        series = series * square + 1.0 / 7.0
        series = series * square + 1.0 / 5.0
        series = series * square + 1.0 / 3.0
        series = series * square + 1.0
        beyond = 0.0 if margins[k] > 0.0 else -margins[k]
        losses[k] = 2.0 * f * series + (out * LN_2 + beyond)


@exact
def logistic_losses(margins, losses, scratch):  # type: ignore[no-untyped-def]
    """log(1 + exp(-F)) of many margins F; relative error below 1e-15, above -700 exact to e^-700.

    Parameters
    ----------
    margins : float array, shape (n,)
    losses : float array, shape (n,)
        Filled.
    scratch : float array, shape (n,)
        Overwritten.
    """
    decays(margins, losses, scratch)
    losses_from_decays(margins, losses)
