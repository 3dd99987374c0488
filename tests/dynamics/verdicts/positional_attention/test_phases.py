"""Theorem 4.1, Events I to III: what decides between the verdicts, and broken dynamics."""

import dataclasses

import numpy as np
import pytest
from verdicts import verdicts

import dynamics
from dynamics.verdicts.positional_attention import phases

SYSTEM = dynamics.load_system("positional_attention")
SMALL = SYSTEM.Parameters(D=12, C=3, q=0.4)
EVENTS = ("Theorem 4.1", "Event I", "Event I, updates", "Event II, increments", "Event II")


class Turned(SYSTEM.ReducedPopulation):
    """gamma and rho change places."""

    has_jacobian = False

    def gradient(self, state):
        return super().gradient(state)[[0, 2, 1]]


def one(claim, law=SMALL, system=SYSTEM):
    (verdict,) = dynamics.verify(system, law, [claim])
    return verdict


def test_they_hold_at_a_small_size_and_not_where_gamma_and_rho_change_places():
    assert verdicts(SYSTEM, *EVENTS, parameters=SMALL)[2:] == [True, True, None]
    assert one("Theorem 4.1").measured < 0.1
    wrong = dataclasses.replace(SYSTEM, ReducedPopulation=Turned)
    assert verdicts(wrong, "Theorem 4.1", "Event II", parameters=SMALL) == [False, False]
    assert one("Theorem 4.1", system=wrong).evidence["table"][0]["holds"] is False


@pytest.mark.parametrize(("left", "holds"), [(0.09, True), (0.11, None), (0.8, None)])
def test_an_error_is_near_the_irreducible_one_within_a_tenth_of_the_gap(monkeypatch, left, holds):
    """One that is not may still fall: it does while gamma rises."""
    monkeypatch.setattr(phases, "errors_at", lambda *_: dict.fromkeys(
        ("left", "error", "linear", "irreducible"), left))  # fmt: skip
    verdict = one("Theorem 4.1")
    assert (verdict.holds, verdict.measured) == (holds, left)


def test_a_model_that_generalises_at_t0_contradicts_event_1(monkeypatch):
    monkeypatch.setattr(phases, "errors_at", lambda *_: dict.fromkeys(
        ("left", "error", "linear", "irreducible"), 0.4))  # fmt: skip
    verdict = one("Event I")
    assert (verdict.holds, verdict.bound) == (False, phases.LINEAR_LEFT)


def test_alpha_that_starts_above_its_plateau_does_not_rise():
    """nu^(1/(p-1)) is .316 there, above where alpha comes to rest: T0 is at once."""
    verdict = one("Event I", dataclasses.replace(SMALL, nu=0.1, alpha0=0.1**0.5))
    assert verdict.holds is False
    assert "alpha from 0.316 to 0.316" in verdict.evidence["reason"]


def test_event_iii_and_its_lemma_have_one_reading_and_both_lines():
    """Alpha falls after T1 at beta = 1; at beta = 5 it ends above, and has risen higher."""
    for beta, ratio in ((1.0, 0.567), (5.0, 1.117)):
        law = dataclasses.replace(SMALL, beta=beta)
        third, lemma = one("Event III", law), one("Lemma D.11", law)
        assert third.evidence["table"][0]["value"] == pytest.approx(ratio, abs=2e-3)
        assert third.measured == third.evidence["table"][0]["value" if beta == 1 else "of_largest"]
        assert third.holds is False
        assert lemma.holds is False
        assert third.claim.reading == lemma.claim.reading
        assert (third.finding.literal is None) is (lemma.finding.literal is None)
        assert f"beta={beta:g}" in third.evidence["reason"]


class Mixed(SYSTEM.ReducedPopulation):
    """A reduced problem with another law than that of its parameters."""

    def __init__(self, parameters):
        super().__init__(dataclasses.replace(parameters, random_sets="mixed"))


def test_event_iii_is_seen_under_a_law_without_an_irreducible_error():
    system = dataclasses.replace(SYSTEM, ReducedPopulation=Mixed)
    found = one("Event III", SYSTEM.Parameters(D=9, C=3), system)
    assert found.holds is True
    assert found.measured == pytest.approx(2.579, rel=1e-3)


@pytest.mark.parametrize("draws", [phases.AT_ONCE, 2000])
@pytest.mark.parametrize("law", [{"q": 0.3}, {"D": 12, "C": 3, "p": 5}])
def test_the_error_of_draws_is_that_of_the_whole_law(monkeypatch, law, draws):
    """No set of one sign: there are no ties."""
    parameters = SYSTEM.Parameters(**{"D": 8, "C": 2, "random_sets": "mixed", **law})
    monkeypatch.setattr(phases, "DRAWS", 40_000)
    monkeypatch.setattr(phases, "AT_ONCE", draws)
    state = np.array([0.2, 0.6, -0.4])
    exact = SYSTEM.ReducedPopulation(parameters, "exact").observables(state)["error"]
    error, margin = phases.sampled_error(parameters, state, 1)
    assert 0.01 < exact < 0.3
    assert abs(error - exact) < 4 * margin


def test_ties_count_half():
    """Attention to the own set alone, D=4, C=2: wrong never, a tie where the other set is -1."""
    law = SYSTEM.Parameters(D=4, C=2, q=0.5)
    error, margin = phases.sampled_error(law, np.array([0.2, law.beta, -1e3]), 0)
    assert abs(error - 0.25**2 / 2) < 4 * margin
