"""Event III against its criterion: the table of sizes, the figure, the claim, other claims."""

import numpy as np
import pytest
from dynamics.verdicts.study import Case

import dynamics
from dynamics.verdicts.figure import draw
from dynamics.verdicts.positional_attention import CHECKS, third_event
from dynamics.verdicts.positional_attention.population import population_flow

SYSTEM = dynamics.load_system("positional_attention")
TABLE = [
    # D, C, p, T1, minimum, alpha at 1e6 over alpha(T1), whether the error is 0
    (8, 2, 3, 84.7, 225.83, 2.905, True),
    (9, 3, 3, 117.3, 684.08, 2.579, True),
    (16, 4, 5, 482.4, None, 0.568, False),
    (12, 4, 3, 378.5, 12_624.5, 3.123, True),
    (16, 2, 3, 1000.9, 2523.6, 5.724, True),
    (12, 3, 3, 313.4, 2753.2, 4.175, True),
    (20, 2, 3, 2577.3, 4945.6, 1.190, False),
    (15, 3, 3, 550.9, None, 0.920, False),
    (16, 4, 3, 698.2, None, 0.725, False),
]


def law(D, C, p=3, **more):
    return SYSTEM.Parameters(D=D, C=C, p=p, random_sets="mixed", **more)


def verdict(source, parameters=None):
    return dynamics.verify(SYSTEM, parameters, claims=[source])[0]


@pytest.mark.parametrize(("D", "C", "p", "T1", "minimum", "ratio", "zero"), TABLE)
def test_the_table_of_mixed_random_sets(D, C, p, T1, minimum, ratio, zero):
    case = population_flow(SYSTEM, law(D, C, p), 1e6)
    found = third_event.measured(case)
    assert found["T1"] == pytest.approx(T1, abs=0.06)
    assert found["ratio"] == pytest.approx(ratio, rel=0.01)
    assert (found["error"] == 0) == zero
    if minimum is None:
        assert found["event_III"] is None
    else:
        assert found["event_III"] == pytest.approx(minimum, rel=1e-4)
    assert (found["event_III"] is not None) == (found["ratio"] > 1.05)


@pytest.mark.parametrize(("sizes", "q"), [((16, 4, 5), 0.5), ((18, 3, 5), 0.4)])
def test_an_error_that_still_falls_is_named(sizes, q, monkeypatch):
    monkeypatch.setattr(third_event, "LATE", 1e6)
    case = population_flow(SYSTEM, law(*sizes, q=q), 1e6)
    found = third_event.measured(case)
    assert found["criterion"] < 1
    assert found["error"] > 0
    assert found["event_III"] is None
    finding = verdict("Zero error", law(*sizes, q=q))
    assert finding.holds is True  # some state has error zero
    assert finding.evidence["reason"].endswith(f"{q:g}, 0.001, 1): {found['error']:.1e}, falling")


def test_a_longer_run_decides_a_late_rise():
    found = third_event.measured(population_flow(SYSTEM, law(16, 4, 5), 1e8))
    assert found["event_III"] == pytest.approx(6.04e5, rel=1e-3)
    assert found["error"] == 0
    assert found["ratio"] > 2


@pytest.mark.parametrize(("sizes", "zero"), [((8, 2), True), ((15, 3), False)])
def test_the_claim_holds_on_both_sides(sizes, zero):
    found = verdict("Zero error", law(*sizes))
    (row,) = found.evidence["table"]
    assert found.holds is True
    assert (row["error"] == 0, row["criterion"] < 1) == (zero, zero)


def test_the_claim_can_fail(monkeypatch):
    """With another criterion runs without an error stand where there should be none."""
    monkeypatch.setattr(third_event, "criterion", lambda *_: 1.5)
    assert verdict("Zero error", law(8, 2)).holds is False


def test_an_error_at_full_attention_below_one_contradicts_the_claim(monkeypatch):
    monkeypatch.setattr(third_event, "criterion", lambda *_: 0.5)
    monkeypatch.setattr(third_event, "AT_REST", 1.0)
    found = verdict("Zero error", law(15, 3))
    assert found.holds is False
    assert "at rest" in found.evidence["reason"]


