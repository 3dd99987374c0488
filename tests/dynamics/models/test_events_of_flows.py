"""Times of events in flows that are known in closed form, by both integrators."""

import math

import numpy as np
import pytest

import dynamics
from theory.events import event_rules

HALF = math.pi / 2
CLOCK = {
    "top": "q stops growing",
    "bottom": "q starts growing after top",
    "top2": "q stops growing after bottom",
    "flat": "(s - 2)**3 >= 0",
    "wave": "q >= 2",
    "bump": "-(s - 201)*(s - 202) >= 0",
    "bump2": "-(s - 201)*(s - 202) >= 0 after bump",
}
BLOWUP = {"flat": "(w - 1)**5 >= 0", "late": "d_w >= 100", "far": "w >= 1000000"}


def problem_of(**settings):
    system = dynamics.Model(names={name: name for name in settings["start"]()}, **settings)
    return system.ReducedPopulation(system.Parameters())


@pytest.fixture(scope="module")
def known():
    """A clock: S is the time, and q its sine; a blow-up, W = 1 / (2 - t)."""
    clock = problem_of(
        start=lambda: {"s": 0.0}, risk=lambda theta, xp: -theta["s"],
        observables=lambda theta, xp: {"q": xp.sin(theta["s"])}, events=CLOCK,
    )  # fmt: skip
    blowup = problem_of(
        start=lambda: {"w": 0.5}, risk=lambda theta, xp: -(theta["w"] ** 3) / 3, events=BLOWUP
    )
    return {"clock": (clock, CLOCK), "blow-up": (blowup, BLOWUP)}


def flow(problem, time, texts, **settings):
    """A flow with those events only."""
    problem.events = event_rules(texts, problem.order_names)
    return dynamics.flow(problem, time, **settings)


def some(texts, *names):
    return {name: texts[name] for name in names}


def check(run, exact):
    """Every event at its time, to the stated error, which is small."""
    most = 1e-8 if run.settings["integrator"] == "collocation" else 1e-6
    assert list(run.events) == list(exact)
    for name, time in exact.items():
        event = run.events[name]
        assert abs(event.time - time) <= event.uncertainty <= most * time, (name, event)


CASES = [
    ("clock", 20.0, None, {"top": HALF, "bottom": 3 * HALF, "top2": 5 * HALF}),
    ("clock", 5.0, None, {"flat": 2.0}),
    ("blow-up", 1.5, None, {"flat": 1.0}),
    # Within a step.
    ("clock", 640.0, [201.5, 640.0], {"bump": 201.0, "bump2": 201.0}),
    # Before and after the blow-up.
    ("blow-up", 1.95, None, {"flat": 1.0, "late": 1.9}),
    ("blow-up", 2.05, None, {"flat": 1.0, "late": 1.9}),
    ("blow-up", 2.05, None, {"far": 2.0 - 1e-6}),
]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("name", "time", "record", "exact"), CASES)
def test_events_are_at_their_times_to_the_stated_error(known, name, time, record, exact, compiled):
    problem, texts = known[name]
    run = flow(problem, time, some(texts, *exact), compiled=compiled, record=record)
    assert (run.outcome.kind == "diverged") is (time > 2 and name == "blow-up")
    check(run, exact)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("width", [0.3, 3e-3, 3e-5])
def test_no_verdict_contradicts_a_record(known, width, compiled):
    texts = {"short": f"{width} - abs(s - 123.4) >= 0", "wave": f"q >= {1 - width**2}"}
    records = np.array([123.4, 161 * HALF])
    run = flow(known["clock"][0], 640.0, texts, record=records, compiled=compiled)
    assert run.events["short"].time == pytest.approx(123.4 - width, rel=1e-6)
    wave = run.events["wave"]
    assert wave.reached or "not decidable" in wave.reason


def test_the_stated_error_falls_with_the_tolerance(known):
    texts = some(BLOWUP, "flat", "late")
    problem, tolerances = known["blow-up"][0], (1e-8, 1e-10, 1e-11, 1e-12)
    runs = [flow(problem, 1.95, texts, rtol=rtol) for rtol in tolerances]
    for name in texts:
        errors = [run.events[name].uncertainty for run in runs]
        assert errors == sorted(errors, reverse=True)
        assert errors[2] < 0.2 * errors[0]
    check(runs[-1], {"flat": 1.0, "late": 1.9})
