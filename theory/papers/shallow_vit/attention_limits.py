r"""Limits of attention without noise, and the assumptions of the paper on the start.

*Attention*: the odds identity bounds the attention to label-relevant tokens. With c the counts of a
sample, the odds of label-relevant against confusion tokens for a query of pattern j are
:math:`(n_*/n_\#) e^{\pm (B_{1j} - B_{2j})}`, with + where y = 1. The product of the odds in a
positive and in a negative sample is therefore :math:`(n_*/n_\#)^2` for every B, and training cannot
change this product (`odds_identity`). With :math:`q = n_*/n_\#` and :math:`s = e^{B_{1j} -
B_{2j}}`,

.. math:: \text{mass}_+ \leq \frac{qs}{1 + qs}, \qquad \text{mass}_- \leq \frac{q}{q + s},

with equality in the limit of zero attention to all other patterns. The bounds imply:

- no query pattern has both masses above q/(1+q), and their mean is at most q/(1+q)
  (`mean_is_bounded`);
- pattern 1 has n_* tokens in a positive sample and n_# tokens in a negative one: the mean over all
  queries is largest at :math:`s = \sqrt q + 1 + 1/\sqrt q`, and the attention to label-relevant
  tokens there is the `ceiling`.

The ceiling is 1 only without confusion tokens. It assumes that half of all samples are positive.
For given samples, let a pattern have the token share a in positive and b in negative ones: its
queries have at most the largest :math:`a\,\text{mass}_+ + b\,\text{mass}_-`, which is at :math:`s =
(q \sqrt a - \sqrt b) / (q \sqrt b - \sqrt a)`; for samples of one label the largest value is a or b
itself (`ceiling_of_samples`).

*Start*: the rows of :math:`W_O^{(0)}` are Gaussian, so their directions are uniform on the sphere
of :math:`R^{m_a}`. The share of directions within an angle theta of a given direction is

.. math:: \tfrac12 I_{\sin^2\theta}\big(\tfrac{m_a - 1}{2}, \tfrac12\big), \qquad
   \theta \leq \tfrac\pi2,

with I the regularised incomplete beta function; the share is of order :math:`\theta^{m_a - 1}`.
Lemma 3 claims :math:`\frac1M (1 - \epsilon_m - \theta M / \pi)`, which grows as theta falls; its
hypothesis :math:`m \geq \epsilon_m^{-2} M^2 \log N` requires :math:`\epsilon_m \geq M \sqrt{\log N
/ m}`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, pi, sin, sqrt
from typing import Any

import sympy

from theory.claims import Evidence
from theory.papers.shallow_vit.notation import NOTATION

M, n_star, n_confusion = NOTATION.symbols("M n_star n_confusion")
n_rest, q, s = sympy.symbols("n_rest q s", positive=True)
"""n_rest: tokens of non-discriminative patterns; q: n_* / n_#; s: exp(B_1j - B_2j)."""


def attention(scores: Any, counts: Any, key: int, query: Any) -> sympy.Expr:
    """Attention P_ij from key i to query j, for any number of patterns, numbered from 1."""
    k = sympy.Symbol("k", integer=True, positive=True)
    total = sympy.Sum(counts[k] * sympy.exp(scores[k, query]), (k, 1, M))
    return counts[key] * sympy.exp(scores[key, query]) / total


def odds(label: int) -> sympy.Expr:
    """Odds of label-relevant against confusion tokens for a query of pattern j, in terms of B."""
    scores, counts = sympy.IndexedBase("B", real=True), sympy.IndexedBase("c", positive=True)
    j = sympy.Symbol("j", integer=True, positive=True)
    first, second = (1, 2) if label > 0 else (2, 1)
    ratio = attention(scores, counts, first, j) / attention(scores, counts, second, j)
    return sympy.simplify(ratio.subs({counts[first]: n_star, counts[second]: n_confusion}))


