"""Rows with given overlaps (inner products), as starts of runs on Gaussian data."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics.problem import FloatArray
from dynamics.validation import InvalidRequest

ROUNDING = 1e-12
"""Asymmetry and negative eigenvalues up to this size, relative to the largest entry, are
rounding."""


def rows_with_overlaps(gram: ArrayLike) -> FloatArray:
    """Rows with given inner products.

    A risk that depends on its rows only through their inner products (overlaps) is the same
    function at every dimension. A model with such a risk can therefore be trained at a dimension
    equal to the number of rows, from a start with the given overlaps.

    Parameters
    ----------
    gram : array_like, shape (m, m)
        Overlaps of m rows: symmetric, positive semidefinite.

    Returns
    -------
    float array, shape (m, m)
        Lower-triangular rows with ``rows @ rows.T == gram`` up to rounding and a diagonal >= 0. If
        the first overlaps form a diagonal matrix, as for an orthogonal teacher, the first rows are
        multiples of the first unit vectors.

    Raises
    ------
    InvalidRequest
        If gram is not square and finite, not symmetric, or not positive semidefinite.

    Examples
    --------
    >>> from dynamics import rows_with_overlaps
    >>> print(rows_with_overlaps([[4.0, 2.0], [2.0, 5.0]]))
    [[2. 0.]
     [1. 2.]]
    """
    try:
        matrix = np.asarray(gram, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidRequest("gram must be a matrix of numbers") from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise InvalidRequest(f"gram has the shape {matrix.shape}; it must be (m, m)")
    if not np.isfinite(matrix).all():
        raise InvalidRequest("gram is not finite")
    rounding = ROUNDING * np.abs(matrix).max()
    i, j = np.unravel_index(np.abs(matrix - matrix.T).argmax(), matrix.shape)
    if abs(matrix[i, j] - matrix[j, i]) > rounding:
        raise InvalidRequest(
            f"gram is not symmetric: entry ({i}, {j}) is {matrix[i, j]:.6g}, and ({j}, {i}) is "
            f"{matrix[j, i]:.6g}"
        )
    values, vectors = np.linalg.eigh(matrix)
    if values[0] < -rounding:
        raise InvalidRequest(
            f"gram is not positive semidefinite: its least eigenvalue is {values[0]:.3g}, and no "
            "rows have these overlaps"
        )
    triangle = np.linalg.qr((vectors * np.sqrt(values.clip(0.0))).T).R.T
    return triangle * np.where(np.diag(triangle) < 0, -1.0, 1.0) + 0.0
