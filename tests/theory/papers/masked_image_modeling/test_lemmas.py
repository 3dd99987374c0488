"""Lemmas A.8, A.9, 5.1, 5.2 and the gap: derived, compared with what the paper states."""

import pytest

from theory.papers.masked_image_modeling import information_gap, lemmas, recursion


@pytest.fixture
def fewer_masks(monkeypatch):
    """Two masks are enough to see a check fail."""
    cases = [case for case in lemmas.small_cases() if len(case.hidden) in (1, 2)][:2]
    monkeypatch.setattr(lemmas, "small_cases", lambda: iter(cases))


PROOFS = ("live_entries", "lemma_a_8", "lemma_5_1", "lemma_5_2", "conserved_sum", "unavoidable",
          "lemma_a_1")  # fmt: skip


@pytest.mark.parametrize("proof", PROOFS)
def test_what_is_derived_is_what_is_stated(proof):
    assert getattr(lemmas, proof)().holds is True


def test_lemma_a_8_fails_without_the_other_areas():
    def own_alone(z, A, m):
        return z[m] ** 2 * (1 - A[m]) ** 2 / 2

    assert not lemmas.lemma_a_8(own_alone).holds


def test_lemma_5_1_fails_with_one_sign_turned(fewer_masks):
    def turned(z, A, m, i, rest):
        return lemmas.paper_feature_rate(z, A, m, i, rest if i == m else -rest)

    evidence = lemmas.lemma_5_1(turned)
    assert not evidence.holds
    assert "own area equal, other area different" in evidence.findings[0]


def test_lemma_5_2_fails_if_masked_keys_are_left_alone(fewer_masks):
    def without_masked(place, latent, share, mean):
        if place == recursion.MASKED:
            return 0
        return lemmas.paper_position_rate(place, latent, share, mean)

    assert not lemmas.lemma_5_2(without_masked).holds


def test_sum_over_unmasked_positions_is_not(fewer_masks):
    def unmasked(case, q):
        return case.rate(lemmas.UPS[q]) * int(q not in case.hidden)

    assert not lemmas.conserved_sum(unmasked).holds


def test_an_infimum_with_an_extra_term_is_seen(monkeypatch, fewer_masks):
    """1/(N - 1) beyond z_m^2 / 2, as where the unmasked attention had to sum to 1."""
    monkeypatch.setattr(lemmas, "_limit_of_loss", lambda case: lemmas.LATENTS[1] ** 2 * 3 / 4)
    assert lemmas.unavoidable().holds is False


def test_lemma_a_1_fails_without_the_output_in_the_second_place(fewer_masks):
    def uncentred(case, token):
        own = lemmas.model.image(lemmas.SMALL, 0, lemmas.LATENTS)
        missing = own[lemmas.QUERY] - lemmas.model.reconstruction(
            lemmas.ATTENTION, own, case.hidden
        )
        return sum(
            u_q * token(q) * missing.dot(own[q]) * int(q not in case.hidden)
            for q, u_q in enumerate(lemmas.ATTENTION)
        )

    assert not lemmas.lemma_a_1(uncentred).holds


def test_switch_and_gap():
    assert information_gap.gap().holds
    evidence = information_gap.lemma_5_3()
    assert evidence.holds is None
    assert "1/3" in evidence.findings[0]
    assert "log(3/2)" in evidence.findings[1]
