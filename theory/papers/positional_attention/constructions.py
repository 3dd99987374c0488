r"""Theorem 3.2: transformers that generalize although patches do not attend to their own set.

*Shift.* Logits :math:`A_{ij} = s` for j in the set after i's set, 0 elsewhere. Every patch attends
to the next set, so F equals that of attention to the own set with permuted rows,
:math:`F(X) = \sum_l C\,act(D\alpha z_l/C)` in the limit of large s.

*Pairs.* Logits that form a Gram matrix, hence symmetric and positive semidefinite. Sets are paired,
with logit a for the partner set, a - g for the own set and a + (C-1) g on the diagonal, the
smallest diagonal that keeps the matrix semidefinite (eigenvalues 2Ca, Cg, 0). The C largest
off-diagonal entries of a row are those of the partner set.

*Definition 2.2 as written* takes the C largest of :math:`\langle p_i, p_j\rangle` over all j,
including :math:`j = i`. For the longest :math:`p_i`, Cauchy-Schwarz gives
:math:`\langle p_i, p_j \rangle \leq |p_i|^2`, so i is among its own C largest up to ties: in no
transformer does Top_C of the Gram matrix avoid the own set in every row. `overlap` therefore
reports results with and without the diagonal. Query and key maps are free, so `query_key` combines
any logits with positional encodings of any regular Gram matrix: both logits and Gram matrix can
avoid the own sets at once.

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

    `fewest`, `most`: with ties decided against the own set, and in favour of it.
    """

    fewest: int
    most: int


def set_logits(partition: Partition, strength: float, shift: int = 1) -> FloatArray:
    """Logits A_ij = strength for j in the set ``shift`` after that of i, else 0, shape (D, D).

    `strength`: s; `shift`: 0 for the own set, 1 for the next.
    """
    labels = partition.labels
    attended = (labels + shift) % len(partition.sets)
    return np.where(attended[:, None] == labels[None, :], float(strength), 0.0)


def paired_logits(partition: Partition) -> FloatArray:
    """Symmetric positive semidefinite logits with the partner set largest off the diagonal.

    Logits are 6 for the partner set and 6 - 1e-3 for the own set, shape (D, D). `partition`: an
    even number of sets of equal size, else ValueError.
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
    independent. Off the diagonal, the C largest entries of a row are outside the own set.
    """
    labels, count = partition.labels, len(partition.sets)
    apart = (labels[:, None] - labels[None, :]) % count
    neighbours = (apart == 1) | (apart == count - 1)
    return np.where(neighbours, 1.0, 0.0) + (1.0 + partition.size) * np.eye(partition.size)


def overlap(scores: FloatArray, partition: Partition, diagonal: bool) -> Overlap:
    """Number of members of the own set among the C largest scores of a row, maximum over rows.

    `scores`, shape (D, D): a Gram matrix, or logits; `partition`: the sets; `diagonal`: whether to
    include j = i, as Definition 2.2 does.
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
    """Positional encodings with a given Gram matrix: columns p_i of P with P^T P = gram.

    `gram`, shape (D, D): symmetric, positive semidefinite up to rounding, else ValueError.
    """
    values, vectors = np.linalg.eigh(gram)
    if values[0] < -1e-12 * max(1.0, values[-1]) or not np.array_equal(gram, gram.T):
        raise ValueError("gram must be symmetric and positive semidefinite")
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T


def query_key(positions: FloatArray, logits: FloatArray) -> FloatArray:
    """W = W_Q^T W_K with P^T W P = logits, for linearly independent encodings P.

    `positions`, shape (D, D): P, from `encodings`; `logits`, shape (D, D).
    """
    inverse = np.linalg.inv(positions)
    return inverse.T @ logits @ inverse


class Head(NamedTuple):
    """Value component alpha and activation act(u) = u^p + nu u of a head."""

    alpha: float = 0.3
    p: int = 3
    nu: float = 1e-3


def margins(logits: FloatArray, values: FloatArray, head: Head) -> FloatArray:
    """F(X) of equation (T), set to 0 if the patches cancel up to rounding, shape (N,).

    `logits`, shape (D, D): scale times A; `values`, shape (N, D): x_j of every sample.
    """
    from scipy.special import softmax

    weights = softmax(logits, axis=1)
    inside = weights.shape[0] * head.alpha * (values @ weights.T)
    shares = inside**head.p + head.nu * inside
    total, gross = shares.sum(axis=1), np.abs(shares).sum(axis=1)
    return np.where(np.abs(total) <= 1e-12 * gross, 0.0, total)


def sharp_error(law: tuple[int, int, float], p: int = 3, group: int = 1) -> SignError:
    r"""Error of :math:`\sum_g (\sum_{l \in g} z_l)^p`: uniform attention to a group of sets.

    The sign error of attention in the limit of large s and small nu. `law`: (D, C, q); `p`: odd
    degree of the activation; `group`: number of sets that a patch attends to, a divisor of L: 1 is
    one set, its own or a shifted one; L is all sets, which gives the linear rule sign(Z). Exact up
    to rounding, by convolution over the groups.
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
    """Convolve with one more independent group; the outer ``margin`` values stay zero."""
    new = np.zeros_like(law)
    low, high = margin, law.size - margin
    for jump, weight in jumps:
        first, last = max(low, low + jump), min(high, high + jump)
        new[first:last] += weight * law[first - jump : last - jump]
    return new
