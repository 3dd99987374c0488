"""Events of a flow in a page, in flows that are known in closed form."""

import pytest
from known_flows import BLOWUP_TIMES, TIMES, blowup, clock
from node import needs_node, run_script

import dynamics
from dynamics.explorer.driver import worker_script
from dynamics.explorer.own_model import page_model

ASK = """
  const replies = [];
  for (const request of given) await answer(request, (reply) => replies.push(reply));
  return replies;
"""
CASES = [
    (clock, 20.0, {name: TIMES[name] for name in ("top", "bottom", "top2", "flat")}),
    (clock, 2100.0, {"bump": TIMES["bump"], "bump2": TIMES["bump2"]}),  # at the first record
    (blowup, 1.95, {name: BLOWUP_TIMES[name] for name in ("flat", "late")}),
    (blowup, 2.05, BLOWUP_TIMES),
]


@needs_node
@pytest.mark.parametrize(("model", "horizon", "times"), CASES)
def test_events_are_at_their_times_to_the_stated_error(model, horizon, times):
    system = dynamics.load_system(model())
    made = page_model(system, system.Parameters())
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
