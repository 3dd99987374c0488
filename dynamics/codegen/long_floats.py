"""Blocks of a reduced system in floats of any type, above all numpy's longest, and their errors.

On most machines the longest have 11 bits more than the float64 of the compiled kernels, so what a
kernel has rounded can be measured; where they have none more, the same comparison only says less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.codegen.array_functions import array_function, array_source

if TYPE_CHECKING:
    import sympy

    from theory.reduction import ReducedSystem

LONG_ROUNDING = float(np.finfo(np.longdouble).eps)
"""Relative spacing of the longest floats."""


def block_source(blocks: Sequence[str], system: ReducedSystem, sizes: bool = False) -> str:
    """Source of a function of state, constants and latents that returns blocks.

    Parameters
    ----------
    blocks : sequence of str
        Names of blocks of the system.
    system : ReducedSystem
        The derivation.
    sizes : bool
        Whether the sum of the sizes of its terms stands for each block. The error of a block is
        that times the relative error of a term.
    """
    outputs = [system.blocks[block] for block in blocks]
    if sizes:
        outputs = [sum_of_sizes(output) for output in outputs]
    arguments = [*system.state, *system.parameters, *system.latents]
    return array_source([argument.name for argument in arguments], outputs, system)


def block_rows(source: str) -> Callable[..., np.ndarray]:
    """The function that `block_source` has printed, in floats of a given type.

    It takes the type, the scalars of the state, the constants, then the values of the latents, as
    arrays that broadcast; the result has one row for each block.

    Parameters
    ----------
    source : str
    """
    evaluate = array_function(source)

    def rows(kind: type[np.floating[Any]], *values: Any) -> np.ndarray:
        given = [np.asarray(value, kind) for value in values]
        parts = evaluate(*given)
        shape = np.broadcast_shapes(*(value.shape for value in given))
        made = np.empty((len(parts), *shape), kind)
        for row, part in zip(made, parts, strict=True):
            row[...] = part
        return made

    return rows


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