@pytest.mark.parametrize(
    ("sizes", "more", "rest"),
    [
        ((12, 4), {"q": 0.9}, "(12, 4, 3, 0.9, 0.001, 1): 2.6e-03, at rest"),
        ((12, 4), {"q": 0.85}, "(12, 4, 3, 0.85, 0.001, 1): 5.0e-03, at rest"),
        ((9, 3), {"nu": 10.0}, "(9, 3, 3, 0.5, 10, 1): 9.4e-03, at rest"),
        ((9, 3), {"beta": 0.3}, "(9, 3, 3, 0.5, 0.001, 0.3): 9.4e-03, at rest"),
    ],
)
def test_training_may_rest_with_an_error_where_some_state_has_none(sizes, more, rest):
    found = verdict("Zero error", law(*sizes, **more))
    assert found.holds is True
    assert found.measured == found.evidence["table"][0]["criterion"] < 1
    assert found.evidence["table"][0]["least_error"] == 0.0
    assert rest in found.evidence["reason"]


def test_a_law_whose_error_is_no_sum_over_all_is_not_decided(monkeypatch):
    problem = SYSTEM.ReducedPopulation(law(8, 2), "spectral")
    case = Case(law(8, 2), problem, dynamics.flow(problem, time=200.0))
    monkeypatch.setattr(third_event, "population_flow", lambda *_: case)
    found = verdict("Zero error", law(8, 2))
    assert found.holds is None
    assert "not a sum over all" in found.evidence["reason"]


@pytest.mark.parametrize(
    ("parameters", "why"),
    [(SYSTEM.Parameters(D=8, C=2), "of random_sets=mixed"), (law(8, 2, q=1.0), "without zeros")],
)
def test_the_claim_is_of_mixed_sets_with_zeros(parameters, why):
    found = verdict("Zero error", parameters)
    assert found.holds is None
    assert why in found.evidence["reason"]


def test_claims_of_assumption_1_are_not_decided_under_another_law():
    for source in set(CHECKS) - {
        "Lemma 4.1",
        "Lemma 4.2",
        "Lemma 4.3",
        "Section 4.2",
        "Zero error",
        *(source for source, check in CHECKS.items() if getattr(check, "laws", ()) is None),
    }:
        found = verdict(source, law(9, 3))
        assert found.holds is None
        assert "random_sets=mixed is another law" in found.evidence["reason"]
    assert verdict("Lemma 4.1", law(8, 2)).holds is True


def test_the_figure_draws_both_laws_at_every_size(monkeypatch):
    sizes = ((8, 2, 3), (9, 3, 3), (15, 3, 3), (16, 4, 5))
    monkeypatch.setattr(third_event, "SIZES", sizes)
    drawing = draw(SYSTEM, "event_III")
    rows = drawing.data["rows"]
    assert [(row["D"], row["C"], row["p"]) for row in rows[::2]] == list(sizes)
    assert [row["random_sets"] for row in rows] == ["mixed", "any"] * 4
    assert [row["group"] for row in rows[::2]] == ["zero", "zero", "positive", "late"]
    assert all(row["ratio"] < 1 and row["error"] > 0 for row in rows[1::2])
    for name, line in zip(third_event.GROUPS, drawing.axes.lines, strict=False):
        drawn = [(row["criterion"], row["ratio"]) for row in rows if row["group"] == name]
        np.testing.assert_array_equal(line.get_xydata(), drawn)
    levels = [line for line in drawing.axes.lines if len(set(line.get_ydata())) == 1]
    assert 1.05 in [line.get_ydata()[0] for line in levels]
    assert "not decidable to this time" in drawing.caption
    assert len(third_event.SIZES) == 4


def test_the_sizes_of_the_figure_are_on_both_sides_of_one():
    numbers = [third_event.criterion(law(*size).set_law, size[0] // size[1], size[2])
               for size in third_event.SIZES]  # fmt: skip
    assert len(numbers) >= 15
    assert min(sum(n < 1 for n in numbers), sum(n >= 1 for n in numbers)) >= 6
