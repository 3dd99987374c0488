"""Interface of the drivers: an initial state, a gradient, a risk, observables.

The state is one flat float array. Its `Layout` says which part has which name and shape, so that a
reduced problem (alpha, gamma, rho) and a full one (alpha, A) look the same to a driver. `interface`
has what all problems share, and those that an expectation has the gradient of.
"""

from dynamics.problem.interface import (
    ExpectedProblem,
    Problem,
    check_problem,
    columns_of,
    gradient_failure,
    record_of,
)
from dynamics.problem.layout import FloatArray, IntArray, Layout
from dynamics.problem.numerical_jacobian import SMALL

__all__ = [
    "SMALL",
    "ExpectedProblem",
    "FloatArray",
    "IntArray",
    "Layout",
    "Problem",
    "check_problem",
    "columns_of",
    "gradient_failure",
    "record_of",
]
