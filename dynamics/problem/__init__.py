"""What every driver works on: an initial state, a gradient, a risk, observables.

The state is one flat float array. Its `Layout` says which part has which name and shape, so that a
reduced problem (alpha, gamma, rho) and a full one (alpha, A) look the same to a driver. `interface`
has what all problems share, `compiled` those whose gradient is in a generated file.
"""

from dynamics.problem.compiled import CompiledProblem
from dynamics.problem.interface import Problem, check_problem, gradient_failure
from dynamics.problem.layout import FloatArray, IntArray, Layout
from dynamics.problem.numerical_jacobian import SMALL
from dynamics.problem.observables import columns_of, record_of

__all__ = [
    "SMALL",
    "CompiledProblem",
    "FloatArray",
    "IntArray",
    "Layout",
    "Problem",
    "check_problem",
    "columns_of",
    "gradient_failure",
    "record_of",
]
