r"""Reduced dynamics: gradient descent on (P) as a recursion on (alpha, gamma, rho).

The label is y = +1; the risk for y = -1 is the same, because act is odd. Let Z be the
sum of all patch values, and h_Z(a, b) the output of a set of type (a, b). The L - 1 random sets
have types (a_l, b_l), so the output F, the risk R and a step of gradient descent are

.. math::
   F = h_Z(C, 0) + \sum_{l=1}^{L-1} h_Z(a_l, b_l), \qquad R = E \log(1 + e^{-F}),

    alpha <- alpha - eta dR/dalpha
    gamma <- gamma - eta/(D (C-1)) dR/dgamma
    rho   <- rho   - eta/(D (D-C)) dR/drho.

The recursion is exact by Lemmas 4.1 and 4.2. `leading_output` is an approximation that keeps only
the signal set.
"""

from __future__ import annotations

from functools import cache

import sympy

from theory.papers.positional_attention import model
from theory.papers.positional_attention.model import entries
from theory.papers.positional_attention.notation import NOTATION

D, C, p, nu, scale, sig = NOTATION.symbols("D C p nu scale sig")
alpha, gamma, rho, G = NOTATION.symbols("alpha gamma rho G")
d_gamma, d_rho = NOTATION.symbols("d_gamma d_rho")
a, b, Z = NOTATION.symbols("a b Z")


def multiplicity() -> dict[sympy.Symbol, sympy.Expr]:
    """Mapping from each scalar to the number of trained entries with its value."""
    shared = entries()
    return {alpha: sympy.Integer(1), gamma: shared["gamma"], rho: shared["rho"]}


def observables(degree: sympy.Expr | int = p) -> dict[str, sympy.Expr]:
    """Mapping from the name of each observable to its formula, with p = `degree`."""
    size = increment_scale()
    growth = sympy.Piecewise((sympy.Abs(d_rho), sympy.Eq(rho, 0)), (sympy.sign(rho) * d_rho, True))
    formulas = {entry.name: weight for entry, weight in model.orbit_attention().items()} | {
        "G": model.own_attention(),
        "alpha_G": alpha * G,
        "polylog_gamma": d_gamma / size,
        "polylog_rho": growth * D / (alpha**p + size),
    }
    return {name: formula.subs(p, degree) for name, formula in formulas.items()}


def increment_scale() -> sympy.Expr:
    """Factor alpha^p Gamma G^(p-1) of the increment of gamma in Lemma 4.3."""
    return alpha**p * model.ATTENTION["gamma"] * G ** (p - 1)


@cache
def leading_output() -> sympy.Expr:
    """Contribution C ((alpha G)^p + nu alpha G) of the signal set to the output F.

    All values outside the signal set are set to 0 (Z = z = C), and all other sets are omitted.
    """
    share = model.set_contribution().subs({a: C, b: 0}, simultaneous=True).subs(Z, C)
    # Express Lambda by G: Lambda + (C-1) Gamma = sum_j S_ij x_j = G/D.
    entry = model.ATTENTION["beta"]
    return sympy.simplify(share.subs(entry, sympy.solve(model.own_attention() - G, entry)[0]))


def leading_increment(theta: sympy.Symbol) -> sympy.Expr:
    r"""Rate of theta = gamma or rho at leading order, as an expression in alpha, G and S.

    The rate is :math:`\varsigma\, \partial F / \partial\theta / n` with ``sig`` = :math:`\varsigma`
    = E[1/(1+e^F)] and the number n of entries with the value theta. F is `leading_output` without
    its linear part.
    """
    slope = through_softmax(model.own_attention(), G, theta) / multiplicity()[theta]
    return sympy.factor(sig * sympy.diff(leading_output().subs(nu, 0), G) * slope)


def through_softmax(quantity: sympy.Expr, name: sympy.Expr, theta: sympy.Symbol) -> sympy.Expr:
    """Derivative by theta, gamma or rho, of a quantity that is linear in the entries of S.

    The quantity is T/N, with N the sum of exponentials in a row of the softmax, so the derivative
    is (T' - (T/N) N')/N. The result contains entries of S, and the symbol `name` in place of T/N.
    """
    weights = model.orbit_attention()
    moving = model.ATTENTION["gamma" if theta == gamma else "rho"]
    total = sympy.fraction(sympy.together(weights[moving]))[1]
    above = quantity.subs({entry: sympy.numer(weight) for entry, weight in weights.items()})
    front = sympy.diff(sympy.numer(weights[moving]), theta)
    of_above, of_total = (sympy.diff(part, theta) / front for part in (above, total))
    plain = of_above - name * of_total
    both = of_above != 0
    shorter = min(plain, sympy.factor(plain), key=sympy.count_ops) if both else plain
    return scale * moving * shorter
