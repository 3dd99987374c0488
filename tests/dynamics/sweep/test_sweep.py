"""Grids from text and blocks that cover them; a sweep holds what single runs give, by any rule."""

import json
from dataclasses import replace

import numpy as np
import pytest
import xarray
from sweeps import GIVEN, SYSTEM

import dynamics
from dynamics.results.outcome import INVALID
from dynamics.sweep import point_runner
from dynamics.sweep import run as runs
from dynamics.sweep.axes import Axis, grid, parsed, spaced
from dynamics.sweep.plan import planned
from dynamics.sweep.point_runner import PointRunner, killed
from dynamics.training import progress
from dynamics.validation import InvalidRequest
from theory.update_rules import RULES


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


def test_bars_end_at_their_totals(monkeypatch, tmp_path):
    bars, ended = progress.bar, {}

    def bar(what, total=None, *rest, **options):
        shown = bars(what, total, *rest, **options)
        close = shown.close
        shown.close = lambda: (ended.setdefault(what, (shown.n, shown.total)), close())
        return shown

    monkeypatch.setattr(progress, "bar", bar)
    given = {"D": 8, "C": "2,3,4", "q": "0.2,0.4", "nu": "q/100", "time": 1.0}
    found = dynamics.sweep(SYSTEM, given, tmp_path / "s.zarr", workers=0)
    assert len(found.reasons) == len(found.plan.invalid_reasons) == 2
    found.plan.grid.table("nu")
    assert ended.pop("sweep") == (6, 6)
    assert ended == {"check": (6, 6), "reasons": (2, 2), "formulas": (6, 6)}


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


def test_every_point_equals_a_run_by_itself(small):
    _, found = small
    data = found.dataset
    assert found.outcomes == {"reached horizon": 12, "invalid": 6}
    for C, q, nu in [(2, 0.2, 1e-3), (4, 0.6, 1e-2)]:
        problem = SYSTEM.ReducedPopulation(SYSTEM.Parameters(D=8, C=C, q=q, nu=nu))
        point = data.sel(C=C, q=q, nu=nu, method="nearest")
        run = dynamics.flow(problem, 50.0, record=point["path_time"].values)
        for name in ("alpha", "gamma", "rho", "risk", "G"):
            assert float(point[name]) == run[name][-1]
        for name, event in run.events.items():
            stored = float(point[f"time_{name}"]) if f"time_{name}" in point else np.nan
            np.testing.assert_equal(stored, event.time)
        np.testing.assert_array_equal(point["path_alpha"].values[-1], run["alpha"][-1])
        assert float(point["path_time"][0]) == 0.0
    assert (data["outcome"].sel(C=3) == INVALID).all()
    assert np.isnan(data["risk"].sel(C=3)).all()


@pytest.mark.parametrize("run", [{"time": 1000}, {"eta": 0.02, "steps": 200}])
def test_a_path_of_one_record_ends_where_the_run_does(run):
    given = {"D": 8, "C": 2, "q": "0.3,0.5", **run}
    alone, one = (dynamics.sweep(SYSTEM, given, workers=0, trajectory=n).dataset for n in (0, 1))
    for name in ("risk", "alpha", "end_time"):
        np.testing.assert_array_equal(one[name], alone[name])
    np.testing.assert_array_equal(one["path_time"][:, -1], one["end_time"])
    np.testing.assert_array_equal(one["path_risk"][:, -1], one["risk"])


def test_gradient_descent_and_samples():
    given = {"D": 8, "C": 2, "q": 0.5, "eta": "0.01,5000", "steps": 40}
    found = dynamics.sweep(SYSTEM, given, workers=0)
    run = dynamics.descend(SYSTEM.ReducedPopulation(SYSTEM.Parameters(D=8, C=2, q=0.5)), 0.01, 40)
    assert float(found.dataset["alpha"][0]) == run.final_state[0]
    assert found.outcomes == {"diverged": 1, "reached horizon": 1}
    given = {"D": 8, "C": 2, "full": "empirical", "seed": "0,1", "samples": 50, "steps": 30}
    given |= {"start": "symmetric"}
    found = dynamics.sweep(SYSTEM, given, workers=0)
    for seed in (0, 1):
        problem = SYSTEM.FullEmpirical(SYSTEM.Parameters(D=8, C=2), 50, seed, start="symmetric")
        run = dynamics.descend(problem, 0.02, 30)
        assert float(found.dataset["test_error"][seed]) == run["test_error"][-1]
        assert float(found.dataset["cosine"][seed]) == run["cosine"][-1]


def test_a_flow_that_fills_the_memory_costs_its_point(monkeypatch):
    run = point_runner.flow

    def narrow(problem, *rest, **named):
        if problem.parameters.q == 0.5:
            raise MemoryError
        return run(problem, *rest, **named)

    runner = PointRunner(SYSTEM.reference, {}, 0, SYSTEM.digests, SYSTEM)
    points = [{"D": 8, "C": 2, "q": q, "time": 2.0} for q in (0.3, 0.4, 0.5, 0.6)]
    whole = runner.measure(points)
    monkeypatch.setattr(point_runner, "flow", narrow)
    assert runner.measure(points) == [*whole[:2], killed(), whole[3]]


def test_what_is_stored_is_what_was_found_and_is_not_run_again(small, monkeypatch, files):
    out, found = small
    before, data = files(out), xarray.open_zarr(out, chunks=None)
    assert data["alpha"].dims == ("C", "q", "nu")
    assert {"D": 8, "time": 50, "p": 3}.items() <= json.loads(data.attrs["fixed"]).items()
    assert int((data["done"] != 0).sum()) == data.sizes["block"]
    nowhere = dynamics.sweep(SYSTEM, GIVEN, workers=0, trajectory=5)
    monkeypatch.setattr(runs, "run_blocks", None)
    again = dynamics.sweep(SYSTEM, GIVEN, out, workers=0, trajectory=5)
    for other in (nowhere, again, dynamics.load(out)):
        assert other.dataset.identical(found.dataset)
        assert (other.outcomes, other.complete) == (found.outcomes, True)
    assert files(out) == before


