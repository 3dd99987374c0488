"""Instructions of LLVM for the short vectors of `dynamics.codegen.kernels.vectors`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.datamodel import models
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, register_model

from dynamics.codegen.kernels.vectors import WIDTH

NUMBER, POSITION = ir.DoubleType(), ir.IntType(32)
VECTOR = ir.VectorType(NUMBER, WIDTH)
ALIGNMENT = 8
"""Bytes at whose multiples rows begin, as all numbers do."""


class VectorType(types.Type):
    """The type of a short vector, for numba."""

    def __init__(self) -> None:
        super().__init__(name=f"vector{WIDTH}")


vector = VectorType()


@register_model(VectorType)
class VectorModel(models.PrimitiveModel):
    """A short vector in LLVM."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, VECTOR)


def _broadcast(builder: Any, number: Any) -> Any:
    first = builder.insert_element(
        ir.Constant(VECTOR, ir.Undefined), number, ir.Constant(POSITION, 0)
    )
    everywhere = ir.Constant(ir.VectorType(POSITION, WIDTH), [0] * WIDTH)
    return builder.shuffle_vector(first, ir.Constant(VECTOR, ir.Undefined), everywhere)


def _address(context: Any, builder: Any, kinds: tuple[Any, ...], arguments: Any) -> Any:
    """Address of a row of an array."""
    array = context.make_array(kinds[0])(context, builder, arguments[0])
    row = context.cast(builder, arguments[1], kinds[1], types.intp)
    kind = NUMBER if kinds[0].ndim == 1 else VECTOR
    return builder.gep(builder.bitcast(array.data, kind.as_pointer()), [row])


def _row_of(kind: Any) -> Any:
    """The type of a row of an array: a short vector, or a number; None of other arrays."""
    if isinstance(kind, types.Array) and kind.dtype == types.float64 and kind.layout == "C":
        return {1: types.float64, 2: vector}.get(kind.ndim)
    return None


@intrinsic
def load(typing: Any, array: Any, row: Any) -> Any:
    """A row of an array as a short vector.

    Parameters
    ----------
    typing
        Of numba.
    array, row
        As of `dynamics.codegen.kernels.vectors.load`.
    """
    if _row_of(array) is None:
        return None

    def generate(context: Any, builder: Any, kinds: Any, arguments: Any) -> Any:
        return builder.load(_address(context, builder, kinds.args, arguments), align=ALIGNMENT)

    return _row_of(array)(array, row), generate


@intrinsic
def store(typing: Any, array: Any, row: Any, values: Any) -> Any:
    """Fill a row of an array.

    Parameters
    ----------
    typing
        Of numba.
    array, row, values
        As of `dynamics.codegen.kernels.vectors.store`.
    """
    if _row_of(array) is None or values != _row_of(array):
        return None

    def generate(context: Any, builder: Any, kinds: Any, arguments: Any) -> Any:
        at = _address(context, builder, kinds.args, arguments)
        builder.store(arguments[2], at, align=ALIGNMENT)
        return context.get_dummy_value()

    return types.void(array, row, values), generate


def _lower(name: str) -> Callable[..., Any]:
    """The lowering of an operator to an instruction, numbers made vectors before."""

    def generate(context: Any, builder: Any, kinds: Any, arguments: Any) -> Any:
        both = [
            value if kind == vector else _broadcast(builder, value)
            for kind, value in zip(kinds.args, arguments, strict=True)
        ]
        return getattr(builder, name)(*both)

    return generate


_OPERANDS = [(vector, vector), (vector, types.float64), (types.float64, vector)]
_OPERATORS = {
    "fadd": (operator.add, operator.iadd),
    "fsub": (operator.sub, operator.isub),
    "fmul": (operator.mul, operator.imul),
    "fdiv": (operator.truediv, operator.itruediv),
}
for _name, _pair in _OPERATORS.items():
    for _each in _pair:
        infer_global(_each)(
            type(
                f"Vector_{_each.__name__}",
                (ConcreteTemplate,),
                {"cases": [signature(vector, *operands) for operands in _OPERANDS]},
            )
        )
        for _operands in _OPERANDS:
            lower_builtin(_each, *_operands)(_lower(_name))
