r"""Theorems 3.1 and 5.2: exact errors of linear rules, and of algorithms that do not know the sets.

**Theorem 3.1.** A generalized linear model depends on the patches through one score, :math:`g =
\phi(\sum_j \langle w_j, X_j\rangle)`. Noise is orthogonal to the feature, so the best directions
are its multiples and the score is :math:`\sum_j w_j x_j` with scalars :math:`w_j`. The law is
symmetric in the label, so every error below is given y = +1, averaged over the signal sets.

*Equal weights, any link.* The score is Z, the sum of all values; given y = +1 it is C plus a walk
of D - C independent steps in {-1, 0, 1}. The walk is a mixture of simple symmetric walks, so
P(walk = k) decreases in |k| in steps of two, and :math:`P(Z = k \mid +) \geq P(Z = k \mid -)` for
k > 0. The best link is therefore sign(Z), with error P(Z < 0) + P(Z = 0)/2. With m = q(D - C), the
error exceeds 1/8 for m above about :math:`k C^2`, with :math:`k \to 1/\Phi^{-1}(7/8)^2` as C grows.

*Unequal weights, increasing link.* Slightly smaller weights of one set keep the sign of Z if Z != 0
and decide ties, which lowers the error, because the reduced set is rarely the signal set.

*Unequal weights, any link.* Weights :math:`3^j` encode all of x in the score, so some link reaches
the error of the best classifier, `data_law.bayes_error`. Probabilities are exact if q is a
``Fraction``, else floats.

**Theorem 5.2.** "Without patch association knowledge" is read as follows: the partition is uniform
among all partitions into sets of C, and the algorithm learns about it from its samples only. The
algorithm is given the feature :math:`w^\star` and the noise-free :math:`x_j`, so the bounds hold
for every algorithm.

*No sample.* Given y = +1, the probability of x is proportional to the expected number of sets that
are all +1, :math:`\binom{n_+}{C}` with :math:`n_+` the number of patches at +1. The best classifier
compares :math:`\binom{n_+}{C}` with :math:`\binom{n_-}{C}`: it is sign(Z), Z = n_+ - n_-. So
`sign_rule_error` is the smallest error of all classifiers, not only of linear rules.

*N samples.* Patches outside the signal set carry no information on the partition. Reveal the signal
set of every sample, k of the L sets in all, and whether the signal set of the test point is one of
the k sets. If not, the k sets are independent of the label, and the partition of all other patches
is still uniform, so sign(Z) on D - kC patches is optimal. Revealing does not increase the error:

.. math:: \text{error} \geq E_k\big[(1 - k/L)\, \mathrm{errZ}(D - kC, C, q)\big],

with errZ the error of sign(Z) and k the number of distinct sets in N draws. At fixed C and
m = q(D - C), the bound exceeds a fixed error for N up to order D, if errZ exceeds this error. If
errZ is o(1), for m small against C^2, both the bound and the theorem are void: only the feature
must be learned.

Reference: Jelassi, Sander, Li (2022).
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
"""Error that Theorem 3.1 claims as a lower bound for every generalized linear model."""


class SignError(NamedTuple):
    """Probabilities P(score < 0) and P(score = 0) of a linear score, given y = +1."""

    negative: Any
    zero: Any

    @property
    def error(self) -> Any:
        """Probability of a wrong label, with a score of zero decided by a fair coin."""
        return self.negative + self.zero / 2


def sign_error(law: Law) -> SignError:
    """Sign errors of a score, from its law on the integers -n..n, shape (2n + 1,)."""
    middle = law.size // 2
    return SignError(law[:middle].sum(), law[middle])


def walk_law(count: int, q: Probability) -> Law:
    """Law of the sum of `count` independent patches, each +1 or -1 with q/2 and 0 with 1 - q.

    The array holds P(sum = k) for k = -count..count, as Fractions if q is a Fraction.
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
    """Sign errors of the rule sign(Z), the best rule with equal weights for any link.

    D is the number of patches, C the number of patches in each set, and q the probability of a
    feature; a Fraction q gives an exact result.
    """
    others = D - C
    law = walk_law(others, q)
    below = max(0, others - C)
    zero = law[below] if others >= C else 0 * law[0]
    return SignError(law[:below].sum() if below else 0 * law[0], zero)


