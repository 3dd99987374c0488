"""A sweep by an update rule: its words, axes over its constants, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

import dynamics
from dynamics.validation import InvalidRequest
from theory.update_rules import RULES

SYSTEM = dynamics.load_system("linear_icl")
BY_ADAM = {"rule": "adam", "eta": 0.01, "steps": 50}


def start(b1=0.4):
    return {"s": b1, "t": b1}


def risk(theta, xp):
    return (theta["s"] - 1.0) ** 4 + (theta["t"] + 1.0) ** 2


def step(gradient, memory, entry, step, eta, xp):
    return -eta * gradient / (1 + abs(gradient)), memory


@pytest.fixture(scope="module")
def named():
    """A model with a constant that has the name of one of Adam's, and a rule of its own."""
    model = dynamics.Model(start=start, risk=risk, step=step, eta=0.1, steps=40)
    return dynamics.load_system(model)


def test_a_point_is_the_run_of_its_rule_and_a_store_knows_it(tmp_path):
    grid = BY_ADAM | {"b1": "0.5,0.9", "schedule": "cosine", "weight_decay": 0.01}
    found = dynamics.sweep(SYSTEM, grid, tmp_path / "s.zarr", workers=0)
    problem = SYSTEM.ReducedPopulation(SYSTEM.Parameters())
    for k, b1 in enumerate((0.5, 0.9)):
        rule = dynamics.rule("adam", b1=b1, weight_decay=0.01)
        run = dynamics.descend(problem, 0.01, 50, rule, schedule="cosine")
        for name in problem.state_names:
            assert found.dataset[name].values[k] == run[name][-1]
    again = dynamics.load(tmp_path / "s.zarr")
    assert again.plan.runner.words == {"rule": "adam", "schedule": "cosine"}
    with pytest.raises(InvalidRequest, match="rule: stored adam, requested adamw"):
        dynamics.sweep(SYSTEM, grid | {"rule": "adamw"}, tmp_path / "s.zarr")


def test_a_constant_of_the_model_keeps_its_name(named):
    grid = {"b1": "0.2,0.4", "rule.b1": "0.5,0.9,0.95", "rule": "adam", "eta": 0.1, "steps": 10}
    found = dynamics.sweep(named, grid, workers=0).dataset["s"]
    assert dict(found.sizes) == {"b1": 2, "rule.b1": 3}
    problem = named.ReducedPopulation(named.Parameters(b1=0.4))
    run = dynamics.descend(problem, 0.1, 10, dynamics.rule("adam", b1=0.95))
    assert found.values[1, 2] == run["s"][-1]


def test_the_rule_of_a_model_is_that_of_its_sweep(named):
    found = dynamics.sweep(named, {"b1": 0.4}, workers=0)
    assert found.plan.runner.words == {"rule": "step"}
    run = dynamics.descend(named.ReducedPopulation(named.Parameters()), 0.1, 40, "step")
    assert float(found.dataset["t"]) == run["t"][-1]
    assert np.isfinite(float(dynamics.sweep(named, {"time": 1.0}, workers=0).dataset["t"]))


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        ({"rule": "adamm", "eta": 0.1}, "nearest: adam"),
        ({"rule": "adam"}, "rule='adam' needs an eta"),
        ({"rule": "adam", "time": 1.0}, "give rule "),
        ({"b1": 0.5, "time": 1.0}, "give b1 "),
        ({"b1": 0.5, "eta": 0.1}, "b1=0.5 is not a constant of the rule gd"),
        (BY_ADAM | {"b1": "0.5,1"}, None),
        (BY_ADAM | {"b1": 1}, "b1=1 is too large"),
        (BY_ADAM | {"schedule": "cosin"}, "schedule='cosin'"),
        (BY_ADAM | {"stages": "u:20,s:20"}, "stages=40 is the sum"),
        (BY_ADAM | {"stages": "q:50"}, "stages='q'"),
        (BY_ADAM | {"rule": step}, "has no name"),
        (BY_ADAM | {"rule": replace(RULES["adam"], function=step)}, "has no name"),
        ({"rule": "step", "eta": 0.1, "steps": 5}, "not a function of the model"),
    ],
)
def test_what_cannot_be_is_refused_before_it_is_run(grid, words):
    if words is None:
        assert dynamics.sweep(SYSTEM, grid, workers=0).outcomes["invalid"] == 1
        return
    with pytest.raises(InvalidRequest, match=words) as error:
        dynamics.sweep(SYSTEM, grid, workers=0)
    assert "\n" not in str(error.value)
