"""Events of flows that are known in closed form, by both integrators, and of runs that rest."""

import math

import numpy as np
import pytest
from known_flows import BLOWUP, BLOWUP_TIMES, CLOCK, HALF, TIMES, blowup, clock

import dynamics
from dynamics.training import descent


def flow(model, texts, time, **settings):
    system = dynamics.load_system(model(**texts))
    return dynamics.flow(system.ReducedPopulation(system.Parameters()), time, **settings)


def check(run, times):
    """Every event at its time, to the stated error, which is small."""
    most = 1e-8 if run.settings["integrator"] == "collocation" else 1e-6
    for name, event in run.events.items():
        assert abs(event.time - times[name]) <= event.uncertainty <= most * times[name], name


CASES = [
    (clock, "top bottom top2", 20.0, None), (clock, "flat", 5.0, None),
    (clock, "bump bump2", 640.0, [201.5, 640.0]),  # within a step
    (blowup, "flat", 1.5, None), (blowup, "flat late", 1.95, None),
    (blowup, "flat late", 2.05, None), (blowup, "far", 2.05, None),
]  # fmt: skip


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("model", "names", "time", "record"), CASES)
def test_events_are_at_their_times_to_the_stated_error(model, names, time, record, compiled):
    texts, times = (CLOCK, TIMES) if model is clock else (BLOWUP, BLOWUP_TIMES)
    some = {name: texts[name] for name in names.split()}
    run = flow(model, some, time, compiled=compiled, record=record)
    assert (run.outcome.kind == "diverged") is (time > 2 and model is blowup)
    check(run, times)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("width", [0.3, 3e-5])
def test_no_verdict_contradicts_a_record(width, compiled):
    """A rule that holds shortly, however shortly, is not a rule that is not reached."""
    texts = {"short": f"{width} - abs(s - 123.4) >= 0", "wave": f"q >= {1 - width**2}"}
    records = np.array([123.4, 161 * HALF])
    run = flow(clock, texts, 640.0, record=records, compiled=compiled)
    assert run.events["short"].time == pytest.approx(123.4 - width, rel=1e-6)
    wave = run.events["wave"]
    assert wave.reached or "not decidable" in wave.reason


def test_the_stated_error_falls_with_the_tolerance():
    texts = {name: BLOWUP[name] for name in ("flat", "late")}
    runs = [flow(blowup, texts, 1.95, rtol=rtol) for rtol in (1e-8, 1e-10, 1e-11, 1e-12)]
    for name in texts:
        errors = [run.events[name].uncertainty for run in runs]
        assert errors == sorted(errors, reverse=True)
        assert errors[2] < 0.2 * errors[0]
    check(runs[-1], BLOWUP_TIMES)


# The sign of a rate that has decayed to rounding is not an event, in descent or in a flow.
EVENTS = {"stop": "u stops growing", "low": "d_u <= 0", "go": "w starts growing"}


def resting(risk, view="ReducedPopulation", **start):
    names = {name: name for name in start}
    model = dynamics.Model(start=lambda: start, risk=risk, events=EVENTS, names=names)
    return getattr(model, view)(model.Parameters())


def rests(theta, xp):
    """Two factors to a product of 1, and one scalar down to 0."""
    return (1 - theta["u"] * theta["v"]) ** 2 / 2 + theta["w"] ** 2 / 2


def turns(theta, xp):
    """From (0, 1), u' = -u + .9 w, w' = .9 u - w gives u = (e^(-.1 t) - e^(-1.9 t)) / 2."""
    return (theta["u"] ** 2 + theta["w"] ** 2) / 2 - 0.9 * theta["u"] * theta["w"]


def runs(problem, *tolerances, time=300.0):
    yield dynamics.descend(problem, eta=0.1, steps=3000)
    for rtol in tolerances:
        yield dynamics.flow(problem, time, rtol=rtol)


@pytest.mark.parametrize(
    ("view", "tolerances", "time"),
    [("ReducedPopulation", (1e-8, 1e-11), 300.0), ("FullPopulation", (1e-8,), 60.0)],
)
def test_what_comes_to_rest_neither_stops_nor_starts(view, tolerances, time):
    for run in runs(resting(rests, view, u=0.1, v=0.3, w=0.5), *tolerances, time=time):
        assert tuple(run.events) == tuple(EVENTS)
        assert not any(run.events.values())
        assert all("comes to rest" in run.reasons[name] for name in EVENTS)


def test_a_turn_is_an_event_although_the_run_comes_to_rest_later():
    top = math.log(19) / 1.8
    descent, *flows = runs(resting(turns, u=0.0, w=1.0), 1e-8, 1e-11)
    assert descent.events["stop"].time == pytest.approx(top, abs=0.15)
    for flow in flows:
        assert flow.events["stop"].time == pytest.approx(top, rel=1e-6)
        assert flow.events["low"].time == flow.events["stop"].time
        assert not flow.events["go"]


def test_an_exact_zero_after_motion_counts():
    hinge = lambda theta, xp: xp.maximum(0.0, 1.0 - theta["u"]) + theta["w"] ** 2 / 2  # noqa: E731
    run = dynamics.descend(resting(hinge, u=0.0, w=1.0), eta=0.1, steps=50)
    assert run.events["stop"].step in (10, 11)


@pytest.mark.parametrize("chunk", [1, 200])
def test_a_rate_that_has_decayed_to_exactly_0_is_no_event(chunk, monkeypatch):
    """Half of the distance to 1 a step: the distance is 2^-k, then exactly 0, on any processor."""
    monkeypatch.setattr(descent, "FIRST_CHUNK", chunk)
    monkeypatch.setattr(descent, "LARGEST_CHUNK", chunk)
    halves = lambda theta, xp: (1 - theta["u"]) ** 2 / 2 + theta["w"] ** 2  # noqa: E731
    run = dynamics.descend(resting(halves, u=0.0, w=1.0), eta=0.5, steps=200)
    assert run.final_state[0] == 1.0
    assert not run.events["stop"]
    assert "comes to rest" in run.reasons["stop"]
