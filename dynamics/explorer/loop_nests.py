"""Arrays of a printed program, and loops over them in JavaScript.

A *view* is part of an array of JavaScript: its entries are ``name[offset + k0*s0 + k1*s1 + ...]``
with constant whole strides, so that transposes, slices, broadcasts and the like move nothing. A
scalar is an expression, a view without strides. A `Term` is an elementwise function of views and
terms of one shape that is not computed yet: chains of them become one loop.

A `Writer` collects statements. What depends on no argument of a call is computed once, where the
function is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

UNROLLED = 4
"""Entries up to which a loop is written out."""

Index = Sequence[str]


class Shaped:
    """What has a shape."""

    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class View(Shaped):
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
        for number, stride in zip(index, self.strides, strict=True):
            if number.isdigit():
                constant += int(number) * stride
            elif stride:
                parts.append(number if stride == 1 else f"{stride}*{number}")
        if constant or not parts:
            parts.append(str(constant))
        return f"{self.name}[{' + '.join(parts)}]"

    def offsets(self) -> NDArray[np.int64]:
        """Position of each entry in the array, in the shape of the view."""
        indices = np.indices(self.shape, sparse=True)
        steps = (k * stride for k, stride in zip(indices, self.strides or (), strict=True))
        return sum(steps, np.full(self.shape, self.offset))

    def flat(self) -> View:
        """A new array as one axis."""
        return replace(self, shape=(self.size,), strides=(1,))

    def moved(self, positions: NDArray[np.int64]) -> View | None:
        """The view whose entries are those at some positions; None where no strides give it.

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
        first, steps = int(where.flat[0]), np.eye(where.ndim, dtype=int)
        strides = tuple(
            int(where[tuple(step)]) - first if length > 1 else 0
            for step, length in zip(steps, where.shape, strict=True)
        )
        result = replace(self, shape=where.shape, strides=strides, offset=first)
        return result if np.array_equal(result.offsets(), where) else None


@dataclass(frozen=True, eq=False)
class Term(Shaped):
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

    @cached_property
    def cost(self) -> int:
        """Number of operations."""
        return 1 + sum(operand.cost for operand in self.operands if isinstance(operand, Term))

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
        for operand in value.operands:
            yield from views_of(operand)


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
    text = repr(float(number)).removesuffix(".0")
    text = text.replace("nan", "NaN").replace("inf", "Infinity")
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
    columns: list[list[int]] = []
    for axis, length in enumerate(shape):
        own = [stride[axis] for stride in strides]
        if length == 1:
            continue
        if sizes and columns[-1] == [step * length for step in own]:
            sizes[-1], columns[-1] = sizes[-1] * length, own
        else:
            sizes.append(length)
            columns.append(own)
    return sizes, [[column[k] for column in columns] for k in range(len(strides))]


def counting(index: str, length: int, back: bool = False) -> str:
    """Head of a loop of JavaScript over 0, ..., length - 1, or from the last to 0.

    Parameters
    ----------
    index : str
        Name of the variable.
    length : int
    back : bool
    """
    if back:
        return f"for (let {index} = {length - 1}; {index} >= 0; {index} -= 1)"
    return f"for (let {index} = 0; {index} < {length}; {index} += 1)"


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
    def block(self, *headings: str, varying: bool = True) -> Iterator[None]:
        """Statements below nested headings, as ``for (...)``; all are written when it ends."""
        self._inner.append([])
        yield
        body = self._inner.pop()
        for heading in reversed(headings):
            body = [f"{heading} {{\n{indented(body)}\n}}"]
        for statement in body:
            self.write(statement, varying)

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
        with self.block(*map(counting, names, shape), varying=varying):
            yield names

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
        with self.block(varying=varying):
            text = self.text(value, ["0"] * len(value.shape), {})
            name = self.name("t")
            self.write(f"const {name} = {text};")
        return View(name, value.shape, None, varies=varying or self.inside)

    def assign(self, target: View, value: Value) -> None:
        """Write every entry of a value into a view of the same shape."""
        varying = target.varies or varies(value)
        if value.size == 0:
            return
        (sizes,), (into, flat) = folded([target, value], [range(len(target.shape))])
        assert isinstance(into, View)
        if math.prod(sizes) <= UNROLLED and isinstance(flat, View):
            for position in product(*map(range, sizes)):
                index = list(map(str, position))
                self.write(f"{into.at(index)} = {flat.at(index)};", varying)
            return
        with self.loops(sizes, varying) as index:
            text = self.text(flat, index, {})
            self.write(f"{into.at(index)} = {text};")

    def stored(self, value: Value) -> View:
        """A value as a view: computed into a new array, or a constant, where it is a term."""
        if isinstance(value, View):
            return value
        return self.scalar(value) if value.size == 1 else self.copied(value)

    def copied(self, value: Value) -> View:
        """A value in a new contiguous array."""
        result = self.array(value.shape, varies(value))
        self.assign(result, value)
        return result

    def indexed(self, value: Value) -> View:
        """A value in an array, also where it is a scalar: an index can select entries."""
        view = self.stored(value)
        return view if view.strides is not None else self.copied(view)


def folded(
    values: Sequence[Value], groups: Sequence[Sequence[int]]
) -> tuple[list[list[int]], list[Value]]:
    """Values of one shape with the axes of each group merged where all their views allow it.

    Parameters
    ----------
    values : sequence of View or Term
    groups : sequence of (sequence of int)
        Every axis is in one of them.

    Returns
    -------
    sizes : list of (list of int)
        Lengths of the merged axes of each group.
    values : list of View or Term
        On these axes, group after group.
    """
    views = [v for value in values for v in views_of(value) if v.strides is not None]
    sizes: list[list[int]] = []
    strides: list[list[int]] = [[] for _ in views]
    for axes in groups:
        along = [[v.strides[axis] for axis in axes] for v in views if v.strides is not None]
        lengths, steps = merged([values[0].shape[axis] for axis in axes], along)
        sizes.append(lengths)
        strides = [[*one, *other] for one, other in zip(strides, steps, strict=True)]
    shape = tuple(chain(*sizes))
    merged_views = {
        id(view): replace(view, shape=shape, strides=tuple(own))
        for view, own in zip(views, strides, strict=True)
    }

    def on_views(value: Value) -> Value:
        if isinstance(value, View):
            return merged_views.get(id(value)) or replace(value, shape=shape)
        return replace(value, operands=tuple(map(on_views, value.operands)), shape=shape)

    return sizes, list(map(on_views, values))


def indented(statements: Sequence[str]) -> str:
    """Statements, two spaces further to the right."""
    return "\n".join("  " + line for text in statements for line in text.splitlines())
