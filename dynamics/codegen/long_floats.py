"""Blocks of a reduced system in numpy's longest floats, with what they may have lost.

On most machines these have 11 bits more than the float64 of the compiled kernels, so what a kernel
has rounded can be measured; where they have none more, the same comparison only says less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.codegen.printing import common_parts, needed_definitions

if TYPE_CHECKING:
    import sympy

    from theory.reduction import ReducedSystem

LONG_ROUNDING = float(np.finfo(np.longdouble).eps)
"""Relative spacing of the longest floats."""


def long_table(blocks: Sequence[str], system: ReducedSystem) -> Callable[..., tuple[Any, Any]]:
    """A function of state, constants and latents: blocks, and the sizes of their terms.

    The arguments are the scalars of the state, the constants, then the values of the latents, as
    arrays that broadcast; both results have one row for each block. The error of a block is its
    size times the relative error of a term.

    Parameters
    ----------
    blocks : sequence of str
        Names of blocks of the system.
    system : ReducedSystem
        The derivation.
    """
    import sympy

    outputs = [system.blocks[block] for block in blocks]
    outputs += [sum_of_sizes(output) for output in outputs]
    definitions = needed_definitions(outputs, system)
    temporaries, results = common_parts(outputs, "t")
    arguments = [*system.state, *system.parameters, *system.latents]
    evaluate = sympy.lambdify(
        arguments, outputs, "numpy", cse=lambda _: ([*definitions, *temporaries], results)
    )

    def table(*values: Any) -> tuple[Any, Any]:
        long = [np.asarray(value, np.longdouble) for value in values]
        shape = np.broadcast_shapes(*(value.shape for value in long))
        rows = np.empty((2 * len(blocks), *shape), np.longdouble)
        for out, row in zip(rows, evaluate(*long), strict=True):
            out[...] = row
        return rows[: len(blocks)], rows[len(blocks) :]

    return table


def sum_of_sizes(expression: sympy.Expr) -> sympy.Expr:
    """An expression with the absolute value of every term; whole numbers are exact, and one term.

    Parameters
    ----------
    expression : sympy.Expr
        Sums, products and powers of symbols and of functions.
    """
    import sympy

    if expression.is_integer:
        return sympy.Abs(expression)
    if expression.is_Add or expression.is_Mul:
        return expression.func(*map(sum_of_sizes, expression.args))
    if expression.is_Pow and expression.exp.is_Integer and expression.exp > 0:
        return sum_of_sizes(expression.base) ** expression.exp
    return sympy.Abs(expression)
