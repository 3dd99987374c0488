"""Killed at any moment, a sweep goes on to the same bytes."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest
from sweeps import GIVEN, SYSTEM

import dynamics
from dynamics.cli import main
from dynamics.results.outcome import KILLED, PENDING, POINT_KINDS
from dynamics.sweep import point_runner, run, status, store, worker_pool
from dynamics.sweep.store import SweepStore

WORDS = [
    *("sweep", "positional_attention", "--D", "12", "--C", "2,3,5", "--q", "0.1:0.9:6"),
    *("--nu", "1e-3,1e-2", "--time", "3e3", "--trajectory", "20", "--json"),
]


def test_a_killed_worker_costs_its_block_only(small, tmp_path, files):
    over, deaf = threading.Event(), []

    def hunt():
        while not over.is_set():
            for child in children():
                time.sleep(0.4)
                with contextlib.suppress(OSError):  # it has ended, or there is no /proc
                    deaf.append(blocks(child, signal.SIGINT))
                os.kill(child, signal.SIGKILL)
                return

    hunter = threading.Thread(target=hunt)
    hunter.start()
    try:
        found = dynamics.sweep(SYSTEM, GIVEN, tmp_path / "k.zarr", workers=2, trajectory=5)
    finally:
        over.set()
        hunter.join()
    assert files(tmp_path / "k.zarr") == files(small[0])
    assert found.dataset.identical(small[1].dataset)
    assert all(deaf)  # Ctrl-C is for the sweep


def blocks(process, number):
    """Whether a process blocks a signal."""
    text = Path(f"/proc/{process}/status").read_text()
    mask = next(line for line in text.splitlines() if line.startswith("SigBlk"))
    return bool(int(mask.split()[1], 16) >> (number - 1) & 1)


def children():
    """Processes of workers under this one."""
    out = subprocess.run(
        ["pgrep", "-P", str(os.getpid()), "-f", "loky.backend.popen_loky_posix"],
        capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip
    return [int(word) for word in out.split()]


def test_a_point_that_takes_down_every_worker_is_recorded(monkeypatch, tmp_path):
    """Alone it is recorded after two; the others of its block are run."""

    class Frail(worker_pool.InProcess):
        lost = (BrokenPipeError,)

        def submit(self, function, runner, points):
            if any(point["q"] == 0.4 for point in points):
                future = Future()
                future.set_exception(BrokenPipeError())
                return future
            return super().submit(function, runner, points)

    monkeypatch.setattr(run, "InProcess", Frail)
    given = {"D": 8, "C": 2, "q": "0.2,0.4,0.6", "time": 5}
    found = dynamics.sweep(SYSTEM, given, tmp_path / "l.zarr", workers=0)
    assert found.outcomes == {KILLED: 1, "reached horizon": 2}
    assert int(found.dataset["outcome"][1]) == POINT_KINDS.index(KILLED)
    assert np.isnan(float(found.dataset["risk"][1]))
    assert status(tmp_path / "l.zarr")["diverged"] == 1


@pytest.mark.parametrize(
    ("where", "error"), [("problem", RuntimeError("no root")), ("_trained", BaseException("own"))]
)
def test_a_point_that_raises_is_one_failed_point(monkeypatch, tmp_path, where, error):
    place = point_runner.PointRunner if where == "problem" else point_runner
    usual = getattr(place, where)

    def raising(*given):
        one, two = given[:2]
        if (two if where == "problem" else vars(one.parameters))["q"] == 0.4:
            raise error
        return usual(*given)

    monkeypatch.setattr(place, where, raising)
    given = {"D": 8, "C": 2, "q": "0.2,0.4,0.6", "time": 5}
    for _ in range(2):
        found = dynamics.sweep(SYSTEM, given, tmp_path / "l.zarr", workers=0)
        assert found.outcomes == {"reached horizon": 2, "invalid": 1}
        assert found.reasons == {(1,): f"raises {type(error).__name__}: {error}"}


LAUNCHER = (
    "if __name__ == '__main__':\n    from dynamics.cli import main\n    raise SystemExit(main())"
)


def test_a_signal_keeps_the_blocks_and_the_same_command_goes_on(tmp_path, files):
    """Workers import nothing from the folder they start in."""
    out, launcher, folder = tmp_path / "i.zarr", tmp_path / "attdyn", tmp_path / "mine"
    launcher.write_text(LAUNCHER)
    folder.mkdir()
    for name in ("random", "types", "signal", "enum"):
        (folder / f"{name}.py").write_text("raise SystemExit('the wrong module')\n")
    running = subprocess.Popen(
        [sys.executable, launcher, *WORDS, "--out", out, "--workers", "1"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
    )  # fmt: skip
    try:
        while not list(out.glob("done/c/*")) and running.poll() is None:
            time.sleep(0.02)
        running.send_signal(signal.SIGINT)
        told, said = running.communicate(timeout=60)
    finally:
        running.kill()
    assert "the wrong module" not in said
    assert running.returncode == 130
    assert "the same command goes on" in said
    assert json.loads(told)["complete"] is False
    data = dynamics.load(out).dataset
    assert (data["outcome"] == PENDING).any()
    assert (data["outcome"] != PENDING).any()
    for folder in (out, tmp_path / "whole.zarr"):
        assert main([*WORDS, "--out", str(folder), "--workers", "0"]) == 0
    assert files(out) == files(tmp_path / "whole.zarr")


def test_a_full_disk_keeps_what_was_done(small, tmp_path, monkeypatch, files):
    out, written = tmp_path / "f.zarr", SweepStore.write

    def full(self, number, block):
        if len(store.read(self.path, self.plan).pending) < 10:
            with store.store_errors(self.path):
                raise OSError(28, "No space left on device")
        written(self, number, block)

    monkeypatch.setattr(SweepStore, "write", full)
    with pytest.raises(store.StoreError, match="no space left on device"):
        dynamics.sweep(SYSTEM, GIVEN, out, workers=0, trajectory=5)
    monkeypatch.undo()
    found = status(out)
    assert 0 < found["done"] < found["blocks"]
    dynamics.sweep(SYSTEM, GIVEN, out, workers=0, trajectory=5)
    assert files(out) == files(small[0])
