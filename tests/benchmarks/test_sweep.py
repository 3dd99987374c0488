"""Sweeps: time at the sizes that are asked for, workers against one."""

import time

import numpy as np
import pytest

import dynamics

pytestmark = pytest.mark.benchmark_run

SYSTEM = "positional_attention"
SMALL = {
    "D": 16, "C": "2,4,8", "p": "3,5", "q": "0.05:0.95:19", "nu": "1e-4:1e-2:18:log", "time": 1e5,
    "expectation": "exact",
}  # fmt: skip
PART = SMALL | {"nu": "1e-4:1e-2:4:log"}
TIMED = 16


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
    """A sweep by one worker against SciPy's LSODA on gradients called from Python."""
    seconds, found = timed(SMALL, workers=1)
    system = dynamics.load_system(SYSTEM)
    draw, problems = np.random.default_rng(19), []
    for _ in range(TIMED):
        law = {"C": int(draw.choice([2, 4, 8])), "p": int(draw.choice([3, 5]))}
        law |= {"q": draw.uniform(0.05, 0.95), "nu": 10 ** draw.uniform(-4, -2)}
        problems.append(system.ReducedPopulation(system.Parameters(D=16, **law), "exact"))
    began = time.perf_counter()
    for problem in problems:
        dynamics.flow(problem, 1e5, compiled=False)
    theirs = (time.perf_counter() - began) / TIMED
    points = found.plan.grid.size
    with capsys.disabled():
        print(f"\n{points} points, exact, to time 1e5, one worker: {seconds:.1f} s")
        print(f"  a point {1e3 * seconds / points:.1f} ms, by LSODA {1e3 * theirs:.1f} ms")
        print(f"  ratio {theirs * points / seconds:.2f}")
    assert theirs * points >= seconds


def test_two_workers_against_one(capsys):
    """Three sweeps by each, in turn, of which the quickest count; all are printed."""
    runs = np.array([[timed(SMALL, workers=n)[0] for n in (1, 2)] for _ in range(3)])
    one, two = runs.min(axis=0)
    with capsys.disabled():
        print(f"\n2052 points: 1 worker {one:.1f} s, 2 workers {two:.1f} s, {one / two:.2f}x")
        print(f"  all, s: {runs.round(1).tolist()}, {(runs[:, 0] / runs[:, 1]).round(2).tolist()}x")
    assert one / two >= 1.8
