"""Axes of a sweep, parsed from text: grids, lists, and derived parameters.

The text ``a:b:n`` means n equally spaced points from a to b, ``a:b:n:log`` n logarithmically spaced
points. Commas separate the values of a list. Grids and lists give an *axis*; a name with a single
number is *fixed*. Text that is neither grid, list nor number is an expression of other names, such
as ``q = "m/(D-C)"`` with an axis ``m``, and is evaluated at every point. A free letter, such as
``m`` in ``"m/(D-C)"``, is neither a parameter nor a setting of the run; only expressions use it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import MAX_EMAX, Context, Decimal, localcontext
from fractions import Fraction
from math import prod
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.results.expression import Expression
from dynamics.training import progress
from dynamics.validation import InvalidRequest, integer, real, refuse

MOST_POINTS = 10_000_000
LARGEST_WHOLE = 2**63
DIGITS, KEPT = 40, 30
"""Number of decimal digits with which a point of a logarithmic grid is computed; number of digits
kept before the point is rounded to a float."""
PAIRED = "point"
"""Name of the single dimension of paired axes."""
GRAMMAR = "a number, a:b:n, a:b:n:log, a list with commas, or a formula of other names"
SWITCHES = {"true": "1", "yes": "1", "on": "1", "false": "0", "no": "0", "off": "0"}
"""Word for the value of a Boolean parameter -> the value's number on a grid."""

Number = int | float


@dataclass(frozen=True)
class Axis:
    """A swept name and its values; points of the grid follow the order of the values."""

    name: str
    values: tuple[Number, ...]


def _exact(name: str, text: str) -> Fraction | None:
    """Exact value of a written number, value of a formula to 15 digits, or None for other text."""
    number = _number(name, text)
    if number is None:
        return None
    finite = real(name, number)
    if isinstance(number, int) or finite.is_integer():  # Fraction('1e-999999999') would be huge
        return Fraction(number)
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return Fraction(f"{finite:.15g}")


def _rounded(value: Fraction) -> Number:
    """Fraction as an int if it is integral and fits into int64, else as the nearest float."""
    whole = value.denominator == 1 and abs(value) < LARGEST_WHOLE
    return int(value) if whole else float(value)


def _logarithmic(first: Fraction, last: Fraction, count: int) -> Iterator[Fraction]:
    """Yield the inner points of `count` logarithmically spaced points from `first` to `last`."""
    with localcontext(prec=DIGITS, Emin=-MAX_EMAX, Emax=MAX_EMAX):
        low, high = (Decimal(each.numerator) / each.denominator for each in (first, last))
        for k in range(1, count - 1):
            value = low * (high / low) ** (Decimal(k) / (count - 1))
            yield Fraction(value.normalize(Context(prec=KEPT)))


def spaced(name: str, text: str) -> tuple[Number, ...]:
    """Values of ``a:b:n`` or ``a:b:n:log``; the ends are exact, other points are rounded once.

    Raises InvalidRequest if the text has another form.

    Examples
    --------
    >>> spaced("D", "64:1024:5:log")
    (64, 128, 256, 512, 1024)
    >>> spaced("q", "-0.1:0.2:4")
    (-0.1, 0, 0.1, 0.2)
    """
    parts = text.split(":")
    logarithmic = len(parts) == 4 and parts[3].strip() == "log"
    exact = [_exact(name, part) for part in parts[:3]]
    numbers = [number for number in exact if number is not None]
    if len(numbers) < 3 or not (len(parts) == 3 or logarithmic):
        example = ""
        if None not in exact[:2] and len(numbers) > 1:
            ends = [f"{float(number):.12g}" for number in numbers[:2]]
            count = 2 if (numbers[1] - numbers[0]) % 2 == 1 else 3  # two integer ends
            example = f"{name}={ends[0]}:{ends[1]}:{count}"
        refuse(name, text, "is not a grid", "a:b:n or a:b:n:log", example)
    first, last, points = numbers
    count = integer(f"points of {name}", float(points), at_least=1)
    if count == 1 and first != last:
        refuse(name, text, "has one point but two ends", "a:b:n with n of at least 2", "n=2")
    if max(abs(last - first), abs(last + first)) > Fraction(np.finfo(np.float64).max):
        problem = "is wider than the range of floats"
        refuse(name, text, problem, "a:b:n or a:b:n:log", "-1e307:1e307:n")
    if not logarithmic:
        steps = max(1, count - 1)
        return tuple(_rounded(first + (last - first) * k / steps) for k in range(count))
    if min(first, last) <= 0:
        near = f"1e-3:{max(float(last), 1):g}:n:log"
        refuse(name, text, "is logarithmic and has an end <= 0", "positive ends", near)
    between = _logarithmic(first, last, count)
    return tuple(_rounded(each) for each in (first, *between, last)[:count])


def _number(name: str, text: str) -> Number | None:
    """Value of a number or of constant arithmetic such as ``16/196``, or None for other text."""
    for kind in (int, float):
        try:
            number: Number = kind(text)
        except ValueError:
            continue
        return number if kind is int else real(name, number)
    try:
        expression = Expression(text.strip(), name)
    except InvalidRequest:
        return None
    return None if expression.names else real(name, expression.value({}))


def parsed(name: str, entry: Any) -> Axis | Number | Expression:
    """Parse one entry of a request, of a form in `GRAMMAR`, to an Axis, number or Expression.

    Raises InvalidRequest for any other form.
    """
    if isinstance(entry, str):
        if ":" in entry:
            return Axis(name, spaced(name, entry))
        numbers = [_number(name, part) for part in entry.split(",")]
        values = tuple(number for number in numbers if number is not None)
        if len(values) < len(numbers):
            return Expression(entry.strip(), name)
        return values[0] if len(values) == 1 else Axis(name, values)
    if isinstance(entry, (Sequence, np.ndarray)):
        if not len(entry):
            refuse(name, "", "has no values", GRAMMAR, 1)
        return Axis(name, tuple(_plain(name, value) for value in entry))
    return _plain(name, entry)


