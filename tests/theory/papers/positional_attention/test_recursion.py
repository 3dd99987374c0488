"""Lemmas 4.1, 4.2, 4.3 and the derivation of the recursion."""

import sympy

from theory.papers.positional_attention import lemmas, recursion
from theory.papers.positional_attention.notation import NOTATION


def test_lemma_4_1_fails_for_a_law_that_prefers_a_patch():
    assert lemmas.lemma_4_1().holds
    law = lemmas.small_law()
    skewed = [(y, values, w * (2 + values[3] ** 2)) for y, values, w in law]
    assert not lemmas.lemma_4_1(skewed).holds


def test_lemma_4_2_fails_for_noise_that_is_not_centred():
    assert lemmas.lemma_4_2().holds
    assert not lemmas.lemma_4_2(lambda k: sympy.Integer(1)).holds


def test_lemma_4_3_leading_order_by_hand():
    alpha, gamma, rho, G = NOTATION.symbols("alpha gamma rho G")
    C, D, p, scale, sig, Gamma, Xi = NOTATION.symbols("C D p scale sig Gamma Xi")
    # Section 5 of the paper's statement, written out: C p alpha^p Gamma G^(p-1) (1 - G/D).
    expected = C * p * scale * alpha**p * Gamma * G ** (p - 1) * (1 - G / D) * sig
    assert sympy.simplify(recursion.leading_increment(gamma) - expected) == 0
    expected = -C * p * scale * alpha**p * Xi * G**p / D * sig
    assert sympy.simplify(recursion.leading_increment(rho) - expected) == 0
    evidence = lemmas.lemma_4_3()
    assert evidence.holds is None
    assert evidence.findings[0] == "gamma: polylog = C*p*scale*sig*(D - G)/D"
