"""Programs of models: their size, and their gradients against those that JAX takes."""

from pathlib import Path

import numpy as np
import pytest

import dynamics
from dynamics.models.engine.problem import ModelProblem
from dynamics.models.engine.reduced_risk import ReducedRisk
from theory.program import run_floats
from theory.program.evaluate import gross

TWINS = Path(__file__).parents[2] / "support" / "models"
LIBRARY = {
    # Terms of sums and other operations of the losses: at most 1.3 times these.
    "linear_icl": 8,
    "deep_linear": 17,
    "single_location": 26,
    "markov_attention": 60,
    "softmax_icl": 94,
    "topic_model": 127,
    "induction_head": 579,
    "merged_staircase": 740,
}
PAPERS = {"positional.py": 968, "shallow_vit.py": 371, "masked_image_modeling.py": 4952}
FILES = Path(dynamics.__file__).parent / "models"
SIZES = {
    "shallow_vit.py": {},
    "masked_image_modeling.py": {"areas": "0,0,0,0,1,1,2,2;0,0,1,1,0,2,0,2", "masked": 4},
}
"""Files of the built-in systems, and where they are not taken at their defaults."""
LONG = {"shallow_vit.py", "masked_image_modeling.py"}
ALL = [
    *((name, most) for name, most in LIBRARY.items()),
    *(
        pytest.param(name, most, marks=[pytest.mark.long] if name in LONG else [])
        for name, most in PAPERS.items()
    ),
]


@pytest.fixture(scope="module")
def reduced(request):
    made = {}

    def of(name):
        if name not in made:
            folder = FILES if name in SIZES else TWINS
            system = dynamics.load_system(str(folder / name) if name.endswith(".py") else name)
            made[name] = system.ReducedPopulation(system.Parameters(**SIZES.get(name, {})))
        return made[name]

    return of


def risk_of(problem):
    program = problem.realization.program
    return ReducedRisk(program, problem.payload[0], problem.embedding, problem.scalars)


@pytest.mark.parametrize(("name", "most"), ALL)
def test_program_is_as_short_as_the_losses_are(reduced, name, most):
    risk = risk_of(reduced(name))
    assert risk.program({"losses": risk.losses}).operations <= 1.3 * most


@pytest.mark.parametrize(("name", "most"), ALL)
def test_gradient_of_a_program_is_that_of_jax(reduced, name, most):
    problem = reduced(name)
    risk, data = risk_of(problem), problem.payload[0]
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
def test_records_and_derivatives_are_those_of_jax(reduced, name):
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
