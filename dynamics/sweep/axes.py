"""What is swept, from text to numbers: grids, lists, and parameters that follow from others.

``a:b:n`` is n points, both ends included, ``a:b:n:log`` the same in logarithm, commas a list; these
are *axes*. A single number is *fixed*. Anything else is an expression of other names, evaluated at
every point: ``q = "m/(D-C)"`` with an axis ``m`` is the paper's regime. A name that is neither a
parameter nor a setting of the run (``m``) is a free letter, which only expressions see.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from numbers import Real
from typing import Any

import numpy as np

from dynamics.results.expression import Expression
from dynamics.validation import InvalidRequest, integer, real, refuse

MOST_POINTS = 10_000_000
SNAP = 1e-9
"""A value so near to a whole number, relatively, is that number: 64:4096:7:log is exact."""
PAIRED = "point"
"""The one dimension of axes that are walked together."""
GRAMMAR = "a number, a:b:n, a:b:n:log, a list with commas, or a formula of other names"

Number = int | float


@dataclass(frozen=True)
class Axis:
    """A swept name and its values, in order."""

    name: str
    values: tuple[Number, ...]


def _snapped(value: float) -> Number:
    whole = round(value)
    return whole if abs(value - whole) <= SNAP * abs(whole) else float(value)


def spaced(name: str, text: str) -> tuple[Number, ...]:
    """The values of ``a:b:n`` or ``a:b:n:log``.

    Raises
    ------
    InvalidRequest
        If it is not of this form.
    """
    parts = text.split(":")
    logarithmic = len(parts) == 4 and parts[3].strip() == "log"
    try:
        if len(parts) != 3 and not logarithmic:
            raise ValueError
        first, last = (_number(name, part) for part in parts[:2])
        given = float(parts[2])
    except InvalidRequest:
        raise
    except ValueError:
        refuse(name, text, "is not a grid", "a:b:n or a:b:n:log", f"{name}=0.1:0.9:17")
    count = integer(f"points of {name}", given, at_least=1)
    if count == 1 and first != last:
        refuse(name, text, "has one point but two ends", "a:b:n with n of at least 2", "n=2")
    if not logarithmic:
        found = np.linspace(first, last, count)
    elif min(first, last) <= 0:
        refuse(name, text, "is logarithmic over 0", "positive ends", f"1e-3:{max(last, 1):g}:n:log")
    else:
        found = np.geomspace(first, last, count)
    return tuple(_snapped(float(value)) for value in found)


def _number(name: str, text: str) -> Number:
    """A number or arithmetic of numbers, as 16/196; a ``ValueError`` where it is neither."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return real(name, float(text))
    except InvalidRequest:
        raise
    except ValueError:
        pass
    try:
        expression = Expression(text.strip(), name)
    except InvalidRequest:
        raise ValueError(text) from None
    if expression.names:
        raise ValueError(text)
    return real(name, expression.value({}))


def parsed(name: str, given: Any) -> Axis | Number | Expression:
    """One entry of a request.

    Parameters
    ----------
    name : str
    given : number, sequence of numbers, or str
        As in `GRAMMAR`.

    Returns
    -------
    Axis, number or Expression

    Raises
    ------
    InvalidRequest
        If it is none of these.
    """
    if isinstance(given, bool):
        refuse(name, given, "is not a number", GRAMMAR, 1)
    if isinstance(given, Real):
        return _plain(name, given)
    if isinstance(given, str):
        if ":" in given:
            return _axis(name, spaced(name, given))
        pieces = given.split(",")
        try:
            numbers = [_number(name, piece) for piece in pieces]
        except InvalidRequest:
            raise
        except ValueError:
            return Expression(given.strip(), name)
        return numbers[0] if len(numbers) == 1 else _axis(name, numbers)
    if isinstance(given, (Sequence, np.ndarray)):
        return _axis(name, [_plain(name, value) for value in given])
    refuse(name, given, "is not a number", GRAMMAR, 1)


