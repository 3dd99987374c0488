"""The protocol of an arithmetic for the interpreter of traced programs; the arithmetic of mpmath.

The value of a floating variable is a numpy object array whose entries are numbers of the
arithmetic. The value of an integer or Boolean variable is an ordinary numpy array, except that a
Boolean which depends on symbols is an object array of conditions.

`Mpmath` evaluates a program at any number of digits. Every condition is decided, so that the guards
of a program against overflow and division by zero do what they do in floating point: a function
outside its domain is NaN, a pole is infinite.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from fractions import Fraction
from typing import Any, Protocol

import mpmath
import numpy as np
import sympy
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


class Arithmetic(Protocol):
    """Numbers on which a traced program is evaluated."""

    def working(self) -> AbstractContextManager[Any]:
        """The context in which every operation of this arithmetic is done."""
        return nullcontext()

    def number(self, value: Any) -> Any:
        """The number of this arithmetic that an input or a literal stands for."""

    def finish(self, entry: Any) -> Any:
        """An entry of a result, as it is handed to the caller."""
        return entry

    def function(self, name: str, params: Mapping[str, Any]) -> Callable[..., Any] | None:
        """The elementwise primitive `name`; None if this arithmetic has none."""

    def total(self, terms: Sequence[Any]) -> Any:
        """Sum of any number of terms."""

    def largest(self, entries: Sequence[Any]) -> Any:
        """Maximum of one or more entries."""

    def compare(self, relation: str, left: Any, right: Any) -> Any:
        """``left relation right``, one of `RELATIONS`: a bool, or a condition on symbols."""

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
    """Object array of a shape from its entries in row-major order.

    Parameters
    ----------
    entries : iterable
    shape : sequence of int
    """
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
    """The array with the axes moved to the end and flattened into one.

    Parameters
    ----------
    value : numpy array
    axes : sequence of int
    """
    axes = [int(axis) for axis in axes]
    other_axes = [axis for axis in range(value.ndim) if axis not in axes]
    length = int(np.prod([value.shape[axis] for axis in axes], dtype=int))
    return value.transpose(other_axes + axes).reshape(
        [value.shape[axis] for axis in other_axes] + [length]
    )


def reduced(function: Callable[[list[Any]], Any], value: Value, axes: Sequence[int]) -> Value:
    """A function of lists, applied along the axes.

    Parameters
    ----------
    function : callable
        Of a list of entries.
    value : numpy array
    axes : sequence of int
    """
    rows = lanes(value, axes)
    indices = np.ndindex(rows.shape[:-1])
    return array((function(list(rows[index])) for index in indices), rows.shape[:-1])


def _real(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of real numbers: infinite at a pole, NaN where it is not real."""

    def guarded(*arguments: Any) -> Any:
        if any(mpmath.isnan(x) for x in arguments):
            return mpmath.nan
        try:
            result = function(*arguments)
        except ZeroDivisionError:
            return mpmath.inf
        except ValueError:
            return mpmath.nan
        return result if isinstance(result, mpmath.mpf) else mpmath.nan

    return guarded


def _quotient(x: Any, y: Any) -> Any:
    if y != 0 or mpmath.isnan(y):
        return x / y
    return mpmath.nan if x == 0 or mpmath.isnan(x) else mpmath.sign(x) * mpmath.inf


def _truncated(x: Any) -> Any:
    return mpmath.floor(x) if x >= 0 else mpmath.ceil(x)


def _round_away(x: Any) -> Any:
    return mpmath.sign(x) * mpmath.floor(abs(x) + mpmath.mpf("0.5"))


def _larger(x: Any, y: Any) -> Any:
    if mpmath.isnan(x) or mpmath.isnan(y):
        return mpmath.nan
    return max(x, y)


def _smaller(x: Any, y: Any) -> Any:
    return -_larger(-x, -y)


def _log_add_exp(x: Any, y: Any) -> Any:
    if x == y:
        return x + mpmath.log(2)
    return max(x, y) + mpmath.log1p(mpmath.exp(-abs(x - y)))


