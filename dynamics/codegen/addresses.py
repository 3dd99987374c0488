"""The functions of a generated file by their addresses, and their data packed into memory.

Loops that train are compiled once for all models and call these (`dynamics.codegen.loops`). The
entries of a generated file are written to its end, and compiled for one type of data when a problem
of that type is first trained.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

GRADIENT, ORDER_PARAMETERS, HESSIAN, SUMMARY, DATA = range(5)
"""Positions of the addresses in the array that loops are given."""

ENTRIES = {
    "gradient": """
def gradient_entry(state, size, slope, data, out, count):
    gradient(carray(state, (size,)), data_at(data), carray(out, (count,)))
""",
    "order_parameters": """
def order_parameters_entry(state, size, slope, data, out, count):
    rates = carray(slope, (size,))
    order_parameters(carray(state, (size,)), rates, data_at(data), carray(out, (count,)))
""",
    "hessian": """
def hessian_entry(state, size, slope, data, out, count):
    hessian(carray(state, (size,)), data_at(data), carray(out, (size, size)))
""",
    "summary": """
def summary_entry(state, size, slope, data, out, count):
    summary(carray(state, (size,)), data_at(data), carray(out, (count,)))
""",
}
"""Text of the entry of each function that loops call."""


def entries(source: str) -> str:
    """The entries of the functions that a source defines, as text; empty if it has no gradient.

    Parameters
    ----------
    source : str
        Of a generated file.
    """
    if "\ndef gradient(" not in source:
        return ""
    texts = [text for name, text in ENTRIES.items() if f"\ndef {name}(" in source]
    head = "\nfrom numba import carray\n\nfrom dynamics.codegen.calls import data_at\n\n"
    return head + "\n".join(texts)


@dataclass(frozen=True, eq=False)
class AddressedModel:
    """What a loop needs of a problem.

    Attributes
    ----------
    functions : mapping
        Name -> compiled entry, with its ``address``.
    table : int array, shape (5,)
        Addresses of gradient, order parameters, Hessian, summary (0 where there is none) and data.
    data : tuple
        Its arrays are read and written where they are.
    memory : array
        The packed data.
    threaded : bool
        Whether a gradient shares its work among threads.
    """

    functions: Mapping[str, Any]
    table: NDArray[np.int64]
    data: Any
    memory: NDArray[Any]
    threaded: bool

    @classmethod
    def of(cls, functions: Mapping[str, Any], data: Any, threaded: bool) -> AddressedModel:
        """The model of compiled entries on some data.

        Parameters
        ----------
        functions : mapping
        data : tuple
            Of arrays, numbers, None and tuples of these.
        threaded : bool

        Raises
        ------
        TypeError
            If the data hold something else.
        """
        memory = packed(data)
        addresses = [getattr(functions.get(name), "address", 0) for name in ENTRIES]
        table = np.array([*addresses, memory.ctypes.data], dtype=np.int64)
        return cls(functions, table, data, memory, threaded)

    def with_data(self, data: Any) -> AddressedModel:
        """The same functions on other data of the same types."""
        return self.of(self.functions, data, self.threaded)


def packed(data: Any) -> NDArray[Any]:
    """Data as they lie in the memory of compiled code; arrays by their addresses.

    Parameters
    ----------
    data : tuple
        Of arrays, numbers, None and tuples of these, or one of these.

    Raises
    ------
    TypeError
        If the data hold something else.
    """
    memory = np.zeros(1, dtype=_layout(data))
    memory[0] = _words(data)
    return memory


def _layout(data: Any) -> np.dtype[Any]:
    """The layout of a structure in C, which is that of LLVM."""
    if isinstance(data, tuple):
        fields = [(f"f{k}", _layout(part)) for k, part in enumerate(data)]
        return np.dtype(fields, align=True)
    if isinstance(data, np.ndarray):
        return np.dtype([(f"w{k}", np.int64) for k in range(5 + 2 * data.ndim)], align=True)
    if data is None:  # a pointer to nothing
        return np.dtype(np.int64)
    if not isinstance(data, bool | int | float | np.generic):
        raise TypeError(f"a {type(data).__name__} has no layout in memory")
    return np.asarray(data).dtype


def _words(data: Any) -> Any:
    """Values of the fields: of an array (no owner, no parent, sizes, address, shape, strides)."""
    if isinstance(data, tuple):
        return tuple(_words(part) for part in data)
    if isinstance(data, np.ndarray):
        return (0, 0, data.size, data.itemsize, data.ctypes.data, *data.shape, *data.strides)
    return 0 if data is None else data
