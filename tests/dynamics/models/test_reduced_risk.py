"""Programs of models: their gradients against those that JAX takes."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import dynamics
from dynamics.models.engine.problem import ModelProblem
from dynamics.models.engine.reduced_risk import ReducedRisk
from theory.program import run_floats
from theory.program.evaluate import gross

TWINS = Path(__file__).parents[2] / "support" / "models"
LIBRARY = (
    "linear_icl", "deep_linear", "single_location", "markov_attention", "softmax_icl",
    "topic_model", "induction_head", "merged_staircase",
)  # fmt: skip
PAPERS = ("positional.py", "shallow_vit.py", "masked_image_modeling.py")
FILES = Path(dynamics.__file__).parent / "models"
SIZES = {
    "shallow_vit.py": {},
    "masked_image_modeling.py": {"areas": "0,0,0,0,1,1,2,2;0,0,1,1,0,2,0,2", "masked": 4},
}
"""Files of the built-in systems, and where they are not taken at their defaults."""
LONG = {"shallow_vit.py", "masked_image_modeling.py"}
ALL = [*LIBRARY, *(pytest.param(n, marks=[pytest.mark.long] * (n in LONG)) for n in PAPERS)]


@cache
def reduced(name):
    folder = FILES if name in SIZES else TWINS
    system = dynamics.load_system(str(folder / name) if name.endswith(".py") else name)
    return system.ReducedPopulation(system.Parameters(**SIZES.get(name, {})))


@pytest.mark.parametrize("name", ALL)
def test_gradient_of_a_program_is_that_of_jax(name):
    problem = reduced(name)
    data = problem.payload[0]
    risk = ReducedRisk(problem.realization.program, data, problem.embedding, problem.scalars)
    program = risk.program({"risk": [risk.risk], "gradient": risk.gradient})
    numbers, generator = risk.numbers(data), np.random.default_rng(2)
    start = problem.initial_state
    scales = generator.choice([0.01, 0.1, 0.5, 1.0], (200, 1))
    states = start + scales * generator.standard_normal((200, start.size))
    for state in states:
        found = run_floats(program, np.concatenate([state, numbers]))
        allowed = 1e-12 * gross(program, found)
        expected = ModelProblem.gradient(problem, state)
        places = program.outputs["gradient"]
        assert (np.abs(found[places] - expected) <= allowed[places]).all()
        np.testing.assert_allclose(problem.gradient(state), found[places], rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("name", ["induction_head", "positional.py"])
def test_records_and_derivatives_are_those_of_jax(name):
    problem = reduced(name)
    generator = np.random.default_rng(3)
    states = problem.initial_state + 0.3 * generator.standard_normal((5, problem.layout.size))
    expected = ModelProblem.observables_along(problem, states)
    for quantity, values in problem.observables_along(states).items():
        np.testing.assert_allclose(values, expected[quantity], rtol=1e-11, atol=1e-13)
    slopes = [problem.order_parameters(state) for state in states]
    wanted = [ModelProblem.order_parameters(problem, state) for state in states]
    np.testing.assert_allclose(slopes, wanted, rtol=1e-11, atol=1e-13)
    for state in states[:2]:
        matrix = ModelProblem.jacobian(problem, state)
        allowed = 1e-12 * np.abs(matrix).max()
        np.testing.assert_allclose(problem.jacobian(state), matrix, rtol=1e-10, atol=allowed)