def score_law(weights: Sequence[int], partition: Partition, q: Probability) -> Law:
    """Law of the score sum_j w_j x_j given y = +1, averaged over the signal sets.

    The array holds P(score = k) for k = -n..n, where n is the sum of the absolute weights.
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
    """Error of the rule sign(sum_j w_j x_j), with ties decided by a fair coin."""
    return sign_error(score_law(weights, partition, q)).error


def best_link_error(weights: Sequence[int], partition: Partition, q: Probability) -> Any:
    """Error of the best link phi for fixed integer weights w_j of the score sum_j w_j x_j.

    The law given y = -1 is the mirror image; the smallest error is half the overlap of both.
    """
    law = score_law(weights, partition, q)
    return np.minimum(law, law[::-1]).sum() / 2


def encoding_weights(D: int) -> tuple[int, ...]:
    """Weights 3^j, for which the score determines every x_j as digits -1, 0, 1."""
    return tuple(3**j for j in range(D))


def tilted_weights(partition: Partition, tilts: Sequence[int]) -> tuple[int, ...]:
    """Nearly equal weights: the sign of the score is that of Z, or of -sum tilt_l z_l if Z = 0.

    `tilts` holds the reductions of the weights in the first sets, small enough to affect only ties.
    """
    largest = max(members.size for members in partition.sets)
    base = max(1, largest * sum(tilts)) + max(tilts, default=0)
    weights = np.full(partition.size, base)
    for members, tilt in zip(partition.sets, tilts, strict=False):
        weights[members] -= tilt
    return tuple(map(int, weights))


def best_weights(partition: Partition, q: float, largest: int) -> tuple[float, tuple[int, ...]]:
    """Smallest error of sign(sum_j w_j x_j) among integer weights 0..`largest`, with its weights.

    All weight vectors are tried up to the symmetry of the law, so the partition must have few sets
    of equal size. Negative weights cannot help: abs(w_j) gives the same law if j is outside the
    signal set, and a larger score if j is inside.
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
    """Error of sign(Z) as D grows at fixed `m` = q(D - C), where the walk has the Skellam law."""
    from scipy.special import ive

    law = ive(np.arange(C + 1), m)
    return float(1 - law[0] - 2 * law[1:C].sum() - law[C]) / 2


def crossing(C: int, D: int | None = None) -> float:
    """The m = q(D - C) at which the error of sign(Z), increasing in m, is 1/8.

    None for D gives the limit of many patches. NaN if the error is below 1/8 for every q <= 1.
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
    """Limit of crossing(C) / C^2 for large set sizes C, 0.7557."""
    from scipy.stats import norm

    return float(1 / norm.ppf(1 - float(BOUND)) ** 2)


def distinct_sets(count: int) -> Iterator[NDArray[np.float64]]:
    """Yield the array P(k distinct sets), k = 0, ..., `count`, after 0, 1, 2, ... draws."""
    k, chance = np.arange(count + 1), np.zeros(count + 1)
    chance[0] = 1.0
    while True:
        yield chance
        chance = chance * k / count + np.append(0.0, (chance * (1 - k / count))[:-1])


def unseen_errors(D: int, C: int, q: float) -> NDArray[np.float64]:
    """(1 - k/L) times the error of sign(Z) on D - kC patches, for k = 0, ..., L; shape (L + 1,)."""
    count, law, errors = D // C, np.ones(1), np.zeros(D // C + 1)
    for unseen in range(1, count + 1):
        below = max(0, (unseen - 1) * C - C)  # index of walk = -C, where Z = 0
        negative, zero = law[:below].sum(), law[below] if unseen > 1 else 0.0
        errors[count - unseen] = unseen / count * (negative + zero / 2)
        for _ in range(C):
            law = np.convolve(law, [q / 2, 1 - q, q / 2])
    return errors


def least_samples(D: int, C: int, q: float, error: float) -> int:
    """Smallest number of samples N whose lower bound E[(1 - k/L) errZ] is at most `error`.

    The bound holds for every algorithm that learns the sets from N samples only.
    """
    if not error > 0:
        raise ValueError(f"error={error} is not positive")
    costs = unseen_errors(D, C, q)
    pairs = enumerate(distinct_sets(D // C))
    return next(samples for samples, chance in pairs if chance @ costs <= error)
