r"""Law of the count vectors: the number of tokens of each pattern in a sample.

Labels y are +1 or -1 with probability 1/2 each. The label-relevant pattern is 1 if y = 1, and 2 if
y = -1; the confusion pattern is the other one of the two. Of the L tokens of a sample,

.. math:: n_* = \lfloor \alpha_* L + \tfrac12 \rfloor, \qquad
   n_\# = \lfloor \alpha_\# L + \tfrac12 \rfloor

are label-relevant and confusion tokens. The M - 2 other patterns share the remaining tokens. There
are three laws:

- ``fixed`` splits the remaining tokens as evenly as possible, equally in every sample ("we set the
  ratio of different patterns the same among all the data", Section 4.1). ``fixed`` has two samples.
- ``fixed_disc`` draws the remaining counts from a multinomial law with equal probabilities.
- ``iid`` draws every token independently. A token is label-relevant with probability
  :math:`\alpha_*`, confusion with probability :math:`\alpha_\#`, and else uniform over the other
  patterns. Samples with equal counts of patterns 1 and 2 are rejected. In a sample with more
  confusion than label-relevant tokens, the two patterns are exchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb, floor

import numpy as np

from theory.color_refinement import IntArray
from theory.law import FloatArray

LABELS = (1, -1)
SPARSIFIERS = ("random", "irrelevant", "noisiest")
"""Rules for the order in which tokens are removed from a sample (Remark 2)."""


def rounded(share: float, tokens: int) -> int:
    """Number of tokens in a share of all L = `tokens`, to the nearest integer, halves up.

    The product of `share` and L is first rounded to 9 digits, which removes floating-point error.
    """
    return floor(round(share * tokens, 9) + 0.5)


@dataclass(frozen=True)
class Shares:
    """Parameters of the law of the count vectors.

    A sample has `L` tokens of `M` patterns. `alpha_star` and `alpha_confusion` are the shares of
    label-relevant and of confusion tokens.
    """

    M: int
    L: int
    alpha_star: float
    alpha_confusion: float

    @property
    def n_star(self) -> int:
        """Number of label-relevant tokens of a sample, for ``fixed`` and ``fixed_disc``."""
        return rounded(self.alpha_star, self.L)

    @property
    def n_confusion(self) -> int:
        """Number of confusion tokens of a sample, for ``fixed`` and ``fixed_disc``."""
        return rounded(self.alpha_confusion, self.L)

    @property
    def n_rest(self) -> int:
        """Number of non-discriminative tokens of a sample, for ``fixed`` and ``fixed_disc``."""
        return self.L - self.n_star - self.n_confusion


@dataclass(frozen=True, eq=False)
class Law:
    """All possible count vectors, with their labels (1 or -1) and probabilities.

    Each row of `counts`, shape (n, M), holds the number of tokens of each pattern; its sum is L.
    """

    counts: IntArray
    labels: IntArray
    probability: FloatArray


def compositions(total: int, parts: int) -> IntArray:
    """All vectors of `parts` integers >= 0 with the sum `total`, sorted, shape (n, parts)."""
    if parts == 1:
        return np.array([[total]], dtype=np.int64)
    blocks = []
    for first in range(total + 1):
        rest = compositions(total - first, parts - 1)
        blocks.append(np.column_stack([np.full(len(rest), first), rest]))
    return np.concatenate(blocks)


def multinomial(counts: IntArray, chances: FloatArray) -> FloatArray:
    """Multinomial probability of each row of counts, shape (n,), with 0^0 = 1."""
    logs = np.log(np.arange(1, counts.sum(axis=1).max(initial=0) + 1))
    factorials = np.concatenate([[0.0], np.cumsum(logs)])
    possible = ((counts == 0) | (chances > 0)).all(axis=1)
    safe = np.log(np.where(chances > 0, chances, 1.0))
    exponent = factorials[counts.sum(axis=1)] - factorials[counts].sum(axis=1) + counts @ safe
    return np.where(possible, np.exp(exponent), 0.0)


def even_rest(shares: Shares) -> IntArray:
    """Number of tokens of each of the M - 2 other patterns, split evenly, larger numbers first."""
    each, more = divmod(shares.n_rest, shares.M - 2)
    return each + (np.arange(shares.M - 2) < more).astype(np.int64)


def chances(shares: Shares) -> FloatArray:
    """Probability of each pattern in a token under the law ``iid``, label-relevant first, (M,)."""
    stars, others = (shares.alpha_star, shares.alpha_confusion), shares.M - 2
    rest = max(0.0, 1.0 - sum(stars))
    result = np.array([*stars, *(rest / others,) * others])
    return np.asarray(result / result.sum())


def _fixed(shares: Shares) -> tuple[IntArray, FloatArray]:
    row = [shares.n_star, shares.n_confusion, *even_rest(shares).tolist()]
    return np.array([row], dtype=np.int64), np.ones(1)


def _fixed_disc(shares: Shares) -> tuple[IntArray, FloatArray]:
    others = shares.M - 2
    rest = compositions(shares.n_rest, others)
    head = np.tile([shares.n_star, shares.n_confusion], (len(rest), 1))
    return np.column_stack([head, rest]), multinomial(rest, np.full(others, 1 / others))


def _iid(shares: Shares) -> tuple[IntArray, FloatArray]:
    counts = compositions(shares.L, shares.M)
    counts = counts[counts[:, 0] > counts[:, 1]]
    swapped = counts[:, [1, 0, *range(2, shares.M)]]
    each = chances(shares)
    chance = multinomial(counts, each) + multinomial(swapped, each)
    return counts, chance / chance.sum()


_LAWS: dict[str, Callable[[Shares], tuple[IntArray, FloatArray]]] = {
    "fixed": _fixed,
    "fixed_disc": _fixed_disc,
    "iid": _iid,
}

DATA = tuple(_LAWS)
"""Names of the three laws of the count vectors."""


def support_size(shares: Shares, data: str) -> int:
    """Number of pairs (count vector, label) that a law can have, computed without a list of them.

    ``iid`` includes pairs of probability 0. Raises KeyError unless `data` is in `DATA`.
    """
    M, L = shares.M, shares.L
    ties = sum(comb(L - 2 * k + M - 3, M - 3) for k in range(L // 2 + 1))
    sizes = {
        "fixed": 1,
        "fixed_disc": comb(shares.n_rest + M - 3, M - 3),
        "iid": (comb(L + M - 1, M - 1) - ties) // 2,
    }
    return 2 * sizes[data]


def law(shares: Shares, data: str) -> Law:
    """Law named `data`; the count vectors at y = 1 come first, then their mirror images."""
    counts, chance = _LAWS[data](shares)
    counts, chance = counts[chance > 0], chance[chance > 0]
    mirrored = counts[:, [1, 0, *range(2, shares.M)]]
    return Law(
        counts=np.concatenate([counts, mirrored]),
        labels=np.repeat(LABELS, len(counts)),
        probability=np.tile(chance, 2) / 2,
    )
