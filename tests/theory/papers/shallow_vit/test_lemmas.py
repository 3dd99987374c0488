"""What is derived equals what is stated; and each proof can fail."""

import pytest

from theory.papers.shallow_vit import lemmas, recursion
from theory.papers.shallow_vit.model import W_K
from theory.papers.shallow_vit.recursion import G_K, G_Q, GAMMA, B, K, T, eta

PROOFS = ("gradients", "pattern_closure", "gram_form", "collapse", "margin_and_weights")


@pytest.mark.parametrize("proof", PROOFS)
def test_what_is_derived_is_what_is_stated(proof):
    assert getattr(lemmas, proof)().holds is True


def test_gradients_with_the_sign_of_one_turned():
    stated = dict(lemmas.stated_gradients())
    stated[W_K] = -stated[W_K]
    evidence = lemmas.gradients(stated)
    assert not evidence.holds
    assert "3 of 4 matrix expressions equal" in evidence.findings[0]
    assert "equal for 5 of 7 weights" in evidence.findings[1]


def test_pattern_closure_fails_for_another_step(monkeypatch):
    monkeypatch.setattr(lemmas, "gradients", lambda: lemmas.Evidence(True, "", ()))
    stated = dict(lemmas.stated_closure())
    stated[K] = K - eta * stated[K]
    assert "3 of 4 equal" in lemmas.pattern_closure(stated).findings[2]


M_A, RATE = lemmas.NOTATION.symbols("m eta")
GRAM = lemmas.stated_gram()
OTHER_M = {name: value.subs(recursion.M, 6) for name, value in recursion.collapse().items()}


@pytest.mark.parametrize(
    ("proof", "given"),
    [
        ("gram_form", {"stated": GRAM | {B: B - eta * (G_K * T * GAMMA + GAMMA * T * G_Q)}}),
        ("gram_form", {"stated": GRAM | {B: GRAM[B].subs(T, T.T)}}),
        ("collapse", {"sizes": (4,), "step": OTHER_M}),
        ("margin_and_weights", {"first": (2 / M_A, 1, M_A**0.5 * RATE)}),
        ("margin_and_weights", {"first": (1 / M_A, 2, M_A**0.5 * RATE)}),
        ("margin_and_weights", {"first": (1 / M_A, 1, 2 * M_A**0.5 * RATE)}),
    ],
)
def test_another_statement_is_not_what_is_derived(proof, given):
    assert not getattr(lemmas, proof)(**given).holds
