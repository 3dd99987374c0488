r"""Proofs of Lemmas 4.1 and 4.2, and increments of Lemma 4.3, by computation.

For Lemma 4.1, the exact risk R of a small case has a free symbol for *every* off-diagonal entry of
A. The derivatives of R are taken at an A that is constant on its orbits. With the margin m = y
F(X),

.. math:: \frac{\partial R}{\partial A_{kl}}
   = -\sum_m \frac{1}{1 + e^m} \sum_{X:\, yF(X) = m} P(X)\, \frac{\partial (yF)}{\partial A_{kl}}

and two derivatives are equal if the coefficients of 1/(1 + e^m) are equal for each distinct m.

For Lemma 4.2, a component :math:`\varepsilon u` orthogonal to the feature w* is added to v. The
derivative by :math:`\varepsilon` at 0 is averaged over the noise by means of its moments.

For Lemma 4.3, the increments of gamma and rho are derived at leading order, from the signal set
alone. Each increment divided by the bound of the lemma is the lemma's factor "polylog(d)".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

import sympy

from theory.claims import Evidence
from theory.papers.positional_attention import model
from theory.papers.positional_attention.data_law import configurations
from theory.papers.positional_attention.model import ORBITS, orbit_of, row_entries
from theory.papers.positional_attention.notation import NOTATION
from theory.papers.positional_attention.recursion import increment_scale, leading_increment
from theory.symmetry import Partition, classes

alpha, beta, gamma, rho, scale = NOTATION.symbols("alpha beta gamma rho scale")
C, D = NOTATION.symbols("C D")

SMALL = Partition.contiguous((2, 2))
DEGREE = 3

Law = Iterable[tuple[int, tuple[int, ...], sympy.Expr]]
Profile = dict[sympy.Expr, sympy.Expr]


def free_matrix(size: int) -> sympy.Matrix:
    """Matrix A with a separate symbol for every off-diagonal entry, and beta on the diagonal."""
    entry = lambda i, j: beta if i == j else sympy.Symbol(f"A_{i}{j}", real=True)  # noqa: E731
    return sympy.Matrix(size, size, entry)


def small_law() -> list[tuple[int, tuple[int, ...], sympy.Expr]]:
    """All outcomes for D = 4, C = 2: two labels, two signal sets, nine values of the random set."""
    return list(configurations(tuple(tuple(map(int, s)) for s in SMALL.sets)))


def gradient_profiles(law: Law) -> dict[tuple[int, int], Profile]:
    """Derivatives of the risk by off-diagonal entries (k, l) of A, if A is constant on orbits."""
    free = free_matrix(SMALL.size)
    at_point, seen = _symmetric_point(free), sympy.symbols(f"x_0:{SMALL.size}", real=True)
    output = model.output(free, [alpha * x for x in seen], DEGREE)
    # The derivative is taken once, with symbolic patches, and evaluated at every outcome.
    margin = at_point(output)
    pairs = [(k, m) for k in range(SMALL.size) for m in range(SMALL.size) if k != m]
    slopes = {pair: at_point(sympy.diff(output, free[pair])) for pair in pairs}
    profiles: dict[tuple[int, int], Profile] = {
        pair: defaultdict(lambda: sympy.Integer(0)) for pair in pairs
    }
    for label, values, weight in law:
        given = dict(zip(seen, map(sympy.Integer, values), strict=True))
        key = sympy.expand(label * margin.xreplace(given))
        for pair, slope in slopes.items():
            profiles[pair][key] += weight * label * slope.xreplace(given)
    return {
        pair: {key: sympy.expand(value) for key, value in profile.items()}
        for pair, profile in profiles.items()
    }


def _symmetric_point(free: sympy.Matrix) -> Callable[[sympy.Expr], sympy.Expr]:
    """Function that sets A_ij to gamma within and rho between sets, in terms of Gamma and Xi."""
    size, per_set = SMALL.size, SMALL.sets[0].size
    values = {
        free[i, j]: NOTATION.symbol(orbit_of(SMALL, i, j))
        for i in range(size)
        for j in range(size)
        if i != j
    }
    counts = {o: n.subs({D: size, C: per_set}) for o, n in row_entries().items()}
    total = sympy.Add(*[counts[o] * sympy.exp(scale * NOTATION.symbol(o)) for o in ORBITS])
    row_sum, weights = sympy.Symbol("B", positive=True), dict(model.ATTENTION)
    weights["beta"] = 1 - counts["gamma"] * weights["gamma"] - counts["rho"] * weights["rho"]
    back = {sympy.exp(scale * NOTATION.symbol(o)): row_sum * weights[o] for o in ORBITS}

    def evaluate(expression: sympy.Expr) -> sympy.Expr:
        return sympy.expand(expression.xreplace(values).subs(total, row_sum).subs(back))

    return evaluate


def lemma_4_1(law: Law | None = None) -> Evidence:
    """Check that entries of A in one orbit have equal gradients (D = 4, C = 2, p = 3)."""
    profiles = gradient_profiles(small_law() if law is None else law)
    orbits = classes(SMALL)
    findings, holds = [], True
    for index, (i, j) in enumerate(orbits.representatives):
        members = [pair for pair in profiles if orbits.labels[pair] == index]
        if members:
            equal = all(profiles[pair] == profiles[members[0]] for pair in members)
            holds &= equal
            verdict = "one gradient" if equal else "different gradients"
            findings.append(f"orbit of ({i}, {j}): {len(members)} entries, {verdict}")
    return Evidence(
        holds, "D=4, C=2, p=3; q, nu, beta, scale and all 12 entries free", tuple(findings)
    )


def centred_moment(order: int) -> sympy.Expr:
    """Moment of the noise along a unit vector, which is normal with mean 0 and variance sigma^2."""
    sigma = NOTATION.symbol("sigma")
    odd = order % 2
    return sympy.Integer(0) if odd else sigma**order * sympy.factorial2(order - 1)


def lemma_4_2(moment: Callable[[int], sympy.Expr] = centred_moment) -> Evidence:
    """Check for any S that the gradient by v at v = alpha w* has no component orthogonal to w*."""
    weights = sympy.Matrix(SMALL.size, SMALL.size, sympy.symbols("S_0:4:4", real=True))
    epsilon = sympy.Symbol("epsilon", real=True)
    noise = sympy.symbols(f"xi_0:{SMALL.size}", real=True)
    seen = sympy.symbols(f"x_0:{SMALL.size}", real=True)
    projections = [alpha * x + epsilon * n for x, n in zip(seen, noise, strict=True)]
    output = model.readout(weights, projections, DEGREE)
    slope = sympy.Poly(sympy.diff(output, epsilon).subs(epsilon, 0), *noise)
    mean = sympy.Add(*[c * sympy.prod([moment(k) for k in powers]) for powers, c in slope.terms()])
    depends = bool(output.subs(epsilon, 0).has(*noise))
    nonzero, law = 0, small_law()
    for label, values, _ in law:
        given = dict(zip(seen, map(sympy.Integer, values), strict=True))
        nonzero += depends or sympy.expand(label * mean.xreplace(given)) != 0
    finding = (
        f"expected orthogonal gradient is 0 in {len(law) - nonzero} of {len(law)} configurations"
    )
    return Evidence(
        nonzero == 0, "D=4, C=2, p=3, S entirely free, noise of any variance", (finding,)
    )


def lemma_4_3() -> Evidence:
    """Compute the factor polylog(d) that Lemma 4.3 needs for the increments at leading order.

    With the softmax scale s, the attention G/D to the own set and ``sig`` = E[1/(1+e^F)], the
    increment of gamma needs the factor C p s (1 - G/D) sig, free of alpha and Gamma. The increment
    of rho needs the factor C p s (G Xi / Gamma) sig. Whether the exact increments satisfy the lemma
    is measured in runs (``polylog_gamma``).
    """
    hidden = sympy.simplify(leading_increment(gamma) / increment_scale())
    against = sympy.simplify(-leading_increment(rho) * D / increment_scale())
    return Evidence(
        None,
        "all symbols free; random patches and the linear part dropped",
        (f"gamma: polylog = {hidden}", f"|rho|: multiple of the bound's second term = {against}"),
    )
