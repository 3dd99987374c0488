"""Many machines, played by processes: the same bytes, also when a worker is killed."""

import os
import signal
import threading
import time

import pytest

import dynamics
from dynamics.cli import main
from dynamics.sweep import cluster, run, status, worker_pool

SYSTEM = dynamics.load_system("positional_attention")
GIVEN = {"D": 8, "C": "2,3,4", "q": "0.1:0.9:5", "nu": "1e-3,1e-2", "time": 50}

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
    """Its block is run by another; nothing is missing, and nothing differs from a run here."""
    out = tmp_path / "k.zarr"
    slower, first = GIVEN | {"time": 2000}, next(iter(workers.workers.values()))

    def kill():
        while not list(out.glob("done/c/*")):
            time.sleep(0.02)
        first.close_gracefully()  # it is not started again: the other is enough
        os.kill(first.pid, signal.SIGKILL)

    hunter = threading.Thread(target=kill)
    hunter.start()
    dynamics.sweep(SYSTEM, slower, out, scheduler=workers.scheduler_address)
    hunter.join()
    dynamics.sweep(SYSTEM, slower, tmp_path / "here.zarr", workers=0)
    assert files(out) == files(tmp_path / "here.zarr")


def test_the_scheduler_of_the_environment(monkeypatch):
    addresses = []
    monkeypatch.setattr(run, "Cluster", addresses.append)
    monkeypatch.setenv(run.ADDRESS, "tcp://10.0.0.1:8786")
    run.workers_for(SYSTEM, None, None, 4)
    run.workers_for(SYSTEM, None, "tcp://other:1", 4)
    run.workers_for(SYSTEM, 0, None, 4)
    assert addresses == ["tcp://10.0.0.1:8786", "tcp://other:1"]


def refused(address, tmp_path, capfd):
    """The one line on stderr of a sweep that nothing is written for."""
    words = ["sweep", "positional_attention", "--D", "8", "--C", "2", "--time", "5"]
    assert main([*words, "--scheduler", address, "--out", str(tmp_path / "s.zarr")]) == 2
    told = capfd.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert len(told.err) < 300
    assert not (tmp_path / "s.zarr").exists()
    return told.err


@pytest.mark.parametrize("address", ["", "tcp://127.0.0.1:9", "nonsense"])
def test_wrong_addresses_are_one_line(address, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", 0.3)
    assert f"scheduler={address!r} does not answer" in refused(address, tmp_path, capfd)


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


def test_a_lost_scheduler_costs_one_line_and_keeps_what_was_done(tmp_path, capsys, monkeypatch):
    class Lost(worker_pool.InProcess):
        def wait(self, futures, seconds):
            if (tmp_path / "l.zarr" / "done" / "c").exists():
                raise cluster.SchedulerGone(cluster.GONE)
            return super().wait(futures, seconds)

    monkeypatch.setattr(run, "InProcess", Lost)
    words = ["sweep", "positional_attention", "--D", "8", "--C", "2", "--q", "0.1,0.2,0.3"]
    words += ["--time", "5", "--workers", "0", "--out", str(tmp_path / "l.zarr")]
    assert main(words) == 1
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", f"attdyn: {cluster.GONE}\n")
    assert status(tmp_path / "l.zarr")["done"] == 1
