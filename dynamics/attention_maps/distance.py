"""The attention diversity metric: the mean distance between the places of the top k keys."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.attention_maps.maps import FloatArray, Setting, blocks, factor, maps, over, settle

DIGITS = 1e9
"""Weights are told apart by their multiple of 1 / DIGITS."""


def diversity(
    attention: ArrayLike,
    grid: tuple[int, int] | None = None,
    k: int = 10,
    skip: int = 0,
    off_diagonal: bool = False,
) -> FloatArray:
    """Attention diversity of every map of a stack; see `dynamics.diversity` for the definition.

    Parameters
    ----------
    attention : array_like, shape (..., P, P)
        Rows are queries and sum to 1 within 1e-3; a memory-mapped file is read map by map.
    grid : tuple of int, optional
        Rows and columns of patches, H * W = P - skip; the square one by default.
    k : int
        Keys of each query.
    skip : int
        Tokens before the patches (1 for a class token), left out as queries and as keys.
    off_diagonal : bool
        The mean over pairs of different queries: greater by P / (P - 1).

    Returns
    -------
    float64 array, shape (...)
        In patches, the side of one being 1.

    Raises
    ------
    InvalidRequest
        If a map is not square or not row-stochastic, the grid does not hold the patches, or k is
        more than these.

    Notes
    -----
    The distances take P^2 / 2 square roots and k P^2 products, in blocks; a map with P = 4096 takes
    about a second. The squares of the distances are whole numbers and hence exact.
    """
    array = maps(attention)
    setting = settle(array, Setting(grid, k, skip, off_diagonal))
    return over(array, setting.skip, lambda square: distance(square, setting))


def distance(square: FloatArray, setting: Setting) -> float:
    """Attention diversity of one checked map.

    Parameters
    ----------
    square : array, shape (P, P)
    setting : Setting
        With its grid.
    """
    assert setting.grid is not None
    keys = top(square, setting.k)
    rows, columns = np.divmod(keys, setting.grid[1])
    points = np.stack([rows, columns], axis=2).reshape(len(square), -1)
    return mean_distance(points.astype(np.float64)) * factor(len(square), setting.off_diagonal)


def top(square: FloatArray, k: int) -> NDArray[np.int64]:
    """The keys of greatest weight of each query, in descending order, ties by lower index.

    Parameters
    ----------
    square : array, shape (P, P)
    k : int

    Returns
    -------
    int array, shape (P, k)
    """
    count = len(square)
    found = np.empty((count, k), dtype=np.int64)
    for rows in blocks(count):
        # One whole number holds the rounded weight and, below it, the index: no two are equal.
        order = np.rint(square[rows] * DIGITS).astype(np.int64) * count
        order += np.arange(count)[::-1]
        best = np.sort(np.partition(order, count - k, axis=1)[:, count - k :], axis=1)
        found[rows] = count - 1 - best[:, ::-1] % count
    return found


def mean_distance(points: FloatArray) -> float:
    """Mean Euclidean distance over all ordered pairs, each point with itself included.

    Parameters
    ----------
    points : array, shape (P, m)
        Whole numbers: then squares are exact, and equal points are at distance zero.
    """
    count, total = len(points), 0.0
    norms = (points**2).sum(axis=1)
    for rows in blocks(count):
        squares = (
            norms[rows, None] + norms[rows.start :] - 2 * points[rows] @ points[rows.start :].T
        )
        np.sqrt(squares, out=squares)
        # Pairs within the block are there twice, those with later points once.
        total += 2 * squares.sum() - squares[:, : rows.stop - rows.start].sum()
    return float(total) / count**2
