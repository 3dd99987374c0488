"""Gradients carried along a path: the exponential, the order of the step, and relative errors."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import dynamics
from dynamics.codegen import loops
from dynamics.codegen.kernels import carried_gradient
from dynamics.training.integration import integrate_flow


@pytest.mark.parametrize("size", [1e-3, 1.0, 30.0])
def test_the_series_in_parts_is_the_exponential(size):
    rng = np.random.default_rng(0)
    matrix, vector = size * rng.standard_normal((4, 4)), rng.standard_normal(4)
    matrix -= size * 3 * np.eye(4)
    expected = expm(matrix) @ vector
    carried_gradient.exponentiate(matrix, vector)
    np.testing.assert_allclose(vector, expected, rtol=1e-10, atol=1e-13 * np.abs(expected).max())


def turning(time):
    """A Jacobian that commutes with none of its other values."""
    return np.array([[3.0 + np.sin(time), time**2], [np.cos(2 * time), 0.5 + time]])


def test_the_error_of_a_width_has_order_seven():
    """So halving it divides the error by 128; without the commutators of (2) by 8."""
    third, errors = np.sqrt(15) / 10, []
    for width in (0.4, 0.2, 0.1):
        jacobians = np.array([turning(width * (0.5 + k * third)) for k in (-1, 0, 1)])
        exponent = np.empty((2, 2))
        carried_gradient.magnus(width, jacobians, exponent)
        exact = solve_ivp(
            lambda t, y: -turning(t) @ y, (0, width), [1.0, -0.5], rtol=1e-13, atol=1e-15
        )
        errors.append(np.abs(expm(exponent) @ [1.0, -0.5] - exact.y[:, -1]).max())
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (slopes > 6.3).all(), slopes


def test_a_gradient_that_has_decayed_keeps_its_relative_error(system):
    """The rate of alpha falls by 7 decades until it is read; at a state of the path it is noise."""
    problem = system.ReducedPopulation(system.Parameters(D=16, C=4, nu=1e-6), "exact")
    path = integrate_flow(problem, problem.initial_state, 2.0, 1e-8).path
    tighter = integrate_flow(problem, problem.initial_state, 2.0, 1e-12).path
    runs = []
    for each in (path, tighter):
        nodes = np.append(each.nodes[each.nodes < 0.8], 0.8)
        times = np.interp(np.arange(4 * nodes.size - 3) / 4, np.arange(nodes.size), nodes)
        slope = problem.gradient(problem.initial_state)
        runs.append(loops.carry_gradient(problem.addressed, each.at.path, times, slope)[-1])
    at_states = [problem.gradient(each.at(0.8)) for each in (path, tighter)]
    carried = np.abs(runs[0] / runs[1] - 1).max()
    read = np.abs(at_states[0] / runs[1] - 1).max()
    print(f"slope {runs[1]}, carried {carried:.1e}, read at the state {read:.1e}")
    assert carried < 1e-6
    assert read > 10 * carried
    run = dynamics.flow(problem, 2.0)
    assert run.settings["integrator"] == "collocation"
