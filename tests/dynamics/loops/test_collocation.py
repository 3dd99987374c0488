"""The integrator of flows: order, exactness, stiffness, dense output; on plain Python functions."""

import numpy as np
import pytest
from scipy.linalg import expm

from dynamics.loops.kernels import collocation, linear_algebra, path_values
from dynamics.loops.kernels import collocation_equations as equations
from dynamics.loops.kernels.collocation_table import STAGES, table


@pytest.fixture(autouse=True)
def restored(monkeypatch):
    """Kernels run as ordinary Python on functions that a test supplies; none are left behind."""
    monkeypatch.setattr(collocation, "gradient", None)
    for name in ("gradient", "hessian", "has_hessian"):
        monkeypatch.setattr(equations, name, None)


def supply(gradient, hessian=None):
    """Functions of a state, with which the kernels run; differences stand in for no Hessian."""

    def slope(state, _, out):
        out[:] = gradient(state)

    collocation.gradient = equations.gradient = slope
    equations.has_hessian = lambda _: hessian is not None
    equations.hessian = lambda state, _, out: np.copyto(out, hessian(state))


def solve(gradient, start, horizon, relative=1e-8, hessian=None, most=3000):
    """The path, final state, calls of the gradient, and how it ended."""
    calls, state = [], np.array(start, dtype=float)

    def counted(state):
        calls.append(1)
        return gradient(state)

    supply(counted, hessian)
    floor = 1e-3 * relative * np.maximum(np.abs(state), 1e-2)
    control, path = beginning((0.0, horizon), relative, floor, most)
    room = equations.new_room(state.size)
    steps, end = collocation.integrate(state, None, table(), control, path, room)
    return cut(path, steps), state, len(calls), (end, control)


def beginning(span, relative, floor, most):
    """Where an integration begins, and the memory of so many steps."""
    now = np.array([*span, 0.0, 0.0, 0.0, 0.0, 0.0])
    control = equations.Control(now, relative, floor, np.full(floor.size, np.nan))
    sizes = (most + 1,), (most,), (most, STAGES + 1, floor.size)
    return control, collocation.Path(*map(np.empty, sizes))


def cut(path, steps):
    return type(path)(path.nodes[: steps + 1], path.scales[:steps], path.coefficients[:steps])


def test_a_linear_flow_is_the_matrix_exponential():
    """Rates 1 and 1e5, not diagonal: states, rates and what lies between are right to the error."""
    turn = np.array([[0.8, -0.6], [0.6, 0.8]])
    matrix = turn @ np.diag([1.0, 1e5]) @ turn.T
    start = np.array([1.0, 2.0])
    errors = []
    for relative in (1e-6, 1e-8, 1e-10):
        path, state, _, (end, _) = solve(
            lambda y: matrix @ y, start, 3.0, relative, hessian=lambda y: matrix
        )
        assert end == collocation.DONE
        times = np.geomspace(1e-7, 3.0, 60)
        exact = np.array([expm(-matrix * t) @ start for t in times])
        states, rates = np.empty((2, *exact.shape))
        path_values.along(times, *path, states, rates)
        errors.append(np.abs(states - exact).max())
        assert errors[-1] < 100 * relative
        np.testing.assert_allclose(state, expm(-matrix * 3.0) @ start, rtol=100 * relative)
        late = times > 1e-2
        np.testing.assert_allclose(rates[late], -exact[late] @ matrix.T, rtol=1e4 * relative)
    assert errors[0] > 10 * errors[1] > 100 * errors[2]


def test_differences_stand_in_for_the_hessian():
    gradient = lambda y: np.array([100.0 * (y[0] - np.cos(y[1])), y[1] ** 3])  # noqa: E731
    jacobian = lambda y: np.array([[1e2, 1e2 * np.sin(y[1])], [0, 3 * y[1] ** 2]])  # noqa: E731
    start = [0.0, 1.0]
    one = solve(gradient, start, 1e3, hessian=jacobian)
    two = solve(gradient, start, 1e3)
    assert one[1][1] == pytest.approx((1 + 2e3) ** -0.5, rel=1e-7)
    np.testing.assert_allclose(two[1], one[1], rtol=1e-7)
    assert two[0].nodes.size == pytest.approx(one[0].nodes.size, abs=2)


def test_a_full_path_goes_on_where_it_stopped():
    """Cut after any number of steps: bitwise the same path."""
    gradient = lambda y: np.array([y[0] ** 3 - y[1], 20 * y[1]])  # noqa: E731
    whole = solve(gradient, [1.0, 1.0], 100.0)
    state, floor, parts = np.array([1.0, 1.0]), whole[3][1].floor, []
    control, path = beginning((0.0, 100.0), 1e-8, floor, 3)
    room, end = equations.new_room(2), collocation.FULL
    while end == collocation.FULL:
        steps, end = collocation.integrate(state, None, table(), control, path, room)
        parts.append([np.copy(each) for each in cut(path, steps)])
    assert len(parts) > 3
    nodes = np.concatenate([[0.0], *(part[0][1:] for part in parts)])
    np.testing.assert_array_equal(nodes, whole[0].nodes)
    np.testing.assert_array_equal(np.concatenate([p[2] for p in parts]), whole[0].coefficients)
    np.testing.assert_array_equal(state, whole[1])


@pytest.mark.parametrize("wall", [np.nan, np.inf])
def test_where_there_is_no_gradient_it_stops_and_says_where(wall):
    """A state falls to 1, below which there is none."""
    gradient = lambda y: np.where(y < 1.0, wall, 1.0 + 0.0 * y)  # noqa: E731
    path, state, _, (end, control) = solve(gradient, [2.0], 5.0, hessian=lambda y: np.zeros((1, 1)))
    assert end == collocation.STUCK
    assert state[0] == pytest.approx(1.0, abs=1e-9)
    assert path.nodes[-1] == pytest.approx(1.0, abs=1e-9)
    assert control.refused[0] < 1.0


def test_what_explodes_stops():
    path, state, _, (end, _) = solve(lambda y: -(y**3), [1.0], 1.0)
    assert end == collocation.STUCK
    assert path.nodes[-1] == pytest.approx(0.5, rel=1e-6)
    assert state[0] > 1e5


def test_nothing_moves_where_the_gradient_is_zero():
    path, state, calls, (end, _) = solve(lambda y: 0.0 * y, [2.0, 0.0], 1e6)
    assert (end, path.nodes.size, calls < 30) == (collocation.DONE, 2, True)
    np.testing.assert_array_equal(state, [2.0, 0.0])


@pytest.mark.parametrize("size", [1, 5])
def test_linear_systems_are_solved(size):
    random = np.random.default_rng(size)
    matrix, values = random.standard_normal((size, size)), random.standard_normal(size)
    matrix[0, 0] = 0.0 if size > 1 else 2.0
    expected = np.linalg.solve(matrix, values)
    pivots = np.empty(size, dtype=np.int64)
    assert linear_algebra.factorize(matrix, pivots)
    linear_algebra.solve(matrix, pivots, values)
    np.testing.assert_allclose(values, expected, rtol=1e-10)
    assert not linear_algebra.factorize(np.ones((2, 2)), np.empty(2, dtype=np.int64))
