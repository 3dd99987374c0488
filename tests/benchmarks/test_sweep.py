"""Sweeps: time and errors at the sizes that are asked for, workers against one, a cluster."""

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
VALUES, EVENTS = 1e-7, 1e-6
"""Relative errors that values of the last state and times of events may have."""
TIGHT = 1e-12
SAMPLE, TIMED = 64, 16
"""Points that LSODA integrates too, and those for the time that it takes."""


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


def drawn_laws(count):
    """Parameters of points drawn from `SMALL`, each with fields of ``Parameters``."""
    draw = np.random.default_rng(19)
    for _ in range(count):
        law = {"D": 16, "C": int(draw.choice([2, 4, 8])), "p": int(draw.choice([3, 5]))}
        yield law | {"q": draw.choice(np.linspace(0.05, 0.95, 19)),
                     "nu": draw.choice(np.geomspace(1e-4, 1e-2, 18))}  # fmt: skip


def test_two_thousand_points(capsys):
    """A sweep by one worker against SciPy's LSODA on gradients called from Python."""
    seconds, found = timed(SMALL, workers=1)
    system = dynamics.load_system(SYSTEM)
    laws = list(drawn_laws(TIMED))
    problems = [system.ReducedPopulation(system.Parameters(**law), "exact") for law in laws]
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


def test_values_and_events_against_lsoda(capsys):
    """Points drawn from the sweep at the default tolerance, against LSODA at 1e-12."""
    system, largest = dynamics.load_system(SYSTEM), {}
    for law in drawn_laws(SAMPLE):
        problem = system.ReducedPopulation(system.Parameters(**law), "exact")
        runs = dynamics.flow(problem, 1e5), dynamics.flow(problem, 1e5, TIGHT, compiled=False)
        names = *runs[0].layout.names, *runs[0].observables
        for name in names:
            found, exact = (run[name][-1] for run in runs)
            assert np.isnan(found) == np.isnan(exact), name
            error = abs(found - exact) / abs(exact) if found != exact else 0.0
            largest[name] = np.fmax(largest.get(name, 0.0), error)
        for name in runs[0].events:
            found, exact = (run.events[name].time for run in runs)
            assert (found is None) == (exact is None), name
            error = abs(found - exact) / exact if found != exact else 0.0
            largest[f"time_{name}"] = max(largest.get(f"time_{name}", 0.0), error)
    with capsys.disabled():
        print(f"\n{SAMPLE} points: largest relative errors", *largest.items(), sep="\n  ")
    for name, error in largest.items():
        assert error <= (EVENTS if name.startswith("time_") else VALUES), name


def test_two_workers_against_one(capsys):
    """Three sweeps by each, in turn, of which the quickest count; all are printed."""
    runs = np.array([[timed(SMALL, workers=n)[0] for n in (1, 2)] for _ in range(3)])
    one, two = runs.min(axis=0)
    with capsys.disabled():
        print(f"\n2052 points: 1 worker {one:.1f} s, 2 workers {two:.1f} s, {one / two:.2f}x")
        print(f"  all, s: {runs.round(1).tolist()}, {(runs[:, 0] / runs[:, 1]).round(2).tolist()}x")
    assert one / two >= 1.8
