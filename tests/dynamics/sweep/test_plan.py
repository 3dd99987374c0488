"""Blocks cover the grid once; what cannot be run is known before; the most expensive come first."""

import numpy as np
import pytest

import dynamics
from dynamics.sweep.plan import planned
from dynamics.validation import InvalidRequest

SYSTEM = dynamics.load_system("positional_attention")


@pytest.mark.parametrize("shape", [(), (7,), (64, 64), (3, 2, 14, 24), (5, 1000)])
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


def test_invalid_points_are_found_before_anything_runs():
    plan = planned(SYSTEM, {"D": 16, "C": "2,3,4", "q": "0.5,1.5", "time": 1.0}, False, 0)
    assert len(plan.invalid_reasons) == 4
    assert "does not divide D=16" in plan.invalid_reasons[1, 0]
    assert "q=1.5 is too large" in plan.invalid_reasons[0, 1]
    with pytest.raises(InvalidRequest, match="C=3 does not divide D=16"):
        _ = planned(SYSTEM, {"C": 3, "q": "0.1,0.2"}, False, 0).invalid_reasons


LARGE = {"D": 8, "C": 2, "q": "0.1:0.9:300", "nu": "1e-3:1e-2:300:log", "time": 1.0}


def test_a_large_grid_of_which_nothing_can_be_run_is_refused_before_it_is_made(tmp_path):
    wrong = LARGE | {"q": "1.1:1.9:80", "nu": "1e-3:1e-2:60:log"}
    with pytest.raises(InvalidRequest, match=r"q=1.1 is too large"):
        dynamics.sweep(SYSTEM, wrong, tmp_path / "w.zarr", workers=0)
    assert not (tmp_path / "w.zarr").exists()
    wrong = LARGE | {"full": "empirical", "start": "sideways"}
    with pytest.raises(ValueError, match="start"):
        dynamics.sweep(SYSTEM, wrong, tmp_path / "w", workers=0)
    assert not (tmp_path / "w").exists()


def test_defaults_of_the_run():
    assert planned(SYSTEM, {"q": "0.1,0.2"}, False, 0).grid.fixed["time"] == 2000
    fixed = planned(SYSTEM, {"q": "0.1,0.2", "eta": 0.01}, False, 0).grid.fixed
    assert (fixed["eta"], fixed["steps"]) == (0.01, 100_000)
    assert "time" not in fixed
    fixed = planned(SYSTEM, {"q": "0.1,0.2", "full": "empirical"}, False, 0).grid.fixed
    assert (fixed["eta"], fixed["steps"], fixed["samples"]) == (0.02, 10_000, 8000)


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
        ({"random_sets": "any,mixed"}, "random_sets='any,mixed' is not one word"),
        ({"random_sets": ["any", "mixed"]}, "random_sets cannot be an axis"),
        ({"seed": "0,1"}, "seed needs --full empirical or --expectation sampled"),
    ],
)
def test_wrong_requests(given, message):
    with pytest.raises(InvalidRequest, match=message):
        _ = planned(SYSTEM, given, False, 0).invalid_reasons
