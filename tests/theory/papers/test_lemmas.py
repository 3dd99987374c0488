"""Lemmas of the three papers: what is derived equals what is stated, and each proof can fail."""

import pytest
import sympy

from theory.papers.masked_image_modeling import information_gap
from theory.papers.masked_image_modeling import lemmas as masked
from theory.papers.masked_image_modeling import recursion as masked_recursion
from theory.papers.positional_attention import lemmas as positional
from theory.papers.positional_attention import recursion as positional_recursion
from theory.papers.positional_attention.notation import NOTATION
from theory.papers.shallow_vit import lemmas as shallow
from theory.papers.shallow_vit import recursion as collapsed
from theory.papers.shallow_vit.model import W_K
from theory.papers.shallow_vit.recursion import G_K, G_Q, GAMMA, B, K, T, eta

PROOFS = {
    masked: ("live_entries", "lemma_a_8", "lemma_5_1", "lemma_5_2", "conserved_sum",
             "unavoidable", "lemma_a_1"),
    positional: ("lemma_4_1", "lemma_4_2"),
    shallow: ("gradients", "pattern_closure", "gram_form", "collapse", "margin_and_weights"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("lemmas", "proof"), [(paper, proof) for paper, proofs in PROOFS.items() for proof in proofs]
)
def test_what_is_derived_is_what_is_stated(lemmas, proof):
    assert getattr(lemmas, proof)().holds is True


def own_alone(z, A, m):
    return z[m] ** 2 * (1 - A[m]) ** 2 / 2


def turned(z, A, m, i, rest):
    return masked.paper_feature_rate(z, A, m, i, rest if i == m else -rest)


def without_masked(place, latent, share, mean):
    hidden = place == masked_recursion.MASKED
    return 0 if hidden else masked.paper_position_rate(place, latent, share, mean)


def unmasked(case, q):
    return case.rate(masked.UPS[q]) * int(q not in case.hidden)


def uncentred(case, token):
    own = masked.model.image(masked.SMALL, 0, masked.LATENTS)
    missing = own[masked.QUERY] - masked.model.reconstruction(masked.ATTENTION, own, case.hidden)
    return sum(
        u_q * token(q) * missing.dot(own[q]) * int(q not in case.hidden)
        for q, u_q in enumerate(masked.ATTENTION)
    )


M_A, RATE = shallow.NOTATION.symbols("m eta")
GRAM = shallow.stated_gram()
OTHER_M = {name: value.subs(collapsed.M, 6) for name, value in collapsed.collapse().items()}
OF_A_PATCH = [(y, values, w * (2 + values[3] ** 2)) for y, values, w in positional.small_law()]
WRONG = [
    (masked, "lemma_a_8", (own_alone,)), (masked, "lemma_5_1", (turned,)),
    (masked, "lemma_5_2", (without_masked,)), (masked, "conserved_sum", (unmasked,)),
    (masked, "lemma_a_1", (uncentred,)),
    (positional, "lemma_4_1", (OF_A_PATCH,)),
    (positional, "lemma_4_2", (lambda k: sympy.Integer(1),)),  # noise that is not centred
    (shallow, "gram_form", (GRAM | {B: B - eta * (G_K * T * GAMMA + GAMMA * T * G_Q)},)),
    (shallow, "gram_form", (GRAM | {B: GRAM[B].subs(T, T.T)},)),
    (shallow, "collapse", ((4,), OTHER_M)),
    (shallow, "margin_and_weights", ((2 / M_A, 1, M_A**0.5 * RATE),)),
    (shallow, "margin_and_weights", ((1 / M_A, 2, M_A**0.5 * RATE),)),
    (shallow, "margin_and_weights", ((1 / M_A, 1, 2 * M_A**0.5 * RATE),)),
]  # fmt: skip


@pytest.fixture
def fewer_masks(monkeypatch):
    """Two masks are enough to see a check fail."""
    cases = [case for case in masked.small_cases() if len(case.hidden) in (1, 2)][:2]
    monkeypatch.setattr(masked, "small_cases", lambda: iter(cases))


@pytest.mark.parametrize(("lemmas", "proof", "stated"), WRONG)
def test_another_statement_is_not_what_is_derived(lemmas, proof, stated, fewer_masks):
    evidence = getattr(lemmas, proof)(*stated)
    assert not evidence.holds
    if proof == "lemma_5_1":
        assert "own area equal, other area different" in evidence.findings[0]


def test_an_infimum_with_an_extra_term_is_seen(monkeypatch, fewer_masks):
    """1/(N - 1) beyond z_m^2 / 2, as where the unmasked attention had to sum to 1."""
    monkeypatch.setattr(masked, "_limit_of_loss", lambda case: masked.LATENTS[1] ** 2 * 3 / 4)
    assert masked.unavoidable().holds is False


def test_switch_and_gap():
    assert information_gap.gap().holds
    evidence = information_gap.lemma_5_3()
    assert evidence.holds is None
    assert "1/3" in evidence.findings[0]
    assert "log(3/2)" in evidence.findings[1]


def test_lemma_4_3_leading_order_by_hand():
    alpha, gamma, rho, G = NOTATION.symbols("alpha gamma rho G")
    C, D, p, scale, sig, Gamma, Xi = NOTATION.symbols("C D p scale sig Gamma Xi")
    # Section 5 of the paper's statement, written out: C p alpha^p Gamma G^(p-1) (1 - G/D).
    expected = C * p * scale * alpha**p * Gamma * G ** (p - 1) * (1 - G / D) * sig
    assert sympy.simplify(positional_recursion.leading_increment(gamma) - expected) == 0
    expected = -C * p * scale * alpha**p * Xi * G**p / D * sig
    assert sympy.simplify(positional_recursion.leading_increment(rho) - expected) == 0
    evidence = positional.lemma_4_3()
    assert evidence.holds is None
    assert evidence.findings[0] == "gamma: polylog = C*p*scale*sig*(D - G)/D"


def test_gradients_with_the_sign_of_one_turned():
    stated = dict(shallow.stated_gradients())
    stated[W_K] = -stated[W_K]
    evidence = shallow.gradients(stated)
    assert not evidence.holds
    assert evidence.findings == (
        "all sizes: 3 of 4 matrix expressions equal", "written out: equal for 5 of 7 weights"
    )  # fmt: skip


def test_pattern_closure_fails_for_another_step(monkeypatch):
    monkeypatch.setattr(shallow, "gradients", lambda: shallow.Evidence(True, "", ()))
    stated = dict(shallow.stated_closure())
    stated[K] = K - eta * stated[K]
    assert "3 of 4 equal" in shallow.pattern_closure(stated).findings[2]
