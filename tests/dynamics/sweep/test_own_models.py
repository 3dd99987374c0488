"""Sweeps of a model file: found again by its path, and refused where it was changed."""

import json
import pickle
import subprocess
import sys
from dataclasses import replace

import file_engine
import pytest
import xarray
from small_sweep import SYSTEM

import dynamics
from dynamics import registry
from dynamics.cli import phase as phase_command
from dynamics.cli.arguments import CommandRequest
from dynamics.sweep import load, status
from dynamics.sweep.point_runner import PointRunner, measure_points
from dynamics.sweep.store import read_request
from dynamics.validation import InvalidRequest

GIVEN = {"D": 8, "C": "2,4", "q": "0.2:0.6:3", "time": 5}
WORDS = ["--D", "8", "--C", "2,4", "--q", "0.2:0.6:3", "--time", "5"]


@pytest.fixture(autouse=True)
def engine(monkeypatch):
    file_engine.stand_in(monkeypatch.setattr)


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "my.py"
    path.write_text(file_engine.TEXT, encoding="utf-8")
    return path


def changed(path):
    path.write_text(file_engine.TEXT.replace("loss = 3", "loss = 33"), encoding="utf-8")


def nowhere(*words):
    raise AssertionError(f"a system was looked up: {words}")


def test_a_store_names_the_file_and_what_it_held(mine, tmp_path):
    out = tmp_path / "s.zarr"
    found = dynamics.sweep(mine, GIVEN, out, workers=0)
    assert found.complete
    assert found.plan.description == read_request(out)[0]
    assert read_request(out)[0]["system"] == str(mine)
    assert read_request(out)[0]["model"] == dynamics.load_system(mine).digests
    assert load(out).presentation == dynamics.load_system(mine).presentation
    assert dynamics.sweep(mine, GIVEN, out, workers=0).complete
    changed(mine)
    with pytest.raises(InvalidRequest, match=r"of another sweep \(loss of the model: \w+ there"):
        dynamics.sweep(mine, GIVEN, out, workers=0)


def test_a_built_in_store_says_nothing_of_a_model(small):
    assert "model" not in read_request(small[0])[0]
    assert read_request(small[0])[0]["system"] == "positional_attention"


def test_workers_are_told_the_file_and_refuse_another(mine):
    system = dynamics.load_system(mine)
    runner = PointRunner(system.reference, {}, 0, system.digests, system)
    point = {"D": 8, "C": 2, "q": 0.5, "time": 5.0}

    def elsewhere():
        """The points of the runner in a process that knows only what is sent."""
        return measure_points(pickle.loads(pickle.dumps(runner)), [point])

    assert elsewhere() == [*runner.measure([point])] == measure_points(runner, [point])
    changed(mine)
    assert measure_points(runner, [point])
    with pytest.raises(InvalidRequest, match=r"^model 'my\.py' was changed since .*: loss$"):
        elsewhere()
    mine.unlink()
    with pytest.raises(InvalidRequest, match="is missing"):
        elsewhere()


def swept(mine, tmp_path, workers, **more):
    """``attdyn sweep my.py`` with workers of its own."""
    import os

    return subprocess.run(
        [sys.executable, "-m", "dynamics", "sweep", mine.name, *WORDS,
         "--workers", str(workers), "--out", "s.zarr"],
        capture_output=True, text=True, cwd=tmp_path, check=False,
        env=os.environ | file_engine.elsewhere(tmp_path) | more,
    )  # fmt: skip


@pytest.mark.long
def test_workers_find_the_file_again(mine, tmp_path, files):
    done = swept(mine, tmp_path, 2)
    assert (done.returncode, done.stderr) == (0, "")
    dynamics.sweep(mine, GIVEN, tmp_path / "here.zarr", workers=0)
    assert files(tmp_path / "s.zarr") == files(tmp_path / "here.zarr")


def test_a_file_that_workers_see_changed_ends_the_sweep_in_one_line(mine, tmp_path):
    done = swept(mine, tmp_path, 1, **{file_engine.PRETEND: "another"})
    assert done.returncode == 2
    assert done.stderr == "attdyn: model 'my.py' was changed since the sweep began: loss\n"
    assert status(tmp_path / "s.zarr")["done"] == 0


