r"""Data law of Definition 2.1 and Assumption 1, and its variation with mixed random sets.

D patches :math:`X_j` in :math:`R^d` are split into L = D/C disjoint sets of C patches. The label y
is +1 or -1 with probability 1/2 each, and a signal set is drawn uniformly. The value of a patch is
:math:`x_j = \langle w^\star, X_j\rangle`. Every patch of the signal set has the value y; any other
patch has the value +1, -1, 0 with probability q/2, q/2, 1-q. Noise is centred and orthogonal to the
feature :math:`w^\star`.

A set with a patches at +1 and b at -1 has the *type* (a, b). Given y, the L-1 random sets are
independent, and each has the type (a, b) with probability

.. math:: P(a, b) = \frac{C!}{a!\, b!\, (C-a-b)!}
   \Big(\frac q2\Big)^{a+b} (1-q)^{C-a-b}. \qquad (1)

Under Assumption 1, all patches of a random set are +1, or all are -1, with probability :math:`2
(q/2)^C`. A random set of one sign looks like a signal set, so no classifier is correct on every
sample. The law of mixed random sets, ``random_sets = "mixed"``, sets the probability of the types
(C, 0) and (0, C) to 0 and divides (1) by :math:`1 - 2 (q/2)^C` for all other types. Under the mixed
law, a sample determines its label. The mixed law is not in the paper (Jelassi, Sander, Li 2022).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import factorial, prod

import numpy as np
import sympy
from numpy.typing import NDArray

from theory.papers.positional_attention.linear_rules import walk_law
from theory.papers.positional_attention.notation import NOTATION

a, b, C, q = NOTATION.symbols("a b C q")

ANY, MIXED = "any", "mixed"
RANDOM_SETS = (ANY, MIXED)
"""Laws of random sets: ``"any"`` is Assumption 1, and ``"mixed"`` excludes sets of one sign."""
LARGEST_FACTORIAL = 150
"""Maximum set size C for which probabilities are computed from integers and correctly rounded;
above it, they are computed by scipy.stats.multinomial."""
VALUE_PROBABILITY = {1: q / 2, -1: q / 2, 0: 1 - q}
"""Mapping from each value of a patch in a random set to its probability under Assumption 1."""


def composition() -> dict[int, sympy.Expr]:
    """Mapping from each value of a patch to its number of patches in a set of type (a, b)."""
    return {1: a, -1: b, 0: C - a - b}


def type_probability(random_sets: str = ANY) -> sympy.Expr:
    """Probability P(a, b) of a set type: equation (1), or its mixed form for ``"mixed"``."""
    counts = composition()
    arrangements = sympy.factorial(C) / sympy.Mul(*map(sympy.factorial, counts.values()))
    chances = [VALUE_PROBABILITY[value] ** count for value, count in counts.items()]
    share = 1 - 2 * (q / 2) ** C if random_sets == MIXED else sympy.Integer(1)
    return arrangements * sympy.Mul(*chances) / share


@dataclass(frozen=True)
class SetLaw:
    """Law of a random set of `C` patches, in which a patch has a feature with probability `q`.

    `random_sets` is one of `RANDOM_SETS`.

    Examples
    --------
    >>> SetLaw(2, 0.5).probabilities.tolist()
    [0.25, 0.25, 0.0625, 0.25, 0.125, 0.0625]
    >>> SetLaw(2, 0.5, "mixed").probabilities.round(4).tolist()
    [0.2857, 0.2857, 0.0, 0.2857, 0.1429, 0.0]
    """

    C: int
    q: float
    random_sets: str = ANY

    @cached_property
    def types(self) -> NDArray[np.int64]:
        """Numbers of patches at +1, -1 and 0 in each set type, shape (K, 3), K = (C+1)(C+2)/2."""
        pairs = [(a, b) for a in range(self.C + 1) for b in range(self.C + 1 - a)]
        return np.array([(a, b, self.C - a - b) for a, b in pairs])

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """Probability of each set type, shape (K,); see `rounding` for its accuracy."""
        types, chances = self.types, [self.q / 2, self.q / 2, 1 - self.q]
        mixed = self.random_sets == MIXED
        if self.C > LARGEST_FACTORIAL:
            from scipy.stats import multinomial

            law = np.asarray(multinomial.pmf(types, self.C, chances))
            law = law / self.mixed_share if mixed else law
        else:
            # A float q is a fraction n/m, so every probability is a quotient of integers.
            n, m = float(self.q).as_integer_ratio()
            whole = (2 * m) ** self.C - (2 * n**self.C if mixed else 0)
            law = np.array(
                [
                    factorial(self.C) // prod(map(factorial, counts))
                    * n ** (counts[0] + counts[1]) * (2 * (m - n)) ** counts[2] / whole
                    for counts in types.tolist()
                ]
            )  # fmt: skip
        return np.where(types[:, :2].max(axis=1) == self.C, 0.0, law) if mixed else law

    @property
    def rounding(self) -> float:
        """Bound on the relative error of the probabilities of all set types."""
        unit = 2.0**-53
        return unit if self.C <= LARGEST_FACTORIAL else 64 * self.C * float(np.log(self.C)) * unit

    @property
    def mixed_share(self) -> float:
        """Probability, under Assumption 1, that a random set is neither all +1 nor all -1."""
        return float(1 - 2 * (self.q / 2) ** self.C)

    @property
    def sums(self) -> NDArray[np.int64]:
        """Sum a - b of the values of all patches for each set type (a, b), shape (K,)."""
        return self.types[:, 0] - self.types[:, 1]


def configurations(
    sets: tuple[tuple[int, ...], ...], random_sets: str = ANY
) -> Iterator[tuple[int, tuple[int, ...], sympy.Expr]]:
    """Yield (label, values of all patches, probability) for every outcome of a small partition."""
    size = sum(map(len, sets))
    for label, signal in itertools.product((1, -1), sets):
        others = [i for i in range(size) if i not in signal]
        random = [members for members in sets if members != signal]
        for values in itertools.product(VALUE_PROBABILITY, repeat=len(others)):
            patches = dict.fromkeys(signal, label) | dict(zip(others, values, strict=True))
            weight = sympy.prod([VALUE_PROBABILITY[x] for x in values])
            if random_sets == MIXED:
                if any(abs(sum(patches[i] for i in members)) == len(members) for members in random):
                    continue
                shares = [1 - 2 * (q / 2) ** len(members) for members in random]
                weight = weight / sympy.prod(shares)
            yield label, tuple(patches[i] for i in range(size)), weight / (2 * len(sets))


def bayes_error(law: SetLaw, sets: int) -> float:
    """Irreducible error of the law, made by the best classifier that knows partition and feature.

    Given the values of all patches, the likelihood of y = +1 (or -1) is proportional to the number
    n_+ (or n_-) of sets whose patches are all at +1 (or -1). The best classifier predicts the sign
    of n_+ - n_-, and errs with probability 1/2 if this is 0. For y = +1, n_+ - n_- is 1 plus a walk
    over the L - 1 = `sets` - 1 random sets, in which each step is +1 or -1 with probability (q/2)^C
    each. Mixed random sets never have all patches at +1 or all at -1, so their error is 0.
    """
    if law.random_sets == MIXED:
        return 0.0
    walk = np.pad(walk_law(sets - 1, 2 * (law.q / 2) ** law.C), 1)
    return float(walk[: sets - 1].sum() + walk[sets - 1] / 2)
