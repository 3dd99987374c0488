"""The integrator of flows: order, exactness, stiffness, dense output; on plain Python functions."""

import importlib.util

import numpy as np
import pytest
from scipy.linalg import expm

from dynamics.codegen.kernels import extrapolation, path_values


@pytest.fixture
def kernel(monkeypatch):
    """A copy of the module as ordinary Python, whose gradient is set by the test."""
    spec = importlib.util.spec_from_file_location("slow_extrapolation", extrapolation.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def solve(kernel, gradient, start, horizon, relative=1e-8, hessian=None, most=3000):
    """Nodes, coefficients, final state, calls of the gradient, and how it ended."""
    calls, state = [], np.array(start, dtype=float)

    def counted(state, _, out):
        calls.append(1)
        out[:] = gradient(state)

    kernel.gradient = counted
    kernel.has_hessian = lambda _: hessian is not None
    if hessian is not None:
        kernel.hessian = lambda state, _, out: np.copyto(out, hessian(state))
    floor = 1e-3 * relative * np.maximum(np.abs(state), 1e-2)
    now = np.array([0.0, horizon, 0.0, 4.0])
    control = kernel.Control(now, relative, floor, np.full(state.size, np.nan))
    path = kernel.Path(np.empty(most + 1), np.empty((most, kernel.ROWS + 2, state.size)))
    steps, end = kernel.integrate(state, None, control, path)
    return path.nodes[: steps + 1], path.coefficients[:steps], state, len(calls), (end, control)


def between(nodes, coefficients, times):
    states, rates = np.empty((2, len(times), coefficients.shape[2]))
    path_values.along(times, nodes, coefficients, states, rates)
    return states, rates


def test_a_linear_flow_is_the_matrix_exponential(kernel):
    """Rates 1 and 1e5, not diagonal: states, rates and what lies between are right to the error."""
    turn = np.array([[0.8, -0.6], [0.6, 0.8]])
    matrix = turn @ np.diag([1.0, 1e5]) @ turn.T
    start = np.array([1.0, 2.0])
    errors = []
    for relative in (1e-6, 1e-8, 1e-10):
        nodes, coefficients, state, _, (end, _) = solve(
            kernel, lambda y: matrix @ y, start, 3.0, relative, hessian=lambda y: matrix
        )
        assert end == extrapolation.DONE
        times = np.geomspace(1e-7, 3.0, 60)
        exact = np.array([expm(-matrix * t) @ start for t in times])
        states, rates = between(nodes, coefficients, times)
        errors.append(np.abs(states - exact).max())
        assert errors[-1] < 100 * relative
        np.testing.assert_allclose(state, expm(-matrix * 3.0) @ start, rtol=100 * relative)
        late = times > 1e-2
        np.testing.assert_allclose(rates[late], -exact[late] @ matrix.T, rtol=1e4 * relative)
    assert errors[0] > 10 * errors[1] > 100 * errors[2]


def test_a_smaller_tolerance_costs_few_gradients(kernel):
    """Of high order: a thousandth of the error for less than three times the gradients."""
    gradient = lambda y: np.array([y[0] ** 3 - np.sin(y[1]), y[1] * (1 + y[0] ** 2)])  # noqa: E731
    jacobian = lambda y: np.array(  # noqa: E731
        [[3 * y[0] ** 2, -np.cos(y[1])], [2 * y[0] * y[1], 1 + y[0] ** 2]]
    )
    start = [1.0, 2.0]
    exact = solve(kernel, gradient, start, 50.0, 1e-13, jacobian)[2]
    results = {
        relative: solve(kernel, gradient, start, 50.0, relative, jacobian)
        for relative in (1e-6, 1e-9)
    }
    for relative, (_, _, state, _, _) in results.items():
        np.testing.assert_allclose(state, exact, rtol=30 * relative, atol=relative)
    assert results[1e-9][3] < 3 * results[1e-6][3]


def test_differences_stand_in_for_the_hessian(kernel):
    gradient = lambda y: np.array([100.0 * (y[0] - np.cos(y[1])), y[1] ** 3])  # noqa: E731
    jacobian = lambda y: np.array(  # noqa: E731
        [[100.0, 100.0 * np.sin(y[1])], [0.0, 3 * y[1] ** 2]]
    )
    start = [0.0, 1.0]
    one = solve(kernel, gradient, start, 1e3, hessian=jacobian)
    two = solve(kernel, gradient, start, 1e3)
    assert one[2][1] == pytest.approx((1 + 2e3) ** -0.5, rel=1e-7)
    np.testing.assert_allclose(two[2], one[2], rtol=1e-7)
    assert two[0].size == pytest.approx(one[0].size, abs=2)


def test_steps_meet_at_their_ends(kernel):
    gradient = lambda y: np.array([y[0] - y[1] ** 2, 0.1 * y[1]])  # noqa: E731
    nodes, coefficients, state, _, _ = solve(kernel, gradient, [3.0, 1.0], 30.0)
    for k in range(1, len(coefficients)):
        powers = (-1.0) ** np.arange(coefficients.shape[1])
        np.testing.assert_allclose(powers @ coefficients[k], coefficients[k - 1][0], atol=1e-13)
    np.testing.assert_array_equal(coefficients[-1][0], state)
    assert nodes[-1] == 30.0


def test_a_full_path_goes_on_where_it_stopped(kernel):
    """Cut after any number of steps: bitwise the same path."""
    gradient = lambda y: np.array([y[0] ** 3 - y[1], 20 * y[1]])  # noqa: E731
    whole = solve(kernel, gradient, [1.0, 1.0], 100.0)
    state = np.array([1.0, 1.0])
    floor, now = 1e-11 * np.ones(2), np.array([0.0, 100.0, 0.0, 4.0])
    control = kernel.Control(now, 1e-8, floor, np.full(2, np.nan))
    nodes, end = [0.0], extrapolation.FULL
    while end == extrapolation.FULL:
        path = kernel.Path(np.empty(4), np.empty((3, kernel.ROWS + 2, 2)))
        steps, end = kernel.integrate(state, None, control, path)
        nodes += list(path.nodes[1 : steps + 1])
    np.testing.assert_array_equal(nodes, whole[0])
    np.testing.assert_array_equal(state, whole[2])


@pytest.mark.parametrize("wall", [np.nan, np.inf])
def test_where_there_is_no_gradient_it_stops_and_says_where(kernel, wall):
    """A state falls to 1, below which there is none."""
    gradient = lambda y: np.where(y < 1.0, wall, 1.0 + 0.0 * y)  # noqa: E731
    nodes, _, state, _, (end, control) = solve(
        kernel, gradient, [2.0], 5.0, hessian=lambda y: np.zeros((1, 1))
    )
    assert end == extrapolation.STUCK
    assert state[0] == pytest.approx(1.0, abs=1e-9)
    assert nodes[-1] == pytest.approx(1.0, abs=1e-9)
    assert control.refused[0] < 1.0


def test_what_explodes_stops(kernel):
    nodes, _, state, _, (end, _) = solve(kernel, lambda y: -(y**3), [1.0], 1.0)
    assert end == extrapolation.STUCK
    assert nodes[-1] == pytest.approx(0.5, rel=1e-6)
    assert state[0] > 1e5


def test_nothing_moves_where_the_gradient_is_zero(kernel):
    nodes, _, state, calls, (end, _) = solve(kernel, lambda y: 0.0 * y, [2.0, 0.0], 1e6)
    assert (end, nodes.size, calls < 30) == (extrapolation.DONE, 2, True)
    np.testing.assert_array_equal(state, [2.0, 0.0])


@pytest.mark.parametrize("size", [1, 2, 5, 9])
def test_linear_systems_are_solved(kernel, size):
    random = np.random.default_rng(size)
    matrix, values = random.standard_normal((size, size)), random.standard_normal(size)
    matrix[0, 0] = 0.0 if size > 1 else 2.0
    expected = np.linalg.solve(matrix, values)
    pivots = np.empty(size, dtype=np.int64)
    assert kernel.factorize(matrix, pivots)
    kernel.solve(matrix, pivots, values)
    np.testing.assert_allclose(values, expected, rtol=1e-10)
    assert not kernel.factorize(np.ones((2, 2)), np.empty(2, dtype=np.int64))
