"""Sweeps: time for the sizes that are asked for, workers against one, a cluster against none."""

import time

import pytest

import dynamics

pytestmark = pytest.mark.benchmark_run

SYSTEM = "positional_attention"
SMALL = {
    "D": 16, "C": "2,4,8", "p": "3,5", "q": "0.05:0.95:19", "nu": "1e-4:1e-2:18:log", "time": 1e5,
    "expectation": "exact",
}  # fmt: skip
REGIME = {
    "D": "64,128,256,512,1024,4096", "C": "2**round(log2(log2(D)))", "m": "4:40:10",
    "q": "m/(D-C)", "nu": "1e-4:1e-2:5:log", "time": 1e6, "expectation": "spectral",
}  # fmt: skip
PART = SMALL | {"nu": "1e-4:1e-2:4:log"}


def timed(given, out=None, **how):
    began = time.perf_counter()
    found = dynamics.sweep(SYSTEM, given, out, **how)
    seconds = time.perf_counter() - began
    assert found.complete
    return seconds, found


@pytest.fixture(autouse=True)
def warm():
    """Compiled before anything is timed."""
    dynamics.sweep(SYSTEM, PART | {"q": 0.3, "nu": 1e-3, "time": 10.0}, workers=1)


def test_two_thousand_points(capsys):
    seconds, found = timed(SMALL)
    with capsys.disabled():
        print(f"\n{found.plan.grid.size} points, exact, to time 1e5: {seconds:.0f} s (240 asked)")
    assert seconds < 240


def test_the_regime_of_the_paper(capsys):
    seconds, found = timed(REGIME)
    with capsys.disabled():
        size, ends = found.plan.grid.size, found.outcomes
        print(f"\n{size} points, D = 64 to 4096, to time 1e6: {seconds:.0f} s (900 asked), {ends}")
    assert seconds < 900


def test_two_workers_against_one(capsys):
    one, two = timed(SMALL, workers=1)[0], timed(SMALL, workers=2)[0]
    with capsys.disabled():
        print(f"\n2052 points: 1 worker {one:.1f} s, 2 workers {two:.1f} s, {one / two:.2f}x")
    assert one / two >= 1.7


def test_a_cluster_against_none(capsys):
    distributed = pytest.importorskip("distributed")
    direct = timed(PART, workers=2)[0]
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        through = timed(PART, scheduler=cluster.scheduler_address)[0]
    with capsys.disabled():
        print(f"\n456 points: direct {direct:.1f} s, dask {through:.1f} s, {through / direct:.2f}x")
    assert through / direct <= 1.3
