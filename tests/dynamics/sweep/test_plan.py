"""Grids from text, and blocks that cover them once; what cannot be run is known before."""

import numpy as np
import pytest

import dynamics
from dynamics.sweep.axes import Axis, grid, parsed, spaced
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


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("-0.1:0.2:4", (-0.1, 0, 0.1, 0.2)),
        ("0.1:0.5:9", (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)),
        ("-1/3:1/6:4", (-1 / 3, -1 / 6, 0, 1 / 6)),
        ("0.1*3:0.9:3", (0.3, 0.6, 0.9)),
        ("1.0000000001:3:2:log", (1.0000000001, 3)),
        ("1e-7:0.1:7:log", (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1)),
        ("64**(1/3):64:3:log", (4, 16, 64)),
        ("1:2**50:6:log", tuple(2 ** (10 * k) for k in range(6))),
        ("0:1e-999999999:2", (0, 0)),
        ("-1e20:1e20:3", (-1e20, 0, 1e20)),
    ],
)
def test_a_point_of_a_grid_is_the_number_nearest_to_it(text, values):
    """Not one that differs from it by the rounding of steps, or by what was near a whole number."""
    assert spaced("x", text) == values
    assert np.array(spaced("x", text)).dtype.kind in "if"


def test_whole_numbers_stay_whole():
    assert all(isinstance(value, int) for value in spaced("D", "64:4096:7:log"))
    assert parsed("D", "16") == 16
    assert isinstance(parsed("D", "16"), int)
    assert parsed("C", "2,4, 8") == Axis("C", (2, 4, 8))
    assert parsed("q", [0.1, np.float64(0.2)]) == Axis("q", (0.1, 0.2))
    assert parsed("q", "16/196") == 16 / 196


def test_points_are_crossed_with_the_last_axis_fastest():
    found = grid({"C": "2,4", "q": "0.1:0.3:3", "D": 16})
    assert (found.dims, found.shape, found.size) == (("C", "q"), (2, 3), 6)
    points = [found.at(index) for index in found]
    seen = [(p["C"], round(p["q"], 9), p["D"]) for p in points]
    assert seen[:4] == [(2, 0.1, 16), (2, 0.2, 16), (2, 0.3, 16), (4, 0.1, 16)]


def test_formulas_see_axes_letters_and_other_formulas():
    found = grid({"D": "16,32", "m": "2,4", "q": "half*2/(D-C)", "half": "m/2", "C": 4})
    assert found.at((1, 1))["q"] == 4 / 28
    assert found.fixed == {"C": 4}


def test_pairs_walk_together():
    found = grid({"D": "16,36,64", "C": "4,6,8", "q": "1/C"}, paired=True)
    assert (found.dims, found.shape) == (("point",), (3,))
    assert found.at((1,)) == {"D": 36, "C": 6, "q": 1 / 6}
    for given, message in (
        ({"D": "16,32", "C": "2,4,8"}, "D 2, C 3"), ({"D": 16}, "at least one axis")
    ):  # fmt: skip
        with pytest.raises(InvalidRequest, match=message):
            grid(given, paired=True)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"q": "0.1:0.9"}, "is not a grid; q can be a:b:n or a:b:n:log; nearest: q=0.1:0.9:3"),
        ({"d": "2:7:x"}, "a:b:n or a:b:n:log; nearest: d=2:7:2"),
        ({"q": "0:1:4:log"}, "is logarithmic and has an end <= 0"),
        ({"q": "0.1:0.9:1"}, "has one point but two ends"),
        ({"q": "0.1:0.9:2.5"}, "is not a whole number"),
        ({"q": "0.1,0.1"}, "occurs 2 times"),
        ({"q": []}, "has no values"),
        ({"q": "nan"}, "is not finite"),
        ({"q": f"0:1{'0' * 400}:3"}, "is not finite"),
        ({"q": True}, "is not a number"),
        ({"q": "m/D", "D": 16}, "needs m"),
        ({"q": "r", "r": "q"}, "depends on itself"),
        ({"q": "D.real", "D": 16}, "holds D.real"),
        ({"q": "__import__('os')"}, "cannot|calls|holds"),
        ({"q": "0:1:4000", "nu": "1:2:4000"}, "are too many"),
    ],
)
def test_refusals_are_one_line(given, message):
    with pytest.raises(InvalidRequest, match=message) as caught:
        grid(given)
    assert "\n" not in str(caught.value)
