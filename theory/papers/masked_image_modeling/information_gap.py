r"""Information gap of equation (4.1), and its exact form at finite size.

Let Phi_m and Phi_0 be the correlations of a local patch with its own area m and with the global
area, of sizes :math:`P^{\kappa_s}` and :math:`P^{\kappa_c}`. At Q = 0 every key has the attention
1/P, so the rates of Phi_m and Phi_0 (Lemma 5.1) are moments of hypergeometric numbers of unmasked
patches. The attention to the two areas is :math:`A_m \sim P^{\kappa_s - 1}` and :math:`A_0 \sim
P^{\kappa_c - 1}`. With the rates :math:`\alpha_m \sim A_m` and :math:`|\alpha_0| \sim A_0^2`,

.. math:: \rho(0) = \frac{|\alpha_0|}{\alpha_m} \sim P^\Delta, \qquad
   \Delta = (1 - \kappa_s) - 2 (1 - \kappa_c).

At finite P the constant factors of rho(0) matter, and :math:`\Delta_{\mathrm{eff}} = \ln\rho(0) /
\ln P` replaces Delta.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import sympy
from numpy.typing import ArrayLike

from theory.claims import Evidence
from theory.papers.masked_image_modeling.model import latent_moment, unmasked_moment
from theory.papers.masked_image_modeling.notation import NOTATION
from theory.papers.masked_image_modeling.recursion import OTHER, OWN, feature_increment
from theory.papers.masked_image_modeling.symmetry import as_areas

P, K, C_global, C_local, masked, gamma = NOTATION.symbols("P K C_global C_local masked gamma")
kappa_c, kappa_s, rho0, time = NOTATION.symbols("kappa_c kappa_s rho0 time")
A_m, A_i, Sigma, z_m, z_i = NOTATION.symbols("A_m A_i Sigma z_m z_i")


@dataclass(frozen=True)
class Sizes:
    """Sizes of the areas of one cluster, as numbers or symbols.

    `own` is the number of patches in the area of patch p, and `this` the number in another area i.
    Each pair in `rest` holds a size and the number of remaining areas that have this size.
    """

    own: sympy.Expr
    this: sympy.Expr
    rest: tuple[tuple[sympy.Expr, sympy.Expr], ...]


def initial_rate(
    kind: str,
    sizes: Sizes,
    P: sympy.Expr,
    masked: sympy.Expr,
    latents: Sequence[sympy.Expr] = (1, 1, 1, 1, 1),
) -> sympy.Expr:
    """Exact rate of Phi at Q = 0, times K, for the own area of patch p or another area i.

    `kind` is ``"own"`` or ``"other"``; `latents` holds the moments E z^n of a latent, n = 0, 1,
    ..., 4. K is the number of clusters.
    """
    rate = sympy.Integer(0)
    for (m, i, rest, power_m, power_i), coefficient in _terms(kind):
        inside = [(sizes.own - 1, m), (sizes.this, i)]
        if rest == 0:
            mean = unmasked_moment(inside, P, masked)
        else:
            mean = latents[2] * sympy.Add(
                *[n * unmasked_moment([*inside, (c, 2)], P, masked) for c, n in sizes.rest]
            )
        scale = sympy.sympify(P) ** (m + i + 2 * rest)
        rate += coefficient * latents[power_m] * latents[power_i] * mean / scale
    return rate * masked / P


@cache
def _terms(kind: str) -> tuple[tuple[tuple[int, ...], sympy.Expr], ...]:
    """Terms of `feature_increment`: exponents of (A_m, A_i, Sigma, z_m, z_i), and coefficient."""
    increment = sympy.expand(feature_increment(kind))
    return tuple(sympy.Poly(increment, A_m, A_i, Sigma, z_m, z_i).terms())


def family_sizes() -> Sizes:
    """Symbolic area sizes of one cluster, where patch p is local and area i is the global area."""
    return Sizes(C_local, C_global, ((C_local, (P - C_global) / C_local - 1),))


@cache
def initial_ratio() -> sympy.Expr:
    """Exact ratio rho(0) of the rates of Phi_0 and Phi_m by the area sizes, if latents are 1."""
    rates = [initial_rate(kind, family_sizes(), P, masked) for kind in (OTHER, OWN)]
    return sympy.factor(-rates[0] / rates[1])


def leading_ratio() -> sympy.Expr:
    """Leading order of rho(0) as P grows, with the local size C_s fixed and C_g proportional to P.

    With the global size C_g = c P / (1 - gamma) and M = gamma P masked patches, rho(0) grows in
    proportion to P.
    """
    c = sympy.Symbol("c", positive=True)
    ratio = initial_ratio().subs({C_global: c * P / (1 - gamma), masked: gamma * P})
    numerator, denominator = (sympy.Poly(part, P) for part in sympy.fraction(sympy.together(ratio)))
    order = numerator.degree() - denominator.degree()
    leading = sympy.factor(numerator.LC() / denominator.LC()) * P**order
    # c^2 is replaced before c, so that factors 1 - gamma cancel.
    share = (1 - gamma) * C_global / P
    return sympy.factor(leading / c**2 * share**2).subs(c, share)


def information_gap() -> sympy.Expr:
    """Information gap Delta of equation (4.1), as an expression in kappa_c and kappa_s."""
    return (1 - kappa_s) - 2 * (1 - kappa_c)


def rho_at_start(
    areas: ArrayLike,
    cluster: int,
    p: int,
    masked: int,
    latents: tuple[Sequence[float], Sequence[float]] = ((1,), (1,)),
) -> float:
    """Ratio rho(0) of the initial rates of Phi_0 and Phi_m, for a patch p in a local area.

    The array `areas`, shape (K, P), holds the area of every patch in every cluster. The pair
    `latents` holds the values of a latent and their probabilities. Raises ValueError if patch p is
    in the global area of the cluster. Raises ValueError if p is alone in its area, because Phi_m
    then has the rate 0.
    """
    row = as_areas(areas)[cluster]
    own, counts = int(row[p]), np.bincount(row).tolist()
    if own == 0 or counts[own] == 1:
        where = "the global area" if own == 0 else "an area of its own"
        raise ValueError(f"patch {p} is in {where} of cluster {cluster}: rho is not defined")
    others = [size for a, size in enumerate(counts) if a not in (0, own)]
    rest = tuple((size, others.count(size)) for size in sorted(set(others)))
    moments = [latent_moment(*latents, order) for order in range(5)]
    sizes = Sizes(sympy.Integer(counts[own]), sympy.Integer(counts[0]), rest)
    rates = [initial_rate(kind, sizes, row.size, masked, moments) for kind in (OTHER, OWN)]
    # The rate of Phi_0 is negative, unless another area is much larger than the global one.
    return float(abs(rates[0]) / rates[1])


@dataclass(frozen=True)
class Motion:
    """Phi_m and Phi_0 at leading order for large rho(0), as functions of rho0 and the time.

    The symbol `scaled` in `Phi_m` and `Phi_0` is the time multiplied by alpha_m(0), the rate of
    Phi_m at the start. `switch` is the value of `scaled` at which the rates of Phi_m and Phi_0 have
    equal size.
    """

    Phi_m: sympy.Expr
    Phi_0: sympy.Expr
    scaled: sympy.Symbol
    switch: sympy.Expr


@cache
def leading_motion() -> Motion:
    r"""Solve for Phi of the own and of the global area, until shortly after their rates are equal.

    For large rho(0) and small attention A_m to the own and A_0 to the global area, Phi_m and Phi_0
    have rates in proportion to :math:`A_m` and :math:`-A_0^2` (`leading_terms`). While the total
    weight of the keys is near its initial value, :math:`A_m \propto e^{\Phi_m}` and :math:`A_0
    \propto e^{\Phi_0}`. With the initial rate :math:`a = \alpha_m(0)` and the initial ratio
    :math:`\rho_0` of the rates, therefore,

    .. math:: \dot\Phi_m = a\, e^{\Phi_m}, \qquad \dot\Phi_0 = -a \rho_0\, e^{2 \Phi_0}.
    """
    scaled = sympy.Symbol("a_t", positive=True)
    rise, fall = leading_terms()
    result = {}
    for name, power, sign in (("m", rise, 1), ("0", fall, -rho0)):
        phi = sympy.Symbol(f"Phi_{name}", real=True)
        passed = sympy.integrate(sympy.exp(-power * phi), (phi, 0, phi))
        result[name] = sympy.solve(passed - sign * scaled, phi)[0]
    rates = [sympy.diff(result["m"], scaled), -sympy.diff(result["0"], scaled)]
    switch = sympy.solve(sympy.together(rates[0] - rates[1]), scaled)[0]
    return Motion(result["m"], result["0"], scaled, sympy.factor(switch))


def leading_terms() -> tuple[int, int]:
    """Lowest powers of A_m and A_0 in the rates of Phi_m and Phi_0, without attention elsewhere."""
    own = sympy.Poly(feature_increment(OWN).subs({A_i: 0, Sigma: 0}), A_m)
    other = sympy.Poly(feature_increment(OTHER).subs({A_m: 0, Sigma: 0}), A_i)
    return tuple(min(power for (power,) in p.monoms()) for p in (own, other))


def late_loss() -> sympy.Expr:
    r"""Loss above the floor late in training, K / (4 t) with the time t and K clusters.

    Let :math:`x = 1 - A_m` be the attention to keys outside the own area, and gamma the share of
    masked patches. If z = 1 and other areas get no attention, A_m is a logistic function of Phi_m,
    and each cluster adds :math:`\gamma x^2 / (2 K)` to the loss. At leading order in small x, the
    derivative of x by the time is then :math:`-\gamma x^3 / K`.
    """
    x = sympy.Symbol("x", positive=True)
    alone = feature_increment(OWN).subs({A_i: 0, Sigma: 0, z_m: 1})
    speed = sympy.expand((alone * A_m * (1 - A_m)).subs(A_m, 1 - x))
    leading = sympy.LT(speed, x, order=lambda monomial: -monomial[0]) * gamma / K
    passed = sympy.integrate(1 / leading, (x, x, sympy.oo))
    square = sympy.solve(passed.subs(x**2, sympy.Symbol("y")) - time, sympy.Symbol("y"))[0]
    return sympy.simplify(K * gamma * square / (2 * K))


def gap() -> Evidence:
    """Check that rho(0), a ratio of exact rates at Q = 0, grows like P to the power Delta."""
    log_p = sympy.Symbol("l", positive=True)
    powers = {C_global: P**kappa_c, C_local: P**kappa_s, gamma: sympy.Rational(1, 2)}
    small = leading_ratio().subs(powers).subs(P, sympy.exp(log_p))
    slopes, holds = [], True
    for c, size in (("9/10", "3/10"), ("9/10", "1/10"), ("3/5", "2/5")):
        values = {kappa_c: sympy.Rational(c), kappa_s: sympy.Rational(size)}
        slope = sympy.limit(sympy.log(small.subs(values)) / log_p, log_p, sympy.oo)
        expected = information_gap().subs(values)
        slopes.append(f"{slope} (Delta = {expected}) at kappa_c = {c}, kappa_s = {size}")
        holds &= bool(slope == expected)
    at = {P: 4096, C_global: 2048, C_local: 16, masked: 2048, gamma: sympy.Rational(1, 2)}
    findings = (
        f"exponent of rho(0): {'; '.join(slopes)}",
        f"leading: rho(0) = {leading_ratio()}",
        f"P=4096, C_g=2048, C_s=16, half masked: rho(0) = {float(initial_ratio().subs(at)):.6g}, "
        f"leading {float(leading_ratio().subs(at)):.6g}",
    )
    return Evidence(holds, "one cluster, z = 1, all sizes free", findings)


def lemma_5_3() -> Evidence:
    """Compute time, Phi_m and Phi_0 where their rates become equal, for large rho(0) (Lemma 5.3).

    The returned Evidence is undecided, because only a measurement can decide the lemma at finite P.
    """
    motion = leading_motion()
    limit = {
        name: sympy.limit(expression.subs(motion.scaled, motion.switch), rho0, sympy.oo)
        for name, expression in (("a t", motion.switch), ("Phi_m", motion.Phi_m))
    }
    depth = sympy.simplify(motion.Phi_0.subs(motion.scaled, motion.switch))
    findings = (
        f"rho = 1 at a t = {motion.switch}, for large rho(0) {limit['a t']}",
        f"then Phi_m -> {limit['Phi_m']} = {float(limit['Phi_m']):.4f}, of order 1, not log P",
        f"then Phi_0 = {depth}, which is -(Delta/2) ln P up to a constant where rho(0) = P^Delta",
    )
    return Evidence(None, "A_m small, D at its initial value, z = 1, rho(0) free", findings)
