"""The integrator of flows: order, exactness, stiffness, dense output; on plain Python functions."""

from fractions import Fraction

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


def between(path, times):
    states, rates = np.empty((2, len(times), path.coefficients.shape[2]))
    path_values.along(np.asarray(times, dtype=float), *path, states, rates)
    return states, rates


def test_the_points_are_those_of_radau():
    """The weights integrate polynomials of degree s - 1 exactly, the last row up to 2 s - 2."""
    constants = table()
    for power in range(STAGES):
        exact = [float(Fraction(1, power + 1)) * c ** (power + 1) for c in constants.points]
        np.testing.assert_allclose(constants.weights @ constants.points**power, exact, atol=3e-15)
    # Of order 2 s - 1 at the end.
    for power in range(STAGES, 2 * STAGES - 1):
        moment = constants.weights[-1] @ constants.points**power
        assert moment == pytest.approx(1 / (power + 1), abs=1e-15)
    moment = constants.weights[-1] @ constants.points ** (2 * STAGES - 1)
    assert abs(moment - 1 / (2 * STAGES)) > 1e-9


def test_a_polynomial_is_composed_of_its_values():
    """Of degree s, 0 at the start; and its last Legendre coefficients, from shifted Legendre."""
    constants, random = table(), np.random.default_rng(1)
    powers = random.standard_normal(STAGES)

    def value(position):
        return sum(each * position ** (k + 1) for k, each in enumerate(powers))

    stages = value(constants.points)
    about_end = constants.powers @ stages
    for position in (0.0, 0.3, 1.0, 1.7):
        composed = sum(each * (position - 1) ** k for k, each in enumerate(about_end))
        assert composed == pytest.approx(value(position), abs=1e-11)
    series = np.polynomial.Polynomial([0.0, *powers]).convert(
        kind=np.polynomial.Legendre, domain=[0, 1]
    )
    np.testing.assert_allclose(constants.ending @ stages, series.coef[-3:], atol=1e-12)


def test_a_step_solves_its_equations():
    """(1) of the module, written in matrices and solved by scipy; one step of a given width."""
    from scipy.optimize import root

    gradient = lambda y: np.array([y[0] ** 3 - np.sin(y[1]), y[1] * (1 + y[0] ** 2)])  # noqa: E731
    start, scale, width, constants = np.array([1.0, 2.0]), 0.7, 0.15, table()
    weights = width * constants.weights * (scale * np.exp(constants.points * width))

    def residual(flat):
        stages = flat.reshape(STAGES, 2)
        return (stages + weights @ np.array([gradient(start + z) for z in stages])).ravel()

    naive = root(residual, np.zeros(2 * STAGES), tol=1e-14).x.reshape(STAGES, 2)
    supply(gradient)
    room, floor = equations.new_room(2), np.full(2, 1e-11)
    control, _ = beginning((0.0, 5.0), 1e-8, floor, 1)
    assert collocation.begin(start, None, control, room)
    control.now[collocation.SCALE] = scale
    assert collocation.try_step(start, width, None, constants, control, room)
    np.testing.assert_allclose(room.stages, naive, rtol=0, atol=1e-10)


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
        states, rates = between(path, times)
        errors.append(np.abs(states - exact).max())
        assert errors[-1] < 100 * relative
        np.testing.assert_allclose(state, expm(-matrix * 3.0) @ start, rtol=100 * relative)
        late = times > 1e-2
        np.testing.assert_allclose(rates[late], -exact[late] @ matrix.T, rtol=1e4 * relative)
    assert errors[0] > 10 * errors[1] > 100 * errors[2]


def test_a_smaller_tolerance_costs_few_gradients():
    """Of high order: a thousandth of the error for less than three times the gradients."""
    gradient = lambda y: np.array([y[0] ** 3 - np.sin(y[1]), y[1] * (1 + y[0] ** 2)])  # noqa: E731
    jacobian = lambda y: np.array(  # noqa: E731
        [[3 * y[0] ** 2, -np.cos(y[1])], [2 * y[0] * y[1], 1 + y[0] ** 2]]
    )
    start = [1.0, 2.0]
    exact = solve(gradient, start, 50.0, 1e-13, jacobian)[1]
    results = {
        relative: solve(gradient, start, 50.0, relative, jacobian) for relative in (1e-6, 1e-9)
    }
    for relative, (_, state, _, _) in results.items():
        np.testing.assert_allclose(state, exact, rtol=30 * relative, atol=relative)
    assert results[1e-9][2] < 3 * results[1e-6][2]


