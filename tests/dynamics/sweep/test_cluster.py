"""Many machines, played by processes: the same bytes, also when a worker is killed."""

import os
import signal
import socketserver
import subprocess
import sys
import threading
import time

import pytest

import dynamics
from dynamics.cli import main
from dynamics.sweep import cluster, run, status, worker_pool
from dynamics.sweep.plan import Plan
from dynamics.sweep.store import SweepStore
from dynamics.validation import InvalidRequest

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


@pytest.fixture
def listening():
    """What accepts every connection and answers with some bytes, or nothing."""
    servers = []

    def listen(answer):
        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                self.request.sendall(answer)
                self.request.recv(1)
                over.wait()

        over = threading.Event()
        server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append((server, over))
        return f"tcp://127.0.0.1:{server.server_address[1]}"

    yield listen
    for server, over in servers:
        over.set()
        server.shutdown()
        server.server_close()


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


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-x\r\n"])
def test_what_is_not_dask_is_one_line(listening, answer, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", 0.3)
    assert "does not answer" in refused(listening(answer), tmp_path, capfd)


@pytest.mark.parametrize(
    "address",
    ["", "tcp://127.0.0.1:9", "nonsense", "127.0.0.1", "tcp://no.such.host:1", "xyz://a:1"],
)
def test_wrong_addresses_are_one_line(address, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", 0.3)
    assert f"scheduler={address!r} does not answer" in refused(address, tmp_path, capfd)


def test_a_worker_is_no_scheduler(workers, tmp_path, capfd):
    worker = list(workers.workers.values())[-1]
    assert "is a dask worker" in refused(worker.worker_address, tmp_path, capfd)


def test_without_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InvalidRequest, match=r"pip install -e '\.\[cluster\]'"):
        run.workers_for(SYSTEM, None, "tcp://127.0.0.1:9", 4)


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


SCHEDULER = """
import asyncio, sys
from distributed import Scheduler, Worker
async def main():
    async with Scheduler(port=0, dashboard_address=":0") as scheduler:
        async with Worker(scheduler.address, nthreads=1):
            print(scheduler.address, flush=True)
            await scheduler.finished()
asyncio.run(main())
"""


@pytest.mark.long
def test_a_scheduler_that_is_killed_costs_one_line(tmp_path, capfd, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "PATIENCE", 2.0)
    command = [sys.executable, "-c", SCHEDULER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        address, out = process.stdout.readline().decode().strip(), tmp_path / "k.zarr"
        write = SweepStore.write

        def written(self, number, block):
            write(self, number, block)
            process.kill()

        monkeypatch.setattr(SweepStore, "write", written)
        monkeypatch.setattr(Plan, "order", lambda _, numbers: numbers)  # the short run comes first
        words = ["sweep", "positional_attention", "--D", "8", "--C", "2"]
        words += ["--eta", "1e-9", "--steps", "10,1000000000"]
        assert main([*words, "--scheduler", address, "--out", str(out)]) == 1
    told = capfd.readouterr()
    assert told.out == ""
    assert told.err == f"attdyn: {cluster.GONE}\n"
    assert status(out)["done"] == 1