def switched(entry: Any) -> Any:
    """Replace Boolean values and words such as ``true`` in an entry by the numbers 1 and 0.

    Examples
    --------
    >>> switched("true,false"), switched([False, True]), switched("0:1:2")
    ('1,0', [0, 1], '0:1:2')
    """
    if isinstance(entry, str):
        return ",".join(SWITCHES.get(part.strip().lower(), part) for part in entry.split(","))
    if isinstance(entry, (bool, np.bool_)):
        return int(entry)
    if isinstance(entry, (Sequence, np.ndarray)):
        return [switched(part) for part in entry]
    return entry


def _plain(name: str, value: Any) -> Number:
    """Convert a value to a Python number."""
    number = _number(name, value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, Real):
        refuse(name, value, "is not a number", GRAMMAR, 1)
    if isinstance(number, (int, np.integer)):
        return int(number)
    return real(name, number.item() if isinstance(number, np.generic) else number)


@dataclass(frozen=True)
class Grid:
    """The points of a sweep."""

    axes: tuple[Axis, ...]
    """Axes of the grid; the last axis varies fastest."""
    fixed: Mapping[str, Number]
    """Name -> number that is the same at every point."""
    derived: Mapping[str, Expression]
    """Name -> `Expression` of other names; each expression follows the expressions that it uses."""
    paired: bool = False
    """Whether point k takes the k-th value of every axis; otherwise all values are combined."""

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the grid's dimensions."""
        return (PAIRED,) if self.paired else tuple(axis.name for axis in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of points along each dimension of the grid."""
        lengths = tuple(len(axis.values) for axis in self.axes)
        return lengths[:1] if self.paired else lengths

    @property
    def size(self) -> int:
        """Number of points of the grid."""
        return prod(self.shape)

    def at(self, index: Sequence[int]) -> dict[str, Number]:
        """Name -> value of each fixed, swept or derived name at a point.

        Raises InvalidRequest if an expression is undefined at the point.
        """
        point = {**self.fixed, **self.along_axes(index)}
        for name, expression in self.derived.items():
            point[name] = expression.value(point)
        return point

    def table(self, name: str) -> NDArray[np.float64]:
        """Values of a derived name over the grid, NaN where the name's formula is undefined."""
        values = np.full(self.shape, np.nan)
        with progress.bar("formulas", values.size, unit="points") as bar:
            for index in self:
                with suppress(InvalidRequest):
                    values[index] = self.at(index)[name]
                bar.update(1)
        return values

    def along_axes(self, index: Sequence[int]) -> dict[str, Number]:
        """Name -> value of each axis at a point."""
        positions = [index[0]] * len(self.axes) if self.paired else index
        return {axis.name: axis.values[k] for axis, k in zip(self.axes, positions, strict=True)}

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return itertools.product(*map(range, self.shape))


def grid(entries: Mapping[str, Any], paired: bool = False) -> Grid:
    """Parse the entries of a request (name -> number, sequence or text) to a grid.

    Raises InvalidRequest for an invalid entry, a repeated value, an expression that uses unknown
    names or itself, too many points, or paired axes of different lengths.

    Examples
    --------
    >>> points = grid({"D": "16,32", "m": "2,4", "q": "m/D"})
    >>> points.shape, points.at((1, 0))
    ((2, 2), {'D': 32, 'm': 2, 'q': 0.0625})
    """
    read = {name: parsed(name, entry) for name, entry in entries.items()}
    axes = tuple(entry for entry in read.values() if isinstance(entry, Axis))
    for axis in () if paired else axes:
        for value, times in Counter(axis.values).items():
            if times > 1:
                refuse(axis.name, value, f"occurs {times} times", "each value once", "leave it out")
    fixed: dict[str, Number] = {n: e for n, e in read.items() if isinstance(e, (int, float))}
    formulas = {name: e for name, e in read.items() if isinstance(e, Expression)}
    names = {axis.name for axis in axes} | fixed.keys()
    points = Grid(axes, fixed, _ordered(formulas, names), paired)
    if paired and len({len(axis.values) for axis in axes}) > 1:
        lengths = ", ".join(f"{axis.name} {len(axis.values)}" for axis in axes)
        raise InvalidRequest(f"paired needs axes of equal length; the lengths are {lengths}")
    if paired and not axes:
        raise InvalidRequest("paired needs at least one axis, as D=16,32")
    if points.size > MOST_POINTS:
        refuse("points", f"{points.size:,}", "are too many", f"at most {MOST_POINTS:,}", "fewer")
    return points


def _ordered(formulas: Mapping[str, Expression], names: set[str]) -> dict[str, Expression]:
    """Sort expressions so that each expression follows the expressions that it uses."""
    ordered: dict[str, Expression] = {}
    waiting = dict(formulas)
    while waiting:
        ready = [n for n, e in waiting.items() if set(e.names) <= names | ordered.keys()]
        if not ready:
            name, expression = next(iter(waiting.items()))
            missing = sorted(set(expression.names) - names - ordered.keys())
            circular = set(missing) & waiting.keys()
            problem = "depends on itself" if circular else f"needs {', '.join(missing)}"
            near = ", ".join(sorted(names | ordered.keys())) or "numbers"
            refuse(name, str(expression), problem, f"a formula of {near}", "a number")
        for name in ready:
            ordered[name] = waiting.pop(name)
    return ordered
