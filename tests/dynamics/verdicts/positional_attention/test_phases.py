"""Theorem 4.1, Events I to III, Section 4.2: what decides, and broken dynamics."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from verdicts import moved, verdict_of, verdicts

import dynamics
from dynamics.validation import InvalidRequest
from dynamics.verdicts.draw import draw
from dynamics.verdicts.positional_attention import CHECKS, lemmas, phases, transverse

SYSTEM = dynamics.load_system("positional_attention")
SMALL = SYSTEM.Parameters(D=12, C=3, q=0.4)
TINY = SYSTEM.Parameters(D=6, C=2, q=0.5)
PLANE_LAW = SYSTEM.Parameters(D=8, C=2, q=0.5)
PLANE = {"time": 1e3, "starts": 1, "grid": 6}
EVENTS = ("Theorem 4.1", "Event I", "Event I, updates", "Event II, increments", "Event II")


def test_they_hold_at_a_small_size_and_not_where_gamma_and_rho_change_places():
    assert verdicts(SYSTEM, *EVENTS, parameters=SMALL)[2:] == [True, True, None]
    wrong = moved(SYSTEM, lambda slope: slope[[0, 2, 1]])
    assert verdicts(wrong, "Theorem 4.1", "Event II", parameters=TINY) == [False, False]


@pytest.mark.parametrize(
    ("claim", "left", "holds"),
    [("Theorem 4.1", 0.09, True), ("Theorem 4.1", 0.11, None), ("Event I", 0.4, False)],
)
def test_an_error_is_near_the_irreducible_one_within_a_tenth_of_the_gap(
    monkeypatch, claim, left, holds
):
    """One that is not may still fall: it does while gamma rises; at T0 it must not have fallen."""
    errors = dict.fromkeys(("left", "error", "linear", "irreducible"), left)
    monkeypatch.setattr(phases, "errors_at", lambda *_: errors)
    verdict = verdict_of(SYSTEM, claim, SMALL)
    assert (verdict.holds, verdict.measured) == (holds, left)


def test_event_iii_and_its_lemma_have_one_reading_and_both_lines():
    """Alpha falls after T1 at beta = 1; at beta = 5 it ends above, and has risen higher."""
    for beta, ratio in ((1.0, 0.567), (5.0, 1.117)):
        law = replace(SMALL, beta=beta)
        third, lemma = (verdict_of(SYSTEM, name, law) for name in ("Event III", "Lemma D.11"))
        assert third.evidence["table"][0]["value"] == pytest.approx(ratio, abs=2e-3)
        assert third.measured == third.evidence["table"][0]["value" if beta == 1 else "of_largest"]
        assert third.holds is lemma.holds is False


def test_event_iii_is_seen_under_a_law_without_an_irreducible_error():
    mixed = lambda law: SYSTEM.ReducedPopulation(replace(law, random_sets="mixed"))  # noqa: E731
    system = replace(SYSTEM, ReducedPopulation=mixed)
    found = verdict_of(system, "Event III", SYSTEM.Parameters(D=9, C=3))
    assert found.holds is True
    assert found.measured == pytest.approx(2.579, rel=1e-3)


@pytest.mark.parametrize("draws", [phases.AT_ONCE, 2000])
def test_the_error_of_draws_is_that_of_the_whole_law(monkeypatch, draws):
    parameters = SYSTEM.Parameters(D=8, C=2, q=0.3, random_sets="mixed")
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


def law(D, C, p=3, **more):
    return SYSTEM.Parameters(D=D, C=C, p=p, random_sets="mixed", **more)


@pytest.mark.parametrize(
    ("sizes", "below", "other"),
    [((8, 2), True, 1.5), ((15, 3), False, 0.5), ((16, 4, 5), True, 1.5)],
)
def test_full_attention_has_no_error_below_one_and_one_from_there_on(
    sizes, below, other, monkeypatch
):
    found = verdict_of(SYSTEM, "Zero error", law(*sizes))
    (row,) = found.evidence["table"]
    assert found.holds is True
    assert (row["error"] == 0, row["criterion"] < 1) == (below, below)
    monkeypatch.setattr(lemmas, "criterion", lambda *_: other)
    assert verdict_of(SYSTEM, "Zero error", law(*sizes)).holds is False


@pytest.mark.parametrize(
    ("parameters", "expectation", "why"),
    [
        (SYSTEM.Parameters(D=8, C=2), "exact", "assumes random_sets=mixed"),
        (law(8, 2, q=1.0), "exact", "without zeros"),
        (law(8, 2), "spectral", "no exact error"),
    ],
)
def test_the_claim_is_of_mixed_sets_with_zeros_and_of_exact_sums(parameters, expectation, why):
    problem = partial(SYSTEM.ReducedPopulation, expectation=expectation)
    found = verdict_of(replace(SYSTEM, ReducedPopulation=problem), "Zero error", parameters)
    assert found.holds is None
    assert why in found.evidence["reason"]


def test_claims_of_assumption_1_are_not_decided_under_another_law():
    of_any_law = {"Lemma 4.1", "Lemma 4.2", "Lemma 4.3", "Section 4.2", "Zero error", "Association"}
    of_images = {name for name, check in CHECKS.items() if getattr(check, "laws", ()) is None}
    for source in set(CHECKS) - of_any_law - of_images:
        found = verdict_of(SYSTEM, source, law(9, 3))
        assert found.holds is None
        assert "not random_sets=mixed" in found.evidence["reason"]
    assert verdict_of(SYSTEM, "Lemma 4.1", law(8, 2)).holds is True


def test_the_figure_draws_every_size_in_both_readings():
    options = {"D": [8, 12], "C": [2, 3], "diagonals": [1.0, 4.0], "time": 1e5}
    drawing = draw(SYSTEM, "event_III", options=options)
    rows = drawing.data["rows"]
    assert [(row["D"], row["beta"]) for row in rows] == [(8, 1.0), (8, 4.0), (12, 1.0), (12, 4.0)]
    assert drawing.data["half_at_start"]["D=8, C=2"] == pytest.approx(np.log(5))
    ends = [row["end_T1"] for row in rows if row["D"] == 8]
    lines = [line.get_ydata() for line in drawing.axes[0].lines]
    assert any(np.array_equal(ends, drawn, equal_nan=True) for drawn in lines)


class Repelling(SYSTEM.FullPopulation):
    """Every deviation from the orbit means grows faster than it should."""

    def gradient(self, state):
        slope, matrix = super().gradient(state), self.layout.part(np.asarray(state), "A")
        labels = self.partition.labels
        same = labels[:, None] == labels[None, :]
        off_diagonal = ~np.eye(labels.size, dtype=bool)
        for orbit in (same & off_diagonal, ~same):
            deviation = np.where(orbit, matrix - matrix[orbit].mean(), 0.0)
            slope[1:] -= 0.1 * deviation.ravel()
        return slope


def test_a_small_spread_stays_and_a_large_one_leaves():
    verdict = verdict_of(SYSTEM, "Section 4.2")
    (row,) = verdict.evidence["table"]
    assert verdict.holds is True
    assert verdict.measured == pytest.approx(0.1245, rel=0.01)
    assert (row["negative"], row["directions"], row["worst_multiplicity"]) == (27, 54, 4)
    assert row["shares"] == [1.0, 1.0, 0.5]


def test_other_dynamics_get_another_verdict(monkeypatch):
    monkeypatch.setattr(transverse, "LARGER", ())
    monkeypatch.setattr(transverse, "HORIZON", 1e2)
    monkeypatch.setattr(transverse, "RECORDS", 24)
    wrong = verdict_of(replace(SYSTEM, FullPopulation=Repelling), "Section 4.2", TINY)
    assert [row["holds"] for row in wrong.evidence["table"]] == [False]
    assert verdict_of(SYSTEM, "Section 4.2", TINY).holds is True


def test_sizes_that_cannot_be_enumerated_are_undecided(monkeypatch):
    monkeypatch.setattr(transverse, "RECORDS", 10)
    linear = verdict_of(SYSTEM, "Section 4.2", SYSTEM.Parameters(D=16, C=4))
    assert linear.holds is None
    assert linear.measured > 0
    nothing = verdict_of(SYSTEM, "Section 4.2", SYSTEM.Parameters(D=64, C=4))
    assert nothing.holds is None
    assert "D=64" in nothing.finding.reason


def test_both_planes_by_default_are_drawn_as_they_are_told(monkeypatch):
    monkeypatch.setattr("dynamics.analysis.phase_portrait.plane.ARROWS", 8)
    drawing = draw(SYSTEM, "plane", PLANE_LAW, options=PLANE)
    hidden = {name: told["hidden"] for name, told in drawing.data.items()}
    assert hidden == {"gamma-rho": {"alpha": "slow"}, "alpha-gamma": {"rho": "run"}}
    for axes, told in zip(drawing.axes, drawing.data.values(), strict=True):
        drawn = [line.get_xydata() for line in axes.lines]
        branches = [each for line in told["nullclines"].values() for each in line["branches"]]
        assert branches
        for branch in branches:
            assert any(np.array_equal(branch, shown) for shown in drawn)
    with pytest.raises(InvalidRequest, match="plane='beta-rho'"):
        draw(SYSTEM, "plane", PLANE_LAW, options={"plane": "beta-rho"})
