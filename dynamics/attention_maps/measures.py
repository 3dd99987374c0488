"""Measures of attention maps: attention diversity and total variation of stacks of maps.

The module `dynamics.attention_maps` has definitions. Memory-mapped stacks are read map by map.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.training.progress import bar
from dynamics.validation import InvalidRequest, integer, refuse
from theory.summary import summarized

FloatArray = NDArray[np.float64]

ROW_SUM_TOLERANCE = 1e-3
"""Maximum distance of a row's sum from 1; it exceeds the rounding errors of half precision."""
DIGITS = 1e9
"""Weights are compared after rounding to multiples of 1 / DIGITS."""
NUMBERS = "fiub"
"""Accepted ``dtype.kind`` of numpy arrays: real numbers."""
QUARTERS = (0.25, 0.5, 0.75)


@summarized
@dataclass(frozen=True)
class Setting:
    """Settings of the measures of attention maps.

    `grid` gives the numbers of rows and columns of patches, by default of a square grid; `k` is the
    number of keys compared for each query. The first `skip` tokens of a map are removed. With
    `off_diagonal`, means are over pairs of different queries only.
    """

    grid: tuple[int, int] | None = None
    k: int = 10
    skip: int = 0
    off_diagonal: bool = False


@summarized
@dataclass(frozen=True)
class Measured:
    """Diversity (in patches) and total variation of the heads of one layer.

    `diversity` and `total_variation` have the shape (images, heads). `name` is the label of the
    layer in pictures and tables. `setting` always has a grid.
    """

    name: str
    diversity: FloatArray
    total_variation: FloatArray
    setting: Setting

    @property
    def images(self) -> int:
        """Number of images."""
        return len(self.diversity)

    @property
    def heads(self) -> int:
        """Number of heads."""
        return self.diversity.shape[1]

    @property
    def grid(self) -> tuple[int, int]:
        """Numbers of rows and of columns of patches."""
        assert self.setting.grid is not None
        return self.setting.grid


def diversity(
    attention: ArrayLike,
    grid: tuple[int, int] | None = None,
    k: int = 10,
    skip: int = 0,
    off_diagonal: bool = False,
) -> FloatArray:
    """Attention diversity of every map of a stack; `dynamics.attention_maps` has the definition.

    A map of 4096 patches takes about a second, because a distance is computed for all pairs.

    Parameters
    ----------
    attention : array_like, shape (..., P, P)
        Rows are queries and sum to 1 within 1e-3; a memory-mapped file is read map by map.
    grid : tuple of int, optional
        Rows and columns of patches, H * W = P - skip; the square grid by default.
    k : int
        Number of keys of each query.
    skip : int
        Tokens before the patches (1 for a class token), removed from queries and keys.
    off_diagonal : bool
        Average over pairs of different queries only: greater by P / (P - 1).

    Returns
    -------
    float64 array, shape (...)
        Diversity in units of a patch's side.

    Raises
    ------
    InvalidRequest
        If a map is not square or not row-stochastic, the grid has another number of patches, or k
        exceeds it.

    Examples
    --------
    >>> import numpy as np
    >>> attention = np.eye(4)[[0, 1, 1, 0]]  # each query attends to the first or the second patch
    >>> float(diversity(attention, grid=(2, 2), k=1))
    0.5
    """
    array = _maps(attention)
    setting = _complete(array, Setting(grid, k, skip, off_diagonal))
    return _of_maps(array, setting.skip, lambda square: _diversity(square, setting))


def total_variation(attention: ArrayLike, skip: int = 0, off_diagonal: bool = False) -> FloatArray:
    """Mean total variation of every map of a stack; `dynamics.attention_maps` has the definition.

    For P patches, sorting all columns takes P^2 log P operations; a sum over all pairs of rows
    would take P^3. A map of 4096 patches takes about a second.

    Parameters
    ----------
    attention : array_like, shape (..., P, P)
        Rows are queries and sum to 1 within 1e-3; a memory-mapped file is read map by map.
    skip : int
        Tokens before the patches (1 for a class token), removed from queries and keys.
    off_diagonal : bool
        Average over pairs of different queries only: greater by P / (P - 1).

    Returns
    -------
    float64 array, shape (...)
        Total variation from 0 to 1 - 1/P, or to 1 over different queries.

    Raises
    ------
    InvalidRequest
        If a map is not square or not row-stochastic.

    Examples
    --------
    >>> import numpy as np
    >>> float(total_variation(np.full((9, 9), 1 / 9)))  # all queries have equal rows
    0.0
    >>> float(total_variation(np.eye(4)[[0, 1, 1, 0]]))
    0.5
    """
    array = _maps(attention)
    skip = array.shape[-1] - _patches(array, Setting(skip=skip, off_diagonal=off_diagonal))
    return _of_maps(array, skip, lambda square: _total_variation(square, off_diagonal))


