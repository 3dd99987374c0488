r"""The reduced gradient of a small model as a generated file, for runs of millions of steps.

The traced loss on the scalars is read into sympy, with a symbol for each number of a sample;
:math:`\sum_c P_c\, \partial\ell(z; s_c)/\partial z` is printed as a loop over the classes of
samples and compiled by numba. It pays where the program is small and the run long: a step costs a
tenth of a microsecond and more for each class, where an array step costs some microseconds whatever
it computes, and compiling takes seconds. Exponentials are written without a shift, so where a step
is not finite the arrays take over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from dynamics import codegen
from dynamics.codegen.kernels.advance import advance
from dynamics.codegen.kernels.logistic import logistic
from dynamics.models.engine.derivation import restricted_loss
from dynamics.validation import InvalidRequest

if TYPE_CHECKING:
    from dynamics.models.engine.problem import ReducedPopulation

LARGEST = 8000
"""Characters of a gradient that is worth compiling."""
LONG_RUN = 2_500_000
"""Steps from which it is compiled where nothing is asked for."""
MOST_ENTRIES = 64
"""Numbers of a sample that may be symbols."""


class Softplus(sympy.Function):  # type: ignore[misc]
    """log(1 + exp(x)), whose derivative does not overflow."""

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """The logistic function."""
        return Logistic(self.args[0])


class Logistic(sympy.Function):  # type: ignore[misc]
    """1 / (1 + exp(-x)), printed as the kernel ``logistic``."""


def compiled_gradient(problem: ReducedPopulation) -> tuple[codegen.CompiledModule, Any]:
    """The generated file of a reduced problem, and the data of its functions.

    Raises
    ------
    InvalidRequest
        If the loss has no expression that can be compiled, or a long one.
    """
    made, closure = problem.realization, problem.closure
    names = tuple(f"z{k}" for k in range(closure.scalars))
    symbols = [sympy.Symbol(name, real=True) for name in names]
    table, weights, columns = _table(problem)
    loss = restricted_loss(made, closure, symbols, columns)
    if loss is None:
        raise InvalidRequest(f"the loss of {problem.system} has no expression that is compiled")
    loss = loss.replace(_is_softplus, lambda function: Softplus(_inner(function)))
    slopes = [sympy.diff(loss, symbol) for symbol in symbols]
    reals = tuple(made.reals)
    source = codegen.summed("gradient", slopes, (names, reals, tuple(map(str, columns or ()))))
    if len(source) > LARGEST:
        raise InvalidRequest(
            f"the gradient of {problem.system} has {len(source)} characters; at most {LARGEST} are "
            "worth compiling; backend can be arrays"
        )
    kinds = [(kind, int(key)) for kind, key in problem._columns]
    parts = [
        codegen.kernel_source(logistic) + "\nLogistic = logistic\n",
        source,
        codegen.selected(kinds),
        codegen.kernel_source(advance),
    ]
    module = codegen.build(f"{problem.system}, reduced problem.", names, parts)
    share = np.asarray(problem._plain.share, dtype=float)
    constants = np.array([made.reals[name] for name in reals], dtype=float)
    return module, (constants, weights, table, share)


def _is_softplus(expression: sympy.Expr) -> bool:
    return isinstance(expression, sympy.log) and _inner(expression) is not None


def _inner(expression: sympy.Expr) -> sympy.Expr | None:
    """X of log(1 + exp(x)); None of anything else."""
    total = expression.args[0]
    if not isinstance(total, sympy.Add) or len(total.args) != 2 or sympy.S.One not in total.args:
        return None
    other = next(part for part in total.args if part != 1)
    return other.args[0] if isinstance(other, sympy.exp) else None


def _table(problem: ReducedPopulation) -> tuple[Any, Any, list[sympy.Symbol] | None]:
    """Samples as rows of numbers, their weights, and a symbol for each column."""
    import jax

    data = problem._payload[0]
    if not problem.realization.program.has_law:
        return np.zeros((1, 0)), np.ones(1), None
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(data.samples)]
    if any(leaf.dtype.kind != "f" for leaf in leaves):
        raise InvalidRequest(
            f"samples of {problem.system} hold whole numbers, which are no symbols; backend can be "
            "arrays"
        )
    table = np.concatenate([leaf.reshape(len(leaf), -1) for leaf in leaves], axis=1)
    if table.shape[1] > MOST_ENTRIES:
        raise InvalidRequest(f"a sample of {problem.system} has {table.shape[1]} numbers")
    symbols = [sympy.Symbol(f"x{k}", real=True) for k in range(table.shape[1])]
    return np.ascontiguousarray(table), np.asarray(data.weights).copy(), symbols
