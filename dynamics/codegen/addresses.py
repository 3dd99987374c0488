"""The functions of a generated file by their addresses, and their data packed into memory.

Loops that train are compiled once for all models and call these (`dynamics.codegen.loops`). The
entries of a generated file are written to its end; each is compiled for one type of data when a
loop first needs it.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType
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
TOGETHER = {
    "derivatives": ("hessian", "summary"),
    "gradient_or_order_parameters": ("order_parameters",),
}
"""A function of a file -> what it fills ``out`` with beside a gradient; it tells them by the number
of entries. So they have one entry, and what they have in common is compiled once."""
ONE = """
def gradient_entry(state, size, slope, data, out, count):
    {function}(carray(state, (size,)), data_at(data), carray(out, (count,)))

{others} = gradient_entry
"""
POSITIONS = {
    "gradient": GRADIENT,
    "order_parameters": ORDER_PARAMETERS,
    "hessian": HESSIAN,
    "summary": SUMMARY,
}


def entry_source(source: str) -> str:
    """The entries of the functions that a source defines, as text; empty if it has none.

    Parameters
    ----------
    source : str
        Of a generated file.
    """
    entries = dict(ENTRIES)
    for function, others in TOGETHER.items():
        if f"\ndef {function}(" in source:
            names = " = ".join(f"{other}_entry" for other in others)
            entries["gradient"] = ONE.format(function=function, others=names)
            for other in others:
                del entries[other]
    texts = [text for name, text in entries.items() if f"\ndef {name}(" in source]
    if not texts:
        return ""
    head = "\nfrom numba import carray\n\nfrom dynamics.codegen.calls import data_at\n\n"
    return head + "\n".join(texts)


class Entries:
    """The entries of a generated file for data of one type, each compiled when it is first needed.

    Parameters
    ----------
    functions : module
        The generated file.
    kind : numba type
        Of the data.

    Attributes
    ----------
    compiled : dict
        Name of an entry in the file -> compiled, of those that have been needed.
    """

    def __init__(self, functions: ModuleType, kind: Any) -> None:
        self.functions, self.kind = functions, kind
        self.compiled: dict[str, Any] = {}

    def __contains__(self, name: str) -> bool:
        return hasattr(self.functions, f"{name}_entry")

    def address(self, name: str) -> int:
        """Address of an entry.

        Parameters
        ----------
        name : str
            One of `ENTRIES`.

        Raises
        ------
        LookupError
            If the file has none of this name: a loop would call address 0.
        """
        from dynamics.codegen.machine_code import compiled_entry

        if name not in self:
            raise LookupError(f"the generated file has no {name}")
        entry = getattr(self.functions, f"{name}_entry")
        if entry.__name__ not in self.compiled:
            self.compiled[entry.__name__] = compiled_entry(entry, self.kind)
        return int(self.compiled[entry.__name__].address)


_ENTRIES: dict[tuple[ModuleType, Any], Entries] = {}


def entries_of(functions: ModuleType, data: Any) -> Entries:
    """The one `Entries` of a generated file and a type of data.

    Parameters
    ----------
    functions : module
    data : tuple
        Of arrays, numbers and tuples of these.
    """
    import numba

    key = functions, _shape_of(data)
    if key not in _ENTRIES:
        _ENTRIES[key] = _one_of(functions, numba.typeof(data))
    return _ENTRIES[key]


@cache
def _one_of(functions: ModuleType, kind: Any) -> Entries:
    return Entries(functions, kind)


def _shape_of(data: Any) -> Any:
    """What numba looks at in data, to be compared: `numba.typeof` takes ten times as long."""
    if isinstance(data, tuple):
        return type(data), *map(_shape_of, data)
    if isinstance(data, np.ndarray):
        flags = data.flags
        return data.dtype, data.ndim, flags.num, type(data)
    return type(data), isinstance(data, int) and data.bit_length()


class AddressedModel:
    """What a loop needs of a problem.

    Parameters
    ----------
    entries : Entries
    data : tuple
        Of arrays, numbers and tuples of these; arrays are read and written where they are.
    memory : array
        The packed data.
    """

    def __init__(self, entries: Entries, data: Any, memory: NDArray[Any]) -> None:
        self.entries, self.data, self.memory = entries, data, memory
        self._table = np.zeros(5, dtype=np.int64)
        self._table[DATA] = memory.ctypes.data

    def table(self, *names: str) -> NDArray[np.int64]:
        """Addresses for a loop that calls these functions, shape (5,): 0 where there is none.

        Parameters
        ----------
        *names : str
            Of `ENTRIES`; those that were not needed before are compiled.
        """
        for name in names:
            if not self._table[POSITIONS[name]]:
                self._table[POSITIONS[name]] = self.entries.address(name)
        return self._table

    def with_data(self, data: Any) -> AddressedModel:
        """The same functions on other data of the same types, of which some parts may be shared."""
        memory = self.memory.copy()
        for name, before, part in zip(memory.dtype.names or (), self.data, data, strict=True):
            if part is not before:
                memory[name][0] = _words(part)
        other = AddressedModel(self.entries, data, memory)
        other._table[:DATA] = self._table[:DATA]
        return other


_LAYOUTS: dict[Any, np.dtype[Any]] = {}


def packed(data: Any) -> NDArray[Any]:
    """Data as they lie in the memory of compiled code; arrays by their addresses.

    Parameters
    ----------
    data : tuple
        Of arrays, numbers and tuples of these, or one of these.

    Raises
    ------
    TypeError
        If the data hold something else.
    """
    key = _shape_of(data)
    if key not in _LAYOUTS:
        _LAYOUTS[key] = _layout(data)
    memory = np.zeros(1, dtype=_LAYOUTS[key])
    memory[0] = _words(data)
    return memory


def _layout(data: Any) -> np.dtype[Any]:
    """The layout of a structure in C, which is that of LLVM."""
    if isinstance(data, tuple):
        fields = [(f"f{k}", _layout(part)) for k, part in enumerate(data)]
        return np.dtype(fields, align=True)
    if isinstance(data, np.ndarray):
        return np.dtype([(f"w{k}", np.int64) for k in range(5 + 2 * data.ndim)], align=True)
    if not isinstance(data, bool | int | float | np.generic):
        raise TypeError(f"a {type(data).__name__} has no layout in memory")
    return np.asarray(data).dtype


def _words(data: Any) -> Any:
    """Values of the fields: of an array (no owner, no parent, sizes, address, shape, strides)."""
    if isinstance(data, tuple):
        return tuple(_words(part) for part in data)
    if isinstance(data, np.ndarray):
        return (0, 0, data.size, data.itemsize, data.ctypes.data, *data.shape, *data.strides)
    return data
