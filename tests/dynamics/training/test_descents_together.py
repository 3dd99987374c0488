"""Descents side by side: each is to the last bit what it is alone, whatever is beside it."""

import json

import numpy as np
import pytest

import dynamics
from dynamics.sweep.point_runner import PointRunner
from dynamics.training import descents_together
from dynamics.training.descents_together import advance_together
from dynamics.training.gradient_descent import begun, finished

STEPS = 10_000
TEXT = """
groups = {"u": "first", "v": "second"}
events = {
    "half": "product >= 0.5 * a", "never": "product >= 100",
    "quick": "d_u >= 0.3", "slow": "d_v <= 0.05",
}


def start(scale=0.5, seed=0):
    return {"u": scale, "v": (2 + 0.1 * seed) * scale}


def risk(theta, xp, a=1.0, b=0.1):
    return (theta["u"] * theta["v"] - a) ** 2 / 2 + b * xp.log(1 + xp.exp(theta["u"] ** 2))


def observables(theta, xp):
    return {"product": theta["u"] * theta["v"]}
"""
POINTS = {
    "a": [0.6, 0.8, 30.0, 1.5, 2.0, 1.0, 1.2, 0.9, 1.1, 1.3, 1.0],
    "b": [0.0, 0.2, 0.0, 0.01, 0.1, 0.1, 0.3, -0.5, 0.15, 0.1, 0.05],
    "scale": [0.5, 0.3, 1.5, 1e-3, 0.2, 0.0, 0.4, 0.5, 0.2, 0.1, 0.1],
    "eta": [0.1, 0.02, 0.2, 0.01, 1e-4, 0.1, 0.3, 2e-3, 1e-5, 2e-3, 1e-3],
}
"""The third diverges at once, the eighth in the middle; the sixth has nothing that moves; some come
to rest, and some do not."""


@pytest.fixture(scope="module")
def system(tmp_path_factory):
    file = tmp_path_factory.mktemp("together") / "mine.py"
    file.write_text(TEXT, encoding="utf-8")
    return dynamics.load_system(str(file))


@pytest.fixture
def chunks(monkeypatch):
    """How many runs were side by side in each chunk."""
    counted, chunk = [], descents_together._chunk
    monkeypatch.setattr(
        descents_together,
        "_chunk",
        lambda runs, steps: counted.append(len(runs)) or chunk(runs, steps),
    )
    return counted


def assert_equal_runs(one, other):
    np.testing.assert_array_equal(one.steps, other.steps)
    np.testing.assert_array_equal(one.states.view(np.int64), other.states.view(np.int64))
    for name, values in one.observables.items():
        np.testing.assert_array_equal(values, other.observables[name], name)
    for name, event in one.events.items():
        assert event.step == other.events[name].step, name
        np.testing.assert_array_equal(event.state, other.events[name].state, name)
    assert one.outcome == other.outcome
    assert one.reasons == other.reasons
    assert one.remarks == other.remarks


def test_each_of_several_is_the_run_that_is_made_alone(system, chunks):
    """Other starts, constants, and learning rates of two groups; one diverges, some rest.

    A whole number is traced anew, to the same program.
    """
    problems = [
        system.ReducedPopulation(system.Parameters(a=a, b=b, scale=scale, seed=int(a == 0.6)))
        for a, b, scale, _ in zip(*POINTS.values(), strict=True)
        if scale
    ]
    requests = [
        (problem, (eta, 0.3 * eta), STEPS, 1000)
        for problem, eta in zip(problems, np.delete(POINTS["eta"], 5), strict=True)
    ]
    requests[1] = (*requests[1][:3], 700)  # another schedule: with none of the others
    runs = [begun(*request) for request in requests]
    advance_together(runs, lambda: True)
    assert {7, 8} <= set(chunks)
    assert [k for k, run in enumerate(runs) if not run.step] == [1, 9]
    outcomes = set()
    for run, request in zip(runs, requests, strict=True):
        found, alone = finished(run), dynamics.descend(*request)
        assert_equal_runs(found, alone)
        outcomes.add(found.outcome.kind)
    assert outcomes == {"reached horizon", "converged", "diverged"}


def test_runs_that_are_interrupted_go_on_alone_to_the_same_end(system):
    """Between two chunks, as at a signal; then runs that are begun elsewhere have nothing to do."""
    problem = system.ReducedPopulation(system.Parameters())
    requests = [(problem, eta, STEPS, 500) for eta in (0.01, 0.02, 0.03, 0.04, 0.05)]
    runs = [begun(*request) for request in requests]
    more = iter([True, True, False])
    advance_together(runs, lambda: next(more))
    assert {0 < run.step < STEPS for run in runs} == {True}
    for run, request in zip(runs, requests, strict=True):
        assert_equal_runs(finished(run), dynamics.descend(*request))


def points():
    each = [dict(zip(POINTS, values, strict=True)) for values in zip(*POINTS.values(), strict=True)]
    return [{**point, "steps": STEPS} for point in each]


def test_points_of_a_sweep_do_not_depend_on_how_they_are_grouped(system, chunks):
    """All at once, and some of them one by one: rows, paths and reasons; one has none."""
    runner = PointRunner(system.reference, {}, 5, dict(system.digests), system)
    at_once, single = runner.measure(points()), (0, 2, 5, 7)
    assert {7, 8} <= set(chunks)
    together = len(chunks)
    alone = [runner.measure([points()[k]])[0] for k in single]
    assert len(chunks) == together
    assert repr([at_once[k] for k in single]) == repr(alone)
    assert "nothing moves" in at_once[5][2]
    assert [reason for _, _, reason in at_once].count("") == 10


def test_a_sweep_has_the_values_and_events_of_single_runs(system, chunks):
    """A point without a problem is left out, one that diverges ends where it does alone."""
    found = dynamics.sweep(system, {**POINTS, "steps": STEPS}, paired=True, workers=0)
    assert found.outcomes["diverged"] == 2
    assert found.outcomes["invalid"] == 1
    assert found.plan.block == (8,)
    assert max(chunks) == 7
    kinds = json.loads(found.dataset.attrs["kinds"])
    columns = {name: each.values for name, each in found.dataset.items() if each.size == 11}
    for k, point in enumerate(points()):
        row = {name: values[k] for name, values in columns.items()}
        if not point["scale"]:
            assert np.isnan(row["risk"])
            continue
        parameters = system.Parameters(a=point["a"], b=point["b"], scale=point["scale"])
        run = dynamics.descend(
            system.ReducedPopulation(parameters), point["eta"], STEPS, record=[STEPS]
        )
        assert kinds[int(row["outcome"])] == run.outcome.kind
        for name, series in run.scalars.items():
            np.testing.assert_array_equal(row[name], series[-1], name)
        for name, event in run.events.items():
            time = event.time if event else np.nan
            np.testing.assert_array_equal(row.get(f"time_{name}", np.nan), time, name)


@pytest.mark.long
def test_the_number_of_workers_changes_no_byte(system):
    request = {**POINTS, "steps": STEPS}
    one, *others = (
        dynamics.sweep(system, request, paired=True, workers=n, trajectory=4).dataset
        for n in (0, 1, 2)
    )
    for other in others:
        assert one.identical(other)
