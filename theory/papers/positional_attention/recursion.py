r"""The reduction: gradient descent on (P) as a recursion on (alpha, gamma, rho).

Condition on y = +1 (act is odd, so the other half gives the same risk). With h(a, b; Z) the share
of a set,

.. math::
   F = h(C, 0; Z) + \sum_{l=1}^{L-1} h(a_l, b_l; Z), \qquad R = E \log(1 + e^{-F}),

    alpha <- alpha - eta dR/dalpha
    gamma <- gamma - eta/(D (C-1)) dR/dgamma
    rho   <- rho   - eta/(D (D-C)) dR/drho.

`derive` returns the exact recursion (Lemmas 4.1 and 4.2 make it exact); `leading_order` keeps the
signal set only, which is what Lemma 4.3 speaks of.
"""

from __future__ import annotations

import itertools
from functools import cache

import sympy
from sympy.codegen.cfunctions import expm1

from theory.papers.positional_attention import model
from theory.papers.positional_attention.model import entries, row_entries
from theory.papers.positional_attention.notation import NOTATION
from theory.reduction import ReducedSystem

D, C, L, p, nu, beta, scale = NOTATION.symbols("D C L p nu beta scale")
alpha, gamma, rho = NOTATION.symbols("alpha gamma rho")
d_alpha, d_gamma, d_rho = NOTATION.symbols("d_alpha d_gamma d_rho")
G, sig = NOTATION.symbols("G sig")
a, b, x, z, Z = NOTATION.symbols("a b x z Z")

STATE = (alpha, gamma, rho)
PARAMETERS = (D, C, nu, beta, scale)
GAP = sympy.Symbol("Lambda_minus_Gamma", real=True)
PARTS = ("base", "pairs", "zeros")
"""The share of a set is base + 2 min(a, b) pairs + (C - a - b) zeros; see `set_shares`."""
LARGEST_EXPANDED = 15
"""Degree up to which the polynomials of `parity` are written out."""


def multiplicity() -> dict[sympy.Symbol, sympy.Expr]:
    """Trained entries that share each state: v has one number, A has two orbits."""
    shared = entries()
    return {alpha: sympy.Integer(1), gamma: shared["gamma"], rho: shared["rho"]}


def rate_of(entry: sympy.Symbol, theta: sympy.Symbol) -> sympy.Symbol:
    """Symbol of d(entry)/d(theta).

    Parameters
    ----------
    entry, theta : sympy.Symbol
    """
    return sympy.Symbol(f"{entry.name}_{theta.name}", real=True)


def attention_definitions() -> dict[sympy.Symbol, sympy.Expr]:
    """Lambda, Gamma, Xi, G and their derivatives by gamma and rho; of S, the second ones too."""
    weights = model.orbit_attention()
    definitions = dict(weights)
    for entry, weight in weights.items():
        for theta in (gamma, rho):
            slope = sympy.diff(weight, theta)
            definitions[rate_of(entry, theta)] = slope
            for phi in (gamma, rho) if theta == gamma else (rho,):
                second = rate_of(rate_of(entry, theta), phi)
                definitions[second] = sympy.diff(slope, phi)
    # Lambda - Gamma, from the larger of the two, so that no exponential overflows.
    lead, larger = (
        scale * (beta - gamma),
        sympy.Max(*[model.ATTENTION[o] for o in ("beta", "gamma")]),
    )
    definitions[GAP] = -larger * sympy.sign(lead) * expm1(-sympy.Abs(lead))
    definitions[G] = model.own_attention()
    for theta in (gamma, rho):
        definitions[rate_of(G, theta)] = _total_derivative(model.own_attention(), theta)
    return definitions


def _total_derivative(expression: sympy.Expr, theta: sympy.Symbol) -> sympy.Expr:
    """d/d theta of an expression in alpha, the entries of S and their first derivatives."""
    explicit = sympy.diff(expression, theta)
    if theta == alpha:
        return explicit
    carriers = list(model.ATTENTION.values())
    carriers += [rate_of(entry, phi) for entry in carriers for phi in (gamma, rho)]
    through = [sympy.diff(expression, carrier) * _rate(carrier, theta) for carrier in carriers]
    return sympy.Add(explicit, *through)


