"""The driver of a page: flow, descent and events are those of Python, and of closed forms."""

import re
from unittest import mock

import numpy as np
import pytest
from known_flows import BLOWUP_TIMES, TIMES, blowup, clock
from node import needs_node, run_script

import dynamics
from dynamics.explorer import own_model, own_points
from dynamics.explorer.driver import rules, worker_script
from dynamics.explorer.papers import page_model
from dynamics.explorer.printing import asset
from dynamics.loops.kernels import collocation, collocation_equations
from dynamics.training.events import Detector
from theory.events import event_rules

SYSTEM = dynamics.load_system("positional_attention")
NAMES = ("alpha", "gamma", "rho")
CONSTANTS = {"D": 9, "C": 3, "q": 0.5, "p": 3, "nu": 1e-3, "beta": 1.0, "scale": 1.0}
ASK = """
  const replies = [];
  for (const request of given) await answer(request, (reply) => replies.push(reply));
  return replies.filter((reply) => reply.kind !== "progress");
"""


@pytest.fixture(scope="module")
def script():
    with mock.patch.object(own_points, "MOST_TRIED", 1):  # both laws
        model = page_model(SYSTEM, SYSTEM.Parameters(**CONSTANTS))
    return worker_script(model.script, model.problem)


def problem_at(**changes):
    return SYSTEM.ReducedPopulation(SYSTEM.Parameters(**CONSTANTS | changes), expectation="exact")


def times(reply, key="time"):
    return {event["name"]: event[key] for event in reply["events"]}


def test_numbers_of_the_loops_are_those_of_python():
    numbers = re.findall(r"^const ([A-Z_]+) = ([\d.e-]+);$", asset("loops.js"), re.MULTILINE)
    assert len(numbers) > 15
    for name, number in numbers:
        python = getattr(collocation, name, None) or getattr(collocation_equations, name)
        assert float(number) == python, name


@needs_node
@pytest.mark.parametrize("q", [0.3, 0.5])
def test_events_of_the_flow_are_those_of_python(script, q):
    changes = {"random_sets": "mixed", "q": q}
    request = {
        "id": 1, "kind": "flow", "constants": CONSTANTS | changes, "horizon": 1e4,
        "records": 40, "least_time": 0.01, "precise": True,
    }  # fmt: skip
    (reply,) = run_script(script, ASK, [request])
    run = dynamics.flow(problem_at(**changes), time=1e4, record=np.array(reply["times"]))
    assert reply["outcome"] == "horizon"
    for name in ("T0", "T1", "T1_paper", "event_III"):
        event, shown = run.events[name], next(e for e in reply["events"] if e["name"] == name)
        margin = 1e-6 * event.time + event.uncertainty + shown["uncertainty"]
        assert shown["time"] == pytest.approx(event.time, abs=margin), name
        assert shown["uncertainty"] <= 1e-5 * event.time, name
    assert times(reply)["patch_association"] == run.events["patch_association"].time == 0.0
    for k, name in enumerate(NAMES):
        assert reply["states"][name] == pytest.approx(run.states[:, k], rel=1e-6, abs=1e-9)
    assert reply["observables"]["risk"] == pytest.approx(run.observables["risk"], rel=1e-6)


@needs_node
@pytest.mark.parametrize("start", [None, {"alpha": 0.3, "gamma": -0.5, "rho": 0.2}])
def test_descent_takes_the_steps_of_python(script, start):
    changes = {"random_sets": "mixed"}
    request = {
        "id": 2, "kind": "descent", "constants": CONSTANTS | changes, "eta": 0.03,
        "steps": 25000, "records": 30, "start": start,
    }  # fmt: skip
    (reply,) = run_script(script, ASK, [request])
    steps = [int(step) for step in reply["steps"]]
    initial = start and list(start.values())
    run = dynamics.descend(problem_at(**changes), 0.03, 25000, initial=initial, record=steps)
    assert {name: event.step for name, event in run.events.items()} == times(reply, "step")
    states = np.transpose([reply["states"][name] for name in NAMES])
    recorded = np.isin(run.steps, steps)
    assert states == pytest.approx(run.states[recorded], rel=1e-9, abs=1e-12)


