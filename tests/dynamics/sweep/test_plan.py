"""Blocks cover the grid once; what cannot be run is known before; the most expensive come first."""

import numpy as np
import pytest

import dynamics
from dynamics.results.expression import Expression
from dynamics.sweep import plan as plans
from dynamics.sweep import run
from dynamics.sweep.axes import grid
from dynamics.sweep.plan import block_shape, planned, restored
from dynamics.sweep.point_runner import PointRunner, killed
from dynamics.sweep.store import StoreError, SweepStore
from dynamics.validation import InvalidRequest

SYSTEM = dynamics.load_system("positional_attention")


@pytest.mark.parametrize("shape", [(), (1,), (7,), (64, 64), (3, 2, 14, 24), (6, 10, 5), (5, 1000)])
def test_blocks_cover_every_point_once(shape):
    given = {f"x{k}": list(range(1, n + 1)) for k, n in enumerate(shape)}
    formula = "+".join(given) or "0"
    plan = planned(SYSTEM, {**given, "beta": formula, "time": 1.0}, False, 0)
    seen = np.zeros(shape, dtype=int)
    for number in range(len(plan.blocks)):
        seen[plan.box(number)] += 1
        assert len(list(plan.indices(number))) <= 256
    assert (seen == 1).all()
    assert len(plan.blocks) <= 4 * 64 or np.prod(shape) > 64 * 256


def test_block_shapes():
    def shape(*lengths):
        return block_shape(lengths)

    assert shape(64, 64) == (2, 64)
    assert shape(32, 64) == (1, 64)
    assert shape(15, 16) == (1, 8)
    assert shape(6, 10, 5) == (1, 2, 5)
    assert shape() == ()
    assert shape(100_000) == (256,)


def test_invalid_points_are_found_before_anything_runs():
    plan = planned(SYSTEM, {"D": 16, "C": "2,3,4", "q": "0.5,1.5", "time": 1.0}, False, 0)
    assert len(plan.invalid_reasons) == 4
    assert "does not divide D=16" in plan.invalid_reasons[1, 0]
    assert "q=1.5 is too large" in plan.invalid_reasons[0, 1]
    with pytest.raises(InvalidRequest, match="C=3 does not divide D=16"):
        _ = planned(SYSTEM, {"C": 3, "q": "0.1,0.2"}, False, 0).invalid_reasons


def test_the_most_expensive_block_comes_first():
    plan = planned(SYSTEM, {"D": "8,16,32,64", "C": 4, "q": 0.2, "time": 10.0}, False, 0)
    assert plan.order(range(4)) == [3, 2, 1, 0]


LARGE = {"D": 8, "C": 2, "q": "0.1:0.9:300", "nu": "1e-3:1e-2:300:log", "time": 1.0}


@pytest.fixture
def looked_at(monkeypatch):
    """Points whose parameters were checked, in order."""
    points, check = [], PointRunner.invalid_reason

    def counted(self, point):
        points.append(point)
        return check(self, point)

    monkeypatch.setattr(PointRunner, "invalid_reason", counted)
    return points


@pytest.mark.parametrize("more", [{}, {"q": "m/D", "m": "1:4:300"}])
def test_a_large_grid_is_looked_at_block_by_block(looked_at, monkeypatch, tmp_path, more):
    """What is looked at before the store and its first block are there: the ends of blocks."""
    before = []

    def full(self, number, block):
        before.append(len(looked_at))
        assert (self.path / "done" / "zarr.json").exists()
        raise StoreError("full")

    monkeypatch.setattr(SweepStore, "write", full)
    monkeypatch.setattr(run, "measure_points", lambda _, points: [killed()] * len(points))
    with pytest.raises(StoreError):
        dynamics.sweep(SYSTEM, LARGE | more, tmp_path / "l.zarr", workers=0)
    blocks = len(planned(SYSTEM, LARGE | more, False, 0).blocks)
    assert before[0] < 10 * blocks < 90_000 / 10


def test_a_large_grid_of_which_nothing_can_be_run_is_refused_before_it_is_made(tmp_path):
    wrong = LARGE | {"q": "1.1:1.9:80", "nu": "1e-3:1e-2:60:log"}
    with pytest.raises(InvalidRequest, match=r"q=1.1 is too large"):
        dynamics.sweep(SYSTEM, wrong, tmp_path / "w.zarr", workers=0)
    assert not (tmp_path / "w.zarr").exists()
    with pytest.raises(ValueError, match="start"):
        dynamics.sweep(
            SYSTEM, LARGE | {"full": "empirical", "start": "sideways"}, tmp_path / "w", workers=0
        )
    assert not (tmp_path / "w").exists()


