"""Theorem 4.1 at the end of runs that are made up: what decides between the verdicts."""

from types import SimpleNamespace

import numpy as np
import pytest

from dynamics.verdicts.findings import Protocol
from dynamics.verdicts.positional_attention import phases, population
from theory.papers.positional_attention.linear_rules import sign_rule_error

LEAST = 0.01


def verdict(system, monkeypatch, left, rho=-0.5):
    """Theorem 4.1 where a share ``left`` of the gap to the irreducible error is left."""
    law = system.Parameters(D=16, C=4, q=0.5)
    run = {"bayes_error": np.full(2, LEAST), "risk": np.ones(2)}
    states = np.array([[0.2, 0.0, 0.0], [0.2, 1.0, rho]])
    made = type("Run", (), {"__getitem__": lambda self, name: run[name]})()
    made.final_state, made.time = states[-1], np.array([0.0, 1.0])
    case = SimpleNamespace(parameters=law, run=made)
    linear = float(sign_rule_error(16, 4, 0.5).error)
    error = LEAST + left * (linear - LEAST)
    monkeypatch.setattr(population, "regime", lambda study, time: [case])
    monkeypatch.setattr(population, "sampled_error", lambda *arguments: (error, 1e-6))
    return phases.theorem_4_1(system, Protocol(law))


@pytest.mark.parametrize(("left", "holds"), [(0.09, True), (0.11, False), (0.8, False)])
def test_an_error_is_near_the_irreducible_one_within_a_tenth_of_the_gap(
    system, monkeypatch, left, holds
):
    finding = verdict(system, monkeypatch, left)
    assert finding.measured == pytest.approx(left, rel=1e-6)
    assert finding.holds is holds


def test_rows_that_prefer_other_sets_are_not_associated(system, monkeypatch):
    finding = verdict(system, monkeypatch, 0.01, rho=1.1)
    assert finding.holds is False
    assert "no association" in finding.reason


@pytest.mark.parametrize("chunk", [population.CHUNK, 200])
@pytest.mark.parametrize("law", [{"q": 0.3}, {"D": 12, "C": 3, "p": 5}])
def test_the_error_of_draws_is_that_of_the_whole_law(system, monkeypatch, law, chunk):
    """With what patches bring in a table, and without. No set of one sign: there are no ties."""
    parameters = system.Parameters(**{"D": 8, "C": 2, "random_sets": "mixed", **law})
    monkeypatch.setattr(population, "DRAWS", 40_000)
    monkeypatch.setattr(population, "CHUNK", chunk)
    state = np.array([0.2, 0.6, -0.4])
    exact = system.ReducedPopulation(parameters, "exact").observables(state)["error"]
    error, margin = population.sampled_error(parameters, state, 1)
    assert 0.01 < exact < 0.3
    assert abs(error - exact) < 4 * margin