@needs_node
def test_a_step_that_is_too_large_is_said(script):
    request = {"kind": "descent", "constants": CONSTANTS | {"random_sets": "any"}, "records": 10}
    requests = [
        {"id": 1, **request, "eta": 30.0, "steps": 3000},
        {"id": 2, **request, "eta": -1.0, "steps": 10},
        {"id": 3, **request, "eta": 0.1, "steps": 10**8},
        {"id": 4, "kind": "check", "constants": CONSTANTS | {"random_sets": "any", "C": 4}},
        {"id": 5, "kind": "flow", "constants": CONSTANTS | {"random_sets": "any", "C": 4}},
    ]
    wild, negative, long, check, refused = run_script(script, ASK, requests)
    own = dynamics.descend(problem_at(random_sets="any"), eta=30.0, steps=3000)
    assert wild["outcome"] == own.outcome.kind
    assert "try a smaller eta" in wild["message"]
    assert negative["error"].startswith("eta=-1 is not positive")
    assert long["error"].startswith("steps=100000000 is too long for a page")
    assert not check["ok"]
    assert check["nearest"]["C"] == 3
    limit = "outside the limits of positional_attention: D % C <= 0"
    assert check["message"] == f"D=9 C=4 is {limit}"
    assert refused["error"] == check["message"]


@needs_node
def test_rates_on_a_plane_are_those_of_the_gradient(script):
    state = {"alpha": 0.2, "gamma": 0.0, "rho": 0.0}
    request = {
        "id": 1, "kind": "plane", "constants": CONSTANTS | {"random_sets": "any"}, "state": state,
        "x": {"name": "gamma", "from": -1, "to": 2, "count": 3},
        "y": {"name": "rho", "from": -2, "to": 0, "count": 2},
    }  # fmt: skip
    (reply,) = run_script(script, ASK, [request])
    problem = problem_at(random_sets="any")
    grid = [(gamma, rho) for rho in (-2.0, 0.0) for gamma in (-1.0, 0.5, 2.0)]
    slopes = np.array([-problem.gradient(np.array([0.2, *at])) for at in grid])
    assert reply["dx"] == pytest.approx(slopes[:, 1], rel=1e-12)
    assert reply["dy"] == pytest.approx(slopes[:, 2], rel=1e-12)


def bumpy(seed, count=400):
    """Order parameters u, v and the rate of u of a run with turns, rests and zeros."""
    generator = np.random.default_rng(seed)
    u = np.cumsum(generator.normal(size=count)) + 0.02 * seed * np.arange(count)
    v = np.cumsum(generator.normal(size=count))
    rate = np.gradient(u) * np.exp(-np.arange(count) / (5 + 3 * seed))
    rate[generator.integers(0, count, 3)] = 0.0
    return np.stack([u, v, rate], axis=1)


@needs_node
def test_rules_find_the_steps_of_the_detector():
    texts = {
        "high": "u >= 2",
        "low": "v < -1 while u > 0",
        "stops": "u stops growing",
        "starts": "u starts growing after stops",
        "above": "u exceeds the maximum of v",
        "again": "u rises again after high",
        "linear": "3*u - abs(v) > c after low",
    }
    names = ("u", "v", "d_u")
    found = event_rules(texts, [*names, "c"])
    script = asset("events.js") + rules(found, names, ("d_u",))
    runs = [bumpy(seed) for seed in range(60)]
    body = """
      return given.map((rows) =>
        eventsOfDescent(Float64Array.from(rows.flat()), 3, rows.length, { c: 1 }, 1, ""));
    """
    printed = run_script(script, body, [rows.tolist() for rows in runs])
    reached = 0
    for rows, steps in zip(runs, printed, strict=True):
        detector = Detector(found, names, type("Parameters", (), {"c": 1}), 1.0)
        detector.feed(0, rows, np.zeros(1))
        detector.finish(len(rows) - 1, "", lambda rows=rows: [(0, rows, np.zeros(1))])
        own = {name: detection.step for name, detection in detector.detections.items()}
        assert own == {name: each["step"] for name, each in steps.items()}
        reached += sum(step is not None for step in own.values())
    assert reached > 180  # most are found


KNOWN = [
    (clock, 20.0, {name: TIMES[name] for name in ("top", "bottom", "top2", "flat")}),
    (clock, 2100.0, {"bump": TIMES["bump"], "bump2": TIMES["bump2"]}),  # at the first record
    (blowup, 1.95, {name: BLOWUP_TIMES[name] for name in ("flat", "late")}),
    (blowup, 2.05, BLOWUP_TIMES),
]


@needs_node
@pytest.mark.parametrize(("model", "horizon", "times"), KNOWN)
def test_events_are_at_their_times_to_the_stated_error(model, horizon, times):
    system = dynamics.load_system(model())
    made = own_model.page_model(system, system.Parameters())
    request = {"id": 1, "kind": "flow", "constants": {}, "horizon": horizon, "precise": True,
               "records": 2, "least_time": 201.5}  # fmt: skip
    (reply,) = run_script(worker_script(made.script, made.problem), ASK, [request])
    assert (reply["outcome"] == "horizon") is (horizon != 2.05)
    for event in reply["events"]:
        name = event["name"]
        if name in times:
            error = abs(event["time"] - times[name])
            assert error <= event["uncertainty"] <= 1e-6 * times[name], name
        elif horizon < 2100:
            assert event["time"] is None, name
