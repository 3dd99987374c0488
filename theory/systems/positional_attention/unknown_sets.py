r"""Theorem 5.2: what any algorithm can reach that does not know the sets, exactly.

"Without patch association knowledge" is read as: the partition is uniform among all partitions
into sets of C, and the algorithm knows of it what its samples tell. The feature :math:`w^\star` and
the noise-free :math:`x_j` are given for free, so what follows bounds every algorithm.

*No sample.* Given y = +1, the chance of x is proportional to the expected number of sets that are
all +1, :math:`\binom{n_+}{C}` with :math:`n_+` the number of patches at +1. The best classifier
compares :math:`\binom{n_+}{C}` with :math:`\binom{n_-}{C}`: it is sign(Z), Z = n_+ - n_-. So the
error of `linear_rules.sign_rule_error` is the least not only of linear rules, but of all.

*N samples.* Patches outside the signal set carry no information on the partition. Reveal the signal
set of every sample, k of the L sets in all, and whether the signal set of the test point is among
them. If it is not, the k sets are independent of the label, and the partition of the rest is still
uniform: sign(Z) on D - kC patches is the best. Revealing never hurts, hence

.. math:: \text{error} \geq E_k\big[(1 - k/L)\, \mathrm{errZ}(D - kC, C, q)\big],

k the number of different sets in N draws. At fixed C and m = q(D - C) the N below which this
exceeds a given error grows like D, where errZ exceeds it. Where errZ is itself o(1), which is where
m is small against C^2, the bound is void, and so is the theorem: only the feature is to be learned.

Reference: Jelassi, Sander, Li (2022), Theorem 5.2.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


def seen_sets(count: int) -> Iterator[NDArray[np.float64]]:
    """P(k of so many sets are seen), k = 0, ..., count, after 0, 1, 2, ... draws."""
    k, chance = np.arange(count + 1), np.zeros(count + 1)
    chance[0] = 1.0
    while True:
        yield chance
        chance = chance * k / count + np.append(0.0, (chance * (1 - k / count))[:-1])


def unseen_errors(D: int, C: int, q: float) -> NDArray[np.float64]:
    """(1 - k/L) times the error of sign(Z) on D - kC patches, k = 0, ..., L; shape (L + 1,)."""
    count, law, errors = D // C, np.ones(1), np.zeros(D // C + 1)
    for unseen in range(1, count + 1):
        below = max(0, (unseen - 1) * C - C)  # of the walk of the other patches, at -C
        negative, zero = law[:below].sum(), law[below] if unseen > 1 else 0.0
        errors[count - unseen] = unseen / count * (negative + zero / 2)
        for _ in range(C):
            law = np.convolve(law, [q / 2, 1 - q, q / 2])
    return errors


def least_error(D: int, C: int, q: float, samples: int) -> float:
    """A lower bound on the error of any algorithm that knows the sets from N samples only.

    Parameters
    ----------
    D, C : int
        Patches, and patches in each set.
    q : float
        Chance of a feature.
    samples : int
        N.
    """
    chance = next(itertools.islice(seen_sets(D // C), samples, None))
    return float(chance @ unseen_errors(D, C, q))


def least_samples(D: int, C: int, q: float, error: float) -> int:
    """The least N at which `least_error` is at most ``error``: fewer cannot suffice.

    Parameters
    ----------
    D, C : int
    q : float
    error : float
        Positive.
    """
    if not error > 0:
        raise ValueError(f"error={error} is not positive")
    costs = unseen_errors(D, C, q)
    pairs = enumerate(seen_sets(D // C))
    return next(samples for samples, chance in pairs if chance @ costs <= error)