@pytest.mark.parametrize("letter", ["alpha", "done", "time_T0"])
def test_letters_that_name_quantities_are_refused(letter, tmp_path):
    given = {"D": 8, "C": 2, letter: "1,2", "nu": f"{letter}*1e-3", "time": 5}
    with pytest.raises(InvalidRequest, match="is the name of a quantity"):
        dynamics.sweep(SYSTEM, given, tmp_path / "l.zarr", workers=0)
    assert not (tmp_path / "l.zarr").exists()


def test_an_option_with_the_name_of_an_observable_is_swept_beside_it(tmp_path):
    given = {"full": "empirical", "start": "random", "spread": "0.01,0.02", "samples": 20}
    given |= {"steps": 5}
    for out in (None, tmp_path / "s.zarr"):
        found = dynamics.sweep("masked_image_modeling", given, out, workers=0)
        assert found.complete
        assert found.dataset["spread"].values.tolist() == [0.01, 0.02]
        assert found.dataset["observed_spread"].dims == ("spread",)
        assert found.dataset["observed_spread"].notnull().all()


LINEAR = dynamics.load_system("linear_icl")
BY_ADAM = {"rule": "adam", "eta": 0.01, "steps": 50}


def start(b1=0.4):
    return {"s": b1, "t": b1}


def risk(theta, xp):
    return (theta["s"] - 1.0) ** 4 + (theta["t"] + 1.0) ** 2


def step(gradient, memory, entry, step, eta, xp):
    return -eta * gradient / (1 + abs(gradient)), memory


@pytest.fixture(scope="module")
def named():
    """A model with a constant that has the name of one of Adam's, and a rule of its own."""
    model = dynamics.Model(start=start, risk=risk, step=step, eta=0.1, steps=40)
    return dynamics.load_system(model)


def test_a_point_is_the_run_of_its_rule_and_a_store_knows_it(tmp_path):
    grid = BY_ADAM | {"b1": "0.5,0.9", "schedule": "cosine", "weight_decay": 0.01}
    found = dynamics.sweep(LINEAR, grid, tmp_path / "s.zarr", workers=0)
    problem = LINEAR.ReducedPopulation(LINEAR.Parameters())
    for k, b1 in enumerate((0.5, 0.9)):
        rule = dynamics.rule("adam", b1=b1, weight_decay=0.01)
        run = dynamics.descend(problem, 0.01, 50, rule, schedule="cosine")
        for name in problem.state_names:
            assert found.dataset[name].values[k] == run[name][-1]
    again = dynamics.load(tmp_path / "s.zarr")
    assert again.plan.runner.words == {"rule": "adam", "schedule": "cosine"}
    with pytest.raises(InvalidRequest, match="rule: stored adam, requested adamw"):
        dynamics.sweep(LINEAR, grid | {"rule": "adamw"}, tmp_path / "s.zarr")


def test_a_constant_of_the_model_keeps_its_name(named):
    grid = {"b1": "0.2,0.4", "rule.b1": "0.5,0.9,0.95", "rule": "adam", "eta": 0.1, "steps": 10}
    found = dynamics.sweep(named, grid, workers=0).dataset["s"]
    assert dict(found.sizes) == {"b1": 2, "rule.b1": 3}
    problem = named.ReducedPopulation(named.Parameters(b1=0.4))
    run = dynamics.descend(problem, 0.1, 10, dynamics.rule("adam", b1=0.95))
    assert found.values[1, 2] == run["s"][-1]


def test_the_rule_of_a_model_is_that_of_its_sweep(named):
    found = dynamics.sweep(named, {"b1": 0.4}, workers=0)
    assert found.plan.runner.words == {"rule": "step"}
    run = dynamics.descend(named.ReducedPopulation(named.Parameters()), 0.1, 40, "step")
    assert float(found.dataset["t"]) == run["t"][-1]
    assert np.isfinite(float(dynamics.sweep(named, {"time": 1.0}, workers=0).dataset["t"]))


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        ({"rule": "adamm", "eta": 0.1}, "nearest: adam"),
        ({"rule": "adam"}, "rule='adam' needs an eta"),
        ({"rule": "adam", "time": 1.0}, "give rule "),
        ({"b1": 0.5, "time": 1.0}, "give b1 "),
        ({"b1": 0.5, "eta": 0.1}, "b1=0.5 is not a constant of the rule gd"),
        (BY_ADAM | {"b1": "0.5,1"}, None),
        (BY_ADAM | {"b1": 1}, "b1=1 is too large"),
        (BY_ADAM | {"schedule": "cosin"}, "schedule='cosin'"),
        (BY_ADAM | {"stages": "u:20,s:20"}, "stages=40 is the sum"),
        (BY_ADAM | {"stages": "q:50"}, "stages='q'"),
        (BY_ADAM | {"rule": step}, "has no name"),
        (BY_ADAM | {"rule": replace(RULES["adam"], function=step)}, "has no name"),
        ({"rule": "step", "eta": 0.1, "steps": 5}, "needs a function step"),
    ],
)
def test_what_cannot_be_is_refused_before_it_is_run(grid, words):
    if words is None:
        assert dynamics.sweep(LINEAR, grid, workers=0).outcomes["invalid"] == 1
        return
    with pytest.raises(InvalidRequest, match=words) as error:
        dynamics.sweep(LINEAR, grid, workers=0)
    assert "\n" not in str(error.value)
