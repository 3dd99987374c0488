"""The generated file of a model's reduced gradient, against mpmath and against the arrays."""

from functools import cache
from pathlib import Path

import mpmath
import numpy as np
import pytest

import dynamics
from dynamics.models.engine import symbolic
from dynamics.models.engine.symbolic import compiled_gradient
from dynamics.validation import InvalidRequest

MODELS = Path(__file__).resolve().parents[2] / "support" / "models"


@cache
def pair(name):
    system = dynamics.load_system(MODELS / f"{name}.py")
    parameters = system.Parameters()
    return (
        system.ReducedPopulation(parameters, backend="arrays"),
        system.ReducedPopulation(parameters, backend="numba"),
    )


def test_the_gradient_against_mpmath():
    """Linear attention: the loss of the six classes, differentiated at 40 digits."""
    _, problem = pair("linear_attention")
    samples = problem.payload[0].samples
    weights = np.asarray(problem.payload[0].weights)

    def risk(u, v):
        total = mpmath.mpf(0)
        for weight, X, y in zip(
            weights, np.asarray(samples["X"]), np.asarray(samples["y"]), strict=True
        ):
            shown = [y[0], y[1], 0]
            score = [sum(X[k] * X[2]) * u for k in range(3)]
            out = v * sum(shown[k] * score[k] for k in range(3)) / 2
            total += mpmath.mpf(float(weight)) * (out - mpmath.mpf(float(y[2]))) ** 2 / 2
        return total

    with mpmath.workdps(40):
        for state in np.random.default_rng(0).standard_normal((5, 2)):
            u, v = (mpmath.mpf(float(x)) for x in state)
            slopes = [mpmath.diff(risk, (u, v), n) for n in ((1, 0), (0, 1))]
            expected = [float(slopes[0] / 3), float(slopes[1])]
            np.testing.assert_allclose(problem.gradient(state), expected, rtol=1e-13)


@pytest.mark.parametrize("name", ["linear_attention", "single_location"])
def test_both_backends_train_alike(name):
    arrays, numba = pair(name)
    assert numba.settings["backend"] == "numba"
    assert "backend" not in arrays.settings
    one = dynamics.descend(arrays, eta=0.02, steps=2000)
    two = dynamics.descend(numba, eta=0.02, steps=2000)
    np.testing.assert_allclose(one.states, two.states, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(one.steps, two.steps)
    # A flow is compiled with the gradient; by arrays LSODA makes it, and the run says so.
    flows = [dynamics.flow(problem, 5.0, record=[5.0]) for problem in (arrays, numba)]
    assert [run.settings["integrator"] for run in flows] == ["LSODA", "collocation"]
    np.testing.assert_allclose(*(run.final_state for run in flows), rtol=1e-6)


def test_where_exponentials_overflow_the_arrays_take_over():
    arrays, numba = pair("single_location")
    state = np.array([900.0, 0.5])
    np.testing.assert_array_equal(numba.gradient(state), arrays.gradient(state))
    one = dynamics.descend(arrays, eta=0.02, steps=50, initial=state)
    two = dynamics.descend(numba, eta=0.02, steps=50, initial=state)
    np.testing.assert_array_equal(one.states, two.states)


def test_long_runs_of_small_models_are_compiled():
    system = dynamics.load_system(MODELS / "single_location.py")
    parameters = system.Parameters()
    chosen = {
        steps: system.problem(parameters, None, {"eta": 0.02, "steps": steps}).settings
        for steps in (3000, symbolic.LONG_RUN)
    }
    assert "backend" not in chosen[3000]
    assert chosen[symbolic.LONG_RUN]["backend"] == "numba"


def test_softplus_does_not_overflow():
    def start():
        return {"w": np.full(1, 0.1)}

    def law():
        yield 0.5, {"x": np.array([1.0]), "y": 1.0}
        yield 0.5, {"x": np.array([-2.0]), "y": -1.0}

    def loss(theta, sample, xp):
        return xp.softplus(-sample["y"] * xp.sum(theta["w"] * sample["x"]))

    system = dynamics.Model(start=start, law=law, loss=loss)
    problem = system.ReducedPopulation(system.Parameters(), backend="numba")
    module, data = compiled_gradient(problem)
    out = np.empty(1)
    for value, expected in ((-2000.0, -1.5), (2000.0, 0.0), (0.0, -0.75)):
        module.gradient(np.array([value]), data, out)
        assert out[0] == pytest.approx(expected, abs=1e-15)


def test_a_long_run_of_what_sympy_cannot_differentiate_is_by_arrays():
    def start():
        return {"w": np.full(1, 0.1)}

    def risk(theta, xp):
        return xp.sum(theta["w"] ** 2 + xp.floor(theta["w"]) + xp.ceil(theta["w"]))

    system = dynamics.Model(start=start, risk=risk)
    system = dynamics.load_system(system)
    problem = system.ReducedPopulation(system.Parameters(), steps=symbolic.LONG_RUN)
    assert "backend" not in problem.settings
    with pytest.raises(InvalidRequest, match="that are not compiled; backend can be arrays"):
        system.ReducedPopulation(system.Parameters(), backend="numba")


def test_what_cannot_be_compiled_is_refused_in_one_line():
    softmax = dynamics.load_system(MODELS / "softmax_icl.py")
    with pytest.raises(InvalidRequest, match="hold whole numbers, which are no symbols"):
        softmax.ReducedPopulation(softmax.Parameters(), backend="numba")
    with pytest.raises(InvalidRequest, match=r"backend='fast' is unknown; .*nearest: auto"):
        softmax.ReducedPopulation(softmax.Parameters(), backend="fast")
    deep = dynamics.load_system(MODELS / "deep_linear.py")
    with pytest.raises(InvalidRequest, match="is of classes"):
        deep.ReducedPopulation(deep.Parameters(), backend="numba")