def _rate(carrier: sympy.Symbol, theta: sympy.Symbol) -> sympy.Symbol:
    """Symbol of a derivative; gamma comes before rho in the name of a mixed one."""
    if carrier.name.endswith("_rho") and theta == gamma:
        entry = sympy.Symbol(carrier.name.removesuffix("_rho"), real=True)
        return rate_of(rate_of(entry, gamma), rho)
    return rate_of(carrier, theta)


def closed_slope(entry: sympy.Symbol, theta: sympy.Symbol) -> sympy.Expr:
    """d(entry of S)/d theta as a product of entries of S, without a difference of nearby numbers.

    From the explicit softmax: numerator and denominator are sums of exponentials; over the total
    each becomes an entry of S, and the total becomes the row sum, 1.

    Parameters
    ----------
    entry : sympy.Symbol
        Lambda, Gamma or Xi.
    theta : sympy.Symbol
        gamma or rho.
    """
    weights = model.orbit_attention()
    ratio = sympy.cancel(sympy.together(sympy.diff(weights[entry], theta) / weights[entry]))
    numerator, denominator = sympy.fraction(ratio)
    total = sympy.fraction(sympy.together(weights[entry]))[1]
    back = {sympy.exp(scale * NOTATION.symbol(o)): w for o, w in model.ATTENTION.items()}
    sign = sympy.cancel(denominator / total)
    return entry * sympy.factor(sympy.expand(numerator / sign).subs(back))


def parity(
    function: sympy.Expr, u: sympy.Symbol, at: sympy.Expr, step: sympy.Expr
) -> tuple[sympy.Expr, sympy.Expr, sympy.Expr]:
    r"""f(u), and what x = ±1 adds in f(u + step x) = f(u) + odd x + even.

    Of a polynomial of one parity, expanded, all terms of a part have one sign: nothing cancels.

    Parameters
    ----------
    function : sympy.Expr
        f(u); no polynomial, or of a degree above `LARGEST_EXPANDED`: differences of its values.
    u : sympy.Symbol
    at, step : sympy.Expr
        Where, and how far.

    Returns
    -------
    zero, odd, even : sympy.Expr
    """
    width, zero = sympy.Symbol("width"), function.subs(u, at)
    moved = sympy.expand(function.subs(u, u + width))
    if not moved.is_polynomial(u) or sympy.degree(moved, u) > LARGEST_EXPANDED:
        plus, minus = (function.subs(u, at + sign * step) for sign in (1, -1))
        return zero, (plus - minus) / 2, (plus + minus) / 2 - zero
    terms = sympy.Poly(moved - function, width).terms()
    odd, even = (
        sympy.horner(sympy.Add(*[c * width**k for (k,), c in terms if k % 2 == rest]), width)
        for rest in (1, 0)
    )
    where = {u: at, width: step}
    return zero, odd.subs(where, simultaneous=True), even.subs(where, simultaneous=True)


