"""Short vectors: `WIDTH` numbers that one instruction adds, multiplies or divides.

Compilers make vector instructions of long loops; loops of ten or thirty turns they begin and end
for longer than they run. A kernel written in short vectors says itself what is computed together.
A short vector is a row of an array of shape (rows, `WIDTH`) in C order; the operators + - * / take
two of them, or one and a number. In a generated file `dynamics.codegen.vector_instructions` stands
for these functions, and short vectors live in registers. A kernel that loads from an array of shape
(rows,) and stores there has numbers in their place: one text for one state and for `WIDTH` of them.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.codegen.kernels import instruction

WIDTH = 8
"""Numbers of a short vector; processors with shorter registers take several for one."""


class Vector(np.ndarray[Any, Any]):
    """A short vector as Python has it: ``+=`` makes another, as of a number."""

    def __iadd__(self, other: Any) -> Any:
        return self + other

    def __isub__(self, other: Any) -> Any:
        return self - other

    def __imul__(self, other: Any) -> Any:
        return self * other

    def __itruediv__(self, other: Any) -> Any:
        return self / other


Rows = NDArray[np.float64]


@instruction
def load(array: Rows, row: int) -> Any:
    """A row of an array as a short vector; a number of an array of numbers.

    Parameters
    ----------
    array : float array, shape (rows, WIDTH) or (rows,)
    row : int
        From 0 on: compiled code counts none from the end.
    """
    return array[row].copy().view(Vector) if array.ndim == 2 else array[row]


@instruction
def store(array: Rows, row: int, vector: Any) -> None:
    """Fill a row of an array.

    Parameters
    ----------
    array : float array, shape (rows, WIDTH) or (rows,)
    row : int
        From 0 on.
    vector : short vector, or float
    """
    array[row] = vector