def test_differences_stand_in_for_the_hessian():
    gradient = lambda y: np.array([100.0 * (y[0] - np.cos(y[1])), y[1] ** 3])  # noqa: E731
    jacobian = lambda y: np.array(  # noqa: E731
        [[100.0, 100.0 * np.sin(y[1])], [0.0, 3 * y[1] ** 2]]
    )
    start = [0.0, 1.0]
    one = solve(gradient, start, 1e3, hessian=jacobian)
    two = solve(gradient, start, 1e3)
    assert one[1][1] == pytest.approx((1 + 2e3) ** -0.5, rel=1e-7)
    np.testing.assert_allclose(two[1], one[1], rtol=1e-7)
    assert two[0].nodes.size == pytest.approx(one[0].nodes.size, abs=2)


def test_steps_meet_at_their_ends():
    gradient = lambda y: np.array([y[0] - y[1] ** 2, 0.1 * y[1]])  # noqa: E731
    path, state, _, _ = solve(gradient, [3.0, 1.0], 30.0)
    coefficients = path.coefficients
    for k in range(1, len(coefficients)):
        powers = (-1.0) ** np.arange(coefficients.shape[1])
        np.testing.assert_allclose(powers @ coefficients[k], coefficients[k - 1][0], atol=1e-13)
    np.testing.assert_array_equal(coefficients[-1][0], state)
    assert path.nodes[-1] == 30.0


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
    np.testing.assert_array_equal(
        np.concatenate([[0.0], *(nodes[1:] for nodes, _, _ in parts)]), whole[0].nodes
    )
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


@pytest.mark.parametrize("size", [1, 2, 5, 9])
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


def test_where_the_hessian_is_no_number_it_stops_and_says_where():
    jacobian = lambda y: np.full((1, 1), np.nan if y[0] < 1.5 else 1.0)  # noqa: E731
    _, state, _, (end, control) = solve(lambda y: y, [2.0], 5.0, hessian=jacobian)
    assert end == collocation.STUCK
    assert state[0] == pytest.approx(1.5, abs=1e-9)
    assert control.refused[0] < 1.5


def test_a_step_that_errs_too_much_is_refused_and_shortened():
    """Of a linear flow, which the first iteration solves: only its error speaks against it."""
    supply(lambda y: 40.0 * y, lambda y: np.full((1, 1), 40.0))
    room, start = equations.new_room(1), np.array([1.0])
    control, _ = beginning((0.0, 5.0), 1e-8, np.full(1, 1e-11), 1)
    assert collocation.begin(start, None, control, room)
    scale = control.now[collocation.SCALE]
    width = np.log1p(0.25 / scale)
    assert not collocation.try_step(start, width, None, table(), control, room)
    assert control.now[collocation.WIDTH] < width
    assert collocation.try_step(start, 0.3, None, table(), control, room)
    exact = np.exp(-40.0 * scale * np.expm1(0.3 * table().points)) - 1.0
    np.testing.assert_allclose(room.stages[:, 0], exact, rtol=0, atol=1e-8)


def test_two_jacobians_spare_iterations(monkeypatch):
    """With that of the beginning alone the iterations converge by a factor of the width only."""
    gradient = lambda y: np.array([50.0 * (y[0] - np.cos(y[1])), y[1] ** 3 * (1 + y[0])])  # noqa: E731
    jacobian = lambda y: np.array(  # noqa: E731
        [[50.0, 50.0 * np.sin(y[1])], [y[1] ** 3, 3 * y[1] ** 2 * (1 + y[0])]]
    )
    two = solve(gradient, [0.0, 1.0], 1e3, hessian=jacobian)[2]
    assemble = collocation.assemble

    def of_one(width, scale, constants, room):
        kept = room.jacobians[1].copy()
        room.jacobians[1] = room.jacobians[0]
        assemble(width, scale, constants, room)
        room.jacobians[1] = kept

    monkeypatch.setattr(collocation, "assemble", of_one)
    one = solve(gradient, [0.0, 1.0], 1e3, hessian=jacobian)[2]
    assert two < 0.8 * one


def test_what_is_no_number_is_larger_than_all():
    assert np.isnan(equations.larger(np.nan, 1.0))
    assert np.isnan(equations.larger(1.0, np.nan))
    assert equations.larger(1.0, 2.0) == equations.larger(2.0, 1.0) == 2.0
