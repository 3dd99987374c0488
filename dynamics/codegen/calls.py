"""Calls of compiled functions by their addresses, on data that lie in memory.

A loop over steps that is compiled around the gradient of one model is compiled again for the next.
One that is given the address of a gradient is compiled once for all models
(`dynamics.codegen.loops`). The entries of a generated file have one signature in C,

    void entry(double *state, int64 size, double *slope, Data *data, double *out, int64 count),

and read their data, a tuple of arrays and numbers, from memory (`dynamics.codegen.addresses`).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

WORD = ir.IntType(64)
BYTES = ir.IntType(8).as_pointer()
NUMBERS = ir.DoubleType().as_pointer()


def entry_signature(data: types.Type) -> Any:
    """The signature of every entry, for one type of data.

    Parameters
    ----------
    data : numba type
    """
    number = types.CPointer(types.float64)
    return types.void(number, types.intp, number, types.CPointer(data), number, types.intp)


@intrinsic
def data_at(typing: Any, pointer: Any) -> Any:
    """The tuple that lies at a pointer.

    Parameters
    ----------
    typing
        Of numba.
    pointer : CPointer of a tuple
    """
    if not isinstance(pointer, types.CPointer):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        model = context.data_model_manager[signature.return_type]
        return model.load_from_data_pointer(builder, arguments[0])

    return pointer.dtype(pointer), generate


@intrinsic
def call(typing: Any, address: Any, state: Any, slope: Any, data: Any, out: Any) -> Any:
    """Call the entry at an address.

    Parameters
    ----------
    typing
        Of numba.
    address, data : int
        Of the entry, and of its data.
    state, slope, out : contiguous float arrays
    """
    arrays = (state, slope, out)
    if not all(isinstance(array, types.Array) and array.layout == "C" for array in arrays):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number, *values = arguments
        kind = ir.FunctionType(ir.VoidType(), [NUMBERS, WORD, NUMBERS, BYTES, NUMBERS, WORD])
        entry = builder.inttoptr(number, kind.as_pointer())
        memory = builder.inttoptr(values.pop(2), BYTES)
        kinds = (signature.args[1], signature.args[2], signature.args[4])
        here, rate, result = (
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(kinds, values, strict=True)
        )
        pointers = (here.data, here.nitems, rate.data, memory, result.data, result.nitems)
        builder.call(entry, pointers)
        return context.get_dummy_value()

    void = types.void(types.int64, state, slope, types.int64, out)
    return void, generate


__all__ = ["call", "data_at", "entry_signature"]
