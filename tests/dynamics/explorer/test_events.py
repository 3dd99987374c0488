"""Events of a flow in a page: in flows that are known in closed form, and as in Python."""

import math

import pytest
from node import needs_node, run_script

import dynamics
from dynamics.explorer.driver import worker_script
from dynamics.explorer.own_model import page_model

HALF = math.pi / 2
ASK = """
  const replies = [];
  for (const request of given) await answer(request, (reply) => replies.push(reply));
  return replies;
"""
CLOCK = {
    "top": "q stops growing",
    "bottom": "q starts growing after top",
    "top2": "q stops growing after bottom",
    "flat": "(s - 2)**3 >= 0",
    "bump": "-(s - 201)*(s - 202) >= 0",
    "bump2": "-(s - 201)*(s - 202) >= 0 after bump",
}
BLOWUP = {"flat": "(w - 1)**5 >= 0", "late": "d_w >= 100", "far": "w >= 1000000"}


def asked(horizons, **settings):
    """Replies of a page and runs of Python to horizons."""
    system = dynamics.Model(names={name: name for name in settings["start"]()}, **settings)
    problem = system.ReducedPopulation(system.Parameters())
    model = page_model(system, system.Parameters())
    base = {"kind": "flow", "constants": {}, "precise": True, "records": 2, "least_time": 201.5}
    requests = [{"id": k, "horizon": each, **base} for k, each in enumerate(horizons)]
    replies = run_script(worker_script(model.script, model.problem), ASK, requests)
    return replies, [dynamics.flow(problem, each) for each in horizons]


def check(reply, run, exact):
    """Every event is at its time to the stated error, which is small; as in Python."""
    for event in reply["events"]:
        name, time = event["name"], exact.get(event["name"])
        if time is None:
            assert event["time"] is None, name
            continue
        error = abs(event["time"] - time)
        assert error <= event["uncertainty"] <= 1e-6 * time, (event, time)
        margin = event["uncertainty"] + run.events[name].uncertainty
        assert event["time"] == pytest.approx(run.events[name].time, abs=margin)


@needs_node
def test_events_of_a_clock_are_in_order_and_none_passes_within_a_step():
    (short, long), runs = asked(
        [20.0, 2100.0],
        start=lambda: {"s": 0.0},
        risk=lambda theta, xp: -theta["s"],
        observables=lambda theta, xp: {"q": xp.sin(theta["s"])},
        events=CLOCK,
    )
    exact = {"top": HALF, "bottom": 3 * HALF, "top2": 5 * HALF, "flat": 2.0}
    check(short, runs[0], exact)
    found = {event["name"]: event for event in long["events"]}
    assert long["times"][0] == 201.5  # a record at which the bump holds
    assert abs(found["bump"]["time"] - 201) <= found["bump"]["uncertainty"] <= 1e-6
    assert found["bump2"]["time"] == found["bump"]["time"]


@needs_node
def test_events_before_a_blow_up_are_kept_with_the_error_of_the_path():
    """W = 1 / (2 - t)."""
    replies, runs = asked(
        [1.95, 2.05],
        start=lambda: {"w": 0.5},
        risk=lambda theta, xp: -(theta["w"] ** 3) / 3,
        events=BLOWUP,
    )
    exact = {"flat": 1.0, "late": 1.9}
    check(replies[0], runs[0], exact)
    check(replies[1], runs[1], exact | {"far": 2.0 - 1e-6})
    assert replies[1]["outcome"] != "horizon"
