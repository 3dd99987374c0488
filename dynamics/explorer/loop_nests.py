"""Arrays of a printed program, and loops over them in JavaScript.

A *view* is part of an array of JavaScript: its entries are ``name[offset + k0*s0 + k1*s1 + ...]``
with whole strides known at printing, so that transposes, slices, broadcasts and the like move
nothing. A scalar is an expression, a view without strides. A `Term` is an elementwise function of
views and terms of one shape that is not computed yet: chains of them become one loop.

A `Writer` collects statements. What depends on no argument of a call is written once, where the
function is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

LONGEST = 40
"""Operations of one expression."""
UNROLLED = 4
"""Entries up to which a loop is written out."""

Index = Sequence[str]


@dataclass(frozen=True)
class View:
    """Entries of an array of JavaScript.

    Attributes
    ----------
    name : str
        The array; the expression of a scalar.
    shape : tuple of int
    strides : tuple of int or None
        None for a scalar, whatever its shape: all entries are the same.
    offset : int
    moving : str
        A part of the offset that is computed, as ``12*k``; mostly empty.
    varies : bool
        Whether it depends on an argument of a call.
    """

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    offset: int = 0
    moving: str = ""
    varies: bool = True

    def at(self, index: Index) -> str:
        """The entry at an index, one text for each axis."""
        if self.strides is None:
            return self.name
        parts = [self.moving] if self.moving else []
        constant = self.offset
        for place, stride in zip(index, self.strides, strict=True):
            if place.lstrip("-").isdigit():
                constant += int(place) * stride
            elif stride:
                parts.append(place if stride == 1 else f"{stride}*{place}")
        if constant or not parts:
            parts.append(str(constant))
        return f"{self.name}[{' + '.join(parts)}]"

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)

    def offsets(self) -> NDArray[np.int64]:
        """Where each entry is in the array, in the shape of the view."""
        where = np.full(self.shape, self.offset)
        for axis, stride in enumerate(self.strides or ()):
            along = [1] * len(self.shape)
            along[axis] = -1
            where = where + stride * np.arange(self.shape[axis]).reshape(along)
        return where

    def moved(self, positions: NDArray[np.int64]) -> View | None:
        """The view whose entries are those at some positions; None where no strides say it.

        Parameters
        ----------
        positions : int array
            For each entry of the result the position of an entry here, row-major; none is -1.
        """
        if self.strides is None:
            return replace(self, shape=positions.shape)
        if self.size == 0 or positions.size == 0:
            return replace(self, shape=positions.shape, strides=(0,) * positions.ndim)
        where = self.offsets().reshape(-1)[positions]
        first = int(where.flat[0])
        strides = []
        for axis, length in enumerate(where.shape):
            one = [0] * where.ndim
            one[axis] = 1
            strides.append(int(where[tuple(one)]) - first if length > 1 else 0)
        result = replace(self, shape=where.shape, strides=tuple(strides), offset=first)
        return result if np.array_equal(result.offsets(), where) else None


@dataclass(frozen=True, eq=False)
class Term:
    """An elementwise function that is not computed yet.

    Attributes
    ----------
    form : callable
        Texts of the operands -> text of the result.
    operands : tuple of View or Term
        All of one shape.
    shape : tuple of int
    repeats : bool
        Whether the form uses an operand more than once.
    """

    form: Callable[..., str]
    operands: tuple[View | Term, ...]
    shape: tuple[int, ...]
    repeats: bool = False
    cost: int = field(init=False)

    def __post_init__(self) -> None:
        cost = 1 + sum(getattr(operand, "cost", 0) for operand in self.operands)
        object.__setattr__(self, "cost", cost)

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)

    def views(self) -> Iterator[View]:
        """Everything that it reads."""
        for operand in self.operands:
            yield from views_of(operand)

    def moved(self, positions: NDArray[np.int64]) -> Term | None:
        """The term of the operands moved alike; see `View.moved`."""
        operands: list[View | Term] = []
        for operand in self.operands:
            moved = operand.moved(positions)
            if moved is None:
                return None
            operands.append(moved)
        return replace(self, operands=tuple(operands), shape=positions.shape)


Value = View | Term


def views_of(value: Value) -> Iterator[View]:
    """Everything that a value reads."""
    if isinstance(value, View):
        yield value
    else:
        yield from value.views()


def varies(*values: Value) -> bool:
    """Whether one of the values depends on an argument of a call."""
    return any(view.varies for value in values for view in views_of(value))


def literal(number: Any) -> str:
    """A number of Python or numpy in JavaScript.

    Examples
    --------
    >>> literal(2.0), literal(-0.5), literal(float("inf")), literal(True)
    ('2', '(-0.5)', 'Infinity', '1')
    """
    value = float(number)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "(-Infinity)"
    text = repr(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if value == 0.0 and math.copysign(1.0, value) < 0:
        text = "-0"
    return f"({text})" if text.startswith("-") else text


def strides_of(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides, in entries."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def merged(
    shape: Sequence[int], strides: Sequence[Sequence[int]]
) -> tuple[list[int], list[list[int]]]:
    """Axes that all views pass alike as one; axes of one entry left out.

    Parameters
    ----------
    shape : sequence of int
    strides : sequence of (sequence of int)
        Of each view.

    Returns
    -------
    shape, strides

    Examples
    --------
    >>> merged((2, 1, 3), [(3, 9, 1), (0, 1, 0)])
    ([6], [[1], [0]])
    """
    sizes: list[int] = []
    kept: list[list[int]] = [[] for _ in strides]
    for axis, length in enumerate(shape):
        if length == 1:
            continue
        if sizes and all(k[-1] == s[axis] * length for k, s in zip(kept, strides, strict=True)):
            sizes[-1] *= length
            for k, s in zip(kept, strides, strict=True):
                k[-1] = s[axis]
            continue
        sizes.append(length)
        for k, s in zip(kept, strides, strict=True):
            k.append(s[axis])
    return sizes, kept


class Writer:
    """Statements of one function of JavaScript.

    Attributes
    ----------
    made : list of str
        Statements of what is made once: arrays, and what no argument of a call changes.
    called : list of str
        Statements of a call.
    """

    def __init__(self) -> None:
        self.made: list[str] = []
        self.called: list[str] = []
        self._inner: list[list[str]] = []
        self._count = 0

    def name(self, letter: str) -> str:
        """A new name."""
        self._count += 1
        return f"{letter}{self._count}"

    def write(self, text: str, varying: bool = True) -> None:
        """A statement, in the loop that is open; outside of loops where it belongs."""
        if self._inner:
            self._inner[-1].append(text)
        else:
            (self.called if varying else self.made).append(text)

    @contextmanager
    def block(self, heading: str, varying: bool = True) -> Iterator[None]:
        """Statements below a heading, as ``for (...)``, become one statement."""
        self._inner.append([])
        yield
        body = self._inner.pop()
        self.write(f"{heading} {{\n{indented(body)}\n}}", varying)

    @property
    def inside(self) -> bool:
        """Whether a loop is open."""
        return bool(self._inner)

    def array(self, shape: Sequence[int], varying: bool = True) -> View:
        """A new array of zeros, which lives as long as the function."""
        name = self.name("b")
        self.made.append(f"const {name} = new Float64Array({max(1, math.prod(shape))});")
        return View(name, tuple(shape), strides_of(shape), varies=varying or self.inside)

    @contextmanager
    def loops(self, shape: Sequence[int], varying: bool) -> Iterator[list[str]]:
        """Nested loops over a shape; gives the names of the indices."""
        names = [self.name("i") for _ in shape]
        headings = [
            f"for (let {i} = 0; {i} < {n}; {i} += 1)" for i, n in zip(names, shape, strict=True)
        ]
        self._inner.append([])
        yield names
        body = self._inner.pop()
        for heading in reversed(headings):
            body = [f"{heading} {{\n{indented(body)}\n}}"]
        for statement in body:
            self.write(statement, varying)

    def text(self, value: Value, index: Index, shared: dict[int, str]) -> str:
        """Text of an entry of a value; parts that are used twice become constants before it."""
        if isinstance(value, View):
            return value.at(index)
        if id(value) not in shared:
            operands = []
            for operand in value.operands:
                text = self.text(operand, index, shared)
                if value.repeats and isinstance(operand, Term):
                    name = self.name("u")
                    self.write(f"const {name} = {text};")
                    text = name
                operands.append(text)
            shared[id(value)] = value.form(*operands)
        return shared[id(value)]

    def scalar(self, value: Value) -> View:
        """A value without axes as a constant of JavaScript."""
        if isinstance(value, View) and value.strides is None:
            return value
        varying = varies(value)
        if self.inside or not isinstance(value, Term):
            text = self.text(value, ["0"] * len(value.shape), {})
            name = self.name("t")
            self.write(f"const {name} = {text};", varying)
        else:
            self._inner.append([])
            text = self.text(value, ["0"] * len(value.shape), {})
            before = self._inner.pop()
            name = self.name("t")
            for statement in before:
                self.write(statement, varying)
            self.write(f"const {name} = {text};", varying)
        return View(name, value.shape, None, varies=varying or self.inside)

    def assign(self, target: View, value: Value, sign: str = "=") -> None:
        """Write every entry of a value into a view of the same shape."""
        assert target.strides is not None
        views = [target, *(v for v in views_of(value) if v.strides is not None)]
        varying = target.varies or varies(value)
        if value.size == 0:
            return
        sizes, strides = merged(target.shape, [view.strides or () for view in views])
        folded = {
            id(view): replace(view, shape=tuple(sizes), strides=tuple(own))
            for view, own in zip(views, strides, strict=True)
        }
        flat = on_views(value, folded, tuple(sizes))
        if math.prod(sizes) <= UNROLLED and not isinstance(flat, Term):
            for place in product(*map(range, sizes)):
                index = list(map(str, place))
                text = f"{folded[id(target)].at(index)} {sign} {flat.at(index)};"
                self.write(text, varying)
            return
        with self.loops(sizes, varying) as index:
            text = self.text(flat, index, {})
            self.write(f"{folded[id(target)].at(index)} {sign} {text};")

    def stored(self, value: Value) -> View:
        """A value as a view: computed into a new array, or a constant, where it is a term."""
        if isinstance(value, View):
            return value
        if value.size == 1:
            return replace(self.scalar(value), shape=value.shape)
        result = self.array(value.shape, varies(value))
        self.assign(result, value)
        return result

    def copied(self, value: Value) -> View:
        """A value in a new contiguous array."""
        result = self.array(value.shape, varies(value))
        self.assign(result, value)
        return result

    def indexed(self, view: View) -> View:
        """A value in an array, also where it is a scalar: entries can be chosen by an index."""
        return view if view.strides is not None else self.copied(view)


def on_views(value: Value, views: dict[int, View], shape: tuple[int, ...]) -> Value:
    """The value on other views of another shape; scalars get the shape alone.

    Parameters
    ----------
    value : Value
    views : dict
        Identity of a view -> what takes its place.
    shape : tuple of int
    """
    if isinstance(value, View):
        return views.get(id(value)) or replace(value, shape=shape)
    operands = tuple(on_views(operand, views, shape) for operand in value.operands)
    return replace(value, operands=operands, shape=shape)


def indented(statements: Sequence[str]) -> str:
    """Statements, two spaces further to the right."""
    return "\n".join("  " + line for text in statements for line in text.splitlines())
