"""The parts of a flat state, and the Jacobian from differences with its largest eigenvalue."""

import numpy as np
import pytest

from dynamics.problem import Layout
from dynamics.problem.numerical_jacobian import central_differences, largest_eigenvalue
from dynamics.validation import InvalidRequest

LAYOUT = Layout(("v", "A", "b"), ((2,), (2, 2), ()), groups=("first", "second", "first"))


def test_a_state_is_taken_flat_or_in_parts_which_are_views():
    states, flat = np.arange(21.0).reshape(3, 7), np.arange(7.0)
    np.testing.assert_array_equal(LAYOUT.part(states, "A")[1], [[9.0, 10.0], [11.0, 12.0]])
    np.testing.assert_array_equal(LAYOUT.part(states, "b"), states[:, 6])
    assert np.shares_memory(LAYOUT.part(states, "v"), states)
    assert (LAYOUT.size, LAYOUT.scalars, LAYOUT.group_names) == (7, ["b"], ("first", "second"))
    for given in (flat, (flat[:2], flat[2:6].reshape(2, 2), 6.0)):
        np.testing.assert_array_equal(LAYOUT.flatten(given), flat)
    with pytest.raises(InvalidRequest, match="v \\(2"):
        LAYOUT.flatten(flat[:5])
    np.testing.assert_array_equal(LAYOUT.per_entry((0.1, 0.2)), [0.1] * 2 + [0.2] * 4 + [0.1])


def symmetric(values, seed=0):
    """A symmetric matrix of given eigenvalues."""
    basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values),) * 2))[0]
    return basis * values @ basis.T


@pytest.mark.parametrize("values", [(3.0, 1.0, -9.0, 0.5), (-1.0, -2.0, -5.0), (7.0, 0.0, -7.5)])
def test_of_all_eigenvalues_the_largest_not_the_one_of_largest_size(values):
    matrix = symmetric(values)
    state = np.random.default_rng(1).standard_normal(len(values))
    found = largest_eigenvalue(lambda at: matrix @ at, state)
    assert found == pytest.approx(max(values), rel=1e-4, abs=1e-4 * max(map(abs, values)))


def test_at_rest_the_first_direction_is_another():
    matrix = symmetric((4.0, 1.0, 2.0))
    assert largest_eigenvalue(lambda at: matrix @ at, np.zeros(3)) == pytest.approx(4.0, rel=1e-4)


def test_what_is_not_finite_has_no_eigenvalue():
    assert np.isnan(largest_eigenvalue(lambda at: np.full(3, np.nan), np.ones(3)))
    assert np.isnan(largest_eigenvalue(lambda at: np.where(at > 1, np.inf, at), np.ones(3)))


def test_differences_are_exact_for_quadratic_gradients_and_err_by_the_square_of_the_width():
    state = np.array([0.5, -2.0, 0.0])
    exact = central_differences(np.square, state)
    np.testing.assert_allclose(exact, np.diag(2 * state), atol=1e-9)
    error = central_differences(np.exp, state) - np.diag(np.exp(state))
    widths = 1e-4 * np.maximum(np.abs(state), 1e-2)
    np.testing.assert_allclose(np.diag(error), np.exp(state) * widths**2 / 6, rtol=0.1, atol=1e-10)
