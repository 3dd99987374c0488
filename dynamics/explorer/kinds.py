"""Kinds of the values of a kernel, on which their text in JavaScript depends.

Python's ``a[i]`` is a number, a row or an entry of a tuple, and JavaScript has a different text for
each. So kernels are printed for kinds of arguments, as numba compiles them for types.

An array of one axis is a typed array; one of more axes is ``{data, shape}`` with its entries in one
typed array, the last axis running fastest. Every array is contiguous.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Plain:
    """A number or a truth value; None; or a value that is only passed to other functions."""

    name: str


@dataclass(frozen=True)
class Array:
    """An array.

    Attributes
    ----------
    axes : int
        At least 1.
    whole : bool
        Whether its entries are whole numbers.
    """

    axes: int
    whole: bool = False


@dataclass(frozen=True)
class Tuple:
    """A tuple.

    Attributes
    ----------
    entries : tuple of Kind
    names : tuple of str
        Fields of a named tuple, which is an object of JavaScript; else empty.
    """

    entries: tuple[Kind, ...]
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rows:
    """A list of rows, each an object with numbers: a structured array of numpy.

    Attributes
    ----------
    names : tuple of str
        Its fields.
    """

    names: tuple[str, ...]


Kind = Plain | Array | Tuple | Rows
NUMBER, NOTHING, OPAQUE = map(Plain, ("number", "nothing", "opaque"))
VECTOR, MATRIX = Array(1), Array(2)


def kind_of(value: Any) -> Kind:
    """The kind of a value of Python.

    Parameters
    ----------
    value : number, array, None, or tuple of these

    Raises
    ------
    TypeError
        If it is something else.

    Examples
    --------
    >>> kind_of((1.0, np.zeros((2, 3))))
    Tuple(entries=(Plain(name='number'), Array(axes=2, whole=False)), names=())
    """
    if value is None:
        return NOTHING
    if isinstance(value, bool | int | float | np.number):
        return NUMBER
    if isinstance(value, np.ndarray) and value.dtype.names:
        return Rows(value.dtype.names)
    if isinstance(value, np.ndarray) and value.dtype.kind == "c":
        return OPAQUE  # a branch that reads it cannot be printed
    if isinstance(value, np.ndarray) and value.ndim and value.dtype.kind in "fiub":
        return Array(value.ndim, value.dtype.kind in "iub")
    if isinstance(value, tuple):
        return Tuple(tuple(map(kind_of, value)), getattr(value, "_fields", ()))
    raise TypeError(f"{type(value).__name__} is no value of a kernel")