def measure(attention: ArrayLike, setting: Setting | None = None, name: str = "") -> Measured:
    """Diversity and total variation of all maps, in one pass over the array.

    `attention` has the shape (P, P), (images, P, P) or (images, heads, P, P), and may be
    memory-mapped; pass ``attention[None]`` for the heads of one image. `name` labels the result in
    pictures and tables. Raises InvalidRequest if the shape or a map is invalid.
    """
    array = _maps(attention)
    if array.ndim > 4:
        allowed = "(P, P), (images, P, P) or (images, heads, P, P)"
        nearest = (-1, *array.shape[-3:])
        refuse("attention", array.shape, "has too many axes", allowed, f"reshape{nearest}")
    setting = _complete(array, setting or Setting())
    axes = array.shape[:-2]
    values = np.empty((2, *axes))
    with bar("diversity", values[0].size, unit="maps") as progress:
        for index in np.ndindex(axes):
            square = _stochastic(array, index, setting.skip)
            values[(0, *index)] = _diversity(square, setting)
            values[(1, *index)] = _total_variation(square, setting.off_diagonal)
            progress.update(1)
    distances, variations = values.reshape(2, axes[0] if axes else 1, -1)
    return Measured(name, distances, variations, setting)


def quartiles(values: FloatArray) -> FloatArray:
    """Lower quartile, median and upper quartile over images of each head, shape (3, heads)."""
    return np.quantile(values, QUARTERS, axis=0)


def _of_maps(array: NDArray[Any], skip: int, measure: Callable[[FloatArray], float]) -> FloatArray:
    """Apply a measure to every map of a stack (..., P, P); the result has the shape (...)."""
    values = np.empty(array.shape[:-2])
    for index in np.ndindex(values.shape):
        values[index] = measure(_stochastic(array, index, skip))
    return values[()]


def _diversity(square: FloatArray, setting: Setting) -> float:
    from scipy.spatial.distance import pdist

    assert setting.grid is not None
    count = len(square)
    points = np.hstack(np.divmod(_top_keys(square, setting.k), setting.grid[1]))
    mean = 2 * float(pdist(points.astype(np.float64)).sum()) / count**2
    return mean * _pair_factor(count, setting.off_diagonal)


def _top_keys(square: FloatArray, k: int) -> NDArray[np.int64]:
    """Keys of the k largest weights of each query, shape (P, k), sorted by weight, then index."""
    return np.argsort(-np.rint(square * DIGITS), axis=1, kind="stable")[:, :k]


def _total_variation(square: FloatArray, off_diagonal: bool) -> float:
    count = len(square)
    # Rows sum to 1 only within the tolerance; a larger sum could give a total variation above 1.
    ordered = np.sort(square / square.sum(axis=1, keepdims=True), axis=0)
    # In a sorted column of P weights, the gap after the r-th weight counts for r (P - r) pairs.
    # The sum of gaps of sorted weights has no cancellation, and is exactly zero for equal rows.
    ranks = np.arange(1, count, dtype=np.float64)
    total = float(ranks * (count - ranks) @ np.diff(ordered, axis=0).sum(axis=1))
    return total / count**2 * _pair_factor(count, off_diagonal)


def _pair_factor(count: int, off_diagonal: bool) -> float:
    """Factor from the mean over all ordered pairs of queries to the requested mean."""
    return count / (count - 1) if off_diagonal else 1.0


def _maps(attention: ArrayLike) -> NDArray[Any]:
    """Array whose last two axes are square maps; the data are neither copied nor read."""
    allowed = "square maps (P, P) in the last two axes"
    try:
        array = np.asarray(attention)
    except ValueError:
        refuse("attention", "list", "is ragged", allowed, "an array")
    if array.dtype.kind not in NUMBERS:
        refuse("attention", array.dtype, "is not real", "an array of real numbers", "float32")
    if array.ndim < 2:
        refuse("attention", array.shape, "is not a map", allowed, "(images, heads, P, P)")
    side = min(array.shape[-2:])
    if array.shape[-1] != array.shape[-2]:
        nearest = (*array.shape[:-2], side, side)
        refuse("attention", array.shape, "is not square", allowed, nearest)
    if 0 in array.shape:
        refuse("attention", array.shape, "is empty", allowed, "(images, heads, P, P)")
    return array


