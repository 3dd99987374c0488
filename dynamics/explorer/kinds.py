"""Kinds of the values of a kernel, on which their text in JavaScript depends.

Python's ``a[i]`` is a number, a row or an entry of a tuple, and JavaScript has a different text for
each. So kernels are printed for kinds of arguments, as numba compiles them for types.

An array of one axis is a typed array; one of more axes is ``{data, shape}`` with its entries in one
typed array, the last axis running fastest. Every array is contiguous.
"""

from __future__ import annotations

from dataclasses import dataclass


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


Kind = Plain | Array | Tuple
NUMBER, NOTHING, OPAQUE = map(Plain, ("number", "nothing", "opaque"))
VECTOR, MATRIX = Array(1), Array(2)
