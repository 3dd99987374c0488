"""Positional attention in a page: kernels, configurations and refusals are those of Python."""

import numpy as np
import pytest
from node import needs_node, run_script

import dynamics
from dynamics.explorer.positional_attention import DEGREES, model_script
from dynamics.explorer.printing import asset
from dynamics.systems.positional_attention.reduced import configurations
from dynamics.validation import InvalidRequest

SYSTEM = dynamics.load_system("positional_attention")
POINTS = [
    {"D": 9, "C": 3, "q": 0.5, "p": 3, "random_sets": "mixed"},
    {"D": 12, "C": 4, "q": 0.3, "p": 3, "random_sets": "any", "nu": 0.02, "beta": 0.4},
    {"D": 8, "C": 4, "q": 1.0, "p": 5, "random_sets": "mixed", "scale": 1.7},
    {"D": 12, "C": 2, "q": 0.8, "p": 9, "random_sets": "any"},
]
STATES = 50


@pytest.fixture(scope="module")
def script():
    return asset("arrays.js") + model_script()


def constants(point):
    parameters = SYSTEM.Parameters(**point)
    names = ("D", "C", "q", "p", "nu", "beta", "scale", "random_sets")
    return {name: getattr(parameters, name) for name in names}


def problem_at(point):
    return SYSTEM.ReducedPopulation(SYSTEM.Parameters(**point), expectation="exact")


@needs_node
@pytest.mark.parametrize("point", POINTS, ids=str)
def test_kernels_agree_with_the_compiled_ones_at_random_states(script, point):
    problem, generator = problem_at(point), np.random.default_rng(3)
    states = generator.normal(size=(STATES, 3)) * [0.2, 1.0, 1.0]
    body = """
      const problem = MODEL.make(given.constants);
      return given.states.map((each) => {
        const state = Float64Array.from(each), slope = new Float64Array(3);
        const jacobian = new Float64Array(9);
        const row = new Float64Array(problem.order_names.length);
        const observed = new Float64Array(problem.observable_names.length);
        problem.gradient(state, slope);
        problem.jacobian(state, jacobian);
        problem.order_parameters(state, slope, row);
        problem.observables(state, observed);
        return [slope, jacobian, row, observed, problem.observable_names];
      });
    """
    given = {"constants": constants(point), "states": states.tolist()}
    for state, printed in zip(states, run_script(script, body, given), strict=True):
        slope, jacobian, row, observed, names = printed
        # The net gradient may be far below what it is the sum of.
        gross = problem.error_bound(state)["gross"]
        own = problem.gradient(state)
        assert np.abs(slope - own) == pytest.approx(np.zeros(3), abs=1e-12 * gross[:3].max())
        matrix = problem.jacobian(state)
        assert jacobian == pytest.approx(matrix.ravel(), abs=1e-11 * np.abs(matrix).max())
        expected = problem.order_parameters(state, np.array(slope))
        assert row == pytest.approx(expected, rel=1e-12, abs=1e-12 * np.abs(expected).max())
        values = problem.observables(state)
        for name, value in zip(names, observed, strict=True):
            if not name.startswith("polylog"):  # quotients of the net gradient
                assert value == pytest.approx(values[name], rel=1e-11, abs=1e-15), name


@needs_node
@pytest.mark.parametrize("point", POINTS, ids=str)
def test_configurations_are_laid_out_as_in_python(script, point):
    parameters = SYSTEM.Parameters(**point)
    rows = configurations.enumeration(parameters.D, parameters.set_law)
    body = "return configurations(given);"
    printed = run_script(script, body, constants(point))
    for name in ("index", "composition", "multiples"):
        assert printed[name]["data"] == getattr(rows, name).ravel().tolist(), name
    for name in ("sum_index", "entries", "starts"):
        assert printed[name] == getattr(rows, name).tolist(), name
    # Within an entry the order of its configurations is free.
    for first, last in zip(rows.starts, rows.starts[1:], strict=False):
        assert sorted(printed["members"][first:last]) == sorted(rows.members[first:last].tolist())
    assert printed["probability"] == pytest.approx(rows.probability, rel=1e-14)
    assert [*map(list, printed["latents"])] == [latent.tolist() for latent in rows.latents]


@needs_node
@pytest.mark.parametrize("sizes", [(16, 5), (13, 3), (9, 9), (12, 7)])
def test_refusals_are_those_of_python(script, sizes):
    point = {**constants(POINTS[0]), "D": sizes[0], "C": sizes[1]}
    printed = run_script(script, "return MODEL.check(given);", point)
    with pytest.raises(InvalidRequest) as refusal:
        SYSTEM.Parameters(D=sizes[0], C=sizes[1])
    assert printed["message"] == str(refusal.value)
    if "C" in printed["nearest"]:
        assert run_script(script, "return MODEL.check(given);", point | printed["nearest"])["ok"]


@needs_node
def test_sizes_end_where_a_browser_would_wait(script):
    point = {**constants(POINTS[0]), "D": 64, "C": 8}
    printed = run_script(script, "return MODEL.check(given);", point)
    assert not printed["ok"]
    assert "configurations in a browser; nearest: " in printed["message"]
    nearest = run_script(script, "return MODEL.check(given);", point | printed["nearest"])
    assert nearest["ok"]


@needs_node
def test_the_attention_matrix_is_that_of_the_three_classes(script):
    body = """
      const problem = MODEL.make(given.constants);
      return problem.matrix("S", Float64Array.from(given.state));
    """
    state = np.array([0.1, 0.7, -0.4])
    printed = run_script(script, body, {"constants": constants(POINTS[0]), "state": state.tolist()})
    A = np.full((9, 9), -0.4)
    for i in range(9):
        A[i, i // 3 * 3 : i // 3 * 3 + 3] = 0.7
    np.fill_diagonal(A, 1.0)
    attention = np.exp(A) / np.exp(A).sum(axis=1, keepdims=True)
    shown = np.array(printed["values"])[np.array(printed["labels"]).reshape(9, 9)]
    assert shown == pytest.approx(attention, rel=1e-14)


def test_every_degree_has_kernels(script):
    for degree in DEGREES:
        assert f"  {degree}: (() =>" in script