def _plain(name: str, given: Any) -> Number:
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        return int(given)
    if isinstance(given, str):
        try:
            return _number(name, given)
        except InvalidRequest:
            raise
        except ValueError:
            refuse(name, given, "is not a number", "numbers in a list", 1)
    return real(name, given.item() if isinstance(given, np.generic) else given)


def _axis(name: str, values: Sequence[Number]) -> Axis:
    if not len(values):
        refuse(name, "", "has no values", GRAMMAR, 1)
    return Axis(name, tuple(values))


@dataclass(frozen=True)
class Grid:
    """The points of a sweep.

    Attributes
    ----------
    axes : tuple of Axis
        In order; the last one varies fastest.
    fixed : mapping
        Name -> number, the same at every point.
    derived : mapping
        Name -> `Expression`, in an order in which they can be evaluated.
    paired : bool
        Axes are walked together, the k-th values of all of them making point k.
    """

    axes: tuple[Axis, ...]
    fixed: Mapping[str, Number]
    derived: Mapping[str, Expression]
    paired: bool = False

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the dimensions."""
        return (PAIRED,) if self.paired else tuple(axis.name for axis in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Points along each dimension."""
        lengths = tuple(len(axis.values) for axis in self.axes)
        return lengths[:1] if self.paired else lengths

    @property
    def size(self) -> int:
        """Number of points."""
        return prod(self.shape)

    def at(self, index: Sequence[int]) -> dict[str, Number]:
        """Every name and its value at a point.

        Raises
        ------
        InvalidRequest
            If an expression has no value there.
        """
        places = [index[0]] * len(self.axes) if self.paired else index
        found = dict(self.fixed)
        found |= {axis.name: axis.values[k] for axis, k in zip(self.axes, places, strict=True)}
        for name, expression in self.derived.items():
            found[name] = expression.value(found)
        return found

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return itertools.product(*map(range, self.shape))


def grid(given: Mapping[str, Any], paired: bool = False) -> Grid:
    """The grid of a request.

    Parameters
    ----------
    given : mapping
        Name -> number, sequence or text; see `parsed`.
    paired : bool
        Walk all axes together.

    Raises
    ------
    InvalidRequest
        For an entry that is none of the forms, a value that occurs twice, an expression of unknown
        names or of itself, too many points, or paired axes of different lengths.
    """
    entries = {name: parsed(name, value) for name, value in given.items()}
    axes = tuple(entry for entry in entries.values() if isinstance(entry, Axis))
    for axis in () if paired else axes:
        for value, times in Counter(axis.values).items():
            if times > 1:
                refuse(axis.name, value, f"occurs {times} times", "each value once", "leave it out")
    fixed: dict[str, Number] = {n: e for n, e in entries.items() if isinstance(e, (int, float))}
    written = {name: e for name, e in entries.items() if isinstance(e, Expression)}
    made = Grid(axes, fixed, _ordered(written, {axis.name for axis in axes} | fixed.keys()), paired)
    if paired and len({len(axis.values) for axis in axes}) > 1:
        lengths = ", ".join(f"{axis.name} {len(axis.values)}" for axis in axes)
        raise InvalidRequest(f"paired axes have equal numbers of values; these have {lengths}")
    if paired and not axes:
        raise InvalidRequest("paired needs at least one axis, as D=16,32")
    if made.size > MOST_POINTS:
        refuse("points", f"{made.size:,}", "are too many", f"at most {MOST_POINTS:,}", "fewer")
    return made


def _ordered(written: Mapping[str, Expression], known: set[str]) -> dict[str, Expression]:
    """Expressions in an order in which each finds its names."""
    found: dict[str, Expression] = {}
    waiting = dict(written)
    while waiting:
        ready = [n for n, e in waiting.items() if set(e.names) <= known | found.keys()]
        if not ready:
            name, expression = next(iter(waiting.items()))
            lost = sorted(set(expression.names) - known - found.keys())
            circular = set(lost) & waiting.keys()
            problem = "goes round in a circle" if circular else f"needs {', '.join(lost)}"
            near = ", ".join(sorted(known | found.keys())) or "numbers"
            refuse(name, str(expression), problem, f"a formula of {near}", "a number")
        for name in ready:
            found[name] = waiting.pop(name)
    return found
