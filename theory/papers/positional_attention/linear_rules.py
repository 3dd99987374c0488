r"""Theorems 3.1 and 5.2: exact errors of linear rules, and of all that do not know the sets.

**Theorem 3.1.** A generalized linear model sees the patches through one score, :math:`g =
\phi(\sum_j \langle w_j, X_j\rangle)`. Noise is orthogonal to the feature, so the best directions
are multiples of it and the score is :math:`\sum_j w_j x_j` with numbers :math:`w_j`. The label is
symmetric, so every error below is computed given y = +1, averaged over the signal sets.

Three classes of rules have different answers:

*Equal weights, any link.* The score is Z, and given y = +1 it is C plus a walk of D - C
independent steps in {-1, 0, 1}. The walk is a mixture of simple symmetric walks, so P(walk = k)
falls in |k| in steps of two, so :math:`P(Z = k \mid +) \geq P(Z = k \mid -)` for k > 0, and no
link does better than sign(Z): error P(Z < 0) + P(Z = 0)/2. With m = q(D - C) it passes 1/8 near
:math:`m = k C^2`; as C grows, :math:`k \to 1/\Phi^{-1}(7/8)^2`.

*Unequal weights, increasing link.* Shrinking the weights of one set by little leaves the sign of Z
where Z is not 0 and decides the ties, with profit: the set that is shrunk is seldom the signal.

*Unequal weights, any link.* Weights :math:`3^j` encode all of x in the score, so that some link
reaches the error of the best classifier, `data_law.bayes_error`. Probabilities are exact where q
is a ``Fraction``, floats otherwise.

**Theorem 5.2.** "Without patch association knowledge" is read as: the partition is uniform among
all partitions into sets of C, and the algorithm knows of it what its samples tell. The feature
:math:`w^\star` and the noise-free :math:`x_j` are granted, so what follows bounds every
algorithm.

*No sample.* Given y = +1, the chance of x is proportional to the expected number of sets that are
all +1, :math:`\binom{n_+}{C}` with :math:`n_+` the number of patches at +1. The best classifier
compares :math:`\binom{n_+}{C}` with :math:`\binom{n_-}{C}`: it is sign(Z), Z = n_+ - n_-. So the
error of `sign_rule_error` is the least not only of linear rules, but of all.

*N samples.* Patches outside the signal set carry no information on the partition. Reveal the signal
set of every sample, k of the L sets in all, and whether the signal set of the test point is among
them. If it is not, the k sets are independent of the label, and the partition of the rest is still
uniform: sign(Z) on D - kC patches is the best. Revealing never hurts, hence

.. math:: \text{error} \geq E_k\big[(1 - k/L)\, \mathrm{errZ}(D - kC, C, q)\big],

k the number of different sets in N draws. At fixed C and m = q(D - C) the N below which this
exceeds a fixed error grows like D, where errZ exceeds it. Where errZ is itself o(1), which is where
m is small against C^2, the bound is void, and so is the theorem: only the feature is to be learned.

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
"""The error that Theorem 3.1 says no generalized linear model can go below."""


class SignError(NamedTuple):
    """Probabilities that a score is negative or 0, given y = +1.

    `negative`, `zero`: P(score < 0) and P(score = 0).
    """

    negative: Any
    zero: Any

    @property
    def error(self) -> Any:
        """Error with ties decided by a fair coin."""
        return self.negative + self.zero / 2


def sign_error(law: Law) -> SignError:
    """Sign errors of a score, from its law on the integers -n..n, shape (2n + 1,)."""
    middle = law.size // 2
    return SignError(law[:middle].sum(), law[middle])


def walk_law(count: int, q: Probability) -> Law:
    """Law of the sum of ``count`` independent patches, each ±1 with q/2 and 0 with 1 - q.

    `count`: number of patches; `q`: chance of a feature. Returns array, shape (2 count + 1,): P(sum
    = k) for k = -count..count; Fractions if q is one.
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
    """Error of sign(Z), the best rule with equal weights, whatever its link.

    `D`, `C`: patches, and patches in each set; `q`: chance of a feature; the result is exact where
    it is a Fraction. Returns SignError: P(Z < 0), P(Z = 0) given y = +1.
    """
    others = D - C
    law = walk_law(others, q)
    below = max(0, others - C)
    zero = law[below] if others >= C else 0 * law[0]
    return SignError(law[:below].sum() if below else 0 * law[0], zero)


