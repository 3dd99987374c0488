"""The shallow ViT in a page: every entry is trained, by descent alone."""

import dataclasses

import numpy as np
import pytest
from node import needs_node, problem_of

import dynamics
from dynamics.explorer.driver import worker_script
from dynamics.explorer.shallow_vit import MOST_ENTRIES, page_model
from dynamics.validation import InvalidRequest

SYSTEM = dynamics.load_system("shallow_vit")
PARAMETERS = SYSTEM.Parameters(m=30, L=20, margin=3.0)
MOVED = [{}, {"margin": 2.5, "sigma": 0.2, "xi": 0.03}, {"L": 22}]


@pytest.fixture(scope="module")
def model():
    return page_model(SYSTEM, PARAMETERS)


def constants(parameters, model):
    return {slider.name: getattr(parameters, slider.name) for slider in model.sliders}


@needs_node
@pytest.mark.parametrize("moved", MOVED, ids=str)
def test_gradients_are_those_of_python_along_a_run(model, moved):
    there = dataclasses.replace(PARAMETERS, **moved)
    problem = SYSTEM.ReducedPopulation(there)
    states = dynamics.descend(problem, eta=0.1, steps=60, record=12).states
    script = worker_script(model.script, model.problem)
    found = problem_of(script, constants(there, model), states)
    assert found["start"] == pytest.approx(problem.initial_state, abs=1e-15)
    for state, (slope, row, *_) in zip(states, found["values"], strict=True):
        own = problem.gradient(state)
        assert slope == pytest.approx(own, rel=1e-11, abs=1e-13 * np.abs(own).max())
        assert row == pytest.approx(problem.order_parameters(state, own), rel=1e-12)


def test_a_step_that_takes_too_long_is_refused_with_a_size_that_does_not():
    with pytest.raises(InvalidRequest) as refusal:
        page_model(SYSTEM, SYSTEM.Parameters(m=1000))
    nearest = int(str(refusal.value).rpartition("m=")[2])
    for m, fits in ((nearest, True), (nearest + 1, False)):
        problem = SYSTEM.ReducedPopulation(SYSTEM.Parameters(m=m))
        assert (problem.layout.size <= MOST_ENTRIES) is fits
