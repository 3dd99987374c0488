"""Lemmas 4.1, 4.2, 4.3 and the derivation of the recursion."""

import pytest
import sympy

from theory.papers.positional_attention import lemmas, model, recursion
from theory.papers.positional_attention.data_law import configurations
from theory.papers.positional_attention.model import orbit_of
from theory.papers.positional_attention.notation import NOTATION
from theory.symmetry import Partition

D, C, p, nu, beta, scale = NOTATION.symbols("D C p nu beta scale")
alpha, gamma, rho, G = NOTATION.symbols("alpha gamma rho G")
a, b, Z = NOTATION.symbols("a b Z")


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


@pytest.mark.parametrize("labels", [(0, 0, 1, 1), (0, 1, 0, 1)])
def test_share_of_a_set_adds_up_to_the_model(labels):
    partition = Partition(labels)
    matrix = sympy.Matrix(4, 4, lambda i, j: NOTATION.symbol(orbit_of(partition, i, j)))
    share = sympy.Lambda((a, b, Z), model.set_contribution().subs(p, 3))
    sizes = {D: 4, C: 2}
    for _, values, _ in configurations(tuple(tuple(s) for s in partition.sets)):
        explicit = model.output(matrix, [alpha * value for value in values], 3)
        summed = 0
        for members in partition.sets:
            inside = [values[i] for i in members]
            summed += share(inside.count(1), inside.count(-1), sum(values))
        at = {alpha: 0.3, beta: 1.1, gamma: 0.4, rho: -0.2, nu: 0.01, scale: 0.7} | sizes
        reduced = summed.subs(model.orbit_attention()).subs(at)
        assert float(reduced - explicit.subs(at)) == pytest.approx(0, abs=1e-13)
