r"""Limits of attention without noise, and the assumptions of the paper on the start.

**Attention.** The odds of a query are its attention to n_* label-relevant tokens, divided by its
attention to n_# confusion tokens. With the scores B, a query of pattern j has the odds
:math:`(n_*/n_\#) e^{\pm (B_{1j} - B_{2j})}`, with + for y = 1 and - for y = -1. The product of the
odds in a positive and in a negative sample is :math:`(n_*/n_\#)^2` for every B, so training cannot
change it (`odds_identity`). With :math:`q = n_*/n_\#` and :math:`s = e^{B_{1j} - B_{2j}}`, the
attention to label-relevant tokens (mass) is bounded by

.. math:: \text{mass}_+ \leq \frac{qs}{1 + qs}, \qquad \text{mass}_- \leq \frac{q}{q + s},

with equality in the limit of zero attention to all other patterns. The bounds imply:

- No query pattern has both masses above q/(1+q), and the mean of both is at most q/(1+q)
  (`mean_is_bounded`).
- Pattern 1 has n_* tokens in a positive sample and n_# tokens in a negative sample. Hence the mean
  mass of all queries is at most its value at :math:`s = \sqrt q + 1 + 1/\sqrt q`, the `ceiling`.

This ceiling, for equally probable labels, is 1 only without confusion tokens. In
`ceiling_of_samples`, let a pattern's tokens in positive samples be the share a of all tokens, and
those in negative samples the share b. The queries of this pattern add to the mean mass at most the
maximum of :math:`a\,\text{mass}_+ + b\,\text{mass}_-`, which is attained at :math:`s = (q \sqrt a -
\sqrt b) / (q \sqrt b - \sqrt a)`. If a or b is at least :math:`q^2` times the other, the supremum
is the greater of a and b instead.

**Start.** The rows of :math:`W_O^{(0)}` are Gaussian, so their directions are uniform on the sphere
of :math:`R^{m_a}`. The share of directions within an angle theta of a given direction is

.. math:: \tfrac12 I_{\sin^2\theta}\big(\tfrac{m_a - 1}{2}, \tfrac12\big), \qquad
   \theta \leq \tfrac\pi2,

with I the regularised incomplete beta function. For small theta, this share of directions is of
order :math:`\theta^{m_a - 1}`. Lemma 3 claims the share :math:`\frac1M (1 - \epsilon_m - \theta M /
\pi)` of lucky neurons, which increases as theta decreases. Its hypothesis :math:`m \geq
\epsilon_m^{-2} M^2 \log N` on the number m of neurons, for M patterns and N samples, requires
:math:`\epsilon_m \geq M \sqrt{\log N / m}`.
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
"""Symbols: n_rest is the number of tokens of non-discriminative patterns, q is n_* / n_#, the
quotient of label-relevant and confusion tokens, and s is exp(B_1j - B_2j)."""


def attention(scores: Any, counts: Any, key: int, query: Any) -> sympy.Expr:
    """Attention of a query of pattern `query` to all keys of pattern `key`, out of 1, ..., M."""
    k = sympy.Symbol("k", integer=True, positive=True)
    total = sympy.Sum(counts[k] * sympy.exp(scores[k, query]), (k, 1, M))
    return counts[key] * sympy.exp(scores[key, query]) / total


def odds(label: int) -> sympy.Expr:
    """Attention of pattern j to label-relevant tokens, divided by that to confusion tokens."""
    scores, counts = sympy.IndexedBase("B", real=True), sympy.IndexedBase("c", positive=True)
    j = sympy.Symbol("j", integer=True, positive=True)
    first, second = (1, 2) if label > 0 else (2, 1)
    ratio = attention(scores, counts, first, j) / attention(scores, counts, second, j)
    return sympy.simplify(ratio.subs({counts[first]: n_star, counts[second]: n_confusion}))


def odds_identity(product: sympy.Expr | None = None) -> Evidence:
    """Check that the product of `odds` at y = 1 and at y = -1 is (n_* / n_#)^2 for every B."""
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
    """Upper bounds of one query's attention to label-relevant tokens, at y = +1 and at y = -1.

    The bound is r/(1 + r), where r is the attention to label-relevant tokens divided by that to
    confusion tokens (`odds`). The bound is attained in the limit of zero attention to all other
    patterns.
    """
    scores, j = sympy.IndexedBase("B", real=True), sympy.Symbol("j", integer=True, positive=True)
    values = {scores[1, j]: sympy.log(s), scores[2, j]: 0, n_star: q * n_confusion}
    first, second = (sympy.simplify(odds(label).subs(values)) for label in (1, -1))
    return sympy.cancel(first / (1 + first)), sympy.cancel(second / (1 + second))


def mean_is_bounded() -> Evidence:
    """Check that the mean and the minimum of the two `masses` are at most q/(1+q), q = n_*/n_#."""
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
    """Value of s = exp(B_1j - B_2j) that maximizes the mean attention to label-relevant tokens."""
    root = sympy.Symbol("r", positive=True)
    first, second = masses()
    mean = (q * first + second).subs(q, root**2)
    stationary = sympy.solve(sympy.numer(sympy.together(sympy.diff(mean, s))), s)
    above = [value for value in stationary if value.subs(root, 2) > 0]
    if len(above) != 1:
        raise ArithmeticError(f"{len(above)} stationary points")
    return sympy.expand(sympy.cancel(above[0])).subs(root, sympy.sqrt(q))


def ceiling(relevant: int, confusion: int, tokens: int) -> float:
    """Supremum of the attention to label-relevant tokens, as a mean over queries, without noise.

    This supremum is the same for every law in which all samples have n_* = `relevant`
    label-relevant and n_# = `confusion` < n_* confusion tokens out of L = `tokens`, and both labels
    have probability 1/2.
    """
    if confusion == 0:
        return 1.0
    # This is `ceiling_of_samples` in closed form, for equally probable labels.
    ratio = relevant / confusion
    shift = sqrt(ratio) + 1 + 1 / sqrt(ratio)
    high, low = ratio * shift / (1 + ratio * shift), ratio / (ratio + shift)
    rest = (tokens - relevant - confusion) * ratio / (1 + ratio)
    return (relevant * high + confusion * low + rest) / tokens


def ceiling_of_samples(
    relevant: int, confusion: int, positive: Sequence[float], negative: Sequence[float]
) -> float:
    """Supremum of the attention to label-relevant tokens, as a mean over queries of given samples.

    Every sample has n_* = `relevant` label-relevant and n_# = `confusion` < n_* confusion tokens.
    For each pattern, `positive` holds its number of tokens in all positive samples, divided by the
    number of all tokens; `negative` holds the same for negative samples.

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
    """Test by the odds identity whether all attention can move to label-relevant tokens."""
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
    """Share of all directions that differ from a fixed direction by at most an angle in radians."""
    from scipy.special import betainc

    inside = float(betainc((dimension - 1) / 2, 0.5, sin(angle) ** 2)) / 2
    return inside if angle <= pi / 2 else 1 - inside


def least_epsilon(M: int, neurons: int, samples: int) -> float:
    """Minimum epsilon_m that the hypothesis of Lemma 3 allows, for m neurons and N samples."""
    return M * sqrt(log(samples) / neurons)


def claimed_share(M: int, angle: float, epsilon: float = 0.0) -> float:
    """Share of lucky neurons claimed by Lemma 3, for `angle` = sigma + tau in radians."""
    return (1 - epsilon - angle * M / pi) / M


def lemma_3(
    dimension: int = 10,
    M: int = 5,
    neurons: int = 1000,
    sigma: float = 0.1,
    tau: float = 0.0,
    samples: int = 200,
) -> Evidence:
    """Compare the number of lucky neurons claimed by Lemma 3 with its expectation at the start.

    A neuron's weights have `dimension` = m_a entries, and there are `neurons` = m neurons. `sigma`
    is the error of the initial values, and `tau` the noise of a token. The claim depends on the
    number N = `samples` through epsilon_m.
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

    The printed weights map orthonormal patterns to orthogonal vectors of equal length. The standard
    deviation of the noise is `noise` = c0. `sigma` is the error of the initial values, and `delta`
    that of the initial keys and queries.
    """
    rows = (("keys", delta**2 / noise**2, delta), ("values", sigma**2 / noise**2, sigma))
    findings = tuple(
        f"{name}: length {scale:g}, at least {abs(scale - 1):g} from every unit vector, "
        f"{allowed:g} is allowed"
        for name, scale, allowed in rows
    )
    holds = all(abs(scale - 1) <= allowed for _, scale, allowed in rows)
    return Evidence(holds, f"c0 = {noise:g}, sigma = {sigma:g}, delta = {delta:g}", findings)
