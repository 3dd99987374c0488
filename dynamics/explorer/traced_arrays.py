"""Arrays of a traced program: constants as tables, entries by position, sums and products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.explorer.loop_nests import (
    Term,
    Value,
    View,
    Writer,
    folded,
    literal,
    strides_of,
    varies,
)
from dynamics.explorer.tables import Tables

REDUCTIONS = {
    "reduce_sum": ("0", "{0} + {1}"),
    "reduce_prod": ("1", "{0} * {1}"),
    "reduce_max": ("-Infinity", "Math.max({0}, {1})"),
    "reduce_min": ("Infinity", "Math.min({0}, {1})"),
    "reduce_and": ("1", "{0} && {1} ? 1 : 0"),
    "reduce_or": ("0", "{0} || {1} ? 1 : 0"),
    "reduce_xor": ("0", "{0} !== {1} ? 1 : 0"),
}
"""Reduction -> its value on nothing, and one more entry."""


class Arrays(Writer):
    """Statements about arrays, and the tables that they read.

    Parameters
    ----------
    tables : Tables
    """

    def __init__(self, tables: Tables) -> None:
        super().__init__()
        self.tables = tables
        self._bound: dict[int, str] = {}

    def constant(self, values: Any) -> View:
        """A constant: a number where all entries are the same, else a table."""
        array = np.asarray(values, dtype=np.float64)
        flat = array.reshape(-1)
        if flat.size and flat.tobytes() == np.full(flat.size, flat[0]).tobytes():
            return View(literal(flat[0]), array.shape, None, varies=False)
        number = self.tables.number(array)
        if number not in self._bound:
            self._bound[number] = self.name("c")
            self.made.append(f"const {self._bound[number]} = tables[{number}];")
        return View(self._bound[number], array.shape, strides_of(array.shape), varies=False)

    def fitted(self, value: Value, shape: tuple[int, ...]) -> Value:
        """A value of this shape; along axes of one entry it is repeated."""
        if value.shape == shape:
            return value
        where = np.arange(value.size).reshape(value.shape)
        return self.entries_at(value, np.broadcast_to(where, shape))

    def elementwise(
        self, form: str, values: Sequence[Value], shape: tuple[int, ...], repeats: bool = False
    ) -> Term:
        """The term of a form."""
        operands = tuple(self.fitted(value, shape) for value in values)
        return Term(form.format, operands, shape, repeats)

    def entries_at(self, value: Value, positions: NDArray[np.int64], filling: str = "NaN") -> Value:
        """Entries at some positions of a value, row-major; -1 is the filling.

        Parameters
        ----------
        value : View or Term
        positions : int array
        filling : str
        """
        inside = bool((positions >= 0).all())
        if isinstance(value, Term) and positions.size > value.size:
            value = self.stored(value)
        if inside:
            moved = value.moved(positions)
            if moved is not None:
                return moved
        view = self.indexed(value)
        offsets = np.append(view.offsets().reshape(-1), -1)[positions]
        table = self.constant(offsets)
        source = View("", positions.shape, None, varies=view.varies)
        name, more = view.name, f" + {view.moving}" if view.moving else ""

        def picked(where: str, _: str) -> str:
            entry = f"{name}[{where}{more}]"
            return entry if inside else f"({where} < 0 ? {filling} : {entry})"

        return self.stored(Term(picked, (table, source), positions.shape))

    def reduction(self, value: Value, axes: Sequence[int], rule: tuple[str, str]) -> View:
        """A value along axes as one entry.

        Parameters
        ----------
        value : View or Term
        axes : sequence of int
        rule : (str, str)
            Of `REDUCTIONS`.
        """
        start, form = rule
        remaining = [axis for axis in range(len(value.shape)) if axis not in axes]
        shape = tuple(value.shape[axis] for axis in remaining)
        varying = varies(value) or self.inside
        whole = math.prod(shape) == 1
        targets = [] if whole else [self.array(shape, varying)]
        own = {axis: k for k, axis in enumerate(remaining)}
        all_axes = [own.get(axis) for axis in range(len(value.shape))]
        entries = [spread(target, all_axes, value.shape) for target in targets]
        (sizes, lengths), (flat, *into) = folded([value, *entries], (remaining, axes))
        total = self.name("t" if whole else "a")
        with self.loops(sizes, varying) as here:
            self.write(f"let {total} = {start};")
            with self.loops(lengths, varying) as there:
                if 0 not in lengths:
                    text = self.text(flat, [*here, *there], {})
                    self.write(f"{total} = {form.format(total, text)};")
            for entry in into:
                self.write(f"{self.text(entry, [*here, *'0' * len(lengths)], {})} = {total};")
        return targets[0] if targets else View(total, shape, None, varies=varying)


def spread(view: View, axes: Sequence[int | None], shape: tuple[int, ...]) -> View:
    """A view with its axes in another order; None is an axis along which it is repeated.

    Parameters
    ----------
    view : View
    axes : sequence of int or None
        Of the view, in the order of the result.
    shape : tuple of int
        Of the result.
    """
    if view.strides is None:
        return replace(view, shape=shape)
    strides = tuple(0 if axis is None else view.strides[axis] for axis in axes)
    return replace(view, shape=shape, strides=strides)
