"""Constants and runs of a model file go through pickle, as to the processes of a pool."""

import pickle
from pathlib import Path

import numpy as np
import pytest

import dynamics
from dynamics.models.engine import system as engine

FILE = Path(__file__).resolve().parents[2] / "support/models/two_samples.py"


def trained(parameters):
    system = dynamics.load_system(FILE)
    full = system.FullPopulation(parameters)
    return dynamics.compare(system.ReducedPopulation(parameters), full, eta=0.1, steps=20)


def test_they_are_the_same_in_another_process(monkeypatch):
    parameters = dynamics.load_system(FILE).Parameters(q=0.25)
    comparison = trained(parameters)
    packed = pickle.dumps((parameters, comparison, comparison.reduced))
    again, compared, run = pickle.loads(packed)
    assert again == parameters
    assert (compared.deviation, run.outcome) == (comparison.deviation, comparison.reduced.outcome)
    np.testing.assert_array_equal(run.states, comparison.reduced.states)
    assert run.presentation == comparison.reduced.presentation
    monkeypatch.setattr(engine, "_FILES", {})  # as where the file was not loaded before
    assert vars(pickle.loads(packed)[0]) == vars(parameters)


def test_a_model_in_no_file_says_why_not():
    model = dynamics.Model(
        start=lambda w=0.1: {"w": [w]}, risk=lambda theta, xp: theta["w"][0] ** 2
    )
    parameters = dynamics.load_system(model).Parameters()
    with pytest.raises(pickle.PicklingError, match="has no model file"):
        pickle.dumps(parameters)
