"""A sweep holds what single runs give."""

import json

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
