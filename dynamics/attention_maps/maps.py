"""What a map of attention must be: square, row-stochastic, its patches on a grid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.validation import InvalidRequest, integer, refuse

FloatArray = NDArray[np.float64]

CLOSE = 1e-3
"""How far the sum of a row may be from 1; half precision stays within."""
ENTRIES = 2**20
"""Numbers of a block of rows."""
NUMBERS = "fiub"
"""Kinds of numpy types that are real numbers."""


@dataclass(frozen=True)
class Setting:
    """How maps are measured.

    Attributes
    ----------
    grid : tuple of int, optional
        Rows and columns of patches; the square one by default.
    k : int
        Keys of each query, at most the number of patches.
    skip : int
        Tokens before the patches, which are left out.
    off_diagonal : bool
        Over pairs of different queries only.
    """

    grid: tuple[int, int] | None = None
    k: int = 10
    skip: int = 0
    off_diagonal: bool = False


def maps(attention: ArrayLike) -> NDArray[Any]:
    """An array whose last two axes are square maps, not copied and not read.

    Raises
    ------
    InvalidRequest
        If it is no such array, is empty, or does not hold real numbers.
    """
    allowed = "square maps (P, P) in the last two axes"
    try:
        array = np.asarray(attention)
    except ValueError:
        refuse("attention", "list", "is ragged", allowed, "an array")
    if array.dtype.kind not in NUMBERS:
        refuse("attention", array.dtype, "is not real", "an array of real numbers", "float32")
    if array.ndim < 2:
        refuse("attention", array.shape, "is no map", allowed, "(images, heads, P, P)")
    side = min(array.shape[-2:])
    if array.shape[-1] != array.shape[-2]:
        nearest = (*array.shape[:-2], side, side)
        refuse("attention", array.shape, "is not square", allowed, nearest)
    if 0 in array.shape:
        refuse("attention", array.shape, "is empty", allowed, "(images, heads, P, P)")
    return array


def patches(array: NDArray[Any], setting: Setting) -> int:
    """How many patches a map has, without the tokens that are left out.

    Raises
    ------
    InvalidRequest
        If no patches are left, or no pairs of different ones where those are asked for.
    """
    tokens = array.shape[-1]
    fewest = 2 if setting.off_diagonal else 1
    if tokens < fewest:
        nearest = "off_diagonal=False"
        refuse("off_diagonal", True, "has no pairs in one patch", "of two or more", nearest)
    return tokens - integer("skip", setting.skip, 0, tokens - fewest)


def settle(array: NDArray[Any], setting: Setting) -> Setting:
    """The setting with its grid, the square one where none is given.

    Raises
    ------
    InvalidRequest
        If the grid is no two sides or has not as many places as there are patches, or k is more
        than these.
    """
    count = patches(array, setting)
    k = integer("k", setting.k, 1, count)
    side = isqrt(count)
    rows = max(n for n in range(1, side + 1) if count % n == 0)
    nearest = f"{rows}x{count // rows}"
    if isqrt(count - 1) ** 2 == count - 1 > 0:
        nearest += f", or skip={setting.skip + 1} where the first is a class token"
    if setting.grid is None and side**2 != count:
        raise InvalidRequest(
            f"grid is needed, {count} patches being no square; grid can be HxW with H*W={count}; "
            f"nearest: {nearest}"
        )
    grid = (side, side) if setting.grid is None else _sides(setting.grid)
    if grid is None or grid[0] * grid[1] != count:
        shown = setting.grid if grid is None else f"{grid[0]}x{grid[1]}"
        wrong = "is no two whole numbers of at least 1"
        problem = wrong if grid is None else f"does not hold {count} patches"
        refuse("grid", shown, problem, f"HxW with H*W={count}", nearest)
    return replace(setting, grid=grid, k=k, skip=array.shape[-1] - count)


def _sides(grid: Any) -> tuple[int, int] | None:
    """Rows and columns, if they can be."""
    try:
        high, wide = (integer("grid", side, at_least=1) for side in grid)
    except (TypeError, ValueError):
        return None
    return high, wide


def factor(count: int, off_diagonal: bool) -> float:
    """From a mean over all ordered pairs to one over pairs of different queries."""
    return count / (count - 1) if off_diagonal else 1.0


def blocks(count: int) -> Iterator[slice]:
    """Blocks of the rows of a map, which bound the memory needed beside it."""
    step = max(1, ENTRIES // count)
    return (slice(first, min(first + step, count)) for first in range(0, count, step))


def over(array: NDArray[Any], skip: int, measured: Callable[[FloatArray], float]) -> FloatArray:
    """A number of every map of a stack, one map in memory at a time.

    Parameters
    ----------
    array : array, shape (..., P, P)
    skip : int
    measured : callable
        From a checked map to a number.

    Returns
    -------
    array, shape (...)
    """
    found = np.empty(array.shape[:-2])
    for place in np.ndindex(found.shape):
        found[place] = measured(stochastic(array, place, skip))
    return found[()]


def stochastic(array: NDArray[Any], place: tuple[int, ...], skip: int) -> FloatArray:
    """One map in double precision, checked, without its first tokens.

    Parameters
    ----------
    array : array, shape (..., P, P)
    place : tuple of int
        Of the map in the stack.
    skip : int
        First tokens that are left out; the rest of each row is divided by its sum.

    Returns
    -------
    array, shape (P - skip, P - skip)

    Raises
    ------
    InvalidRequest
        With the place of what is wrong: a weight that is negative or not finite, a row whose sum
        is not 1, a row with nothing but the tokens that are left out.
    """
    square = np.asarray(array[place], dtype=np.float64)
    sums = square.sum(axis=1)
    # Both comparisons are false for NaN.
    if not (square.min() >= 0 and (np.abs(sums - 1) <= CLOSE).all()):
        _wrong(square, sums, place)
    if not skip:
        return square
    rest = square[skip:, skip:]
    left = rest.sum(axis=1)
    if not left.all():
        row = int(np.flatnonzero(left == 0)[0]) + skip
        raise InvalidRequest(
            f"{_name(place, row)} is zero on every patch; with skip={skip} rows can have weight "
            "after the first tokens; nearest: skip=0"
        )
    return rest / left[:, None]


def _wrong(square: FloatArray, sums: FloatArray, place: tuple[int, ...]) -> None:
    """Refuse the first weight that cannot be, or else the first row."""
    for bad, problem in ((~np.isfinite(square), "is not finite"), (square < 0, "is negative")):
        if bad.any():
            row, key = (int(found[0]) for found in np.nonzero(bad))
            name, value = _name(place, row, key), f"{square[row, key]:.6g}"
            raise InvalidRequest(
                f"{name}={value} {problem}; weights of attention can be 0 to 1; "
                "nearest: the softmax of each row"
            )
    row = int(np.flatnonzero(np.abs(sums - 1) > CLOSE)[0])
    turned = (np.abs(square.sum(axis=0) - 1) <= CLOSE).all()
    nearest = "the transpose, whose rows do" if turned else "each row divided by its sum"
    raise InvalidRequest(
        f"{_name(place, row)} sums to {sums[row]:.6g}; rows of attention can sum to 1 within "
        f"{CLOSE:g}; nearest: {nearest}"
    )


def _name(place: tuple[int, ...], *inside: int) -> str:
    """``attention[image, head, row]``."""
    return f"attention[{', '.join(map(str, (*place, *inside)))}]"
