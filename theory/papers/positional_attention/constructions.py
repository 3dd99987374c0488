r"""Theorem 3.2: transformers that generalize although patches do not attend to their own set.

*Shift.* Logits :math:`A_{ij} = s` for j in the set after i's, 0 elsewhere. Every patch of a set
sees the next set, so F is that of attention to the own set with its rows permuted, :math:`F(X) =
\sum_l C\,act(D\alpha z_l/C)` in the sharp limit of large s.

*Pairs.* Logits that are a Gram matrix, hence symmetric and positive semidefinite: sets are paired,
with a for the partner, a - g for the own set and a + (C-1) g on the diagonal, the least that keeps
it so (eigenvalues 2Ca, Cg, 0). Off the diagonal the C largest are the partner's.

*Definition 2.2 as written* takes the C largest of :math:`\langle p_i, p_j\rangle` over all j,
:math:`j = i` included. For the longest :math:`p_i`, Cauchy-Schwarz gives :math:`\langle p_i, p_j
\rangle \leq |p_i|^2`, so i is among its own C largest, ties aside: no transformer whatever keeps
Top_C of the Gram matrix off the own set in every row. `overlap` therefore reports with and without
the diagonal. Query and key maps are free, so `query_key` gives any logits to positional encodings
whose Gram matrix is any other, as long as it is regular: both can avoid the own sets at once.

Reference: Jelassi, Sander, Li (2022), Definition 2.2 and Theorem 3.2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from theory.law import FloatArray
from theory.papers.positional_attention.linear_rules import SignError, sign_error, walk_law
from theory.symmetry import Partition


class Overlap(NamedTuple):
    """Number of the C largest entries of a row that lie in the row's own set, in the worst row.

    `fewest`, `most`: with ties decided against the own set, and for it.
    """

    fewest: int
    most: int


def set_logits(partition: Partition, strength: float, shift: int = 1) -> FloatArray:
    """Logits A_ij = strength for j in the set ``shift`` after that of i, 0 elsewhere.

    `partition`: the sets; `strength`: s; `shift`: 0 for the own set, 1 for the next. Returns float
    array, shape (D, D).
    """
    labels = partition.labels
    attended = (labels + shift) % len(partition.sets)
    return np.where(attended[:, None] == labels[None, :], float(strength), 0.0)


def paired_logits(partition: Partition) -> FloatArray:
    """Symmetric positive semidefinite logits whose largest off-diagonal entries are a partner's.

    These are 6, those of the own set less by 1e-3.

    `partition`: an even number of sets of equal size. Returns float array, shape (D, D). Raises
    ValueError if the sets cannot be paired.
    """
    labels, sizes = partition.labels, {members.size for members in partition.sets}
    if len(partition.sets) % 2 or len(sizes) > 1:
        raise ValueError("sets are paired where their number is even and their sizes are equal")
    partner, gap = 6.0, 1e-3
    logits = np.where((labels[:, None] ^ 1) == labels[None, :], partner, 0.0)
    logits[labels[:, None] == labels[None, :]] = partner - gap
    np.fill_diagonal(logits, partner + (sizes.pop() - 1) * gap)
    return logits


def neighbour_gram(partition: Partition) -> FloatArray:
    """A positive definite Gram matrix: 1 for the sets before and after, 0 else off the diagonal.

    Its encodings are linearly independent, and off the diagonal nothing of the own set is among
    their C largest; the diagonal, 1 + D, exceeds the sum of the row.
    """
    labels, count = partition.labels, len(partition.sets)
    apart = (labels[:, None] - labels[None, :]) % count
    neighbours = (apart == 1) | (apart == count - 1)
    return np.where(neighbours, 1.0, 0.0) + (1.0 + partition.size) * np.eye(partition.size)


def overlap(scores: FloatArray, partition: Partition, diagonal: bool) -> Overlap:
    """Members of the own set among the C largest scores of a row, in the worst row.

    `scores`, shape (D, D): a Gram matrix, or logits; `partition`: the sets; `diagonal`: whether j =
    i takes part, as Definition 2.2 is written.
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
    """Positional encodings of a Gram matrix: columns p_i of P with P^T P = gram.

    `gram`, shape (D, D): symmetric, positive semidefinite up to rounding. Raises ValueError if it
    is not.
    """
    values, vectors = np.linalg.eigh(gram)
    if values[0] < -1e-12 * max(1.0, values[-1]) or not np.array_equal(gram, gram.T):
        raise ValueError("a Gram matrix is symmetric and positive semidefinite")
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T


def query_key(positions: FloatArray, logits: FloatArray) -> FloatArray:
    """W = W_Q^T W_K with P^T W P = logits, for encodings P that are linearly independent.

    `positions`, shape (D, D): P, of `encodings`; `logits`, shape (D, D).
    """
    inverse = np.linalg.inv(positions)
    return inverse.T @ logits @ inverse


class Head(NamedTuple):
    """Value component and activation: act(D alpha .) of the attended sum, act(u) = u^p + nu u."""

    alpha: float = 0.3
    p: int = 3
    nu: float = 1e-3


def margins(logits: FloatArray, values: FloatArray, head: Head) -> FloatArray:
    """F(X) of equation (T), exact zeros where the patches cancel up to rounding.

    `logits`, shape (D, D): a, the scale included; `values`, shape (N, D): x_j of every sample.
    Returns float array, shape (N,).
    """
    from scipy.special import softmax

    weights = softmax(logits, axis=1)
    inside = weights.shape[0] * head.alpha * (values @ weights.T)
    shares = inside**head.p + head.nu * inside
    total, gross = shares.sum(axis=1), np.abs(shares).sum(axis=1)
    return np.where(np.abs(total) <= 1e-12 * gross, 0.0, total)


def sharp_error(law: tuple[int, int, float], p: int = 3, group: int = 1) -> SignError:
    r"""Error of :math:`\sum_g (\sum_{l \in g} z_l)^p`: uniform attention to a group of sets.

    The limit of large s and small nu of attention to one set (``group`` 1, own or shifted), to a
    pair of sets (2), to everything (L, where the sign is that of Z, a linear rule).

    `law`: of the data; `p`: odd degree of the activation; `group`: sets in a group; divides L.
    Returns SignError: exact up to rounding, by convolution over the groups.
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
    """One more independent group; the first and last ``margin`` values stay out of reach."""
    new = np.zeros_like(law)
    low, high = margin, law.size - margin
    for jump, weight in jumps:
        first, last = max(low, low + jump), min(high, high + jump)
        new[first:last] += weight * law[first - jump : last - jump]
    return new
