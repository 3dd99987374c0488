"""Theorem 4.2 and Figure 4: what one run of a size, a seed and a time may say."""

from types import SimpleNamespace

import numpy as np
import pytest

import dynamics
from dynamics.verdicts.positional_attention import finite_samples, realistic

SYSTEM = dynamics.load_system("positional_attention")
SETS = [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4


def test_theorem_4_2_is_undecided_where_the_cost_cuts_n():
    """At D = 512 a run can afford fewer than 200 samples: nothing is run."""
    large = SYSTEM.Parameters(D=512, C=4, q=0.03, d=512)
    (verdict,) = dynamics.verify(SYSTEM, large, ["Theorem 4.2"])
    assert verdict.holds is None
    assert "fewer than 200 samples" in verdict.evidence["reason"]


@pytest.mark.long
def test_theorem_4_2_is_undecided_with_too_few_samples(monkeypatch):
    monkeypatch.setattr(realistic, "WORK", 2e10)
    (verdict,) = dynamics.verify(SYSTEM, None, ["Theorem 4.2"])
    assert verdict.holds is None
    assert verdict.measured < 1.0
    assert "N was cut to" in verdict.evidence["reason"]


class Run(dict):
    """A run of two records after the start, with given shares and a given end of A."""

    time, outcome = np.array([0.0, 100.0, 200.0]), "horizon"
    states = np.zeros((3, 1))

    def __init__(self, shares, matrix=None):
        ends = {"test_error": 0.001, "error": 0.0, "cosine": 0.99, "bayes_error": 0.0}
        series = {name: np.array([0.5, 0.4, end]) for name, end in ends.items()}
        super().__init__(series, patch_association=np.array(shares))
        self.settings = {"sets": SETS}
        path = np.zeros((3, 16, 16)) if matrix is None else np.array([0 * matrix, matrix, matrix])
        self.layout = SimpleNamespace(part=lambda states, name: path)


def trained(monkeypatch, small, large=(0.0, 1.0, 1.0), matrix=None):
    monkeypatch.setattr(finite_samples, "stable_rate", lambda *_: 0.02)
    monkeypatch.setattr(
        finite_samples, "train",
        lambda system, law, *_: Run(small if law.D == 9 else large, matrix),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("small", "large", "holds"),
    [
        ((0.0, 1.0, 1.0), (0.0, 1.0, 1.0), True),
        ((0.0, 1.0, 0.3), (0.0, 1.0, 1.0), None),  # lost again: not at any T
        ((0.0, 1.0, 1.0), (0.0, 0.5, 0.5), None),  # one seed and one time contradict nothing
    ],
)
def test_association_is_asked_for_at_any_time(small, large, holds, monkeypatch):
    trained(monkeypatch, small, large)
    (verdict,) = dynamics.verify(SYSTEM, None, ["Theorem 4.2"])
    assert verdict.holds is holds
    assert ("30% at 1600" in verdict.evidence["reason"]) is (small[-1] < 1)
    assert "one seed and one time" in verdict.evidence["reason"]


def test_one_level_must_separate_the_entries_of_figure_4(monkeypatch):
    labels = np.array(SETS)
    matrix = np.where(labels[:, None] == labels[None, :], 0.2, 0.1)
    trained(monkeypatch, (0, 0, 0), matrix=matrix)
    (verdict,) = dynamics.verify(SYSTEM, None, ["Figure 4"])
    assert (verdict.holds, verdict.measured) == (True, pytest.approx(0.1))
    matrix[0, 1] = 0.05  # one entry inside a set below those between sets: C largest or not
    (verdict,) = dynamics.verify(SYSTEM, None, ["Figure 4"])
    assert (verdict.holds, verdict.measured) == (None, pytest.approx(-0.05))
