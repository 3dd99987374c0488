"""Lemmas A.8, A.9, 5.1, 5.2 and the gap: derived, compared with what the paper states."""

import pytest

from theory.papers.masked_image_modeling import information_gap, lemmas, recursion

PROOFS = ("live_entries", "lemma_a_8", "lemma_5_1", "lemma_5_2", "conserved_sum", "unavoidable",
          "lemma_a_1")  # fmt: skip


@pytest.mark.parametrize("proof", PROOFS)
def test_what_is_derived_is_what_is_stated(proof):
    assert getattr(lemmas, proof)().holds is True


def own_alone(z, A, m):
    return z[m] ** 2 * (1 - A[m]) ** 2 / 2


def turned(z, A, m, i, rest):
    return lemmas.paper_feature_rate(z, A, m, i, rest if i == m else -rest)


def without_masked(place, latent, share, mean):
    masked = place == recursion.MASKED
    return 0 if masked else lemmas.paper_position_rate(place, latent, share, mean)


def unmasked(case, q):
    return case.rate(lemmas.UPS[q]) * int(q not in case.hidden)


def uncentred(case, token):
    own = lemmas.model.image(lemmas.SMALL, 0, lemmas.LATENTS)
    missing = own[lemmas.QUERY] - lemmas.model.reconstruction(lemmas.ATTENTION, own, case.hidden)
    return sum(
        u_q * token(q) * missing.dot(own[q]) * int(q not in case.hidden)
        for q, u_q in enumerate(lemmas.ATTENTION)
    )


WRONG = {
    "lemma_a_8": own_alone, "lemma_5_1": turned, "lemma_5_2": without_masked,
    "conserved_sum": unmasked, "lemma_a_1": uncentred,
}  # fmt: skip


@pytest.fixture
def fewer_masks(monkeypatch):
    """Two masks are enough to see a check fail."""
    cases = [case for case in lemmas.small_cases() if len(case.hidden) in (1, 2)][:2]
    monkeypatch.setattr(lemmas, "small_cases", lambda: iter(cases))


@pytest.mark.parametrize("proof", WRONG)
def test_another_statement_is_not_what_is_derived(proof, fewer_masks):
    evidence = getattr(lemmas, proof)(WRONG[proof])
    assert not evidence.holds
    if proof == "lemma_5_1":
        assert "own area equal, other area different" in evidence.findings[0]


def test_an_infimum_with_an_extra_term_is_seen(monkeypatch, fewer_masks):
    """1/(N - 1) beyond z_m^2 / 2, as where the unmasked attention had to sum to 1."""
    monkeypatch.setattr(lemmas, "_limit_of_loss", lambda case: lemmas.LATENTS[1] ** 2 * 3 / 4)
    assert lemmas.unavoidable().holds is False


def test_switch_and_gap():
    assert information_gap.gap().holds
    evidence = information_gap.lemma_5_3()
    assert evidence.holds is None
    assert "1/3" in evidence.findings[0]
    assert "log(3/2)" in evidence.findings[1]
