"""What an arithmetic must offer to the interpreter of traced programs, and arrays of its numbers.

The value of a floating variable is a numpy object array whose entries are numbers of the
arithmetic. The value of an integer or Boolean variable is an ordinary numpy array, except that a
Boolean which depends on symbols is an object array of conditions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

Value = NDArray[Any]

RELATIONS = ("eq", "ne", "lt", "le", "gt", "ge")


class UntracedPrimitive(ValueError):
    """A primitive that is not read, or not of these arguments; the message names it.

    Attributes
    ----------
    primitive : str
    """

    def __init__(self, primitive: str, reason: str = "no rule for it") -> None:
        self.primitive = primitive
        super().__init__(f"the primitive '{primitive}' cannot be read: {reason}")


class Arithmetic(ABC):
    """Numbers on which a traced program is evaluated."""

    @abstractmethod
    def working(self) -> AbstractContextManager[Any]:
        """The context in which every operation of this arithmetic is done."""

    @abstractmethod
    def number(self, value: Any) -> Any:
        """The number of this arithmetic that an input or a literal stands for."""

    @abstractmethod
    def finish(self, entry: Any) -> Any:
        """An entry of a result, as it is handed to the caller."""

    @abstractmethod
    def function(self, name: str, params: Mapping[str, Any]) -> Callable[..., Any] | None:
        """The elementwise primitive `name`; None if this arithmetic has none."""

    @abstractmethod
    def total(self, terms: Sequence[Any]) -> Any:
        """Sum of any number of terms."""

    @abstractmethod
    def largest(self, entries: Sequence[Any]) -> Any:
        """Maximum of one or more entries."""

    @abstractmethod
    def compare(self, relation: str, left: Any, right: Any) -> Any:
        """``left relation right``, one of `RELATIONS`: a bool, or a condition on symbols."""

    @abstractmethod
    def integer(self, entry: Any) -> int | None:
        """A number truncated towards zero; None if it depends on symbols."""

    def dot(self, left: Sequence[Any], right: Sequence[Any]) -> Any:
        """Sum of products."""
        return self.total([a * b for a, b in zip(left, right, strict=True)])

    def select(self, condition: Any, if_false: Any, if_true: Any) -> Any:
        """``if_true`` where the condition holds."""
        return if_true if condition else if_false

    def connective(self, name: str) -> Callable[..., Any]:
        """Logical ``and``, ``or``, ``xor``, ``not`` of conditions that depend on symbols."""
        raise UntracedPrimitive(name, "of conditions")


def is_number(aval: Any) -> bool:
    """Whether a variable holds floats; False for integers and Booleans, an error for others."""
    if aval.dtype == bool or np.issubdtype(aval.dtype, np.integer):
        return False
    if np.issubdtype(aval.dtype, np.floating):
        return True
    raise TypeError(f"a variable of type {aval.dtype}")


def array(entries: Iterable[Any], shape: Sequence[int]) -> Value:
    """Object array of a shape from its entries in row-major order."""
    result = np.empty(int(np.prod(shape, dtype=int)), dtype=object)
    for k, entry in enumerate(entries):
        result[k] = entry
    return result.reshape(tuple(shape))


def mapped(function: Callable[..., Any], *values: Value) -> Value:
    """A function of entries, applied to arrays of one shape and to scalars."""
    spread = np.broadcast_arrays(*values)
    return array(
        (function(*entries) for entries in zip(*(v.flat for v in spread), strict=True)),
        spread[0].shape,
    )


def conditions(values: Value) -> Value:
    """A bool array if every entry is decided, and else the object array of conditions."""
    decided = all(isinstance(entry, bool | np.bool_) for entry in values.flat)
    return values.astype(bool) if decided else values


def lanes(value: Value, axes: Sequence[int]) -> Value:
    """The array with the axes moved to the end and flattened into one."""
    axes = [int(axis) for axis in axes]
    kept = [axis for axis in range(value.ndim) if axis not in axes]
    length = int(np.prod([value.shape[axis] for axis in axes], dtype=int))
    return value.transpose(kept + axes).reshape([value.shape[axis] for axis in kept] + [length])


def reduced(function: Callable[[list[Any]], Any], value: Value, axes: Sequence[int]) -> Value:
    """A function of lists, applied along the axes."""
    rows = lanes(value, axes)
    places = np.ndindex(rows.shape[:-1])
    return array((function(list(rows[place])) for place in places), rows.shape[:-1])
