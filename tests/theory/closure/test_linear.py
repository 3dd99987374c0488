"""Linear spaces and conserved quantities of gradients whose answer is known."""

import numpy as np
import pytest
from trainings import HandTraining

from theory.closure.conservation import break_by_descent, conservation_laws
from theory.closure.linear import linear_space
from theory.closure.partition import refine_entries


def closed(gradient, start, visited=(), **options):
    training = HandTraining(gradient, start, **options)
    classes = refine_entries(training, np.random.default_rng(0))
    space = linear_space(training, classes, np.random.default_rng(1), visited)
    laws = conservation_laws(training, classes, space, np.random.default_rng(2), visited)
    return classes, space, laws


def test_training_along_one_general_direction():
    w = np.array([0.3, -1.7, 0.9])
    classes, space, laws = closed(lambda v: (np.tanh(v @ w) - 1) * w, np.zeros(3))
    assert (classes.count, space.free) == (3, 1)
    direction = space.basis[:, 0] / space.basis[0, 0] * w[0]
    np.testing.assert_allclose(direction, w, rtol=1e-12)
    assert len(laws) == 2
    for law in laws:
        assert abs(law.at(w) - law.value) < 1e-12


def test_eigenvectors_of_a_covariance_are_found_in_any_basis():
    rotation = np.linalg.qr(np.random.default_rng(5).standard_normal((5, 5)))[0]
    covariance = rotation @ np.diag([1.0, 1, 2, 2, 2]) @ rotation.T
    target = rotation @ np.array([1.0, 1, 1, 1, 1])
    _, space, _ = closed(lambda v: covariance @ (v - target), np.zeros(5))
    assert space.free == 2


def test_a_general_quadratic_form_fills_the_space():
    matrix = np.random.default_rng(7).standard_normal((4, 4))
    matrix = matrix @ matrix.T
    _, space, laws = closed(lambda v: matrix @ (v - 1), np.zeros(4))
    assert space.free == 4
    assert laws == ()


def test_parameter_groups_are_closed_each_for_itself():
    """With one rate a + b is all that moves; with two rates a and b move apart."""

    def gradient(state):
        return np.full(2, state.sum() - 1.0)

    assert closed(gradient, np.array([0.1, 0.2]))[1].free == 1
    assert closed(gradient, np.array([0.1, 0.2]), groups=[0, 1])[1].free == 2


def test_a_sum_that_stays_has_whole_coefficients():
    """Softmax-like: the gradient of the logits sums to zero."""
    target = np.array([0.6, 0.3, 0.1])

    def gradient(a):
        share = np.exp(a) / np.exp(a).sum()
        return share - target

    _, space, laws = closed(gradient, np.zeros(3))
    assert space.free == 2
    assert [law.text(["a", "b", "c"]) for law in laws] == ["a + b + c"]
    assert laws[0].exact


def test_the_quadratic_law_of_a_product_of_two_scalars():
    """L = (u s^2 - 1)^2 / 2 keeps u^2 - s^2/2 along the flow, and descent breaks it at order 1."""

    def gradient(z):
        u, s = z
        off = u * s**2 - 1
        return np.array([off * s**2, 2 * off * u * s])

    classes, _, laws = closed(gradient, np.array([0.5, 0.8]))
    quadratic = [law for law in laws if law.degree == 2]
    assert [law.text(["u", "s"]) for law in quadratic] == ["2*u**2 - s**2"]

    def run(eta):
        state, rows = np.array([0.5, 0.8]), []
        for _ in range(round(2.0 / eta)):
            rows.append(state)
            state = state - eta * gradient(state)
        return np.array(rows)

    changes, order = break_by_descent(quadratic[0], run, [4e-3, 2e-3, 1e-3])
    assert changes.max() < 0.05
    assert order == pytest.approx(1.0, abs=0.05)
    assert classes.count == 2


def test_products_of_linear_laws_are_not_reported_again():
    target = np.array([0.7, 0.3])

    def gradient(a):
        share = np.exp(a) / np.exp(a).sum()
        return share - target

    _, _, laws = closed(gradient, np.array([0.2, -0.1]))
    assert [law.degree for law in laws] == [1]


def test_a_law_that_a_run_breaks_is_none():
    """A - b is kept near the start and not beyond the kink of one of them."""

    def gradient(a):
        return np.full(2, a.sum() - 9) + np.array([0.0, 3.0 * (a[1] > 90)])

    start = np.array([0.1, 0.2])
    _, space, laws = closed(gradient, start)
    assert space.free == 1
    assert len(laws) == 1
    _, space, laws = closed(gradient, start, visited=[np.array([100.0, 100.1])])
    assert space.free == 2
    assert laws == ()
