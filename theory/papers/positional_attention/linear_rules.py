r"""Theorems 3.1 and 5.2: exact errors of linear rules, and of algorithms that do not know the sets.

**Theorem 3.1.** A generalized linear model depends on the patches only through one score, :math:`g
= \phi(\sum_j \langle w_j, X_j\rangle)` with a link :math:`\phi`. Noise is orthogonal to the
feature, so the best :math:`w_j` are multiples of the feature, and the score is
:math:`\sum_j w_j x_j` with numbers :math:`w_j`. The law is symmetric in the label, so every error
below is that for y = +1, averaged over the signal sets.

With equal weights, the score is Z, the sum of all values. For y = +1, Z is C plus a walk of D - C
independent steps in {-1, 0, 1}. The walk is a mixture of simple symmetric walks, so P(walk = k)
does not increase if abs(k) grows by 2. Hence Z = k > 0 is at least as probable for y = +1 as for y
= -1, and the best link is sign(Z), with error P(Z < 0) + P(Z = 0)/2. The error of sign(Z) exceeds
1/8 if m = q(D - C) is above about :math:`c\, C^2`, with c near `gaussian_crossing` for large C.

With unequal weights and an increasing link, the error can be smaller. If the weights of one set are
slightly reduced, the sign of the score is that of Z unless Z = 0. If Z = 0, the score has the sign
opposite to the sum of this set, which is mostly correct, because this set is rarely the signal set.

With unequal weights and any link, the weights :math:`3^j` encode all of x in the score, so some
link has the error of the best classifier, `data_law.bayes_error`. Probabilities are exact if q is a
``Fraction``, and floats otherwise.

**Theorem 5.2.** "Without patch association knowledge" is read as follows. The partition is uniform
among all partitions into sets of C patches, and the algorithm learns about it only from its
samples. The algorithm is given the feature :math:`w^\star` and the noise-free :math:`x_j`, so the
bounds hold for every algorithm.

Without samples, the probability of x given y = +1 is proportional to the expected number of sets
that are all +1, :math:`\binom{n_+}{C}` with :math:`n_+` the number of patches at +1. The best
classifier compares :math:`\binom{n_+}{C}` with :math:`\binom{n_-}{C}`, where :math:`n_-` is the
number of patches at -1. This comparison is the rule sign(Z), because Z is :math:`n_+ - n_-`. So
`sign_rule_error` is the minimum error of all classifiers, not only of linear rules.

With N samples, patches outside the signal sets carry no information on the partition. Let the
algorithm know the signal sets of all samples, which are k of the L sets, and whether the signal set
of the test point is among these k sets. If the test point has another signal set, the k sets are
independent of its label, and the partition of the other D - kC patches is uniform, so sign(Z) on
these patches is optimal. Knowing the k sets does not increase the error, so without this knowledge

.. math:: \text{error} \geq E_k\big[(1 - k/L)\, \mathrm{errZ}(D - kC, C, q)\big],

with errZ the error of sign(Z) and k the number of distinct sets in N draws. At fixed C and m = q(D
- C), the bound exceeds any error below errZ for all numbers N of samples up to order D. If m is
small against C^2, the error errZ of sign(Z) is o(1), and the bound and the theorem are void,
because only the feature must be learned.

The theorems are those of Jelassi, Sander, Li (2022).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from theory.symmetry import Partition

Law = NDArray[Any]
Probability = float | Fraction

BOUND = Fraction(1, 8)
"""Lower bound on the error of every generalized linear model, as claimed by Theorem 3.1."""


class SignError(NamedTuple):
    """Probabilities P(score < 0) and P(score = 0) of a linear score, given y = +1."""

    negative: Any
    zero: Any

    @property
    def error(self) -> Any:
        """Probability of a wrong label, if a fair coin decides at score 0."""
        return self.negative + self.zero / 2


def sign_error(law: Law) -> SignError:
    """Sign errors of a score whose law on the integers -n, ..., n is given, shape (2n + 1,)."""
    middle = law.size // 2
    return SignError(law[:middle].sum(), law[middle])


def walk_law(count: int, q: Probability) -> Law:
    """Law of the sum of `count` independent patches of a random set.

    A patch is +1 or -1 with probability q/2 each, and 0 with probability 1 - q. The array holds
    P(sum = k) for k = -count, ..., count; if q is a Fraction, so are these numbers.
    """
    if not isinstance(q, Fraction):
        law = np.ones(1)
        for _ in range(count):
            law = np.convolve(law, [q / 2, 1 - q, q / 2])
        return law
    top, bottom = q.numerator, q.denominator
    step = np.array([top, 2 * (bottom - top), top], dtype=object)
    ways = np.array([1], dtype=object)
    for _ in range(count):
        ways = np.convolve(ways, step)
    whole = (2 * bottom) ** count
    return np.array([Fraction(int(way), whole) for way in ways], dtype=object)


def sign_rule_error(D: int, C: int, q: Probability) -> SignError:
    """Sign errors of the rule sign(Z), the best rule with equal weights and any link.

    D is the number of patches, C the number of patches in each set, and q the probability that a
    random patch has a feature. If q is a Fraction, the result is exact.
    """
    others = D - C
    law = walk_law(others, q)
    below = max(0, others - C)
    zero = law[below] if others >= C else 0 * law[0]
    return SignError(law[:below].sum() if below else 0 * law[0], zero)


def score_law(weights: Sequence[int], partition: Partition, q: Probability) -> Law:
    """Law of the score sum_j w_j x_j of a sample with y = +1 and a random signal set.

    The weights are w_j, and the values of the patches x_j. The array holds P(score = k) for k = -n,
    ..., n, where n is the sum of all absolute weights.
    """
    whole = np.array(weights, dtype=np.int64)
    reach = int(np.abs(whole).sum())
    kinds = Counter(tuple(sorted(map(int, whole[members]))) for members in partition.sets)
    total, exact = len(partition.sets), isinstance(q, Fraction)
    mean = np.zeros(2 * reach + 1, dtype=object if exact else float)
    for signal, count in kinds.items():
        others = Counter(map(int, whole)) - Counter(signal)
        law = np.zeros_like(mean)
        law[reach + sum(signal)] = Fraction(1) if exact else 1.0
        for weight in others.elements():
            law = _with_patch(law, abs(weight), q)
        mean = mean + law * (Fraction(count, total) if exact else count / total)
    return mean


def _with_patch(law: Law, weight: int, q: Probability) -> Law:
    if weight == 0:
        return law
    spread = law * (1 - q)
    spread[weight:] += law[:-weight] * (q / 2)
    spread[:-weight] += law[weight:] * (q / 2)
    return spread


def weighted_rule_error(weights: Sequence[int], partition: Partition, q: Probability) -> Any:
    """Error of the rule sign(sum_j w_j x_j), if a fair coin decides at score 0."""
    return sign_error(score_law(weights, partition, q)).error


def best_link_error(weights: Sequence[int], partition: Partition, q: Probability) -> Any:
    """Error of the best function of the score sum_j w_j x_j with given integer weights w_j.

    The law of the score for y = -1 is the mirror image of its law for y = +1. The minimum error is
    half of the sum over all scores of the smaller of P(score | y = +1) and P(score | y = -1).
    """
    law = score_law(weights, partition, q)
    return np.minimum(law, law[::-1]).sum() / 2


def encoding_weights(D: int) -> tuple[int, ...]:
    """Weights 3^j, with which the score determines the value -1, 0 or 1 of every patch j."""
    return tuple(3**j for j in range(D))


def tilted_weights(partition: Partition, tilts: Sequence[int]) -> tuple[int, ...]:
    """Nearly equal weights; unless the sum Z of all values is 0, the score has the sign of Z.

    `tilts` holds the numbers tilt_l by which the weights in the first sets are reduced. If Z = 0,
    the sign of the score is that of -sum tilt_l z_l, with z_l the sum of the values in set l.
    """
    largest = max(members.size for members in partition.sets)
    base = max(1, largest * sum(tilts)) + max(tilts, default=0)
    weights = np.full(partition.size, base)
    for members, tilt in zip(partition.sets, tilts, strict=False):
        weights[members] -= tilt
    return tuple(map(int, weights))


def best_weights(partition: Partition, q: float, largest: int) -> tuple[float, tuple[int, ...]]:
    """Minimum error of sign(sum_j w_j x_j) with integer weights 0, ..., `largest`, and its weights.

    All weight vectors are tried, up to symmetry; the partition must have few sets, of equal size.
    Negative weights do not decrease the error. If abs(w_j) replaces w_j, the law of the score is
    unchanged for patch j outside the signal set, and the score is larger for j inside.
    """
    size, count = partition.sets[0].size, len(partition.sets)
    kinds = itertools.combinations_with_replacement(range(largest + 1), size)
    candidates: list[tuple[float, tuple[int, ...]]] = []
    for vectors in itertools.combinations_with_replacement(tuple(kinds), count):
        weights = np.zeros(partition.size, dtype=np.int64)
        for members, values in zip(partition.sets, vectors, strict=True):
            weights[members] = values
        whole = tuple(map(int, weights))
        candidates.append((float(weighted_rule_error(whole, partition, q)), whole))
    return min(candidates)


def limit_error(C: int, m: float) -> float:
    """Error of sign(Z), Z the sum of all values, for D -> inf at fixed `m` = q(D - C) (Skellam)."""
    from scipy.special import ive

    law = ive(np.arange(C + 1), m)
    return float(1 - law[0] - 2 * law[1:C].sum() - law[C]) / 2


def crossing(C: int, D: int | None = None) -> float:
    """Number m = q(D - C) at which the error of sign(Z) is 1/8; the error increases with m.

    If D is None, the number of patches is infinite. Returns NaN if the error is below 1/8 for every
    q <= 1.
    """
    from scipy.optimize import brentq

    bound = float(BOUND)
    if D is None:
        return float(brentq(lambda m: limit_error(C, m) - bound, 0.1 * C**2, 2.0 * C**2))
    others = D - C

    def excess(m: float) -> float:
        return float(sign_rule_error(D, C, m / others).error) - bound

    return float(brentq(excess, 0.0, others)) if excess(others) > 0 else float("nan")


def gaussian_crossing() -> float:
    """Limit of crossing(C) / C^2 for large set sizes C, which is 0.7557."""
    from scipy.stats import norm

    return float(1 / norm.ppf(1 - float(BOUND)) ** 2)


def distinct_sets(count: int) -> Iterator[NDArray[np.float64]]:
    """Yield, after 0, 1, 2, ... draws, the probabilities of k = 0, ..., `count` distinct sets."""
    k, chance = np.arange(count + 1), np.zeros(count + 1)
    chance[0] = 1.0
    while True:
        yield chance
        chance = chance * k / count + np.append(0.0, (chance * (1 - k / count))[:-1])


def unseen_errors(D: int, C: int, q: float) -> NDArray[np.float64]:
    """Lower bounds on the error if k = 0, ..., L of the L sets are known, shape (L + 1,)."""
    count, law, errors = D // C, np.ones(1), np.zeros(D // C + 1)
    for unseen in range(1, count + 1):
        below = max(0, (unseen - 1) * C - C)  # index of the value -C of the walk, at which Z = 0
        negative, zero = law[:below].sum(), law[below] if unseen > 1 else 0.0
        errors[count - unseen] = unseen / count * (negative + zero / 2)
        for _ in range(C):
            law = np.convolve(law, [q / 2, 1 - q, q / 2])
    return errors


def least_samples(D: int, C: int, q: float, error: float) -> int:
    """Minimum number of samples for which the lower bound on the error is at most `error`.

    The bound holds for every algorithm that learns the sets from N samples only.
    """
    if not error > 0:
        raise ValueError(f"error={error} is not positive")
    costs = unseen_errors(D, C, q)
    pairs = enumerate(distinct_sets(D // C))
    return next(samples for samples, chance in pairs if chance @ costs <= error)
