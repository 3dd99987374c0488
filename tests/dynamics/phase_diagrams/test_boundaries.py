"""Refined boundaries beside the dense lattice, which is their slow and obvious twin."""

import dataclasses

import numpy as np
import pytest
from sweeps import SHAPES

import dynamics
from dynamics.phase_diagrams import Axis, boundary_refinement, refine
from dynamics.phase_diagrams.boundaries import trace
from dynamics.phase_diagrams.boundary_refinement import Question, refinement
from dynamics.validation import InvalidRequest

UNIT = Axis.of("x", [0, 1]), Axis.of("y", [0, 1])


class Recorded:
    """A yes or no that remembers what it was asked."""

    def __init__(self, rule):
        self.rule, self.points, self.waves = rule, [], 0

    def __call__(self, points):
        self.points += [tuple(point) for point in points]
        self.waves += 1
        return self.rule(*points.T)


def dense(rule, x, y, cells=64):
    columns, rows = np.meshgrid(*(axis.at(np.arange(cells + 1) / cells) for axis in (x, y)))
    return np.asarray(rule(columns, rows)).astype(np.int8)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_boundary_is_that_of_the_dense_grid_at_a_fifth_of_its_runs(shape):
    recorded = Recorded(SHAPES[shape])
    found = refine(recorded, *UNIT)
    expected = dense(SHAPES[shape], *UNIT)
    np.testing.assert_array_equal(found.values, expected)
    lines = trace(expected.astype(float), found.x, found.y)
    assert len(lines) == len(found.lines) == {"two": 2}.get(shape, 1)
    for line, other in zip(found.lines, lines, strict=True):
        np.testing.assert_array_equal(line, other)
    assert found.runs == len(recorded.points) == len(set(recorded.points)) <= 4096 / 5
    assert found.runs == found.evaluated.sum()
    assert found.waves == recorded.waves <= 12
    assert found.tolerance == (1 / 128, 1 / 128)


DISTANCES = {
    "straight": lambda x, y: np.abs(3 * x + 2 * y - 2.3) / 3,
    "edge": lambda x, y: np.abs(np.hypot(x - 1.0, y - 0.5) - 0.35),
}


@pytest.mark.parametrize("shape", DISTANCES)
def test_lines_are_within_the_tolerance_of_the_true_boundary(shape):
    recorded = Recorded(SHAPES[shape])
    found = refine(recorded, *UNIT, tolerance=1e-4)
    assert max(found.tolerance) <= 1e-4
    assert found.runs == len(set(recorded.points)) > found.evaluated.sum()
    assert DISTANCES[shape](*np.concatenate(found.lines).T).max() < 1e-4


def test_logarithmic_spans_are_divided_in_the_logarithm():
    spans = Axis.of("q", [1e-4, 1.0]), Axis.of("nu", [1e-6, 1e-2])
    found = refine(lambda p: p[:, 0] ** 2 > p[:, 1] * 10, *spans, tolerance=1e-4)
    (line,) = found.lines
    np.testing.assert_allclose(line[:, 0] ** 2, 10 * line[:, 1], rtol=4e-3)
    assert found.tolerance[0] == pytest.approx(1e4 ** (0.5 / 64 / 2**7) - 1)
    assert np.allclose(np.diff(np.log(found.x.values)), np.log(1e4) / 64)


def test_points_that_are_not_valid_are_no_side_of_a_boundary():
    def rule(x, y):
        return np.where(x + y > 1.3, -1, SHAPES["straight"](x, y).astype(int))

    recorded = Recorded(rule)
    found = refine(recorded, *UNIT, tolerance=1e-3)
    np.testing.assert_array_equal(found.values, dense(rule, *UNIT))
    assert all((3 * line[:, 0] + 2 * line[:, 1] < 2.31).all() for line in found.lines)
    assert all((line.sum(axis=1) < 1.3).all() for line in found.lines)
    assert found.runs == sum(rule(x, y) >= 0 for x, y in recorded.points) < len(recorded.points)
    every = refine(lambda p: np.full(len(p), -1), *UNIT)
    assert (every.runs, every.lines, every.evaluated.sum()) == (0, (), 81)


@pytest.mark.parametrize("logarithmic", [False, True])
def test_a_known_answer_inside_a_cell_divides_it(logarithmic):
    """An island between the points of the coarse lattice, and a point of it that is known."""
    low = 1.0 if logarithmic else 0.0
    ranges = Axis.of("x", [low, 10.0]), Axis.of("y", [low, 10.0])
    assert ranges[0].logarithmic == logarithmic
    at = np.array([ranges[0].at(20.3 / 64)] * 2)

    def island(points):
        return (np.abs(ranges[0].index(points) - ranges[0].index(at)) < 0.03).all(axis=1)

    assert not refine(island, *ranges).values.any()
    found = refine(island, *ranges, known=np.array([[*at, 1.0], [low, low, 0.0]]))
    assert len(found.lines) == 1
    assert found.missed == 0
    assert found.values.sum() > 9
    # An island of nothing but that point is in no answer of the finest lattice.
    missed = refine(lambda points: np.zeros(len(points)), *ranges, known=np.array([[*at, 1.0]]))
    assert (missed.missed, missed.lines) == (1, ())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cells": 60}, "cells=60 does not fit the 9 coarse points.*nearest: 64"),
        ({"cells": 4}, "nearest: 8"),
        ({"coarse": 1}, "coarse=1 is too small"),
        ({"tolerance": 0.0}, "tolerance=0.0 is too small"),
        ({"tolerance": float("nan")}, "not finite"),
        ({"answers": lambda p: [True]}, "one answer for each of 81 points"),
        ({"answers": lambda p: np.full(len(p), 0.5)}, "one answer for each of 81 points"),
        ({"answers": lambda p: 1}, "one answer for each of 81 points"),
        ({"x": Axis.of("q", [1.0])}, "is its only value"),
    ],
)
def test_wrong_requests_are_refused_in_one_line(options, message):
    answers, x = options.get("answers", Recorded(SHAPES["disk"])), options.get("x", UNIT[0])
    others = {name: value for name, value in options.items() if name not in ("answers", "x")}
    with pytest.raises(InvalidRequest, match=message) as caught:
        refine(answers, x, UNIT[1], **others)
    assert "\n" not in str(caught.value)


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
        patch.setattr(boundary_refinement, "sweep", None)
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
