"""The verdict on Section 4.2, and that other dynamics get another one."""

import dataclasses

import numpy as np
import pytest

import dynamics
from dynamics.verdicts.positional_attention import transverse

SYSTEM = dynamics.load_system("positional_attention")


def one(parameters=None, system=SYSTEM):
    (verdict,) = dynamics.verify(system, parameters, ["Section 4.2"])
    return verdict


def test_a_small_spread_stays_and_a_large_one_leaves():
    verdict = one()
    (row,) = verdict.evidence["table"]
    assert verdict.holds is True
    assert verdict.measured == pytest.approx(0.1245, rel=0.01)
    assert (row["negative"], row["directions"], row["worst_multiplicity"]) == (27, 54, 4)
    assert row["shares"] == [1.0, 1.0, 0.5]


class Repelling(SYSTEM.FullPopulation):
    """Every deviation from the orbit means grows faster than it should."""

    def gradient(self, state):
        slope, matrix = super().gradient(state), self.layout.part(np.asarray(state), "A")
        labels = self.partition.labels
        same = labels[:, None] == labels[None, :]
        off_diagonal = ~np.eye(labels.size, dtype=bool)
        for orbit in (same & off_diagonal, ~same):
            deviation = np.where(orbit, matrix - matrix[orbit].mean(), 0.0)
            slope[1:] -= 0.01 * deviation.ravel()
        return slope


def test_other_dynamics_get_another_verdict(monkeypatch):
    monkeypatch.setattr(transverse, "LARGER", ())
    monkeypatch.setattr(transverse, "HORIZON", 2e3)
    wrong = one(system=dataclasses.replace(SYSTEM, FullPopulation=Repelling))
    assert [row["holds"] for row in wrong.evidence["table"]] == [False]
    assert one().holds is True


def test_sizes_that_cannot_be_enumerated_are_undecided(monkeypatch):
    monkeypatch.setattr(transverse, "RECORDS", 10)
    linear = one(SYSTEM.Parameters(D=16, C=4))
    assert linear.holds is None
    assert linear.measured > 0
    nothing = one(SYSTEM.Parameters(D=64, C=4))
    assert nothing.holds is None
    assert "D=64" in nothing.finding.reason
