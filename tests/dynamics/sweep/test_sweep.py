"""A sweep holds what single runs give; killed or damaged it goes on to the same bytes."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import zarr

import dynamics
from dynamics.outcome import INVALID, KILLED, PENDING, POINT_KINDS
from dynamics.sweep import crew, measure, place, repaired, result, status
from dynamics.sweep.store import SweepStore
from dynamics.validation import InvalidRequest

SYSTEM = dynamics.load_system("positional_attention")
GIVEN = {"D": 8, "C": "2,3,4", "q": "0.2:0.6:3", "nu": "1e-3,1e-2", "time": 50}
WORDS = [
    *("sweep", "positional_attention", "--D", "12", "--C", "2,3,5", "--q", "0.1:0.9:6"),
    *("--nu", "1e-3,1e-2", "--time", "3e3", "--trajectory", "20", "--json"),
]


def command(out, *more, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "dynamics", *WORDS, "--out", str(out), *more],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A finished sweep in this process."""
    out = tmp_path_factory.mktemp("sweep") / "s.zarr"
    return out, dynamics.sweep(SYSTEM, GIVEN, out, workers=0, trajectory=5)


def test_every_point_equals_a_run_by_itself(small):
    _, found = small
    data = found.dataset
    assert found.outcomes == {"reached horizon": 12, "invalid": 6}
    for C, q, nu in [(2, 0.2, 1e-3), (4, 0.6, 1e-2)]:
        problem = SYSTEM.ReducedPopulation(SYSTEM.Parameters(D=8, C=C, q=q, nu=nu))
        run = dynamics.flow(problem, 50.0)
        point = data.sel(C=C, q=q, nu=nu, method="nearest")
        for name in ("alpha", "gamma", "rho", "risk", "G"):
            assert float(point[name]) == run[name][-1]
        for name, event in run.events.items():
            stored = float(point[f"time_{name}"]) if f"time_{name}" in point else np.nan
            np.testing.assert_equal(stored, np.nan if event is None else event.time)
        np.testing.assert_array_equal(point["path_alpha"].values[-1], run["alpha"][-1])
        assert float(point["path_time"][0]) == 0.0
    assert (data["outcome"].sel(C=3) == INVALID).all()
    assert np.isnan(data["risk"].sel(C=3)).all()


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


def test_the_whole_population_too():
    found = dynamics.sweep(
        SYSTEM, {"D": 8, "C": 2, "full": "population", "eta": 0.02, "steps": 20}, workers=0
    )
    assert found.dataset["alpha"].shape == ()
    large = {"D": "8,32", "C": 4, "full": "population", "eta": 0.02, "steps": 2}
    refused = dynamics.sweep(SYSTEM, large, workers=0)
    assert refused.outcomes == {"reached horizon": 1, "invalid": 1}
    assert "configurations" in refused.reasons[1,]


def test_workers_and_this_process_write_the_same_bytes(small, tmp_path, files):
    out, found = small
    other = dynamics.sweep(SYSTEM, GIVEN, tmp_path / "t.zarr", workers=2, trajectory=5)
    assert files(out) == files(tmp_path / "t.zarr")
    assert found.dataset.identical(other.dataset)


def test_xarray_opens_it(small):
    xarray = pytest.importorskip("xarray")
    out, found = small
    data = xarray.open_zarr(out, consolidated=False, chunks=None)
    assert data["alpha"].dims == ("C", "q", "nu")
    assert json.loads(data.attrs["fixed"]) | {"D": 8, "time": 50, "p": 3} == json.loads(
        data.attrs["fixed"]
    )
    assert dynamics.load(out).dataset.identical(found.dataset)
    assert int((data["done"] != 0).sum()) == data.sizes["block"]


def test_a_finished_sweep_is_not_run_again(small, monkeypatch, files):
    out, found = small
    before = files(out)
    monkeypatch.setattr(result, "run", None)
    again = dynamics.sweep(SYSTEM, GIVEN, out, workers=0, trajectory=5)
    assert again.dataset.identical(found.dataset)
    assert files(out) == before


