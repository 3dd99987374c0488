"""The sign of a rate that has decayed to rounding is not an event, in descent or in a flow."""

import math

import pytest

import dynamics
from dynamics.training import descent

EVENTS = {"stop": "u stops growing", "low": "d_u <= 0", "go": "w starts growing"}


def model(risk, **start):
    names = {name: name for name in start}
    return dynamics.Model(start=lambda: start, risk=risk, events=EVENTS, names=names)


def rests(theta, xp):
    """Two factors to a product of 1, and one scalar down to 0."""
    return (1 - theta["u"] * theta["v"]) ** 2 / 2 + theta["w"] ** 2 / 2


def turns(theta, xp):
    """From (0, 1), u' = -u + .9 w, w' = .9 u - w gives u = (e^(-.1 t) - e^(-1.9 t)) / 2."""
    return (theta["u"] ** 2 + theta["w"] ** 2) / 2 - 0.9 * theta["u"] * theta["w"]


def halves(theta, xp):
    return (1 - theta["u"]) ** 2 / 2 + theta["w"] ** 2


def runs(problem, *tolerances, time=300.0):
    yield dynamics.descend(problem, eta=0.1, steps=3000)
    for rtol in tolerances:
        yield dynamics.flow(problem, time, rtol=rtol)


@pytest.mark.parametrize(
    ("view", "tolerances", "time"),
    [("ReducedPopulation", (1e-8, 1e-9, 1e-11), 300.0), ("FullPopulation", (1e-8,), 60.0)],
)
def test_what_comes_to_rest_neither_stops_nor_starts(view, tolerances, time):
    system = model(rests, u=0.1, v=0.3, w=0.5)
    for run in runs(getattr(system, view)(system.Parameters()), *tolerances, time=time):
        assert tuple(run.events) == tuple(EVENTS)
        assert not any(run.events.values())
        assert all("comes to rest" in run.reasons[name] for name in EVENTS)


def test_a_turn_is_an_event_although_the_run_comes_to_rest_later():
    system = model(turns, u=0.0, w=1.0)
    top = math.log(19) / 1.8
    descent, *flows = runs(system.ReducedPopulation(system.Parameters()), 1e-8, 1e-11)
    assert descent.events["stop"].time == pytest.approx(top, abs=0.15)
    for flow in flows:
        assert flow.events["stop"].time == pytest.approx(top, rel=1e-6)
        assert flow.events["low"].time == flow.events["stop"].time
        assert not flow.events["go"]


def test_an_exact_zero_after_motion_counts():
    """A hinge that is met: the rate is exactly 0 from then on."""

    def hinge(theta, xp):
        return xp.maximum(0.0, 1.0 - theta["u"]) + theta["w"] ** 2 / 2

    system = model(hinge, u=0.0, w=1.0)
    run = dynamics.descend(system.ReducedPopulation(system.Parameters()), eta=0.1, steps=50)
    assert run.events["stop"].step in (10, 11)


@pytest.mark.parametrize("chunk", [1, 200])
def test_a_rate_that_has_decayed_to_exactly_0_is_no_event(chunk, monkeypatch):
    """Half of the distance to 1 a step: the distance is 2^-k, then exactly 0, on any processor."""
    monkeypatch.setattr(descent, "FIRST_CHUNK", chunk)
    monkeypatch.setattr(descent, "LARGEST_CHUNK", chunk)
    system = model(halves, u=0.0, w=1.0)
    run = dynamics.descend(system.ReducedPopulation(system.Parameters()), eta=0.5, steps=200)
    assert run.final_state[0] == 1.0
    assert not run.events["stop"]
    assert "comes to rest" in run.reasons["stop"]
