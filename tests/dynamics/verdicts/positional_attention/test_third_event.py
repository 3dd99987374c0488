"""States without error, alpha after T1 over beta, and the paper's claims about Event III."""

from dataclasses import replace

import numpy as np
import pytest

import dynamics
from dynamics.verdicts.claim import reduced_flow
from dynamics.verdicts.figure import draw
from dynamics.verdicts.positional_attention import CHECKS, flow_figures, lemmas

SYSTEM = dynamics.load_system("positional_attention")


def law(D, C, p=3, **more):
    return SYSTEM.Parameters(D=D, C=C, p=p, random_sets="mixed", **more)


def verdict(source, parameters=None):
    return dynamics.verify(SYSTEM, parameters, claims=[source])[0]


@pytest.mark.parametrize(
    ("sizes", "below"), [((8, 2), True), ((12, 4), True), ((15, 3), False), ((16, 4, 5), True)]
)
def test_full_attention_has_no_error_below_one_and_one_from_there_on(sizes, below):
    found = verdict("Zero error", law(*sizes))
    (row,) = found.evidence["table"]
    assert found.holds is True
    assert (row["error"] == 0, row["criterion"] < 1) == (below, below)


@pytest.mark.parametrize(("sizes", "number"), [((8, 2), 1.5), ((15, 3), 0.5)])
def test_another_criterion_is_contradicted(sizes, number, monkeypatch):
    monkeypatch.setattr(lemmas, "criterion", lambda *_: number)
    found = verdict("Zero error", law(*sizes))
    assert found.holds is False
    assert ("at least 1" in found.finding.quantity) == (number > 1)


def test_a_law_whose_error_is_no_sum_over_all_is_not_decided():
    def spectral(parameters):
        return SYSTEM.ReducedPopulation(parameters, "spectral")

    system = replace(SYSTEM, ReducedPopulation=spectral)
    (found,) = dynamics.verify(system, law(8, 2), claims=["Zero error"])
    assert found.holds is None
    assert "not a sum over all" in found.evidence["reason"]


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        (SYSTEM.Parameters(D=8, C=2), "assumes random_sets=mixed"),
        (law(8, 2, q=1.0), "without zeros"),
    ],
)
def test_the_claim_is_of_mixed_sets_with_zeros(parameters, why):
    found = verdict("Zero error", parameters)
    assert found.holds is None
    assert why in found.evidence["reason"]


def test_claims_of_assumption_1_are_not_decided_under_another_law():
    of_any_law = {"Lemma 4.1", "Lemma 4.2", "Lemma 4.3", "Section 4.2", "Zero error", "Association"}
    of_images = {name for name, check in CHECKS.items() if getattr(check, "laws", ()) is None}
    for source in set(CHECKS) - of_any_law - of_images:
        found = verdict(source, law(9, 3))
        assert found.holds is None
        assert "random_sets=mixed is another law" in found.evidence["reason"]
    assert verdict("Lemma 4.1", law(8, 2)).holds is True


@pytest.mark.parametrize(("beta", "ratio"), [(1.0, 0.567), (3.0, 0.915), (5.0, 1.117)])
def test_alpha_at_the_end_over_alpha_at_t1(beta, ratio):
    _, run = reduced_flow(
        SYSTEM.ReducedPopulation, SYSTEM.Parameters(D=12, C=3, q=0.4, beta=beta), 1e6
    )
    found = flow_figures.after_t1(run)
    assert found["end_T1"] == pytest.approx(ratio, abs=2e-3)
    later = run["alpha"][run.time >= run.events["T1"].time]
    largest = max(1.0, later.max() / run.events["T1"].state[0])
    assert found["largest_T1"] == pytest.approx(largest, rel=1e-12)
    assert not found["end_T1_paper"] > found["largest_T1_paper"]


def test_without_t1_there_is_nothing_to_compare_with():
    _, run = reduced_flow(SYSTEM.ReducedPopulation, SYSTEM.Parameters(D=8, C=2, q=0.9), 1e4)
    assert all(np.isnan(value) for value in flow_figures.after_t1(run).values())


def test_the_figure_draws_every_size_in_both_readings():
    options = {"D": [8, 12], "C": [2, 3], "diagonals": [1.0, 4.0], "time": 1e5}
    drawing = draw(SYSTEM, "event_III", options=options)
    rows = drawing.data["rows"]
    assert [(row["D"], row["beta"]) for row in rows] == [(8, 1.0), (8, 4.0), (12, 1.0), (12, 4.0)]
    assert drawing.data["half_at_start"]["D=8, C=2"] == pytest.approx(np.log(5))
    for panel, name in zip(drawing.axes, ("T1", "T1_paper"), strict=True):
        for size in (8, 12):
            ends = [row[f"end_{name}"] for row in rows if row["D"] == size]
            lines = [line.get_ydata() for line in panel.lines if len(line.get_ydata()) == 2]
            assert any(np.array_equal(ends, drawn, equal_nan=True) for drawn in lines)
        assert 1.05 in [line.get_ydata()[0] for line in panel.lines if len(line.get_ydata())]
    # At beta = 4 half of the attention is on the diagonal at the start: T1 is T0 at the latest.
    first = next(row for row in rows if row["beta"] == 4.0)["T1"]
    assert first < 1.0