def _patches(array: NDArray[Any], setting: Setting) -> int:
    """Number of patches of a map, without skipped tokens."""
    tokens = array.shape[-1]
    fewest = 2 if setting.off_diagonal else 1
    if tokens < fewest:
        nearest = "off_diagonal=False"
        refuse("off_diagonal", True, "needs two patches", "False for one patch", nearest)
    return tokens - integer("skip", setting.skip, 0, tokens - fewest)


def _complete(array: NDArray[Any], setting: Setting) -> Setting:
    """Validated setting; a missing grid is replaced by the square grid."""
    count = _patches(array, setting)
    k = integer("k", setting.k, 1, count)
    side = isqrt(count)
    rows = max(n for n in range(1, side + 1) if count % n == 0)
    nearest = f"{rows}x{count // rows}"
    if isqrt(count - 1) ** 2 == count - 1 > 0:
        nearest += f", or skip={setting.skip + 1} where the first is a class token"
    if setting.grid is None and side**2 != count:
        raise InvalidRequest(
            f"grid is needed: {count} patches form no square; grid can be HxW with H*W={count}; "
            f"nearest: {nearest}"
        )
    allowed = f"HxW with H*W={count}"
    try:
        high, wide = setting.grid or (side, side)
        grid = integer("grid", high, at_least=1), integer("grid", wide, at_least=1)
    except (TypeError, ValueError):
        refuse("grid", setting.grid, "is not two whole numbers of at least 1", allowed, nearest)
    if grid[0] * grid[1] != count:
        refuse("grid", f"{grid[0]}x{grid[1]}", f"does not hold {count} patches", allowed, nearest)
    return replace(setting, grid=grid, k=k, skip=array.shape[-1] - count)


def _stochastic(array: NDArray[Any], index: tuple[int, ...], skip: int) -> FloatArray:
    """Validated map of a stack; if tokens are skipped, each remaining row is divided by its sum."""
    square = np.asarray(array[index], dtype=np.float64)
    sums = square.sum(axis=1)
    # NaN weights fail this check, since comparisons with NaN are False.
    if not (square.min() >= 0 and (np.abs(sums - 1) <= ROW_SUM_TOLERANCE).all()):
        _refuse_map(square, sums, index)
    if not skip:
        return square
    rest = square[skip:, skip:]
    left = rest.sum(axis=1)
    if not left.all():
        row = int(np.flatnonzero(left == 0)[0]) + skip
        raise InvalidRequest(
            f"{_name(index, row)} is zero on every patch; with skip={skip} rows can have weight "
            "after the first tokens; nearest: skip=0"
        )
    return rest / left[:, None]


def _refuse_map(square: FloatArray, sums: FloatArray, index: tuple[int, ...]) -> None:
    """Raise InvalidRequest for the first invalid weight, else for the first wrong row sum."""
    for bad, problem in ((~np.isfinite(square), "is not finite"), (square < 0, "is negative")):
        if bad.any():
            row, key = map(int, np.argwhere(bad)[0])
            raise InvalidRequest(
                f"{_name(index, row, key)}={square[row, key]:.6g} {problem}; weights of attention "
                "can be 0 to 1; nearest: the softmax of each row"
            )
    row = int(np.flatnonzero(np.abs(sums - 1) > ROW_SUM_TOLERANCE)[0])
    transposed = (np.abs(square.sum(axis=0) - 1) <= ROW_SUM_TOLERANCE).all()
    nearest = "the transpose, whose rows do" if transposed else "each row divided by its sum"
    raise InvalidRequest(
        f"{_name(index, row)} sums to {sums[row]:.6g}; rows of attention can sum to 1 within "
        f"{ROW_SUM_TOLERANCE:g}; nearest: {nearest}"
    )


def _name(index: tuple[int, ...], *inside: int) -> str:
    """Name of an entry in messages: ``attention[image, head, row]``."""
    return f"attention[{', '.join(map(str, (*index, *inside)))}]"
