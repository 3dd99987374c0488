r"""Theorem 3.2: transformers that generalize although patches do not attend to their own set.

The logits of a shift are :math:`A_{ij} = s` if the set of patch j follows the set of patch i, else
0. For large s every patch attends to the next set, and with the sums :math:`z_l` of the sets, F is
:math:`\sum_l C\,act(D\alpha z_l/C)`, as for attention to the own set: only rows are permuted.

If sets attend in pairs (`paired_logits`), the matrix of logits is symmetric and positive
semidefinite. With positive a and g, logits are a for the partner set, a - g for the own set, and a
+ (C-1) g on the diagonal. The matrix has the eigenvalues 2Ca, Cg and 0, so a smaller diagonal makes
one negative. In each row, the C largest entries off the diagonal are those of the partner set.

Definition 2.2, as written, takes the C largest inner products :math:`\langle p_i, p_j\rangle` of
positional encodings over all j, including :math:`j = i`. For the longest encoding :math:`p_i`,
Cauchy-Schwarz gives :math:`\langle p_i, p_j \rangle \leq |p_i|^2`, so patch i is among its own C
largest, up to ties. Hence no Gram matrix has its C largest entries outside the own set in every
row, and `overlap` computes results with and without the diagonal. The query and key maps are free,
so `query_key` combines any logits with any regular Gram matrix. Hence the logits and the Gram
matrix of one model can both have their largest entries off the diagonal outside the own sets.

Definition 2.2 and Theorem 3.2 are those of Jelassi, Sander, Li (2022).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from theory.law import FloatArray
from theory.papers.positional_attention.linear_rules import SignError, sign_error, walk_law
from theory.symmetry import Partition


class Overlap(NamedTuple):
    """Number of entries of a row's own set among its C largest entries; maximum over all rows.

    If several entries are equal to the C-th largest, `fewest` counts those of the own set last, and
    `most` counts them first.
    """

    fewest: int
    most: int


def set_logits(partition: Partition, strength: float, shift: int = 1) -> FloatArray:
    """Logits, shape (D, D): `strength` if j's set is `shift` places after i's set, else 0."""
    labels = partition.labels
    attended = (labels + shift) % len(partition.sets)
    return np.where(attended[:, None] == labels[None, :], float(strength), 0.0)


def paired_logits(partition: Partition) -> FloatArray:
    """Symmetric positive semidefinite logits, largest (off the diagonal) for the partner set.

    The logits, shape (D, D), are 6 for the partner set and 6 - 1e-3 for the own set. Raises
    ValueError unless the partition has an even number of sets of equal size.
    """
    labels, sizes = partition.labels, {members.size for members in partition.sets}
    if len(partition.sets) % 2 or len(sizes) > 1:
        raise ValueError("pairing needs an even number of sets of equal size")
    partner, gap = 6.0, 1e-3
    logits = np.where((labels[:, None] ^ 1) == labels[None, :], partner, 0.0)
    logits[labels[:, None] == labels[None, :]] = partner - gap
    np.fill_diagonal(logits, partner + (sizes.pop() - 1) * gap)
    return logits


def neighbour_gram(partition: Partition) -> FloatArray:
    """Positive definite Gram matrix; off the diagonal, it is 1 for neighbouring sets and else 0.

    The neighbours are the previous and the next set. Each diagonal entry, 1 + D, exceeds the sum of
    its row's other entries, so encodings with this Gram matrix are linearly independent. In each
    row of the Gram matrix, the C largest entries off the diagonal lie outside the own set.
    """
    labels, count = partition.labels, len(partition.sets)
    apart = (labels[:, None] - labels[None, :]) % count
    neighbours = (apart == 1) | (apart == count - 1)
    return np.where(neighbours, 1.0, 0.0) + (1.0 + partition.size) * np.eye(partition.size)


def overlap(scores: FloatArray, partition: Partition, diagonal: bool) -> Overlap:
    """Number of members of a row's own set among its C largest scores; maximum over all rows.

    The matrix `scores`, shape (D, D), holds inner products or logits. With `diagonal`, the diagonal
    entry of each row is included, as in Definition 2.2.
    """
    fewest, most = 0, 0
    for i, row in enumerate(scores):
        own = partition.labels == partition.labels[i]
        size = int(own.sum())
        part = np.ones(row.size, dtype=bool)
        part[i] = diagonal
        level = np.sort(row[part])[-size]
        above, level_set = part & (row > level), part & (row == level)
        open_places = size - int(above.sum())
        sure = int((above & own).sum())
        fewest = max(fewest, sure + max(0, open_places - int((level_set & ~own).sum())))
        most = max(most, sure + min(open_places, int((level_set & own).sum())))
    return Overlap(fewest, most)


def encodings(gram: FloatArray) -> FloatArray:
    """Positional encodings with a given Gram matrix, as the columns of P with P^T P = `gram`.

    Raises ValueError unless `gram` is symmetric and positive semidefinite up to rounding.
    """
    values, vectors = np.linalg.eigh(gram)
    if values[0] < -1e-12 * max(1.0, values[-1]) or not np.array_equal(gram, gram.T):
        raise ValueError("gram must be symmetric and positive semidefinite")
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T


def query_key(positions: FloatArray, logits: FloatArray) -> FloatArray:
    """Product W = W_Q^T W_K of query and key maps with P^T W P = `logits`, for P = `positions`."""
    inverse = np.linalg.inv(positions)
    return inverse.T @ logits @ inverse


class Head(NamedTuple):
    """Attention head with the value component alpha and the activation act(u) = u^p + nu u."""

    alpha: float = 0.3
    p: int = 3
    nu: float = 1e-3


def margins(logits: FloatArray, values: FloatArray, head: Head) -> FloatArray:
    """Outputs F(X) of equation (T), shape (N,); 0 if the contributions cancel up to rounding.

    The logits, shape (D, D), are A times the scale. The array `values`, shape (N, D), holds the
    values of the patches of every sample.
    """
    from scipy.special import softmax

    weights = softmax(logits, axis=1)
    inside = weights.shape[0] * head.alpha * (values @ weights.T)
    shares = inside**head.p + head.nu * inside
    total, gross = shares.sum(axis=1), np.abs(shares).sum(axis=1)
    return np.where(np.abs(total) <= 1e-12 * gross, 0.0, total)


def sharp_error(law: tuple[int, int, float], p: int = 3, group: int = 1) -> SignError:
    r"""Error of a model in which each patch attends uniformly to a group of sets.

    In the limit of large scale and small nu, the error is that of the sign of :math:`\sum_g
    (\sum_{l \in g} z_l)^p` for the law (D, C, q). The number `group` of sets in a group g divides
    the number L of sets. If `group` is 1, patches attend to one set (their own or a shifted one).
    If `group` is L, patches attend to all sets, and the model is the linear rule sign(Z). The error
    is computed by convolution over the groups and is exact up to rounding.
    """
    D, C, q = law
    members, groups = group * C, D // (group * C)
    reach = groups * members**p
    total = np.zeros(2 * reach + 1)
    for z, weight in enumerate(walk_law(members - C, q), start=2 * C - members):
        total[reach + z**p] += weight
    jumps = [(k**p, w) for k, w in enumerate(walk_law(members, q), start=-members)]
    for done in range(1, groups):
        total = _jumped(total, jumps, reach - (done + 1) * members**p)
    return sign_error(total)


def _jumped(law: FloatArray, jumps: list[tuple[int, float]], margin: int) -> FloatArray:
    """Law of a sum plus an independent jump; `margin` entries at each end of the law stay 0."""
    new = np.zeros_like(law)
    low, high = margin, law.size - margin
    for jump, weight in jumps:
        first, last = max(low, low + jump), min(high, high + jump)
        new[first:last] += weight * law[first - jump : last - jump]
    return new