def test_the_only_valid_point_of_a_large_grid_is_found(monkeypatch):
    plan = planned(SYSTEM, LARGE | {"C": 2, "time": 1.0}, False, 0)
    only = (217, 133)
    monkeypatch.setattr(
        PointRunner, "invalid_reason", lambda _, point: "" if point == plan.grid.at(only) else "no"
    )
    assert plan.first_valid == only


def test_blocks_of_which_nothing_can_be_run_are_written_too(monkeypatch, tmp_path):
    monkeypatch.setattr(plans, "LOOKED_AT", 0)
    given = {"D": 8, "C": "2,3,4", "q": "0.2,0.4,1.4", "time": 1.0}
    found = dynamics.sweep(SYSTEM, given, tmp_path / "b.zarr", workers=0)
    assert found.complete
    assert found.outcomes == {"reached horizon": 4, "invalid": 5}
    assert set(found.reasons) == {(0, 2), (1, 0), (1, 1), (1, 2), (2, 2)}


@pytest.mark.parametrize(("paired", "counts"), [(False, (8, 6)), (True, (6, 3))])
def test_a_formula_is_computed_once_for_all_that_it_needs(monkeypatch, paired, counts):
    given = {"D": "8,12,16", "C": 4, "q": "half/(D-C)", "half": "m/2", "nu": "1/(n-6)"}
    given |= {"m": "2,4,6" if paired else "2,4", "n": "5,6,7"}
    points, calls, value = grid(given, paired), [], Expression.value
    with monkeypatch.context() as patch:
        patch.setattr(Expression, "value", lambda *a: calls.append(a[0].text) or value(*a))
        tables = {name: points.table(name) for name in points.derived}
    assert (calls.count("m/2"), calls.count("half/(D-C)")) == counts
    for index in points:
        if points.along_axes(index)["n"] == 6:
            assert np.isnan(tables["nu"][index])
            continue
        point = points.at(index)
        assert all(tables[name][index] == point[name] for name in tables)


def test_defaults_of_the_run():
    assert planned(SYSTEM, {"q": "0.1,0.2"}, False, 0).grid.fixed["time"] == 2000
    fixed = planned(SYSTEM, {"q": "0.1,0.2", "eta": 0.01}, False, 0).grid.fixed
    assert (fixed["eta"], fixed["steps"]) == (0.01, 100_000)
    assert "time" not in fixed
    fixed = planned(SYSTEM, {"q": "0.1,0.2", "full": "empirical"}, False, 0).grid.fixed
    assert (fixed["eta"], fixed["steps"], fixed["samples"]) == (0.02, 10_000, 8000)


def test_what_is_held_fixed_is_all_said():
    """Defaults too, whatever they are: a store does not rest on those of a later version."""
    fixed = planned(SYSTEM, {"q": "0.1,0.2", "time": 5, "nu": "1/D"}, False, 0).grid.fixed
    assert fixed == {
        **{"D": 16, "C": 4, "p": 3, "beta": 1.0, "omega": 1e-3, "scale": 1.0},
        "time": 5,
    }
    assert list(fixed)[-1] == "time"


def test_a_plan_is_restored_from_its_description():
    given = {"D": "16,32", "q": "m/(D-C)", "m": "1:3:3", "expectation": "exact", "time": 7}
    plan = planned(SYSTEM, given, False, 5)
    again = restored(plan.description)
    assert again.description == plan.description
    assert [again.grid.at(index) for index in again.grid] == [plan.grid.at(i) for i in plan.grid]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"Q": "0.1,0.2"}, "name='Q' is unknown"),
        ({"time": 1.0, "eta": 0.1}, "give eta "),
        ({"rtol": 1e-9, "steps": 10}, "give rtol "),
        ({"full": "empiric"}, "full='empiric' is unknown"),
        ({"time": -1.0}, "time=-1.0 is too small"),
        ({"eta": "0,-0.1"}, "too small"),
        ({"full": "empirical", "samples": 0}, "samples=0 is too small"),
        ({"random_sets": "mixd"}, "random_sets='mixd' is unknown"),
        ({"random_sets": "any,mixed"}, "random_sets='any,mixed' is not an axis"),
        ({"random_sets": ["any", "mixed"]}, "random_sets is one word in a sweep"),
        ({"seed": "0,1"}, "seed is of --full empirical or --expectation sampled"),
    ],
)
def test_wrong_requests(given, message):
    with pytest.raises(InvalidRequest, match=message):
        _ = planned(SYSTEM, given, False, 0).invalid_reasons


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("linear_icl", {"tolerance": 1e-6}),
        ("linear_icl", {"expectation": "exact"}),
        ("masked_image_modeling", {"tolerance": 1e-6}),
    ],
)
def test_an_option_that_the_reduced_problem_does_not_have_is_refused_at_once(name, option):
    message = f"{next(iter(option))} is not an option of the reduced problem of {name}"
    with pytest.raises(InvalidRequest, match=message):
        planned(dynamics.load_system(name), {"time": 1.0, **option}, False, 0)
