r"""The logistic function and its loss, of one number.

The logistic loss is :math:`\log(1 + e^{-F})`, its weight :math:`\varsigma(-F) = 1/(1+e^F)`.
"""

from math import exp, log1p

from dynamics.loops.kernels import inlined, kernels


@inlined
def logistic(u: float) -> float:
    """1/(1+exp(-u)); exp overflows to infinity for very negative u, and the quotient to 0."""
    return 1.0 / (1.0 + exp(-u))


@inlined
def logistic_loss(margin: float) -> float:
    """log(1 + exp(-margin)), without overflow on either side."""
    if margin > 0.0:
        return log1p(exp(-margin))
    return log1p(exp(margin)) - margin


kernels(__name__)
