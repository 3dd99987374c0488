r"""When three scalars can classify every sample.

Let :math:`\kappa` be the largest :math:`|z|/C` that a random set can have: 1 under Assumption 1,
:math:`1 - 1/C` for mixed random sets and q < 1. At full attention (:math:`\Lambda = \Gamma = 1/C`,
:math:`\Xi = 0`) every patch of a set sees z/C, so a sample with y = +1 has

.. math:: F = C\,act(D\alpha) + \sum_{l} C\,act(D\alpha z_l / C), \qquad (1)

least where every random set has :math:`z = -\kappa C`. The part of degree p is then
:math:`C (D\alpha)^p (1 - (L-1) \kappa^p)`, the linear one :math:`\nu D\alpha\,C (1 - (L-1)\kappa)`.

*Proposition.* Some (alpha, gamma, rho) has yF > 0 on every sample of the law iff
:math:`(L-1)\,\kappa^p < 1`, the `criterion`, for q < 1. If it is at least 1 and L >= 3, then the
error is positive at every state, and alpha is bounded along every flow.

*Below 1* alpha large in (1), and attention near enough to full, gives yF > 0: beta = gamma and rho
far below. The signs do not depend on beta, because gamma and rho are free.

*At least 1.* Let y = 1 and every random set have z = -kappa C (for mixed sets: C-1 patches at -1,
one at 0), with attention :math:`1 - e` inside the own set. By symmetry S is doubly stochastic, so
the means u of the signal patches and v of the random ones obey

.. math:: u = 1 - e (1+\kappa), \qquad u + (L-1)\,v = 1 - (L-1)\,\kappa =: -k. \qquad (2)

The linear part of F has the sign of -k, and k >= 0, with k = 0 only for kappa = 1, L = 2, where F
is 0 by the exchange of the two sets. Let H be the part of degree p.

- Where no random patch sees more than 0 (always for L >= 4), Jensen gives
  :math:`H \leq C (u^p + (L-1) v^p)`. While :math:`u > |v|` this falls with e, from
  :math:`C (1 - (L-1) \kappa^p) \leq 0`; from there on it is at most :math:`-(L-2)\,C |v|^p`.
- Where one does, L = 3 and kappa < 1, hence C >= 5. No random patch sees more than Xi, and
  :math:`\Gamma < \Xi`. With h what the patches at -1 see,
  :math:`u + h = \Gamma - (2C-3)\,\Xi \leq -(2C-4)\,\Xi`: a negative term of
  :math:`H = C u^p + 2(C-1) h^p + 2 h_0^p`, with :math:`h_0 \leq \Xi`, outweighs the others whatever
  the signs of u and h.

So F < 0 for every alpha > 0; for alpha < 0 the sample whose random patches are all 0 has F < 0.

S lies in a compact set, so :math:`F \leq -c\,\alpha` or :math:`-c\,\alpha^p` with c > 0, and with P
the probability of these samples :math:`R \geq P \log(1 + e^{-F})`. R falls along a flow, which
bounds alpha. Where yF > 0 on every sample nothing bounds it: for large alpha
:math:`\alpha\,\partial (yF) / \partial\alpha > 0` on each.

Whether the flow *reaches* such attention is another matter: the plateau of Event I predicts it
(`theory.papers.positional_attention.plateau`). With a large nu it may rest with an error then, too.
"""

from __future__ import annotations

import itertools

import numpy as np
import sympy
from numpy.typing import NDArray

from theory.claims import Evidence
from theory.papers.positional_attention.data_law import MIXED, SetLaw
from theory.papers.positional_attention.notation import NOTATION

L, C, D, p, alpha = NOTATION.symbols("L C D p alpha")

CASES = ((3, 3, 3), (4, 4, 5), (3, 5, 3), (5, 3, 3), (4, 4, 3), (9, 2, 3))
"""(L, C, p) on both sides of 1, and at 1."""
FINEST = 6
"""Largest of the integers that are tried as weights of a row of S."""


def largest_share(law: SetLaw) -> float:
    """kappa: the largest abs(z) / C that a random set can have.

    Examples
    --------
    >>> largest_share(SetLaw(4, 0.5)), largest_share(SetLaw(4, 0.5, "mixed"))
    (1.0, 0.75)
    """
    return float(np.abs(law.sums[law.probabilities > 0]).max() / law.C)


def criterion(law: SetLaw, sets: int, degree: int) -> float:
    r""":math:`(L-1)\,\kappa^p`; below 1 iff the model can be right on every sample.

    `law`: of every random set; `sets`: L; `degree`: p.

    Examples
    --------
    >>> round(criterion(SetLaw(3, 0.5, "mixed"), 3, 3), 3), criterion(SetLaw(3, 0.5), 3, 3)
    (0.593, 2.0)
    """
    return (sets - 1) * largest_share(law) ** degree


def least_margin(law: SetLaw, sets: int, degree: int, weights: tuple[int, ...]) -> int:
    r"""The part of degree p of :math:`yF / (D\alpha)^p`, at the worst sample, up to a factor > 0.

    `law`: of every random set; `sets`: L; `degree`: p; `weights`: (Lambda, Gamma, Xi) up to a
    common factor, not negative.

    Examples
    --------
    >>> least_margin(SetLaw(3, 0.5, "mixed"), 3, 3, (1, 1, 0))
    33
    """
    alone, within, between = weights
    types = law.types[law.probabilities > 0]
    picks = np.array(list(itertools.combinations_with_replacement(range(len(types)), sets - 1)))
    random: NDArray[np.int64] = types[picks]
    inside = random[..., 0] - random[..., 1]
    others = law.C + inside.sum(axis=1, keepdims=True) - inside
    margin = law.C * (alone + within * (law.C - 1) + between * inside.sum(axis=1)) ** degree
    for column, x in enumerate((1, -1, 0)):
        attended = alone * x + within * (inside - x) + between * others
        margin = margin + (random[..., column] * attended**degree).sum(axis=1)
    return int(margin.min())


def separability(random_sets: str = MIXED) -> Evidence:
    """The proposition in integers: attentions of a grid are tried on every sample of small laws.

    `random_sets`: law of the random sets; the criterion is that of mixed ones, to see the check
    fail.
    """
    findings, holds = [], True
    grid = [w for w in itertools.product(range(FINEST + 1), repeat=3) if any(w)]
    for sets, size, degree in CASES:
        law = SetLaw(size, 0.5, random_sets)
        number = criterion(SetLaw(size, 0.5, MIXED), sets, degree)
        right = [w for w in grid if least_margin(law, sets, degree, w) > 0]
        holds &= bool(right) == (number < 1) and ((1, 1, 0) in right) == bool(right)
        findings.append(
            f"L={sets}, C={size}, p={degree}: criterion {number:.3f}, {len(right)} of {len(grid)} "
            "attentions classify every sample"
        )
    worst = sympy.factor(C * (D * alpha) ** p * (1 - (L - 1) * (1 - 1 / C) ** p))
    return Evidence(
        holds,
        f"six (L, C, p), Lambda, Gamma, Xi in proportion to integers up to {FINEST}, all samples; "
        f"worst margin at full attention {worst}",
        tuple(findings),
    )