def set_shares(degree: sympy.Expr) -> dict[str, sympy.Expr]:
    r"""h(a, b; Z) and its first derivatives, each in three `PARTS`, in a form that keeps digits.

    Over the patches of a set of type (a, b), z = a - b, a function f + odd x + even of x = ±1 that
    is f at x = 0 has the sum

    .. math:: |z| (f + even) + z\,odd + 2 \min(a, b)\,(f + even) + (C - a - b)\,f.

    h has the parts of act. By alpha, act' has, times the patch's own v + t x. By gamma and rho a
    patch brings :math:`act'(O_x)\,(w_0 - w_1 x)`, the second factor linear in the entries of S with
    whole numbers (`closed_slope`), and so a set, with the parts of act',

    .. math:: (f + even)(C w_0 - z w_1) + odd\,(z w_0 - |z| w_1)
       - 2 \min(a, b)\,odd\,w_1 - (C - a - b)\,even\,w_0.

    Late in training (Lambda -> Gamma, Xi -> 0), and at large beta without zeros (Gamma, Xi -> 0),
    the patches of a set nearly cancel; none of these terms is such a difference.

    Parameters
    ----------
    degree : sympy.Expr
        p.
    """
    u, size = sympy.Symbol("u"), sympy.Abs(z)
    act, entries = model.activation(u, degree), list(model.ATTENTION.values())
    v, t = D * model.attended().subs(x, 0), D * GAP
    zero, odd, even = parity(act, u, alpha * v, alpha * t)
    parts = {"share": (size * (zero + even) + z * odd, zero + even, zero)}
    zero, odd, even = parity(sympy.diff(act, u), u, alpha * v, alpha * t)
    plus, turned = (zero + even) * v + odd * t, odd * v + (zero + even) * t
    parts["share_alpha"] = size * plus + z * turned, plus, zero * v
    for theta in (gamma, rho):
        slopes = [sympy.diff(model.preactivation(), e) * closed_slope(e, theta) for e in entries]
        front = D * alpha * scale * model.ATTENTION[theta.name]
        moved = sympy.expand(sympy.cancel(sympy.Add(*slopes) / front))
        w0, w1 = moved.subs(x, 0), -sympy.diff(moved, x)
        common = sympy.collect(sympy.expand(C * w0 - z * w1), entries, sympy.factor)
        # Whole numbers, linear in Z: compiled code has them outside of its inner loop.
        own, w0 = (
            sympy.collect(sympy.expand(whole), entries, lambda n: sympy.collect(n, Z))
            for whole in (z * w0 - size * w1, w0)
        )
        # By rho, a multiple of Lambda - Gamma.
        w1 = w1.subs(entries[0], entries[1] + GAP) if theta == rho else w1
        w1 = sympy.collect(sympy.expand(w1), entries, sympy.factor)
        bracket = (zero + even) * common + odd * own, -odd * w1, -even * w0
        parts[f"share_{theta.name}"] = tuple(front * part for part in bracket)
    return {
        f"{name}_{part}": value
        for name, values in parts.items()
        for part, value in zip(PARTS, values, strict=True)
    }


@cache
def derive(degree: int | None = None) -> ReducedSystem:
    """The exact reduced recursion.

    Parameters
    ----------
    degree : int or None
        A value for p; None keeps it symbolic.

    Returns
    -------
    ReducedSystem
        Blocks of `set_shares`, tabulated over (z, Z), and ``patch_<state>_<state>``, the second
        derivatives of a patch's act(O) by the chain rule through O, tabulated over (x, z, Z); the
        function ``h`` is h(a, b; Z).
    """
    u, inner = sympy.Dummy("u"), model.preactivation()
    slope = sympy.diff(model.activation(u), u).subs(u, inner)
    curvature = sympy.diff(model.activation(u), u, 2).subs(u, inner)
    power = p if degree is None else sympy.Integer(degree)
    blocks = set_shares(power)
    through = {theta: _total_derivative(inner, theta) for theta in STATE}
    for theta, phi in itertools.combinations_with_replacement(STATE, 2):
        bent = curvature * through[theta] * through[phi]
        second = _total_derivative(through[theta], phi)
        blocks[f"patch_{theta.name}_{phi.name}"] = bent + slope * second
    blocks = {name: block.subs(p, power) for name, block in blocks.items()}
    row = sympy.Add(*[count * model.ATTENTION[orbit] for orbit, count in row_entries().items()])
    return ReducedSystem(
        title="Gradient descent on the population risk (P), reduced by Lemmas 4.1 and 4.2",
        notation=NOTATION,
        state=STATE,
        parameters=PARAMETERS,
        latents=(x, z, Z),
        multiplicity=multiplicity(),
        definitions=attention_definitions(),
        blocks=blocks,
        functions={"h": sympy.Lambda((a, b, Z), model.set_contribution().subs(p, power))},
        risk_integrand=sympy.log(1 + sympy.exp(-margin())),
        order_parameters=order_parameters(),
        observables=observables(power),
        shift_invariant=(beta, gamma, rho),
        invariants=(row - 1,),
    )


def order_parameters() -> dict[str, sympy.Expr]:
    """Symbols of the event rules, in state, rates and definitions."""
    return {
        "alpha": alpha,
        "gamma": gamma,
        "rho": rho,
        "G": G,
        "d_alpha": d_alpha,
        "d_G": rate_of(G, gamma) * d_gamma + rate_of(G, rho) * d_rho,
        "association_margin": sympy.Min(beta, gamma) - rho,
    }


