"""A program run forwards in some arithmetic: floats of numpy, numbers of mpmath, expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theory.program.numbering import FLOATS, OPERATIONS
from theory.program.program import Program


def run_floats(program: Program, inputs: Any) -> NDArray[np.float64]:
    """Every number of a program in double precision, shape (size,), by numpy.

    Parameters
    ----------
    program : Program
    inputs : float array, shape (inputs,)
    """
    numbers = np.empty(program.size)
    given = len(program.inputs)
    numbers[:given] = inputs
    numbers[given : given + program.constants.size] = program.constants
    place = 0
    with np.errstate(all="ignore"):
        for code, first, last, length in program.instructions:
            part = slice(place, place + (last - first) * length)
            place = part.stop
            rows = numbers[program.index[part]].reshape(last - first, length)
            count = program.count[part].reshape(last - first, length)
            numbers[first:last] = _row_floats(OPERATIONS[code], rows, count)
    return numbers


def gross(program: Program, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of the sizes of the terms of every sum, and the size of every other number.

    Parameters
    ----------
    program : Program
    numbers : float array, shape (size,)
        Of `run_floats`.
    """
    result, place = np.abs(numbers), 0
    for code, first, last, length in program.instructions:
        part = slice(place, place + (last - first) * length)
        place = part.stop
        if OPERATIONS[code] == "sum":
            terms = np.abs(program.count[part] * numbers[program.index[part]])
            result[first:last] = terms.reshape(last - first, length).sum(axis=1)
    return result


def _row_floats(
    operation: str, rows: NDArray[np.float64], count: NDArray[np.float64]
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
    return np.asarray(FLOATS[operation](*rows.T), dtype=float)


Arithmetic = Mapping[str, Callable[..., Any]]
"""Operation -> a function of its operands; of (numbers, counts) for `ROWS`."""
ROWS = ("sum", "logsumexp", "largest", "integer_pow")


def run(
    program: Program,
    inputs: Sequence[Any],
    constants: Sequence[Any],
    arithmetic: Arithmetic,
    counts: Callable[[float], Any],
) -> list[Any]:
    """Every number of a program in an arithmetic.

    Parameters
    ----------
    program : Program
    inputs, constants : sequences
        In the arithmetic.
    arithmetic : mapping
    counts : callable
        A coefficient, as a number of the arithmetic.
    """
    numbers = [*inputs, *constants]
    place = 0
    for code, first, last, length in program.instructions.tolist():
        operation = OPERATIONS[code]
        of = arithmetic[operation]
        for _ in range(first, last):
            part = slice(place, place + length)
            place += length
            row = [numbers[k] for k in program.index[part]]
            if operation in ROWS:
                numbers.append(of(row, [counts(float(c)) for c in program.count[part]]))
            else:
                numbers.append(of(*row))
    return numbers
