r"""Theorem 3.2: transformers that generalize although patches do not attend to their own set.

*Shift.* Logits :math:`A_{ij} = s` for j in the set after i's set, 0 elsewhere. Every patch attends
to the next set, so F equals that of attention to the own set with permuted rows,
:math:`F(X) = \sum_l C\,act(D\alpha z_l/C)` in the limit of large s.

*Pairs.* The logits form a Gram matrix, hence a symmetric positive semidefinite one. Sets are
paired: the logit is a for the partner set, a - g for the own set and a + (C-1) g on the diagonal.
This is the smallest diagonal that keeps the matrix semidefinite (eigenvalues 2Ca, Cg, 0). The C
largest off-diagonal entries of a row are the logits of the partner set.

*Definition 2.2 as written* takes the C largest of :math:`\langle p_i, p_j\rangle` over all j,
including :math:`j = i`. For the longest :math:`p_i`, Cauchy-Schwarz gives
:math:`\langle p_i, p_j \rangle \leq |p_i|^2`, so i is among its own C largest up to ties: in no
transformer does Top_C of the Gram matrix avoid the own set in every row. `overlap` therefore
computes results with and without the diagonal. Query and key maps are free, so `query_key` combines
any logits with positional encodings of any regular Gram matrix, and both can avoid the own sets.

Reference: Jelassi, Sander, Li (2022), Definition 2.2 and Theorem 3.2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from theory.law import FloatArray
from theory.papers.positional_attention.linear_rules import SignError, sign_error, walk_law
from theory.symmetry import Partition


class Overlap(NamedTuple):
    """Number of the C largest entries of a row that lie in the row's own set, maximum over rows.

    Equal entries are counted against the own set in `fewest`, and in favour of it in `most`.
    """

    fewest: int
    most: int


def set_logits(partition: Partition, strength: float, shift: int = 1) -> FloatArray:
    """Logits A_ij = `strength` for j in the set `shift` (0: own) after that of i, else 0."""
    labels = partition.labels
    attended = (labels + shift) % len(partition.sets)
    return np.where(attended[:, None] == labels[None, :], float(strength), 0.0)


def paired_logits(partition: Partition) -> FloatArray:
    """Symmetric positive semidefinite logits with the partner set largest off the diagonal.

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
    """Positive definite Gram matrix: 1 for the previous and the next set, else 0 off the diagonal.

    The diagonal 1 + D exceeds the sum of the row, so encodings with this Gram matrix are linearly
    independent. In each row, the C largest entries off the diagonal lie outside the own set.
    """
    labels, count = partition.labels, len(partition.sets)
    apart = (labels[:, None] - labels[None, :]) % count
    neighbours = (apart == 1) | (apart == count - 1)
    return np.where(neighbours, 1.0, 0.0) + (1.0 + partition.size) * np.eye(partition.size)


def overlap(scores: FloatArray, partition: Partition, diagonal: bool) -> Overlap:
    """Number of members of the own set among the C largest scores of a row, maximum over rows.

    The matrix `scores`, shape (D, D), is a Gram matrix or holds logits. With `diagonal`, the entry
    j = i is included, as in Definition 2.2.
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
    """Positional encodings with a given Gram matrix: columns p_i of P with P^T P = `gram`.

    Raises ValueError unless `gram` is symmetric and positive semidefinite up to rounding.
    """
    values, vectors = np.linalg.eigh(gram)
    if values[0] < -1e-12 * max(1.0, values[-1]) or not np.array_equal(gram, gram.T):
        raise ValueError("gram must be symmetric and positive semidefinite")
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T


def query_key(positions: FloatArray, logits: FloatArray) -> FloatArray:
    """Matrix W = W_Q^T W_K with P^T W P = `logits`, for independent encodings P = `positions`."""
    inverse = np.linalg.inv(positions)
    return inverse.T @ logits @ inverse


class Head(NamedTuple):
    """Value component alpha and activation act(u) = u^p + nu u of an attention head."""

    alpha: float = 0.3
    p: int = 3
    nu: float = 1e-3


def margins(logits: FloatArray, values: FloatArray, head: Head) -> FloatArray:
    """Output F(X) of equation (T), set to 0 if the patches cancel up to rounding, shape (N,).

    The logits are the scale times A. The array `values`, shape (N, D), holds x_j of every sample.
    """
    from scipy.special import softmax

    weights = softmax(logits, axis=1)
    inside = weights.shape[0] * head.alpha * (values @ weights.T)
    shares = inside**head.p + head.nu * inside
    total, gross = shares.sum(axis=1), np.abs(shares).sum(axis=1)
    return np.where(np.abs(total) <= 1e-12 * gross, 0.0, total)


def sharp_error(law: tuple[int, int, float], p: int = 3, group: int = 1) -> SignError:
    r"""Error of :math:`\sum_g (\sum_{l \in g} z_l)^p`: uniform attention to a group of sets.

    The result is the sign error of attention in the limit of large s and small nu, for the law (D,
    C, q). Every patch attends to `group` sets, a divisor of L: one set (its own or a shifted one)
    for 1, all sets for L, where the linear rule sign(Z) results. The error is exact up to rounding,
    computed by convolution over the groups.
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
    """Convolve a law with one more independent group; the outer `margin` values stay zero."""
    new = np.zeros_like(law)
    low, high = margin, law.size - margin
    for jump, weight in jumps:
        first, last = max(low, low + jump), min(high, high + jump)
        new[first:last] += weight * law[first - jump : last - jump]
    return new
