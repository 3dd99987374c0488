r"""An array as a sum of functions of a model's real constants times tables of numbers.

.. math:: \sum_j f_j(\mathrm{constants})\, T_j
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray

from theory.program import ONE, Values
from theory.program.algebra import Algebra
from theory.program.numbering import Ids

MOST_FUNCTIONS = 200
"""Maximum number of functions of the constants in a `Reading`; above it, `reading` fails."""


class Constant(sympy.Symbol):  # type: ignore[misc]
    """SymPy symbol of a real constant; its product with True is the symbol, with False 0."""

    def __mul__(self, other: Any) -> Any:
        return super().__mul__(plain(other))

    def __rmul__(self, other: Any) -> Any:
        return super().__rmul__(plain(other))


def plain(other: Any) -> Any:
    """Convert a boolean to 0 or 1; return any other value unchanged."""
    return int(other) if isinstance(other, bool | np.bool_) else other


def symbol(name: str) -> Constant:
    """SymPy symbol of a real constant of a model."""
    return Constant(name, real=True)


@dataclass(frozen=True)
class Reading:
    """An array as a sum of functions of a model's real constants times tables of numbers.

    Each of the `parts` is a pair of a SymPy expression in the constants and a float table, shape
    (size,).
    """

    shape: tuple[int, ...]
    parts: tuple[tuple[sympy.Expr, NDArray[np.float64]], ...]

    def at(self, constants: Mapping[str, Any]) -> NDArray[np.float64]:
        """Array at given constants (name -> value), all NaN if a function of these is not real."""
        total = np.zeros(int(np.prod(self.shape)))
        values = {symbol(name): sympy.Float(value, 17) for name, value in constants.items()
                  if isinstance(value, float)}  # fmt: skip
        for function, table in self.parts:
            value = function.xreplace(values)
            total += (float(value) if value.is_extended_real else np.nan) * table
        return total.reshape(self.shape)

    def added(self, labels: NDArray[np.int64], count: int) -> Reading:
        """Sums of the entries with equal label 0, ..., count - 1, as an array of shape (count,)."""
        sums = np.zeros((len(self.parts), count))
        for row, (_, table) in zip(sums, self.parts, strict=True):
            np.add.at(row, labels, table)
        return Reading(
            (count,), tuple((f, row) for (f, _), row in zip(self.parts, sums, strict=True))
        )

    def entered(self, values: Values, given: dict[sympy.Expr, int]) -> Ids:
        """Ids in `values` of the entries of the array; functions of the constants are inputs there.

        `given` maps each function of the constants to the id of its input; missing functions are
        added.
        """
        size = int(np.prod(self.shape))
        fixed, index, columns = np.zeros(size), [ONE], []
        for function, table in self.parts:
            if not function.free_symbols:
                fixed = fixed + float(function) * table
                continue
            if function not in given:
                (given[function],) = values.inputs([str(function)]).tolist()
            index.append(given[function])
            columns.append(table)
        table = np.stack([fixed, *columns], axis=1)
        return Algebra(values).dot(table, np.array(index)).reshape(self.shape)

    @property
    def constant(self) -> bool:
        """Whether the array is independent of the real constants."""
        return all(not function.free_symbols for function, _ in self.parts)


def reading(entries: Any) -> Reading:
    """Decompose an array of floats or SymPy expressions into functions of the real constants.

    Raises ValueError if more than `MOST_FUNCTIONS` functions occur.
    """
    array = np.asarray(entries)
    if array.dtype != object:
        return Reading(array.shape, ((sympy.Integer(1), array.astype(float).reshape(-1)),))
    tables: dict[sympy.Expr, NDArray[np.float64]] = {}
    split: dict[Any, list[tuple[float, sympy.Expr]]] = {}
    for k, entry in enumerate(array.reshape(-1)):
        expression = sympy.sympify(entry.item() if isinstance(entry, np.generic) else entry)
        if expression not in split:
            parts = (term.as_coeff_Mul() for term in sympy.Add.make_args(expression))
            split[expression] = [(float(number), rest) for number, rest in parts]
        for number, rest in split[expression]:
            if number:
                tables.setdefault(rest, np.zeros(array.size))[k] += number
        if len(tables) > MOST_FUNCTIONS:
            raise ValueError(f"more than {MOST_FUNCTIONS} functions of the constants")
    return Reading(array.shape, tuple(tables.items()))