def odds_identity(product: sympy.Expr | None = None) -> Evidence:
    """Check that the odds at y = 1 times the odds at y = -1 equal (n_* / n_#)^2 for every B."""
    expected = (n_star / n_confusion) ** 2 if product is None else product
    product_of_odds = sympy.simplify(odds(1) * odds(-1))
    findings = (
        f"odds where y = +1: {odds(1)}",
        f"odds where y = -1: {odds(-1)}",
        f"product: {product_of_odds}",
    )
    return Evidence(
        bool(sympy.simplify(product_of_odds - expected) == 0), "B, M, j, n_*, n_# free", findings
    )


def masses() -> tuple[sympy.Expr, sympy.Expr]:
    """Largest attention to label-relevant tokens at y = +1 and at y = -1, for one query pattern.

    Odds r give the attention r/(1 + r) in the limit of zero attention to all other patterns.
    """
    scores, j = sympy.IndexedBase("B", real=True), sympy.Symbol("j", integer=True, positive=True)
    values = {scores[1, j]: sympy.log(s), scores[2, j]: 0, n_star: q * n_confusion}
    first, second = (sympy.simplify(odds(label).subs(values)) for label in (1, -1))
    return sympy.cancel(first / (1 + first)), sympy.cancel(second / (1 + second))


def mean_is_bounded() -> Evidence:
    """Check that the mean and the minimum of `masses` over y = +1 and -1 are at most q/(1+q)."""
    first, second = masses()
    bound = q / (1 + q)
    excess = sympy.factor(first + second - 2 * bound)
    stated = -q * (q - 1) * (s - 1) ** 2 / ((q + 1) * (q + s) * (q * s + 1))
    crossing = sympy.solve(sympy.numer(sympy.together(first - second)), s)
    equal = sympy.simplify(first.subs(s, 1) - bound) == 0
    holds = sympy.simplify(excess - stated) == 0 and crossing == [1] and equal
    findings = (
        f"mass where y = +1 and -1: at most {first} and {second}",
        f"sum of both bounds minus 2 q/(1 + q): {excess}, not above 0 for q > 1",
        f"both bounds are equal at s = {crossing}, with the value q/(1 + q)",
    )
    return Evidence(bool(holds), "q > 1 and s > 0 free, q = n_*/n_#", findings)


def best_shift() -> sympy.Expr:
    """Value of s = exp(B_1j - B_2j) at which the mean attention over all queries is largest."""
    root = sympy.Symbol("r", positive=True)
    first, second = masses()
    mean = (q * first + second).subs(q, root**2)
    stationary = sympy.solve(sympy.numer(sympy.together(sympy.diff(mean, s))), s)
    above = [value for value in stationary if value.subs(root, 2) > 0]
    if len(above) != 1:
        raise ArithmeticError(f"{len(above)} stationary points")
    return sympy.expand(sympy.cancel(above[0])).subs(root, sympy.sqrt(q))


def ceiling(relevant: int, confusion: int, tokens: int) -> float:
    """Least upper bound of the mean attention to label-relevant tokens, without noise.

    The bound holds for every law in which all samples have n_* = `relevant` label-relevant and n_#
    = `confusion` < n_* confusion tokens among L = `tokens`.
    """
    if confusion == 0:
        return 1.0
    # Closed form of `ceiling_of_samples` for a law with equally probable labels.
    ratio = relevant / confusion
    shift = sqrt(ratio) + 1 + 1 / sqrt(ratio)
    high, low = ratio * shift / (1 + ratio * shift), ratio / (ratio + shift)
    rest = (tokens - relevant - confusion) * ratio / (1 + ratio)
    return (relevant * high + confusion * low + rest) / tokens


def ceiling_of_samples(
    relevant: int, confusion: int, positive: Sequence[float], negative: Sequence[float]
) -> float:
    """Least upper bound of the mean attention to label-relevant tokens for given samples.

    Every sample has n_* = `relevant` and n_# = `confusion` < n_* tokens. `positive` and `negative`
    hold the share of each pattern in all tokens, from samples of one label.

    Examples
    --------
    >>> round(ceiling_of_samples(25, 3, [0.25, 0.03, 0.22], [0.03, 0.25, 0.22]), 4)
    0.9189
    >>> ceiling_of_samples(25, 3, [0.5, 0.06, 0.44], [0.0, 0.0, 0.0])
    1.0
    """
    if confusion == 0:
        return 1.0
    ratio, total = relevant / confusion, 0.0
    for a, b in zip(positive, negative, strict=True):
        up, down = ratio * sqrt(a) - sqrt(b), ratio * sqrt(b) - sqrt(a)
        if up <= 0 or down <= 0:
            total += max(a, b)
            continue
        shift = up / down
        total += a * ratio * shift / (1 + ratio * shift) + b * ratio / (ratio + shift)
    return min(1.0, total)


