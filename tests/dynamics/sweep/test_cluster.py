"""Many machines, played by processes: the same bytes, also when a worker is killed."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import dynamics
from dynamics.cli import main
from dynamics.sweep import cluster, run, status
from dynamics.sweep.store import SweepStore

SYSTEM = dynamics.load_system("positional_attention")
GIVEN = {"D": 8, "C": "2,3,4", "q": "0.1:0.9:5", "nu": "1e-3,1e-2", "time": 2000}
WORDS = ["sweep", "positional_attention", "--D", "8", "--C", "2", "--eta", "1e-9"]

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:distributed"),
]


@pytest.fixture(scope="module")
def workers():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as made:
        yield made


def test_the_same_bytes_although_a_worker_is_killed(workers, tmp_path, files):
    out = tmp_path / "k.zarr"
    first = next(iter(workers.workers.values()))

    def kill():
        while not list(out.glob("done/c/*")):
            time.sleep(0.02)
        first.close_gracefully()  # it is not started again: the other is enough
        os.kill(first.pid, signal.SIGKILL)

    hunter = threading.Thread(target=kill)
    hunter.start()
    dynamics.sweep(SYSTEM, GIVEN, out, scheduler=workers.scheduler_address)
    hunter.join()
    dynamics.sweep(SYSTEM, GIVEN, tmp_path / "here.zarr", workers=0)
    assert files(out) == files(tmp_path / "here.zarr")


def test_the_scheduler_of_the_environment(monkeypatch):
    addresses = []
    monkeypatch.setattr(run, "Cluster", addresses.append)
    monkeypatch.setenv(run.ADDRESS, "tcp://10.0.0.1:8786")
    run.workers_for(SYSTEM, None, None, 4)
    run.workers_for(SYSTEM, None, "tcp://other:1", 4)
    run.workers_for(SYSTEM, 0, None, 4)
    assert addresses == ["tcp://10.0.0.1:8786", "tcp://other:1"]


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense"])
def test_wrong_addresses_are_one_line(address, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", 0.3)
    assert main([*WORDS, "--scheduler", address, "--out", str(tmp_path / "s.zarr")]) == 2
    told = capfd.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert f"scheduler={address!r} does not answer" in told.err
    assert not (tmp_path / "s.zarr").exists()


def test_a_scheduler_without_workers_is_waited_for_with_a_line(monkeypatch, capfd, tmp_path):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "PATIENCE", 0.3)
    with distributed.LocalCluster(n_workers=0, dashboard_address=None, processes=False) as empty:
        waiting = cluster.Cluster(empty.scheduler_address)
        told = capfd.readouterr().err
        assert told.count("\n") == 1
        assert f"scheduler={empty.scheduler_address!r} has no workers yet" in told
        empty.scale(1)
        assert waiting.submit(sum, (1, 2)).result() == 3
        waiting.close()


SCHEDULER = """
import asyncio
from distributed import Scheduler, Worker
async def main():
    async with Scheduler(port=0, dashboard_address=":0") as scheduler:
        async with Worker(scheduler.address, nthreads=1):
            print(scheduler.address, flush=True)
            await scheduler.finished()
asyncio.run(main())
"""


def test_a_scheduler_that_is_killed_costs_one_line(tmp_path, capfd, monkeypatch):
    """It is killed after the last of two blocks, which runs first; the other would take hours."""
    pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "PATIENCE", 2.0)
    write, out = SweepStore.write, tmp_path / "k.zarr"
    command = [sys.executable, "-c", SCHEDULER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:

        def written(self, number, block):
            write(self, number, block)
            process.kill()

        monkeypatch.setattr(SweepStore, "write", written)
        address = process.stdout.readline().decode().strip()
        words = ["--steps", "1000000000,10", "--scheduler", address, "--out", str(out)]
        assert main([*WORDS, *words]) == 1
    told = capfd.readouterr()
    assert (told.out, told.err) == ("", f"attdyn: {cluster.GONE}\n")
    assert status(out)["done"] == 1
