"""The verdict on Section 4.2, and that other dynamics get another one."""

import dataclasses
import json

import numpy as np
import pytest

import dynamics
from dynamics.verdicts.findings import Protocol
from dynamics.verdicts.positional_attention import transverse as experiment

SYSTEM = dynamics.load_system("positional_attention")


def test_a_small_spread_stays_and_a_large_one_leaves():
    finding = experiment.check(SYSTEM, Protocol())
    assert finding.holds is True
    assert finding.measured == pytest.approx(0.1245, rel=0.01)
    (table,) = finding.evidence["sizes"]
    assert (table["negative"], table["directions"], table["worst_multiplicity"]) == (27, 54, 4)
    ends = {run["omega"]: run["association"] for run in table["runs"]}
    assert ends == {1e-3: 1.0, 1e-2: 1.0, 5e-2: 0.5}
    for run in table["runs"]:
        assert run["error"] == pytest.approx(run["bayes_error"], rel=1e-9)
    small = table["runs"][0]
    assert 30 < small["largest_spread"] < table["peak"]
    json.dumps(dict(finding.evidence), allow_nan=False)
    large = experiment.check(SYSTEM, Protocol(parameters=SYSTEM.Parameters(D=8, C=2, omega=0.05)))
    assert large.holds is False
    assert "0.50 at omega=0.05" in large.reason


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
    monkeypatch.setattr(experiment, "LARGER", ())
    changed = dataclasses.replace(SYSTEM, FullPopulation=Repelling)
    monkeypatch.setattr(experiment, "HORIZON", 2e3)
    assert experiment.check(SYSTEM, Protocol()).holds is True
    assert experiment.check(changed, Protocol()).holds is False


def test_sizes_that_cannot_be_enumerated_are_undecided(monkeypatch):
    monkeypatch.setattr(experiment, "RECORDS", 20)
    linear = experiment.check(SYSTEM, Protocol(parameters=SYSTEM.Parameters(D=16, C=4)))
    assert linear.holds is None
    assert linear.measured > 0
    assert "too large" in linear.reason
    nothing = experiment.check(SYSTEM, Protocol(parameters=SYSTEM.Parameters(D=64, C=4)))
    assert nothing.holds is None
    assert "D=64" in nothing.reason
