"""Mean pairwise total variation of the rows of an attention map."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics.attention_maps.maps import FloatArray, Setting, blocks, factor, maps, over, patches


def total_variation(attention: ArrayLike, skip: int = 0, off_diagonal: bool = False) -> FloatArray:
    """Mean pairwise total variation of every map of a stack; see `dynamics.diversity`.

    Parameters
    ----------
    attention : array_like, shape (..., P, P)
        Rows are queries and sum to 1 within 1e-3; a memory-mapped file is read map by map.
    skip : int
        Tokens before the patches (1 for a class token), left out as queries and as keys.
    off_diagonal : bool
        The mean over pairs of different queries: greater by P / (P - 1).

    Returns
    -------
    float64 array, shape (...)
        From 0 to 1 - 1/P, or to 1 over different queries.

    Raises
    ------
    InvalidRequest
        If a map is not square or not row-stochastic.

    Notes
    -----
    Sorting the P columns takes P^2 log P steps instead of the P^3 of all pairs, and is what limits:
    a map with P = 4096 takes about a second.
    """
    array = maps(attention)
    count = patches(array, Setting(skip=skip, off_diagonal=off_diagonal))
    return over(array, array.shape[-1] - count, lambda square: variation(square, off_diagonal))


def variation(square: FloatArray, off_diagonal: bool) -> float:
    """Mean pairwise total variation of one checked map.

    Parameters
    ----------
    square : array, shape (P, P)
    off_diagonal : bool
    """
    count, total = len(square), 0.0
    # Of sorted numbers, the gap after the r-th lies between r (P - r) pairs. Summed by gaps nothing
    # cancels, and equal rows give zero.
    ranks = np.arange(1, count, dtype=np.float64)
    pairs = ranks * (count - ranks)
    for columns in blocks(count):
        ordered = np.sort(np.ascontiguousarray(square[:, columns].T), axis=1)
        total += float((np.diff(ordered, axis=1) * pairs).sum())
    return total / count**2 * factor(count, off_diagonal)
