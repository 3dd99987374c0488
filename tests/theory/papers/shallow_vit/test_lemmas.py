"""What is derived equals what is stated; and each proof can fail."""

import bags
import numpy as np
import pytest
import sympy

from theory.papers.shallow_vit import lemmas, model, recursion
from theory.papers.shallow_vit.model import W_K, evaluate
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
    assert evidence.findings == (
        "all sizes: 3 of 4 matrix expressions equal",
        "written out: equal for 5 of 7 weights",
    )


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


def test_gradients_with_numbers_are_those_of_the_loss_of_tokens():
    """`model.gradients` alone, at sizes that all differ, against central differences in loops."""
    rng, margin = np.random.default_rng(3), 2.0
    sizes = {model.d: 3, model.m_a: 2, model.m_b: 5, model.m: 6, model.L: 4}
    weights = [rng.normal(size=shape) for shape in ((6, 2), (2, 3), (5, 3), (5, 3))]
    tokens, a = rng.normal(size=(3, 4)), rng.choice([-0.5, 0.5], size=6)
    slopes = bags.central_differences(
        lambda now: bags.loss(now, [(tokens, -1, 1.0)], a, margin), weights
    )
    W_O, W_V, W_K, W_Q = weights
    S = np.exp((W_K @ tokens).T @ W_Q @ tokens)
    S /= S.sum(axis=0)
    gates = W_O @ W_V @ tokens @ S > 0
    known = dict(zip(model.TRAINED, weights, strict=True))
    known |= {model.X: tokens, model.S: S, model.D: a[:, None] * gates / 4}
    values = {symbol: sympy.Matrix(value) for symbol, value in known.items()}
    values[model.DZ] = model.explicit(model.by_scores(), sizes, values)
    known[model.DZ] = np.array(values[model.DZ], dtype=float)
    known |= {symbol.T: value.T for symbol, value in known.items()}
    for matrix, slope in zip(model.TRAINED, slopes, strict=True):
        ((coefficient, value),) = evaluate(model.gradients()[matrix], known, np.matmul)
        assert np.abs(slope).max() > 1e-3
        assert np.abs(float(coefficient) * value - slope).max() < 1e-7
