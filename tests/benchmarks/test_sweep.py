"""Sweeps: time and errors at the sizes that are asked for, workers against one, a cluster."""

import json
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
REGIME = {
    "D": "64,128,256,512,1024,4096", "C": "2**round(log2(log2(D)))", "m": "4:40:10",
    "q": "m/(D-C)", "nu": "1e-4:1e-2:5:log", "time": 1e6, "expectation": "spectral",
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


def largest_errors(found, exact):
    """Name -> largest relative error, of the values and times that two results have.

    Parameters
    ----------
    found, exact : dict of float array
        The same names; what is not a number is NaN in both.
    """
    assert found.keys() == exact.keys()
    largest = {}
    for name, values in exact.items():
        np.testing.assert_array_equal(np.isnan(found[name]), np.isnan(values), err_msg=name)
        there = ~np.isnan(values)
        # The start is the time 0 of an event, and a value of 0 is exact, in both or in none.
        difference, size = np.abs(found[name] - values)[there], np.abs(values[there])
        assert (difference[size == 0] == 0).all(), name
        largest[name] = (difference[size > 0] / size[size > 0]).max(initial=0.0)
    return largest


def judged(title, found, exact, capsys):
    """Print errors and how many values they are of; demand what is asked, and enough values."""
    largest = largest_errors(found, exact)
    count = {name: int((np.abs(values) > 0).sum()) for name, values in exact.items()}
    with capsys.disabled():
        print(f"\n{title}: largest relative errors, of so many values other than 0")
        for name, error in largest.items():
            print(f"  {name:<24}{error:9.1e}{count[name]:8}")
    points = max(each.size for each in exact.values())
    for name, error in largest.items():
        assert error <= (EVENTS if name.startswith("time_") else VALUES), name
    assert min(count[name] for name in ("alpha", "gamma", "rho", "risk", "Xi")) == points
    assert min(count[f"time_{name}"] for name in ("T0", "T1")) > points / 4


def columns(dataset):
    """Values and times of events of a sweep, as arrays; every point has come to its horizon."""
    kinds = np.array(json.loads(dataset.attrs["kinds"]))[dataset["outcome"].values]
    assert set(kinds.ravel()) <= {"reached horizon", "converged"}
    numbers = {name: each.values for name, each in dataset.data_vars.items()
               if each.dtype.kind == "f"}  # fmt: skip
    return {name: each for name, each in numbers.items() if not name.startswith("uncertainty_")}


def test_values_and_events_of_two_thousand_points(capsys):
    """The default tolerance against one ten thousand times as tight."""
    found, exact = timed(SMALL)[1].dataset, timed(SMALL | {"rtol": TIGHT})[1].dataset
    np.testing.assert_array_equal(found["outcome"], exact["outcome"])
    judged("2052 points against rtol 1e-12", columns(found), columns(exact), capsys)


def test_values_and_events_against_lsoda(capsys):
    """Points drawn from the sweep: attdyn at its default, and LSODA there, against LSODA at 1e-12.

    Before it was compiled, the sweep had LSODA at 1e-8.
    """
    system, runs = dynamics.load_system(SYSTEM), {"attdyn": [], "LSODA": [], "exact": []}
    for law in drawn_laws(SAMPLE):
        problem = system.ReducedPopulation(system.Parameters(**law), "exact")
        runs["attdyn"].append(dynamics.flow(problem, 1e5))
        runs["LSODA"].append(dynamics.flow(problem, 1e5, compiled=False))
        runs["exact"].append(dynamics.flow(problem, 1e5, rtol=TIGHT, compiled=False))

    def arrays(several):
        assert not any(run.outcome.failed for run in several)
        names = (*several[0].layout.names, *several[0].observables)
        values = {name: np.array([run[name][-1] for run in several]) for name in names}
        times = {f"time_{name}": [run.events[name].time for run in several]
                 for name in several[0].events}  # fmt: skip
        return values | {name: np.array(each, dtype=float) for name, each in times.items()}

    exact = arrays(runs["exact"])
    before = largest_errors(arrays(runs["LSODA"]), exact)
    with capsys.disabled():
        print(f"\n{SAMPLE} points by LSODA at its default: largest relative errors")
        for name, error in before.items():
            print(f"  {name:<24}{error:9.1e}")
    judged(f"{SAMPLE} points against LSODA at 1e-12", arrays(runs["attdyn"]), exact, capsys)


def test_the_regime_of_the_paper(capsys):
    seconds, found = timed(REGIME)
    with capsys.disabled():
        size, ends = found.plan.grid.size, found.outcomes
        print(f"\n{size} points, D = 64 to 4096, to time 1e6: {seconds:.0f} s (250 asked), {ends}")
    assert seconds <= 250


def test_two_workers_against_one(capsys):
    """Three sweeps by each, in turn, of which the quickest count; all are printed."""
    runs = np.array([[timed(SMALL, workers=n)[0] for n in (1, 2)] for _ in range(3)])
    one, two = runs.min(axis=0)
    with capsys.disabled():
        print(f"\n2052 points: 1 worker {one:.1f} s, 2 workers {two:.1f} s, {one / two:.2f}x")
        print(f"  all, s: {runs.round(1).tolist()}, {(runs[:, 0] / runs[:, 1]).round(2).tolist()}x")
    assert one / two >= 1.8


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