ELEMENTARY = {
    **{name: name for name in ("sign", "sin", "cos", "tan", "asin", "acos", "atan", "atan2")},
    **{name: name for name in ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh")},
    **{name: name for name in ("floor", "erf", "erfc", "digamma")},
    "erf_inv": "erfinv",
}
"""Elementwise primitive -> its name in sympy and in mpmath, where both have it."""
REAL_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(mpmath, theirs) for name, theirs in ELEMENTARY.items()},
    **{name: getattr(mpmath, name) for name in ("ceil", "exp", "log", "log1p", "expm1", "sqrt")},
    "rem": lambda x, y: x - y * _truncated(x / y),
    "exp2": lambda x: mpmath.power(2, x),
    "logaddexp": _log_add_exp,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "pow": lambda x, y: mpmath.mpf(1) if y == 0 else mpmath.power(x, y),
    "logistic": lambda x: 1 / (1 + mpmath.exp(-x)),
    "lgamma": lambda x: mpmath.re(mpmath.loggamma(x)),
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("add", "add_any"), operator.add),
    **{name: getattr(operator, name) for name in ("sub", "mul", "neg", "abs")},
    "div": _quotient,
    "max": _larger,
    "min": _smaller,
    "square": lambda x: x * x,
    "is_finite": lambda x: bool(mpmath.isfinite(x)),
    "clamp": lambda low, x, high: _smaller(_larger(low, x), high),
    **{name: _real(function) for name, function in REAL_FUNCTIONS.items()},
}


class Mpmath(Arithmetic):
    """Real numbers of mpmath.

    A float stands for the decimal that prints it: 0.1 is 1/10 to all digits. The results are
    ordinary ``mpmath.mpf``; arithmetic that a caller does on them has the precision of the
    caller's context, ``mpmath.mp.dps``.

    Parameters
    ----------
    digits : int
        Decimal digits of every operation.
    """

    def __init__(self, digits: int = 50) -> None:
        self.digits = digits

    def working(self) -> AbstractContextManager[Any]:
        """The working precision of mpmath."""
        return mpmath.workdps(self.digits)

    def number(self, value: Any) -> Any:
        """A number; a float is the decimal that prints it."""
        if isinstance(value, sympy.Basic):
            value = sympy.N(value, self.digits)
            if not isinstance(value, sympy.Number):
                raise ValueError(f"{value} is not a real number")
            return mpmath.mpf(value if value.is_finite else str(float(value)))
        if isinstance(value, Fraction):
            return mpmath.mpf(value.numerator) / value.denominator
        if isinstance(value, float | np.floating):
            return mpmath.mpf(str(value))
        return mpmath.mpf(int(value) if isinstance(value, np.integer | np.bool_) else value)

    def function(self, name: str, params: Mapping[str, Any]) -> Callable[..., Any] | None:
        """The elementwise primitive `name`, with poles and domains as in floating point."""
        if name == "integer_pow":
            exponent = int(params["y"])
            return _real(lambda x: x**exponent)
        if name == "round":
            return _real(mpmath.nint if int(params["rounding_method"]) else _round_away)
        return FUNCTIONS.get(name)

    def total(self, terms: Sequence[Any]) -> Any:
        """Sum, exact until it is rounded once."""
        return mpmath.fsum(terms)

    def dot(self, left: Sequence[Any], right: Sequence[Any]) -> Any:
        """Sum of products, exact until it is rounded once."""
        return mpmath.fdot(left, right)

    def largest(self, entries: Sequence[Any]) -> Any:
        """Maximum; NaN if one entry is."""
        return mpmath.nan if any(mpmath.isnan(x) for x in entries) else max(entries)

    def compare(self, relation: str, left: Any, right: Any) -> bool:
        """A decided comparison; with NaN only ``ne`` holds."""
        if mpmath.isnan(left) or mpmath.isnan(right):
            return relation == "ne"
        return bool(getattr(operator, relation)(left, right))

    def integer(self, entry: Any) -> int:
        """The number truncated towards zero."""
        return int(entry)
