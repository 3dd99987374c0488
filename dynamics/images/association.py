r"""Patch association: whether positions of neighbouring patches belong together more than others.

Of a matrix M over pairs of patches, as :math:`\langle p_i, p_j \rangle` (Definition 2.2 of Jelassi,
Sander, Li 2022) or the scores A, every row is centred over the other patches and all entries off
the diagonal are divided by their root mean square. The contrast is the mean over pairs of
neighbours minus the mean over all other pairs: 0 where neighbours are like any others.

The p-value is that of a permutation test: the share of random relabellings of the patches, itself
included, whose contrast is at least as great. Positions that are independent draws of one law know
nothing of the grid, so before training it is uniform on 1/(n+1), ..., 1.

Neighbours have pixels of about equal variance, and positions that follow the variance alone are
alike where it is. Relabelled within `strata` of about equal variance, they are no more alike than
chance has it, up to the width of a stratum.

Heads may look at neighbours or away from them. ``either`` is the p-value of the mean over heads of
the squared contrast, which sees both; all heads are relabelled alike.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.problem import FloatArray

RELABELLINGS = 999
STRATUM = 4
"""Patches of a stratum, about."""
ROUNDING = 1e-12
"""Relative difference of contrasts that count as equal."""


class Association(NamedTuple):
    """Contrast of neighbours with all other pairs, and its p-values.

    `contrast`, shape (heads,): neighbours minus others, in units of the spread of the entries;
    `p_value`: that the mean over heads is at least as great by chance; `either`: that the mean of
    its square is.
    """

    contrast: FloatArray
    p_value: float
    either: float


def neighbours(rows: int, columns: int) -> NDArray[np.bool_]:
    """Whether two squares of a grid have a side in common, shape (D, D).

    Examples
    --------
    >>> neighbours(2, 2).sum(axis=1).tolist()
    [2, 2, 2, 2]
    """
    y, x = np.divmod(np.arange(rows * columns), columns)
    return np.abs(y[:, None] - y) + np.abs(x[:, None] - x) == 1


def strata(values: ArrayLike, size: int = STRATUM) -> NDArray[np.int64]:
    """Strata of about equal values, shape (D,); equal values are in one.

    `values`, shape (D,); `size`: values of a stratum, about.

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
    """Contrast of neighbours with all others, and how often chance does as well.

    `scores`, shape (heads, D, D) or (D, D); `near`, shape (D, D): pairs of neighbours, none on the
    diagonal; `seed`: of the relabellings; `relabellings`: how many are sampled; `within`, shape
    (D,): stratum of each patch, in which it stays when relabelled; all are one without.

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
        # All entries sum to zero, so the others have the opposite of the neighbours' sum.
        pairs = labels[:, first] * count + labels[:, second]
        means = [matrix.ravel()[pairs].mean(axis=1) for matrix in matrices]
        return np.array(means).T * (1 + share)

    own = contrasts(np.arange(count)[None])[0]
    groups = np.zeros(count) if within is None else np.asarray(within, np.float64)
    labels = np.empty((relabellings, count), np.int64)
    # Sorted by stratum, and in it by chance, the patches of a stratum take each other's places.
    mixed = np.argsort(groups + random.random((relabellings, count)), axis=1)
    labels[:, np.argsort(groups, kind="stable")] = mixed
    sampled = contrasts(labels)
    return Association(
        own,
        _share(sampled.mean(axis=1), float(own.mean())),
        _share((sampled**2).mean(axis=1), float((own**2).mean())),
    )


def standardized(matrices: FloatArray) -> FloatArray:
    """Rows without their mean over the others, by the root mean square; zero on the diagonal.

    A matrix of equal rows, such that nothing is left, is zero.
    """
    heads, count, _ = matrices.shape
    off = ~np.eye(count, dtype=bool)
    means = matrices[:, off].reshape(heads, count, count - 1).mean(axis=2)
    centred = np.where(off, matrices - means[:, :, None], 0.0)
    size = np.sqrt((centred[:, off] ** 2).mean(axis=1))[:, None, None]
    return np.asarray(centred / np.where(size > 0, size, 1.0))


def _share(sampled: FloatArray, own: float) -> float:
    """Share of values that are at least as great, the own included."""
    return float((1 + (sampled >= own - ROUNDING).sum()) / (1 + len(sampled)))
