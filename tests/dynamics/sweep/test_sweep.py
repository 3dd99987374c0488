"""A sweep holds what single runs give, by any update rule."""

import json
from dataclasses import replace

import numpy as np
import pytest
import xarray
from small_sweep import GIVEN, SYSTEM

import dynamics
from dynamics.results.outcome import INVALID
from dynamics.sweep import point_runner
from dynamics.sweep import run as runs
from dynamics.sweep.point_runner import PointRunner, killed
from dynamics.validation import InvalidRequest
from theory.update_rules import RULES


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
        ({"rule": "step", "eta": 0.1, "steps": 5}, "not a function of the model"),
    ],
)
def test_what_cannot_be_is_refused_before_it_is_run(grid, words):
    if words is None:
        assert dynamics.sweep(LINEAR, grid, workers=0).outcomes["invalid"] == 1
        return
    with pytest.raises(InvalidRequest, match=words) as error:
        dynamics.sweep(LINEAR, grid, workers=0)
    assert "\n" not in str(error.value)