def test_another_request_on_the_same_store_is_refused_with_the_difference(small):
    out, _ = small
    for change, message in [
        ({"time": 60}, "time: 50 there, 60 here"),
        ({"q": "0.2:0.6:5"}, r"q: 0.2,0.4,0.6 there, 0.2 ... 0.6 \(5 values\) here"),
        ({"p": 5}, "p: 3 there, 5 here"),
        ({"expectation": "spectral"}, "expectation: not given there, spectral here"),
    ]:
        with pytest.raises(InvalidRequest, match=message):
            dynamics.sweep(SYSTEM, GIVEN | change, out, workers=0, trajectory=5)
    turned = dict(reversed(GIVEN.items()))
    assert dynamics.sweep(SYSTEM, turned, out, workers=0, trajectory=5).complete


def test_a_store_of_other_versions_is_read_but_not_continued(small, tmp_path):
    out = shutil.copytree(small[0], tmp_path / "v.zarr")
    head = json.loads((out / "zarr.json").read_text())
    head["attributes"]["versions"] = head["attributes"]["versions"].replace("numba", "numbat")
    (out / "zarr.json").write_text(json.dumps(head))
    assert dynamics.load(out).complete
    with pytest.raises(InvalidRequest, match=r"version of numbat: .* there, not given here"):
        dynamics.sweep(SYSTEM, GIVEN, out, workers=0, trajectory=5)
    head["attributes"]["format"] = 99
    (out / "zarr.json").write_text(json.dumps(head))
    for refused in (
        lambda: dynamics.load(out),
        lambda: status(out),
        lambda: dynamics.sweep(SYSTEM, GIVEN, out, workers=0, trajectory=5),
    ):
        with pytest.raises(InvalidRequest, match="has format 99, this program reads 1"):
            refused()