def test_a_stored_sweep_is_read_and_drawn_without_its_system(mine, tmp_path, monkeypatch):
    out = tmp_path / "s.zarr"
    dynamics.sweep(mine, GIVEN, out, workers=0)
    mine.unlink()
    for name in ("load_system", "load_unchanged", "_named", "system_names"):
        monkeypatch.setattr(registry, name, nowhere)
    assert load(out).complete
    assert "time_event_III" in load(out).dataset
    assert status(out)["done"] == status(out)["blocks"]
    for given in ({}, {"slices": True}, {"quantity": "reached(T0)"}):
        shown = {"out": str(tmp_path / "p.png"), "json": True} | given
        assert phase_command.execute(CommandRequest("phase", shown, path=str(out))) == 0
    draw, _ = phase_command._draw_slice(load(out), {"quantity": "risk", "x": "q", "y": "C"})
    axes = draw()
    assert axes.get_xlabel() == "$q$"
    assert axes.get_ylabel() == "patches in each set $C$"


def test_what_needs_the_system_loads_it_once_and_checks_it(mine, tmp_path):
    out = tmp_path / "s.zarr"
    dynamics.sweep(mine, GIVEN, out, workers=0)
    runner = load(out).plan.runner
    assert runner.system is runner.system
    assert runner.system.reference == str(mine)
    changed(mine)
    with pytest.raises(InvalidRequest, match=r"model 'my\.py' was changed since the sweep began"):
        phase_command._draw_plane(load(out), {"plane": "gamma,rho", "at": "C=2,q=0.2"})
    asked = {"quantity": "reached(T0)", "x": "q", "y": "C"}
    with pytest.raises(InvalidRequest, match="was changed"):
        phase_command._draw_boundary(load(out), str(out), asked)


def test_a_store_of_an_earlier_version_is_read(small, tmp_path, files):
    """It has neither a presentation nor a model, and its events are those of its system."""
    import shutil

    out = tmp_path / "old.zarr"
    shutil.copytree(small[0], out)
    head = json.loads((out / "zarr.json").read_text())
    del head["attributes"]["presentation"]
    (out / "zarr.json").write_text(json.dumps(head))
    older, newer = load(out), load(small[0])
    xarray.testing.assert_equal(older.dataset, newer.dataset)
    assert list(older.dataset) == list(newer.dataset)
    assert older.presentation.notation.label("nu") == "nu"
    draw, _ = phase_command._draw_slice(
        older, {"quantity": "risk", "x": "q", "y": "nu", "at": "C=2"}
    )
    assert draw().get_ylabel() == "nu"


@pytest.mark.parametrize("how", [{"workers": 2}, {"scheduler": "tcp://127.0.0.1:9"}])
def test_a_model_in_memory_runs_in_this_process_only(how):
    model = file_engine.from_file(replace(SYSTEM, name="model"), "", {"loss": "12ab"})
    for system in (model, replace(SYSTEM, claims=())):
        with pytest.raises(InvalidRequest, match="is in this one only") as caught:
            dynamics.sweep(system, GIVEN, **how)
        assert "\n" not in str(caught.value)


def test_a_model_in_memory_is_run_as_it_is(tmp_path):
    class Slower(SYSTEM.ReducedPopulation):
        def gradient(self, state):
            return 0.5 * super().gradient(state)

    model = replace(SYSTEM, name="model", ReducedPopulation=Slower)
    model = file_engine.from_file(model, "", {"loss": "12ab"})
    found = dynamics.sweep(model, GIVEN, tmp_path / "m.zarr")
    slower = GIVEN | {"time": 2.5}
    usual = dynamics.sweep(SYSTEM, slower, workers=0)
    assert abs(found.dataset["alpha"] - usual.dataset["alpha"]).max() < 1e-7
    other = file_engine.from_file(model, "", {"loss": "another"})
    with pytest.raises(InvalidRequest, match="loss of the model"):
        dynamics.sweep(other, GIVEN, tmp_path / "m.zarr")
