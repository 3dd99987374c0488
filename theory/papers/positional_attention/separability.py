r"""Condition under which the model with three scalars can classify every sample.

Let :math:`\kappa` be the maximum of :math:`|z|/C` for a random set with the sum z. The maximum
kappa is 1 under Assumption 1, and :math:`1 - 1/C` for mixed random sets and q < 1. At full
attention (:math:`\Lambda = \Gamma = 1/C`, :math:`\Xi = 0`) every patch of a set has the attended
value z/C. A sample with y = +1 and random sets l of sum :math:`z_l` then has the output

.. math:: F = C\,act(D\alpha) + \sum_{l} C\,act(D\alpha z_l / C). \qquad (1)

This F is smallest if every random set has :math:`z_l = -\kappa C`; its parts of degree p and 1 are
then :math:`C (D\alpha)^p (1 - (L-1) \kappa^p)` and :math:`\nu D\alpha\,C (1 - (L-1)\kappa)`.

**Proposition.** Let q < 1. Some (alpha, gamma, rho) has yF > 0 on every sample of the law if and
only if :math:`(L-1)\,\kappa^p < 1` (`criterion`). If :math:`(L-1)\,\kappa^p \geq 1` and L >= 3, the
error is positive at every (alpha, gamma, rho), and alpha is bounded along every gradient flow.

**Criterion below 1.** By (1), yF > 0 on every sample for a large alpha and attention close to full
(beta = gamma, and rho much smaller). Any beta is possible, because gamma and rho are free.

**Criterion at least 1.** Let y = +1, and let every random set have the sum -kappa C; a mixed set
then has C-1 patches at -1 and one at 0. Let e be the attention of a patch to all other sets. By
symmetry the attention is doubly stochastic, so the mean attended value u of signal patches and the
mean v of random patches satisfy

.. math:: u = 1 - e (1+\kappa), \qquad u + (L-1)\,v = 1 - (L-1)\,\kappa =: -k. \qquad (2)

The linear part of F has the sign of -k, and k >= 0. This k is 0 only for kappa = 1 and L = 2; then
F = 0 by the exchange of the two sets. Let :math:`(D\alpha)^p H` be the part of F of degree p.

- If no random patch has a positive attended value (always for L >= 4), Jensen's inequality gives
  :math:`H \leq C (u^p + (L-1) v^p)`. At e = 0 this bound is :math:`C (1 - (L-1) \kappa^p) \leq 0`.
  It decreases with e while :math:`u > |v|`, and then is at most :math:`-(L-2)\,C |v|^p`.
- If some random patch has a positive attended value, then L = 3 and kappa < 1, and the criterion
  requires C >= 5. Attended values of random patches are then at most the attention :math:`\Xi` to a
  patch of another set, and :math:`\Gamma < \Xi`. With the attended values h of the patches at -1
  and h_0 of those at 0, :math:`H = C u^p + 2(C-1) h^p + 2 h_0^p` and :math:`u + h = \Gamma -
  (2C-3)\,\Xi \leq -(2C-4)\,\Xi`, so a negative term of H outweighs all positive ones.

Hence F < 0 for every alpha > 0. For alpha < 0, F < 0 if all random patches are 0.

**Bound on alpha.** The attention lies in a compact set, so these samples have :math:`F \leq
-c\,|\alpha|` or :math:`F \leq -c\,|\alpha|^p` with c > 0. With the probability P of these samples,
the risk is at least :math:`P \log(1 + e^{-F})`. This bound grows with :math:`|\alpha|`, but the
risk decreases along every gradient flow, so alpha is bounded. If instead yF > 0 on every sample,
alpha is unbounded, because for large alpha every yF increases with alpha.

The plateau of Event I (`theory.papers.positional_attention.plateau`) predicts whether the flow
*reaches* attention close to full. With a large nu, the flow may still end at an error > 0.
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
"""Cases (L, C, p) with a criterion below 1, equal to 1 and above 1."""
FINEST = 6
"""The check uses a grid of attentions (Lambda, Gamma, Xi) with integers from 0 to this number."""


def largest_share(law: SetLaw) -> float:
    """Maximum of abs(z) / C for a random set with the sum z; it is called kappa.

    Examples
    --------
    >>> largest_share(SetLaw(4, 0.5)), largest_share(SetLaw(4, 0.5, "mixed"))
    (1.0, 0.75)
    """
    return float(np.abs(law.sums[law.probabilities > 0]).max() / law.C)


def criterion(law: SetLaw, sets: int, degree: int) -> float:
    r"""Number :math:`(L-1)\,\kappa^p`; the model can classify every sample if it is below 1.

    Examples
    --------
    >>> round(criterion(SetLaw(3, 0.5, "mixed"), 3, 3), 3), criterion(SetLaw(3, 0.5), 3, 3)
    (0.593, 2.0)
    """
    return (sets - 1) * largest_share(law) ** degree


def least_margin(law: SetLaw, sets: int, degree: int, weights: tuple[int, ...]) -> int:
    r"""Minimum over samples of the degree-p part of :math:`yF`, divided by a positive factor.

    The attention (Lambda, Gamma, Xi) >= 0 is proportional to `weights`, and the factor is
    :math:`(D\alpha)^p` times a constant that makes the result an integer.

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
    """Check the proposition with integers, for a grid of attentions and all samples of small laws.

    The criterion is always that of mixed sets, so the check fails if `random_sets` is ``"any"``.
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