def observables(degree: sympy.Expr | int = p) -> dict[str, sympy.Expr]:
    """Quantities reported beside the state, in state, rates and definitions."""
    weights = {entry.name: entry for entry in model.ATTENTION.values()}
    return weights | {
        "G": G,
        "alpha_G": alpha * G,
        "polylog_gamma": polylog_gamma().subs(p, degree),
        "polylog_rho": polylog_rho().subs(p, degree),
    }


def increment_scale() -> sympy.Expr:
    """alpha^p Gamma G^(p-1), the size of the gamma increment in Lemma 4.3."""
    return alpha**p * model.ATTENTION["gamma"] * G ** (p - 1)


def polylog_gamma() -> sympy.Expr:
    r"""The hidden polylog of the gamma line: :math:`\dot\gamma / (\alpha^p \Gamma G^{p-1})`."""
    return d_gamma / increment_scale()


def polylog_rho() -> sympy.Expr:
    r"""Least constant of the rho line at a step: growth of |rho| over its bound."""
    growth = sympy.Piecewise((sympy.Abs(d_rho), sympy.Eq(rho, 0)), (sympy.sign(rho) * d_rho, True))
    return growth * D / (alpha**p + increment_scale())


def margin() -> sympy.Expr:
    """F at y = +1: the signal set, of type (C, 0), and L-1 random sets of types (a_l, b_l)."""
    h = sympy.Function("h")
    index = sympy.Symbol("l", integer=True, positive=True)
    plus, minus = sympy.IndexedBase("a"), sympy.IndexedBase("b")
    random = sympy.Sum(h(plus[index], minus[index], Z), (index, 1, L - 1))
    return h(C, sympy.Integer(0), Z) + random


@cache
def leading_order(linear: bool = True) -> ReducedSystem:
    """The signal-only recursion: every patch outside the signal set, and its output, is dropped.

    Derived from the exact h by setting the other values to zero (Z = z = C). It closes on the same
    three scalars with F = C ((alpha G)^p + nu alpha G).

    Parameters
    ----------
    linear : bool
        Keep the linear part of the activation; Lemma 4.3 drops it.
    """
    share = model.set_contribution().subs({a: C, b: 0}, simultaneous=True).subs(Z, C)
    # sum_j S_ij x_j = Lambda + (C-1) Gamma is G/D, so Lambda goes in favour of G.
    entry = model.ATTENTION["beta"]
    share = sympy.simplify(share.subs(entry, sympy.solve(model.own_attention() - G, entry)[0]))
    if not linear:
        share = share.subs(nu, 0)
    return ReducedSystem(
        title="Leading order: the signal set alone (what Lemma 4.3 approximates)",
        notation=NOTATION,
        state=STATE,
        parameters=PARAMETERS,
        multiplicity=multiplicity(),
        definitions=attention_definitions(),
        blocks={"signal": share},
        order_parameters=order_parameters(),
        observables=observables(),
        shift_invariant=(beta, gamma, rho),
        risk_integrand=sympy.log(1 + sympy.exp(-share)),
    )


def leading_increment(theta: sympy.Symbol) -> sympy.Expr:
    r"""Rate of gamma or rho at leading order: :math:`\varsigma\, \partial F / \partial\theta / n`.

    ``sig`` stands for E[1/(1+e^F)]. In terms of alpha, G and the entries of S; derived from
    `leading_order` without the linear part.
    """
    share = leading_order(linear=False).blocks["signal"]
    return sympy.factor(
        sig
        * sympy.diff(share, G)
        * through_softmax(model.own_attention(), G, theta)
        / multiplicity()[theta]
    )


def through_softmax(quantity: sympy.Expr, name: sympy.Expr, theta: sympy.Symbol) -> sympy.Expr:
    """Slope by gamma or rho of what is linear in the entries of S, in itself: a product.

    With T the numerator of the quantity over the total weight N, the slope of T/N is
    (T' - (T/N) N')/N; a weight over N is an entry of S.

    Parameters
    ----------
    quantity : sympy.Expr
        In Lambda, Gamma, Xi.
    name : sympy.Expr
        What stands for it in the slope.
    theta : sympy.Symbol
        gamma or rho.
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