def score_law(weights: Sequence[int], partition: Partition, q: Probability) -> Law:
    """Law of the score sum_j w_j x_j given y = +1, averaged over the signal sets.

    `weights`: the weight of every patch; any rational rule is one of these; `partition`: the sets.
    Returns array, shape (2n + 1,): P(score = k) for k = -n..n, n the sum of abs(w).

    Notes
    -----
    Sets with the same weights are the same signal set, and a patch is three shifted additions.
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
    """Error of sign(sum_j w_j x_j), ties decided by a fair coin; arguments of `score_law`.

    `weights`, `partition`, `q`: as for `score_law`.
    """
    return sign_error(score_law(weights, partition, q)).error


def best_link_error(weights: Sequence[int], partition: Partition, q: Probability) -> Any:
    """Error of the best link phi for fixed weights; arguments of `score_law`.

    The law given y = -1 is the mirror image, so the best phi errs with half the overlap of both.

    `weights`, `partition`, `q`: as for `score_law`.
    """
    law = score_law(weights, partition, q)
    return np.minimum(law, law[::-1]).sum() / 2


def encoding_weights(D: int) -> tuple[int, ...]:
    """Weights 3^j: the score names every x_j, as digits -1, 0, 1."""
    return tuple(3**j for j in range(D))


def tilted_weights(partition: Partition, tilts: Sequence[int]) -> tuple[int, ...]:
    """Nearly equal weights: the sign of Z where it is not 0, and of -sum tilt_l z_l where it is.

    `partition`: the sets; `tilts`: by how much the first sets are shrunk, in units that decide
    nothing but ties.
    """
    largest = max(members.size for members in partition.sets)
    base = max(1, largest * sum(tilts)) + max(tilts, default=0)
    weights = np.full(partition.size, base)
    for members, tilt in zip(partition.sets, tilts, strict=False):
        weights[members] -= tilt
    return tuple(map(int, weights))


def best_weights(partition: Partition, q: float, largest: int) -> tuple[float, tuple[int, ...]]:
    """The least error of sign(sum_j w_j x_j) among all weights in 0..largest.

    `partition`: few sets of equal size: all vectors of weights are tried, up to the symmetry of the
    law; `largest`: greatest weight. Negative weights cannot help: abs(w_j) has the same law where j
    is not in the signal set, and a greater score where it is. Returns float, tuple of D ints: the
    error, and weights with it. A search up to a greatest weight, no proof beyond it.
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
    r"""Error of sign(Z) as D grows at fixed m = q(D - C).

    The walk becomes Skellam's: :math:`P(k) = e^{-m} I_k(m)`.

    `C`: patches in each set; `m`: q(D - C).
    """
    from scipy.special import ive

    law = ive(np.arange(C + 1), m)
    return float(1 - law[0] - 2 * law[1:C].sum() - law[C]) / 2


def crossing(C: int, D: int | None = None) -> float:
    """The m = q(D - C) at which the error of sign(Z) is 1/8; it grows with m.

    `C`: patches in each set; `D`: patches; None for the limit of many. Returns float: NaN where
    sign(Z) stays below 1/8 for every q <= 1.
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
    """The limit of crossing(C) / C^2 as C grows, 0.7557."""
    from scipy.stats import norm

    return float(1 / norm.ppf(1 - float(BOUND)) ** 2)


def distinct_sets(count: int) -> Iterator[NDArray[np.float64]]:
    """P(k different sets), k = 0, ..., count, after 0, 1, 2, ... draws."""
    k, chance = np.arange(count + 1), np.zeros(count + 1)
    chance[0] = 1.0
    while True:
        yield chance
        chance = chance * k / count + np.append(0.0, (chance * (1 - k / count))[:-1])


def unseen_errors(D: int, C: int, q: float) -> NDArray[np.float64]:
    """(1 - k/L) times the error of sign(Z) on D - kC patches, k = 0, ..., L; shape (L + 1,).

    `D`, `C`: patches, and patches in each set; `q`: chance of a feature.
    """
    count, law, errors = D // C, np.ones(1), np.zeros(D // C + 1)
    for unseen in range(1, count + 1):
        below = max(0, (unseen - 1) * C - C)  # of the walk of the other patches, at -C
        negative, zero = law[:below].sum(), law[below] if unseen > 1 else 0.0
        errors[count - unseen] = unseen / count * (negative + zero / 2)
        for _ in range(C):
            law = np.convolve(law, [q / 2, 1 - q, q / 2])
    return errors


def least_samples(D: int, C: int, q: float, error: float) -> int:
    """The least N that may suffice for an error, knowing the sets from N samples only.

    `error`: Positive. The lower bound E[(1 - k/L) errZ] on the error of any algorithm is at most
    that.
    """
    if not error > 0:
        raise ValueError(f"error={error} is not positive")
    costs = unseen_errors(D, C, q)
    pairs = enumerate(distinct_sets(D // C))
    return next(samples for samples, chance in pairs if chance @ costs <= error)
