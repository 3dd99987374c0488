"""Many machines, played by processes: the same bytes, also when a worker is killed."""

import os
import signal
import sys
import threading
import time

import pytest

import dynamics
from dynamics.sweep import worker_pool
from dynamics.validation import InvalidRequest

SYSTEM = dynamics.load_system("positional_attention")
GIVEN = {"D": 8, "C": "2,3,4", "q": "0.1:0.9:9", "nu": "1e-3,1e-2", "time": 50}

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
    slower = GIVEN | {"time": 2000}

    def kill():
        while not list(out.glob("done/c/*")):
            time.sleep(0.02)
        os.kill(next(iter(workers.workers.values())).pid, signal.SIGKILL)

    hunter = threading.Thread(target=kill)
    hunter.start()
    dynamics.sweep(SYSTEM, slower, out, scheduler=workers.scheduler_address)
    hunter.join()
    dynamics.sweep(SYSTEM, slower, tmp_path / "here.zarr", workers=0)
    assert files(out) == files(tmp_path / "here.zarr")


def test_the_scheduler_of_the_environment(monkeypatch):
    addresses = []
    monkeypatch.setattr(worker_pool, "Cluster", addresses.append)
    monkeypatch.setenv(worker_pool.ADDRESS, "tcp://10.0.0.1:8786")
    worker_pool.workers_for(SYSTEM, None, None, 4)
    worker_pool.workers_for(SYSTEM, None, "tcp://other:1", 4)
    worker_pool.workers_for(SYSTEM, 0, None, 4)
    assert addresses == ["tcp://10.0.0.1:8786", "tcp://other:1"]


def test_nobody_there(monkeypatch):
    monkeypatch.setattr(worker_pool, "PATIENCE", "300ms")
    with pytest.raises(InvalidRequest, match="does not answer") as caught:
        worker_pool.workers_for(SYSTEM, None, "tcp://127.0.0.1:9", 4)
    assert "\n" not in str(caught.value)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InvalidRequest, match=r"pip install -e '\.\[cluster\]'"):
        worker_pool.workers_for(SYSTEM, None, "tcp://127.0.0.1:9", 4)