def proposition_2() -> Evidence:
    """Test with the odds identity whether attention can concentrate on label-relevant tokens."""
    bounded, shift = mean_is_bounded(), best_shift()
    findings = (
        *odds_identity().findings[2:],
        *bounded.findings[1:],
        f"mean over all queries: largest at s = {shift}, with q = n_*/n_#",
        f"n_* = 25, n_# = 3, L = 50 (Figure 4): at most {ceiling(25, 3, 50):.4f}",
        "without confusion tokens nothing is excluded",
    )
    excluded = bool(odds_identity().holds) and bool(bounded.holds)
    return Evidence(False if excluded else None, "no noise, n_# > 0; B, M free", findings)


def cap_share(dimension: int, angle: float) -> float:
    """Share of directions on a unit sphere within an angle (in radians) of a fixed direction."""
    from scipy.special import betainc

    inside = float(betainc((dimension - 1) / 2, 0.5, sin(angle) ** 2)) / 2
    return inside if angle <= pi / 2 else 1 - inside


def least_epsilon(M: int, neurons: int, samples: int) -> float:
    """Smallest epsilon_m that the hypothesis of Lemma 3 allows for m neurons and N samples."""
    return M * sqrt(log(samples) / neurons)


def claimed_share(M: int, angle: float, epsilon: float = 0.0) -> float:
    """Share of lucky neurons that Lemma 3 claims, for the angle sigma + tau in radians."""
    return (1 - epsilon - angle * M / pi) / M


def lemma_3(
    dimension: int = 10,
    M: int = 5,
    neurons: int = 1000,
    sigma: float = 0.1,
    tau: float = 0.0,
    samples: int = 200,
) -> Evidence:
    """Compare the claimed number of lucky neurons (Lemma 3) with the expected number at the start.

    `dimension` is m_a and `neurons` is m. `sigma` is the error of the initial values, `tau` the
    noise of a token, and `samples` the N that epsilon_m depends on.
    """
    angle, epsilon = sigma + tau, least_epsilon(M, neurons, samples)
    promised = neurons * claimed_share(M, angle, epsilon)
    lucky = neurons * cap_share(dimension, angle)
    findings = (
        f"promised: at least {promised:.0f} of {neurons}",
        f"expected: {lucky:.2g} in {dimension} dimensions, {neurons * angle / pi:.0f} in a plane",
        f"at half the angle: {neurons * claimed_share(M, angle / 2, epsilon):.0f} promised, "
        f"{neurons * cap_share(dimension, angle / 2):.2g} expected",
    )
    case = (
        f"m_a = {dimension}, M = {M}, sigma + tau = {angle:g}, N = {samples}, epsilon_m = "
        f"{epsilon:.3g}; directions uniform on the sphere"
    )
    return Evidence(lucky >= promised, case, findings)


def printed_start(noise: float = 0.01, sigma: float = 0.1, delta: float = 0.2) -> Evidence:
    """Check Assumption 1 for the initial weights printed in Section 4.1.

    The weights map orthonormal patterns to orthogonal vectors of equal length. `noise` is c0,
    `sigma` the error of the initial values, and `delta` the error of the initial keys and queries.
    """
    rows = (("keys", delta**2 / noise**2, delta), ("values", sigma**2 / noise**2, sigma))
    findings = tuple(
        f"{name}: length {scale:g}, at least {abs(scale - 1):g} from every unit vector, "
        f"{allowed:g} is allowed"
        for name, scale, allowed in rows
    )
    holds = all(abs(scale - 1) <= allowed for _, scale, allowed in rows)
    return Evidence(holds, f"c0 = {noise:g}, sigma = {sigma:g}, delta = {delta:g}", findings)
