"""Reduced equals full, digit by digit, and the measured figures of models that others computed."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import dynamics

MODELS = Path(__file__).resolve().parents[2] / "support" / "models"


@cache
def both(name, **constants):
    system = dynamics.load_system(MODELS / f"{name}.py")
    parameters = system.Parameters(**constants)
    return system.ReducedPopulation(parameters), system.FullPopulation(parameters)


def test_linear_attention_in_context():
    """3000 steps at eta = .02 from .3: the two scalars, and the risk from 1.2543 to 0.7500."""
    reduced, full = both("linear_attention")
    result = dynamics.compare(reduced, full, eta=0.02, steps=200)
    assert max(result.deviation.values()) < 1e-13
    run = dynamics.descend(reduced, eta=0.02, steps=3000)
    moved = run.states[-1] - run.states[0]
    np.testing.assert_allclose(sorted(moved), [0.26545302, 0.58424676], atol=5e-9)
    assert run["risk"][0] == pytest.approx(1.2543, abs=5e-5)
    assert run["risk"][-1] == pytest.approx(0.75, abs=5e-5)


def test_single_location_regression():
    """3000 steps at eta = .1: 3.52326715 and 1.05727298, the risk from .5000 to .0009."""
    reduced, full = both("single_location")
    result = dynamics.compare(reduced, full, eta=0.1, steps=300)
    assert max(result.deviation.values()) < 1e-13
    run = dynamics.descend(reduced, eta=0.1, steps=3000)
    np.testing.assert_allclose(run.final_state, [3.52326715, 1.05727298], atol=5e-9)
    assert run["risk"][0] == pytest.approx(0.5, abs=5e-5)
    assert run["risk"][-1] == pytest.approx(0.0009, abs=5e-5)


def test_softmax_in_context_balanced():
    """Step 10, 100, 1000 of K=3, N=6 at eta = 1, computed by others with independent code."""
    reduced, _ = both("softmax_icl")
    run = dynamics.descend(reduced, eta=1.0, steps=1000, record=[10, 100, 1000])
    at = {step: k for k, step in enumerate(run.steps.tolist())}
    np.testing.assert_allclose(
        run["risk"][[at[10], at[100], at[1000]]],
        [0.2408657114, 0.0791820009, 0.0700993821],
        atol=5e-11,
    )
    np.testing.assert_allclose(run["Q_0_0"][[at[10], at[100]]], [0.575398, 2.051799], atol=5e-7)


def test_softmax_in_context_with_a_dominant_feature():
    reduced, _ = both("softmax_icl", p1=0.8, N=12)
    run = dynamics.descend(reduced, eta=1.0, steps=1000, record=1000)
    assert run["risk"][-1] == pytest.approx(0.0472364944, abs=5e-11)
    matrix = reduced.lift(run.final_state).reshape(3, 3)
    np.testing.assert_allclose(matrix[0], [2.010545, -1.005273, -1.005273], atol=5e-7)
    np.testing.assert_allclose(matrix[1], [-2.402477, 2.910201, -0.507724], atol=5e-7)


def test_two_layers_follow_the_closed_form_of_each_mode():
    """Aligned start: a(t) = s e^(2 s t) / (e^(2 s t) - 1 + s / a0), on the flow to 1e-8."""
    reduced, _ = both("deep_linear")
    times = np.array([0.25, 0.5, 1.0, 2.0])
    run = dynamics.flow(reduced, time=2.0, rtol=1e-12, record=times)
    system = dynamics.load_system(MODELS / "deep_linear.py")
    fixed = system.model.fixed(4, 0)
    U, values, Vt = np.linalg.svd(fixed["T"])
    for time, state in zip(run.time, run.states, strict=True):
        W1, W2 = reduced.lift(state).reshape(2, 4, 4)
        product = U.T @ W2 @ W1 @ Vt.T
        growth = np.exp(2 * values * time)
        expected = values * growth / (growth - 1 + values / 0.01)
        np.testing.assert_allclose(np.diag(product), expected, atol=1e-8)


def test_a_linear_space_runs_as_the_classes_do():
    reduced, full = both("deep_linear")
    assert reduced.coordinates == "linear"
    assert reduced.state_names == ("z_1", "z_2", "z_3")
    result = dynamics.compare(reduced, full, eta=0.02, steps=300)
    assert max(result.deviation.values()) < 1e-12
    assert result.full["outside"].max() < 1e-11
    np.testing.assert_allclose(
        reduced.lift(result.reduced.final_state), result.full.final_state, atol=1e-11
    )


def test_the_reduced_gradient_is_the_class_mean_of_the_full_one():
    for name in ("positional", "linear_attention", "softmax_icl", "single_location"):
        reduced, full = both(name)
        scalars = np.random.default_rng(0).standard_normal(reduced.layout.size)
        slope = full.gradient(reduced.lift(scalars))
        expected = reduced.closure.classes.project(slope)
        np.testing.assert_allclose(reduced.gradient(scalars), expected, rtol=1e-12, atol=1e-14)
        assert full.risk(reduced.lift(scalars)) == pytest.approx(reduced.risk(scalars), rel=1e-13)


def test_the_jacobian_is_the_derivative_of_the_gradient():
    reduced, full = both("single_location")
    state = np.array([0.4, -0.3])
    width = 1e-6
    columns = [
        (reduced.gradient(state + width * row) - reduced.gradient(state - width * row))
        / (2 * width)
        for row in np.eye(2)
    ]
    np.testing.assert_allclose(reduced.jacobian(state), np.array(columns).T, atol=1e-8)
    whole, direction = reduced.lift(state), np.arange(8.0)
    np.testing.assert_allclose(
        full.hessian_product(whole, direction), full.jacobian(whole) @ direction, atol=1e-13
    )


@pytest.mark.parametrize("record", [None, 1, 7, [0, 3, 2999]])
def test_records_do_not_change_a_run(record):
    reduced, _ = both("single_location")
    whole = dynamics.descend(reduced, eta=0.1, steps=3000, record=record)
    plain = dynamics.descend(reduced, eta=0.1, steps=3000, record=3000)
    np.testing.assert_array_equal(whole.final_state, plain.final_state)
    by_hand = reduced.initial_state
    for _ in range(3):
        by_hand = by_hand - 0.1 * reduced.gradient(by_hand)
    again = dynamics.descend(reduced, eta=0.1, steps=3)
    np.testing.assert_allclose(again.final_state, by_hand, rtol=1e-14)


def test_a_run_that_diverges_ends_at_its_last_finite_state():
    reduced, full = both("deep_linear")
    for problem in (reduced, full):
        run = dynamics.descend(problem, eta=5.0, steps=60)
        assert run.outcome.kind == "diverged"
        assert np.isfinite(run.final_state).all()
        after = run.final_state - 5.0 * problem.gradient(run.final_state)
        assert not np.isfinite(after).all()
        assert "try eta=" in run.outcome.remedy
