"""Interface of training problems: initial state, gradient, risk, observables.

The state is one flat float array. A `Layout` has the names and shapes of a state's parts, so
drivers treat a reduced problem with the parts alpha, gamma, rho and a full problem with the parts
alpha, A alike.
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
