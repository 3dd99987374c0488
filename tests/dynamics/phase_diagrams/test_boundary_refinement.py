"""A refined boundary is that of the dense grid, for a part of its runs, and goes on when killed."""

import dataclasses

import numpy as np
import pytest

import dynamics
from dynamics.phase_diagrams import boundary_refinement as module
from dynamics.phase_diagrams.boundary_refinement import Question, refinement
from dynamics.validation import InvalidRequest

SYSTEM = dynamics.load_system("positional_attention")
GIVEN = {"D": 8, "C": "2,4", "q": "0.1:0.9:3", "nu": "1e-3:1e-1:3:log", "time": 60}
ASKED = Question("error<0.05", "q", "nu", {"C": 2}, coarse=3, cells=8)


@pytest.fixture(scope="module")
def coarse():
    return dynamics.sweep(SYSTEM, GIVEN, workers=0)


@pytest.fixture(scope="module")
def made(coarse, tmp_path_factory):
    out = tmp_path_factory.mktemp("refined")
    return out, refinement(coarse, ASKED, out, workers=0)


def test_it_equals_the_dense_grid(coarse, made):
    _, found = made
    dense = dynamics.sweep(
        SYSTEM, GIVEN | {"C": 2, "q": "0.1:0.9:9", "nu": "1e-3:1e-1:9:log"}, workers=0
    )
    answers = (dense.dataset["error"].transpose("nu", "q").values < 0.05).astype(int)
    assert 0 < answers.sum() < answers.size
    np.testing.assert_array_equal(found.refined.values, answers)
    assert found.stored == 9
    assert found.runs < 0.6 * answers.size
    assert found.refined.runs == found.runs + found.stored


def test_asked_again_it_runs_nothing_and_another_lattice_only_what_is_new(
    coarse, made, monkeypatch
):
    out, found = made
    with monkeypatch.context() as patch:
        patch.setattr(module, "sweep", None)
        again = refinement(coarse, ASKED, out, workers=0)
    np.testing.assert_array_equal(again.refined.values, found.refined.values)
    assert (again.runs, again.stored) == (0, found.runs + found.stored)
    finer = dataclasses.replace(ASKED, cells=16)
    again = refinement(coarse, finer, out, workers=0)
    assert again.stored >= found.runs
    np.testing.assert_array_equal(again.refined.values[::2, ::2], found.refined.values)


def test_refusals(coarse, tmp_path):
    for question, message in [
        (Question("error", "q", "nu", {"C": 2}), "is a number; refine needs a yes or no"),
        (Question("error<1", "q", "nu", {}), "C"),
        (Question("error<1", "q", "beta", {"C": 2}), "beta"),
        (Question("error<1", "q", "nu", {"C": 3}), "at C=3 is not in the sweep"),
        (Question("error<1", "q", "C", {"nu": 1e-3}), "C is a whole number"),
    ]:
        with pytest.raises(InvalidRequest, match=message):
            refinement(coarse, question, tmp_path, workers=0)
    pairs = dynamics.sweep(SYSTEM, {"D": 8, "C": "2,4", "q": "0.1,0.2"}, paired=True, workers=0)
    with pytest.raises(InvalidRequest, match="this sweep is paired"):
        refinement(pairs, ASKED, tmp_path, workers=0)
