"""Patch association: contrast of a matrix over patches between neighbours and other pairs.

The matrix over pairs of patches is the Gram matrix of positions (Definition 2.2 of Jelassi, Sander,
Li 2022) or the matrix A of attention scores. From the off-diagonal entries of each row their mean
is subtracted; the differences are divided by the root mean square of all differences. The contrast
is the mean over pairs of neighbours minus the mean over all other pairs of different patches.

The p-value of a permutation test is the share of random relabellings of the patches, the identity
included, with at least the measured contrast. Neighbouring patches have pixels of similar variance,
so positions that depend on the variance alone are also similar for neighbours. Relabelling within
`strata` of similar variance removes the effect of the variance, up to the width of a stratum. A
head may attend to neighbours or away from them, so a second p-value, ``either``, tests the squared
contrast, averaged over heads. A relabelling is the same for all heads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.problem import FloatArray

RELABELLINGS = 999
STRATUM = 4
"""Approximate number of patches in a stratum, a group of patches of similar pixel variance."""
ROUNDING = 1e-12
"""Maximum difference of two contrasts that count as equal."""


class Association(NamedTuple):
    """Contrast of neighbours with all other pairs, and its p-values.

    `contrast`, shape (heads,), is in units of the root mean square entry. `p_value` tests the mean
    contrast over heads; `either` tests the mean squared contrast over heads.
    """

    contrast: FloatArray
    p_value: float
    either: float


def neighbours(rows: int, columns: int) -> NDArray[np.bool_]:
    """Mask, shape (D, D), of the pairs with a common side among the D squares of a grid.

    Examples
    --------
    >>> neighbours(2, 2).sum(axis=1).tolist()
    [2, 2, 2, 2]
    """
    y, x = np.divmod(np.arange(rows * columns), columns)
    return np.abs(y[:, None] - y) + np.abs(x[:, None] - x) == 1


def strata(values: ArrayLike, size: int = STRATUM) -> NDArray[np.int64]:
    """Stratum of each value: groups of about `size` similar values; equal values share a group.

    Examples
    --------
    >>> strata([0.0, 3.0, 0.0, 1.0, 5.0, 0.0], 2).tolist()
    [0, 2, 0, 1, 2, 0]
    """
    array = np.asarray(values, np.float64)
    shares = np.arange(1, len(array) // size) * size / len(array)
    edges = np.quantile(array, shares, method="inverted_cdf")
    return np.searchsorted(edges, array, side="left")


def association(
    scores: ArrayLike,
    near: NDArray[np.bool_],
    seed: int = 0,
    relabellings: int = RELABELLINGS,
    within: ArrayLike | None = None,
) -> Association:
    """Contrast of neighbours with all other pairs, with p-values of a permutation test.

    `scores` has the shape (heads, D, D) or (D, D); `near`, shape (D, D), marks pairs of neighbours.
    A relabelling only permutes patches with equal numbers in `within`, shape (D,); by default it
    permutes all patches.

    Examples
    --------
    >>> near = neighbours(4, 4)
    >>> result = association(near.astype(float), near)
    >>> result.p_value, bool(result.contrast[0] > 1)
    (0.001, True)
    """
    array = np.asarray(scores, np.float64)
    matrices = standardized(array[None] if array.ndim == 2 else array)
    first, second = np.nonzero(near)
    count, random = len(near), np.random.default_rng(seed)
    share = len(first) / (count * (count - 1) - len(first))

    def contrasts(labels: NDArray[np.int64]) -> FloatArray:
        # Off-diagonal entries sum to zero, so the other pairs sum to minus the sum of neighbours.
        pairs = labels[:, first] * count + labels[:, second]
        means = [matrix.ravel()[pairs].mean(axis=1) for matrix in matrices]
        return np.array(means).T * (1 + share)

    own = contrasts(np.arange(count)[None])[0]
    groups = np.zeros(count) if within is None else np.asarray(within, np.float64)
    labels = np.empty((relabellings, count), np.int64)
    # Sorting by stratum, then randomly, permutes the patches within each stratum.
    mixed = np.argsort(groups + random.random((relabellings, count)), axis=1)
    labels[:, np.argsort(groups, kind="stable")] = mixed
    sampled = contrasts(labels)
    return Association(
        own,
        _share(sampled.mean(axis=1), float(own.mean())),
        _share((sampled**2).mean(axis=1), float((own**2).mean())),
    )


def standardized(matrices: FloatArray) -> FloatArray:
    """Centre the off-diagonal entries of each row; divide them by their root mean square.

    The diagonal becomes zero. A matrix becomes zero if every row is constant off the diagonal.
    """
    heads, count, _ = matrices.shape
    off = ~np.eye(count, dtype=bool)
    means = matrices[:, off].reshape(heads, count, count - 1).mean(axis=2)
    centred = np.where(off, matrices - means[:, :, None], 0.0)
    size = np.sqrt((centred[:, off] ** 2).mean(axis=1))[:, None, None]
    return np.asarray(centred / np.where(size > 0, size, 1.0))


def _share(sampled: FloatArray, own: float) -> float:
    """Share of values that are at least `own`, among the sampled values and `own` itself."""
    return float((1 + (sampled >= own - ROUNDING).sum()) / (1 + len(sampled)))
