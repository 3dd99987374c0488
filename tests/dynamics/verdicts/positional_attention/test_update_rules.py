"""Events under other update rules, and association by Adam where the flow has none."""

import numpy as np
import pytest

import dynamics
from dynamics.verdicts.figure import draw
from dynamics.verdicts.positional_attention import update_rules

SYSTEM = dynamics.load_system("positional_attention")


@pytest.fixture(scope="module")
def drawing():
    return draw(SYSTEM, "rules", options={"steps": 30_000})


def test_the_figure_has_the_events_of_every_rule(drawing):
    steps = {
        (run["random_sets"], run["rule"]): (run["T0"], run["T1"], run["event_III"])
        for run in drawing.data["runs"]
    }
    assert steps["mixed", "gd"] == (56, 3915, 22_807)  # those of the README
    assert [name for name, (_, _, third) in steps.items() if third is None] == [
        ("any", rule) for rule in update_rules.RATES
    ]
    for name, (begin, end, _) in steps.items():
        assert (begin == end) == (name[1] in ("adam", "sign"))
    for run in drawing.data["runs"]:
        assert run["half"] < run["T1"] if run["T0"] == run["T1"] else run["half"] >= run["T1"]


def test_the_figure_draws_what_it_says(drawing):
    top, alpha, share = drawing.axes[:, 0]
    words = [text.get_text() for text in top.texts]
    assert words[:3] == ["56", "3,915", "22,807"]
    assert "no Event III" in [text.get_text() for text in drawing.axes[0, 1].texts]
    names = [tick.get_text() for tick in top.get_yticklabels()]
    assert [name.split(",")[0] for name in names] == list(update_rules.RATES)
    ends = [line.get_ydata()[-1] for line in alpha.lines if line.get_label() in update_rules.RATES]
    np.testing.assert_allclose(ends, [run["alpha"] for run in drawing.data["runs"][:4]])
    assert alpha.get_xscale() == alpha.get_yscale() == share.get_xscale() == "log"
    assert "adam under mixed at step" in drawing.caption


def verdict(monkeypatch, **constants):
    monkeypatch.setattr(update_rules, "ADAM_RATES", (1e-2, 1e-3))
    monkeypatch.setattr(update_rules, "ADAM_STEPS", 3000)
    return dynamics.verify(SYSTEM, SYSTEM.Parameters(**constants), ["Adam"])[0]


def test_adam_associates_where_the_flow_does_not(monkeypatch):
    found = verdict(monkeypatch, D=16, C=4, q=0.8)
    (row,) = found.evidence["table"]
    assert (found.holds, found.measured, row["rates"], row["T1"]) == (True, 1.0, "0.001", "422")
    assert row["gamma"] < row["rho"] < 0


def test_no_rate_of_adam_associates_at_a_smaller_size(monkeypatch):
    found = verdict(monkeypatch, D=12, C=3, q=0.8)
    assert found.word.startswith("does not hold here")
    assert "Adam associates at none" in found.evidence["reason"]


def test_where_the_flow_associates_nothing_is_left_for_adam(monkeypatch):
    found = verdict(monkeypatch, D=9, C=3, q=0.5)
    assert found.holds is None
    assert "the flow associates too" in found.evidence["reason"]
