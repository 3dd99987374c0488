"""Logistic function and logistic loss of one number."""

from math import exp, log1p

from dynamics.loops.kernels import inlined, kernels


@inlined
def logistic(u: float) -> float:
    """Logistic function 1/(1+exp(-u)), without overflow: exp(-u) = inf gives 0."""
    return 1.0 / (1.0 + exp(-u))


@inlined
def logistic_loss(margin: float) -> float:
    """Logistic loss log(1 + exp(-margin)), without overflow."""
    if margin > 0.0:
        return log1p(exp(-margin))
    return log1p(exp(margin)) - margin


kernels(__name__)