@pytest.mark.parametrize("how", ["bit", "cut", "gone"])
def test_a_damaged_chunk_is_named_and_repaired(small, tmp_path, how, files):
    out = shutil.copytree(small[0], tmp_path / "d.zarr")
    before = files(out)
    chunk = next(
        p for p in sorted((out / "risk").rglob("*")) if p.is_file() and p.name != "zarr.json"
    )
    content = bytearray(chunk.read_bytes())
    if how == "bit":
        content[len(content) // 2] ^= 1
        chunk.write_bytes(content)
    elif how == "cut":
        chunk.write_bytes(content[:-3])
    else:
        chunk.unlink()
    found = status(out)
    assert len(found["damaged"]) == 1
    assert found["done"] == found["blocks"] - 1
    for refused in (
        lambda: dynamics.load(out),
        lambda: dynamics.sweep(SYSTEM, GIVEN, out, workers=0, trajectory=5),
    ):
        with pytest.raises(InvalidRequest, match="is damaged in 1 of its blocks") as caught:
            refused()
        assert "\n" not in str(caught.value)
    assert repaired(out) == 1
    dynamics.sweep(SYSTEM, GIVEN, out, workers=0, trajectory=5)
    assert files(out) == before


def test_other_places_are_refused(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    (tmp_path / "file").write_text("x")
    for name, message in [("mine", "holds other files"), ("file", "is not a folder")]:
        with pytest.raises(InvalidRequest, match=message):
            dynamics.sweep(SYSTEM, GIVEN, tmp_path / name, workers=0)
    run = dynamics.descend(SYSTEM.ReducedPopulation(SYSTEM.Parameters(D=8, C=2)), 0.01, 5)
    dynamics.save(run, tmp_path / "run")
    with pytest.raises(InvalidRequest, match="holds a trajectory, not a sweep"):
        dynamics.sweep(SYSTEM, GIVEN, tmp_path / "run", workers=0)
    with pytest.raises(InvalidRequest, match="holds no sweep"):
        status(tmp_path / "nothing")


def test_a_full_disk_keeps_what_was_done(small, tmp_path, monkeypatch, files):
    out, written = tmp_path / "f.zarr", SweepStore.write

    def full(self, number, block):
        if len(self.pending()) < 10:
            with place.told(self.path):
                raise OSError(28, "No space left on device")
        written(self, number, block)

    monkeypatch.setattr(SweepStore, "write", full)
    with pytest.raises(place.StoreError, match="no space left on device"):
        dynamics.sweep(SYSTEM, GIVEN, out, workers=0, trajectory=5)
    monkeypatch.undo()
    found = status(out)
    assert 0 < found["done"] < found["blocks"]
    dynamics.sweep(SYSTEM, GIVEN, out, workers=0, trajectory=5)
    assert files(out) == files(small[0])


def test_two_sweeps_do_not_share_a_store(small):
    out, found = small
    with SweepStore(out, found.plan).open(), pytest.raises(InvalidRequest, match="at work"):
        dynamics.sweep(SYSTEM, GIVEN, out, workers=0, trajectory=5)


def test_a_killed_worker_costs_its_block_only(small, tmp_path, files):
    """A worker is killed again and again; what it had is run by others, to the same bytes."""
    over = threading.Event()

    def hunt():
        while not over.is_set():
            for child in children():
                time.sleep(0.4)
                os.kill(child, signal.SIGKILL)
                return

    hunter = threading.Thread(target=hunt)
    hunter.start()
    try:
        dynamics.sweep(SYSTEM, GIVEN, tmp_path / "k.zarr", workers=2, trajectory=5)
    finally:
        over.set()
        hunter.join()
    assert files(tmp_path / "k.zarr") == files(small[0])


def children():
    """Processes of workers under this one."""
    out = subprocess.run(
        ["pgrep", "-P", str(os.getpid()), "-f", "dynamics.sweep.worker"],
        capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip
    return [int(word) for word in out.split()]


def test_a_point_that_takes_down_every_worker_is_recorded(monkeypatch, tmp_path):
    """Alone it is recorded after two; the others of its block are run."""

    class Frail(crew.Here):
        def wait(self, seconds):
            if self._waiting and '"q": 0.4' in self._waiting[0][1]:
                ticket, _ = self._waiting.popleft()
                return crew.Answer(ticket, None)
            return super().wait(seconds)

    monkeypatch.setattr(result, "Here", Frail)
    given = {"D": 8, "C": 2, "q": "0.2,0.4,0.6", "time": 5}
    found = dynamics.sweep(SYSTEM, given, tmp_path / "l.zarr", workers=0)
    assert found.outcomes == {KILLED: 1, "reached horizon": 2}
    assert int(found.dataset["outcome"][1]) == POINT_KINDS.index(KILLED)
    assert np.isnan(float(found.dataset["risk"][1]))
    assert status(tmp_path / "l.zarr")["diverged"] == 1


def test_an_error_of_the_program_is_not_a_result(monkeypatch):
    monkeypatch.setattr(measure, "_row", lambda run: 1 / 0)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        dynamics.sweep(SYSTEM, {"D": 8, "C": 2, "time": 5}, workers=0)


def test_a_signal_keeps_the_blocks_and_the_same_command_goes_on(tmp_path):
    out = tmp_path / "i.zarr"
    running = command(out, "--workers", "1")
    while not list(out.glob("done/c/*")) and running.poll() is None:
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    told, said = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "the same command goes on" in said
    assert json.loads(told)["complete"] is False
    data = dynamics.load(out).dataset
    assert (data["outcome"] == PENDING).any()
    assert (data["outcome"] != PENDING).any()
    again = command(out, "--workers", "1")
    again.communicate(timeout=100)
    assert again.returncode == 0
    assert status(out)["done"] == status(out)["blocks"]


def finish(out):
    """The command, to its end."""
    running = command(out, "--workers", "2")
    said = running.communicate(timeout=200)[1]
    assert running.returncode == 0, said


def killed_and_resumed(tmp_path, kills, seed, files):
    """A sweep that is killed at random moments, and one that is not, byte by byte."""
    whole, parts = tmp_path / "whole.zarr", tmp_path / "parts.zarr"
    finish(whole)
    draw, done = np.random.default_rng(seed), []
    for _ in range(kills):
        running = command(parts, "--workers", "2")
        time.sleep(draw.uniform(0.3, 6.0))
        running.kill()
        running.communicate()
        if (parts / "done" / "zarr.json").exists():
            found = status(parts)
            assert not found["damaged"]
            done.append(found["done"])
            if found["done"] == found["blocks"]:
                shutil.rmtree(parts)
    finish(parts)
    assert files(parts) == files(whole)
    return done


def test_killed_at_random_moments(tmp_path, files):
    killed_and_resumed(tmp_path, 2, 0, files)


@pytest.mark.long
def test_killed_at_thirty_random_moments(tmp_path, capsys, files):
    done = killed_and_resumed(tmp_path, 30, 1, files)
    with capsys.disabled():
        print(f"\n30 kills; blocks done after each: {done}")


def test_a_block_that_was_begun_is_not_there(small, tmp_path):
    """Killed between two of its arrays: its points are still to be run, not results."""
    out = shutil.copytree(small[0], tmp_path / "b.zarr")
    (out / "done" / "c" / "3").unlink()
    for chunk in (out / "risk" / "c").rglob("*"):
        if chunk.is_file():
            chunk.unlink()
            break
    data = dynamics.load(out).dataset if not status(out)["damaged"] else None
    if data is None:
        repaired(out)
        data = dynamics.load(out).dataset
    begun = data["outcome"].values == PENDING
    assert begun.any()
    assert np.isnan(data["G"].values[begun]).all()


@pytest.mark.parametrize("name", ["G", "q", "done"])
def test_a_damaged_description_is_one_line_and_mended(small, tmp_path, name, capfd):
    out = shutil.copytree(small[0], tmp_path / "z.zarr")
    (out / name / "zarr.json").write_text("garbage")
    before = {path for path in (out / "G" / "c").rglob("*") if path.is_file()}
    if name == "q":
        assert not status(out)["damaged"]  # axes follow from the head
    else:
        with pytest.raises(InvalidRequest, match=rf"{name}.*cannot be read|{name}:") as caught:
            dynamics.load(out)
        assert "\n" not in str(caught.value)
    if name != "done":
        assert repaired(out) == 0
        dynamics.sweep(SYSTEM, GIVEN, out, workers=0, trajectory=5)
        assert dynamics.load(out).dataset.identical(small[1].dataset)
    assert {path for path in (out / "G" / "c").rglob("*") if path.is_file()} == before
    assert "Traceback" not in capfd.readouterr().err


def test_marks_that_cannot_be_read_are_blocks_to_run(small, tmp_path, files, capfd):
    out = shutil.copytree(small[0], tmp_path / "m.zarr")
    (out / "done" / "c" / "3").write_bytes(b"x")
    assert status(out)["done"] == status(out)["blocks"] - 1
    dynamics.sweep(SYSTEM, GIVEN, out, workers=0, trajectory=5)
    assert files(out) == files(small[0])
    assert not capfd.readouterr().err


def test_what_is_not_ours_stays(small, tmp_path):
    out = shutil.copytree(small[0], tmp_path / "o.zarr")
    (out / "pictures").mkdir()
    (out / "pictures" / "mine.txt").write_text("precious")
    dynamics.sweep(SYSTEM, GIVEN, out, workers=0, trajectory=5)
    assert (out / "pictures" / "mine.txt").read_text() == "precious"


@pytest.mark.parametrize("letter", ["alpha", "risk", "block", "done", "time_T0", "path_q"])
def test_letters_that_name_quantities_are_refused(letter, tmp_path):
    given = {"D": 8, "C": 2, letter: "1,2", "nu": f"{letter}*1e-3", "time": 5}
    with pytest.raises(InvalidRequest, match="is the name of a quantity"):
        dynamics.sweep(SYSTEM, given, tmp_path / "l.zarr", workers=0)
    assert not (tmp_path / "l.zarr").exists()


def test_events_that_nobody_reached_are_quantities_too():
    found = dynamics.sweep(SYSTEM, {"D": 8, "C": 2, "q": "0.2,0.4", "time": 1}, workers=0)
    assert np.isnan(found.dataset["time_T1"]).all()


def test_nothing_is_left_of_writes_that_were_cut(small, tmp_path, files):
    out = shutil.copytree(small[0], tmp_path / "p.zarr")
    before = files(out)
    (out / "risk" / "c.abc.partial").write_bytes(b"x")
    (out / "newly").mkdir()
    dynamics.sweep(SYSTEM, GIVEN, out, workers=0, trajectory=5)
    assert files(out) == before
    assert not (out / "newly").exists()


def test_a_chunk_belongs_to_one_block(small):
    out, found = small
    assert zarr.open_group(out, mode="r")["risk"].chunks == found.plan.block
