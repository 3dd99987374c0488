"""Lemmas 4.1, 4.2, 4.3 and the derivation of the recursion."""

import itertools

import mpmath
import pytest
import sympy

from theory.papers.positional_attention import lemmas, model, recursion
from theory.papers.positional_attention.claims import CLAIMS
from theory.papers.positional_attention.data_law import SetLaw, bayes_error, configurations
from theory.papers.positional_attention.model import (
    ORBITS,
    entries,
    orbit_of,
    row_entries,
)
from theory.papers.positional_attention.notation import NOTATION
from theory.rendering import as_latex, as_text
from theory.symmetry import Partition, classes

D, C, L, p, nu, beta, scale = NOTATION.symbols("D C L p nu beta scale")
alpha, gamma, rho, G, q = NOTATION.symbols("alpha gamma rho G q")
a, b, x, z, Z = NOTATION.symbols("a b x z Z")


@pytest.mark.parametrize(("size", "set_size"), [(4, 2), (8, 4), (9, 3), (24, 4)])
def test_multiplicities_are_the_sizes_of_the_orbits(size, set_size):
    partition = Partition.contiguous([set_size] * (size // set_size))
    found = classes(partition)
    named = {
        orbit_of(partition, *pair): int(found.sizes[k])
        for k, pair in enumerate(found.representatives)
    }
    values = {D: size, C: set_size}
    assert named == {orbit: int(n.subs(values)) for orbit, n in entries().items()}
    assert sum(row_entries().values()).subs(values) == size


def test_lemma_4_1():
    evidence = lemmas.lemma_4_1()
    assert evidence.holds
    assert [f.split(",")[1:] for f in evidence.findings] == [
        [" 1): 4 entries", " one gradient"],
        [" 2): 8 entries", " one gradient"],
    ]


def test_lemma_4_1_fails_for_a_law_that_prefers_a_patch():
    law = lemmas.small_law()
    skewed = [(y, values, w * (2 + values[3] ** 2)) for y, values, w in law]
    assert not lemmas.lemma_4_1(skewed).holds


def test_lemma_4_2():
    assert lemmas.lemma_4_2().holds


def test_lemma_4_2_fails_for_noise_that_is_not_centred():
    assert not lemmas.lemma_4_2(lambda k: sympy.Integer(1)).holds


def test_lemma_4_3_leading_order_by_hand():
    sig, Gamma, Xi = NOTATION.symbols("sig Gamma Xi")
    # Section 5 of the paper's statement, written out: C p alpha^p Gamma G^(p-1) (1 - G/D).
    expected = C * p * scale * alpha**p * Gamma * G ** (p - 1) * (1 - G / D) * sig
    assert sympy.simplify(recursion.leading_increment(gamma) - expected) == 0
    expected = -C * p * scale * alpha**p * Xi * G**p / D * sig
    assert sympy.simplify(recursion.leading_increment(rho) - expected) == 0
    evidence = lemmas.lemma_4_3()
    assert evidence.holds is None
    assert evidence.findings[0] == "gamma: polylog = C*p*scale*sig*(D - G)/D"


def test_leading_order_closes_on_the_signal():
    signal = recursion.leading_order().blocks["signal"]
    assert sympy.simplify(signal - C * ((alpha * G) ** p + nu * alpha * G)) == 0


def test_every_claim_says_what_would_falsify_it():
    proved = [claim.source for claim in CLAIMS if claim.proof]
    assert proved == ["Lemma 4.1", "Lemma 4.2", "Lemma 4.3", "Zero error"]
    assert all(c.falsified_by and c.statement and c.hypothesis for c in CLAIMS)


@pytest.mark.parametrize("labels", [(0, 0, 1, 1), (0, 1, 0, 1)])
def test_share_of_a_set_adds_up_to_the_model(labels):
    """h(a, b; Z), summed over the sets, is F of equation (T) for an explicit symmetric A."""
    partition = Partition(labels)
    matrix = sympy.Matrix(4, 4, lambda i, j: NOTATION.symbol(orbit_of(partition, i, j)))
    share = recursion.derive(3).functions["h"]
    sizes = {D: 4, C: 2}
    for _, values, _ in configurations(tuple(tuple(s) for s in partition.sets)):
        explicit = model.output(matrix, [alpha * value for value in values], 3)
        summed = 0
        for members in partition.sets:
            inside = [values[i] for i in members]
            summed += share(inside.count(1), inside.count(-1), sum(values))
        at = {alpha: 0.3, beta: 1.1, gamma: 0.4, rho: -0.2, nu: 0.01, scale: 0.7} | sizes
        reduced = recursion.derive(3).expand(summed).subs(at)
        assert float(reduced - explicit.subs(at)) == pytest.approx(0, abs=1e-13)


@pytest.mark.parametrize("degree", [3, 17])
@pytest.mark.parametrize(("plus", "minus"), [(2, 1), (4, 0)])
def test_blocks_are_the_derivatives_of_the_share_of_a_set(degree, plus, minus):
    """Of sets with and without pairs of opposite sign and zeros, C = 4, Z = 3."""
    system, zeros = recursion.derive(degree), 4 - plus - minus
    constants = {D: 16, C: 4, nu: 0.001, beta: 1.0, scale: 0.7, z: plus - minus, Z: 3}
    at = {alpha: 0.2, gamma: 0.3, rho: -0.1}

    numbers = {symbol: sympy.sympify(number) for symbol, number in {**constants, **at}.items()}
    for name, definition in system.definitions.items():
        numbers[name] = definition.xreplace(numbers)

    def value(expression, patch=0):
        """At the state, by way of the definitions."""
        return float(expression.xreplace({**numbers, x: sympy.Integer(patch)}))

    share = sympy.lambdify(
        list(at),
        system.expand(system.functions["h"](plus, minus, 3).subs(constants)).subs(constants),
        "mpmath",
    )
    entries_of = ["share", *(f"share_{theta.name}" for theta in system.state)]
    with mpmath.workdps(50):
        for k, name in enumerate(entries_of):
            orders = tuple(int(k == i + 1) for i in range(3))
            base, pairs, rest = (value(system.blocks[f"{name}_{part}"]) for part in recursion.PARTS)
            found = base + 2 * min(plus, minus) * pairs + zeros * rest
            reference = float(mpmath.diff(share, tuple(at.values()), orders))
            assert found == pytest.approx(reference, rel=1e-11, abs=1e-15), name
        for i, j in itertools.combinations_with_replacement(range(3), 2):
            theta, phi = system.state[i], system.state[j]
            block = system.blocks[f"patch_{theta.name}_{phi.name}"]
            counts = {1: plus, -1: minus, 0: zeros}
            bend = sum(n * value(block, patch) for patch, n in counts.items())
            orders = tuple((k == i) + (k == j) for k in range(3))
            reference = float(mpmath.diff(share, tuple(at.values()), orders))
            assert bend == pytest.approx(reference, rel=1e-11, abs=1e-13), (theta, phi)


@pytest.mark.parametrize("theta", [alpha, gamma, rho])
def test_no_term_of_a_share_cancels_another_without_zeros_at_large_beta(theta):
    """A set of one +1 and one -1 at Z = 2: its parts have one sign, and the size of the whole."""
    system = recursion.derive(3)
    values = {D: 8, C: 2, nu: 0.001, beta: 40, scale: 1, alpha: 0.3, gamma: 0, rho: 0, z: 0, Z: 2}
    base, pairs, _ = (
        system.expand(system.blocks[f"share_{theta.name}_{part}"]).subs(values).evalf(30)
        for part in recursion.PARTS
    )
    assert abs(base) + abs(2 * pairs) <= 3 * abs(base + 2 * pairs)


def test_slopes_of_the_softmax_are_products():
    """closed_slope against the derivative of the explicit softmax, and by hand."""
    system = recursion.derive(3)
    Lambda, Gamma, Xi = NOTATION.symbols("Lambda Gamma Xi")
    by_hand = {
        (Lambda, gamma): -scale * (C - 1) * Lambda * Gamma,
        (Gamma, gamma): scale * Gamma * (Lambda + (D - C) * Xi),
        (Xi, rho): scale * Xi * (Lambda + (C - 1) * Gamma),
    }
    for (entry, theta), expected in by_hand.items():
        closed = recursion.closed_slope(entry, theta)
        assert sympy.expand(closed - expected) == 0
        explicit = sympy.diff(system.expand(entry), theta)
        assert sympy.simplify(system.expand(closed) - explicit) == 0


def apart(exponent):
    """An exponential of a sum as a product."""
    return sympy.expand_power_exp(sympy.exp(sympy.expand(exponent)))


def test_invariant_vanishes_and_shift_changes_nothing():
    system = recursion.derive()
    (invariant,) = system.invariants
    assert sympy.simplify(system.expand(invariant)) == 0
    by = sympy.Symbol("t", real=True)
    moved = {symbol: symbol + by for symbol in system.shift_invariant}
    for name, value in system.definitions.items():
        explicit = system.expand(value)
        shifted = explicit.subs(moved, simultaneous=True).replace(sympy.exp, apart)
        assert sympy.simplify(sympy.factor_terms(shifted - explicit)) == 0, name


def test_configurations_are_a_law():
    configs = list(configurations(((0, 1), (2, 3))))
    assert sympy.simplify(sum(weight for *_, weight in configs)) == 1


@pytest.mark.parametrize(
    ("sets", "size", "chance", "value"),
    [(4, 2, 0.5, 0.08264), (4, 3, 0.4, 0.01181)],
)
def test_bayes_error(sets, size, chance, value):
    assert bayes_error(SetLaw(size, chance), sets) == pytest.approx(value, abs=5e-6)


def test_rendering_uses_the_table():
    text, latex = as_text(recursion.derive(3)), as_latex(recursion.derive(3))
    assert "gamma' = gamma - eta*Derivative(R(alpha, gamma, rho), gamma)/(D*(C - 1))" in text
    assert r"\Lambda &= \frac{e^{\beta s}}" in latex
    assert r"\mathrm{share\_alpha\_base}" in latex
    assert r"\left(\Lambda - \Gamma\right) &=" in latex
    assert "minus" not in latex
    assert set(ORBITS) <= set(NOTATION)
