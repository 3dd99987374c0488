"""Masked image modelling in a page: the kernels on the data that the page holds."""

import numpy as np
import pytest
from node import needs_node, run_script

import dynamics
from dynamics.explorer.driver import worker_script
from dynamics.explorer.masked_image_modeling import page_model
from dynamics.validation import InvalidRequest

SYSTEM = dynamics.load_system("masked_image_modeling")
PARAMETERS = SYSTEM.Parameters(P=12, C_global=8, C_local=2, masked=3)
CHANGES = [
    {},
    {"C_global": 4, "masked": 9},
    {"z": (1.0, 2.0), "odds": (0.5, 0.5)},
    {"family": "two_cluster_grid", "P": None, "C_global": None, "b11": 3, "b10": 2, "T": 1},
]


def parameters_at(changes):
    usual = {"P": 12, "C_global": 8, "C_local": 2, "masked": 3}
    given = {name: value for name, value in (usual | changes).items() if value is not None}
    return SYSTEM.Parameters(**given)


def constants(parameters, model):
    return {slider.name: getattr(parameters, slider.name) for slider in model.sliders}


@needs_node
@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_kernels_agree_with_the_compiled_ones_at_random_states(changes):
    parameters = parameters_at(changes)
    model = page_model(SYSTEM, parameters)
    problem = SYSTEM.ReducedPopulation(parameters)
    states = np.random.default_rng(1).normal(size=(50, problem.layout.size))
    body = """
      const problem = MODEL.make(given.constants), n = problem.size;
      return given.states.map((each) => {
        const state = Float64Array.from(each), slope = new Float64Array(n);
        const observed = new Float64Array(problem.observable_names.length);
        problem.gradient(state, slope);
        problem.observables(state, observed);
        return [slope, observed];
      });
    """
    given = {"constants": constants(parameters, model), "states": states.tolist()}
    script = worker_script(model.script, model.problem)
    for state, (slope, observed) in zip(states, run_script(script, body, given), strict=True):
        own = problem.gradient(state)
        assert slope == pytest.approx(own, rel=1e-11, abs=1e-12 * np.abs(own).max())
        order = problem.order_parameters(state, own)
        expected = np.append(order, problem.risk(state))
        known = np.isfinite(expected)
        assert np.array(observed)[known] == pytest.approx(expected[known], rel=1e-11, abs=1e-13)


@needs_node
def test_events_use_the_constants_of_the_rules():
    model = page_model(SYSTEM, PARAMETERS)
    request = {
        "id": 1, "kind": "flow", "constants": constants(PARAMETERS, model), "horizon": 3000.0,
        "records": 20, "least_time": 0.1, "precise": True,
    }  # fmt: skip
    body = """
      let reply;
      await answer(given, (each) => (reply = each));
      return reply;
    """
    script = worker_script(model.script, model.problem)
    reply = run_script(script, body, request)
    run = dynamics.flow(SYSTEM.ReducedPopulation(PARAMETERS), time=3000.0)
    shown = {event["name"]: event["time"] for event in reply["events"]}
    assert {name for name, time in shown.items() if time is None} == set(run.reasons)
    assert len(run.reasons) < len(shown)
    for name, event in run.events.items():
        if name not in run.reasons:
            assert shown[name] == pytest.approx(event.time, rel=1e-6, abs=2 * event.uncertainty)


@needs_node
def test_a_point_that_the_page_has_not_is_refused_with_the_nearest():
    model = page_model(SYSTEM, PARAMETERS)
    printed = run_script(
        worker_script(model.script, model.problem),
        "return given.map(MODEL.check);",
        [{"C_global": 8, "masked": 3}, {"C_global": 7, "masked": 3}],
    )
    assert printed[0]["ok"]
    assert printed[1]["nearest"] in ({"C_global": 8, "masked": 3}, {"C_global": 6, "masked": 3})
    assert "this page has no data for C_global=7 masked=3; attdyn explore" in printed[1]["message"]


def test_counts_that_are_not_listed_have_no_page():
    contour = SYSTEM.Parameters(P=256, z=(1.0, 2.0), odds=(0.5, 0.5))
    assert SYSTEM.ReducedPopulation(contour).settings["expectation"] != "counts"
    with pytest.raises(InvalidRequest, match="no contour integrals"):
        page_model(SYSTEM, contour)
