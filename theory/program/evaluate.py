"""Evaluation of values as numpy floats, mpmath numbers, sympy expressions or text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import cache
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theory.program import field
from theory.program.derivatives import needed_values
from theory.program.numbering import SAME_FLOAT, Values
from theory.program.operations import FLOATS, ROWS
from theory.program.program import Program

KINKED = ("lt", "le", "eq", "sign", "floor", "round", "trunc", "abs", "max")
"""Names of operations that are not smooth."""
Functions = Mapping[str, Callable[..., Any]]
"""Mapping from each elementwise operation to a function of arrays."""


def generic(generator: np.random.Generator) -> Functions:
    """Functions of floats; `KINKED` operations return random numbers, to allow every branch."""
    anything = {name: lambda x, *_: generator.standard_normal(x.shape) for name in KINKED}
    return {**FLOATS, **anything, "select": lambda c, a, b: c * a + (1 - c) * b}


def run_floats(program: Program, inputs: Any, functions: Functions = FLOATS) -> NDArray[np.float64]:
    """All values of a program at given inputs, in double precision, shape (size,)."""
    numbers = np.empty(program.size)
    given = len(program.inputs)
    numbers[:given] = inputs
    numbers[given : given + program.constants.size] = program.constants
    with np.errstate(all="ignore"):
        for operation, results, index, count in program.rows():
            numbers[results] = _row_floats(operation, numbers[index], count, functions)
    return numbers


def gross(program: Program, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Magnitude of each value before cancellation, shape (size,), for bounds on rounding errors.

    A sum gets the sum of the magnitudes of its terms, and a product gets their product. A
    difference that cancels to 0 keeps the magnitude of its terms, which determines its rounding
    error. `numbers`, shape (size,), is the result of `run_floats`.
    """
    result = np.abs(numbers)
    for operation, results, index, count in program.rows():
        if operation == "sum":
            result[results] = (np.abs(count) * result[index]).sum(axis=1)
        elif operation == "mul":
            result[results] = result[index].prod(axis=1)
    return result


def _row_floats(
    operation: str,
    rows: NDArray[np.float64],
    count: NDArray[np.float64],
    functions: Functions,
) -> NDArray[np.float64]:
    if operation == "sum":
        return (rows * count).sum(axis=1)
    if operation == "logsumexp":
        top = rows.max(axis=1)
        return np.asarray(top + np.log((count * np.exp(rows - top[:, None])).sum(axis=1)))
    if operation == "largest":
        return np.asarray(rows.max(axis=1))
    if operation == "integer_pow":
        return np.asarray(rows[:, 0] ** count[:, 0])
    return np.asarray(functions[operation](*rows.T), dtype=float)


Arithmetic = Mapping[str, Callable[..., Any]]
"""Mapping from each operation to a function of its operands (in `ROWS`, also of coefficients)."""


def order(values: Values, roots: Iterable[int], given: Iterable[int]) -> list[int]:
    """Values, except those in `given`, that the roots need; each value follows its operands."""
    needed = needed_values(values, np.array(list(roots), dtype=np.int64))
    needed[list(given)] = False
    return [int(value) for value in np.flatnonzero(needed)]


def run(
    values: Values,
    roots: Iterable[int],
    given: Mapping[int, Any],
    arithmetic: Arithmetic,
    number: Callable[[Any], Any],
    named: Callable[[int, Any], Any] = lambda value, result: result,
) -> dict[int, Any]:
    """Evaluate the values `roots`, and all values they need, in an arithmetic.

    The mapping `given` holds a number of the arithmetic for each input. `number` converts a
    constant, which is a fraction, inf or NaN. `named` maps (value, result) to the result that other
    values use. Raises ValueError if an input is missing.
    """
    known = {int(value): result for value, result in given.items()}

    @cache
    def constant(value: int) -> Any:
        return number(exact(values, value))

    for value in order(values, roots, known):
        if values.constant[value]:
            known[value] = constant(value)
            continue
        operation = values.operation(value)
        if operation == "input":
            raise ValueError(f"an input is missing: {values.names[value]}")
        members, factors = values.row(value)
        row = [known[member] for member in members.tolist()]
        if operation in ROWS:
            result = arithmetic[operation](row, [constant(factor) for factor in factors.tolist()])
        else:
            result = arithmetic[operation](*row)
        known[value] = named(value, result)
    return known


def exact(values: Values, value: int) -> Fraction | float:
    """Fraction from the triple of a constant or, if that fails, from its float; else inf or NaN."""
    number = float(values.floats[value])
    if not isfinite(number):
        return number
    found = field.read_back(values.triples[value])
    if found is not None and abs(float(found) - number) <= SAME_FLOAT * abs(number):
        return found
    return field.simplest(number)
