"""Closures of gradients that are written in the field."""

import numpy as np
import pytest

import dynamics
from theory.closure import refinement
from theory.closure.linear import closed_span, exact_basis, numeric_basis
from theory.closure.refinement import leaving, refine
from theory.program import field


def chain(x):
    """Each entry is pulled by the cube of the one before it: classes part one a round."""
    before = np.roll(x, 1, axis=0)
    before[0] = field.residues(1)
    return field.add(field.power(before, 3), field.negative(x))


def test_a_refinement_that_stops_early_is_refuted(monkeypatch):
    start, random = np.full(5, 0.5), np.random.default_rng(0)
    triples = field.data_triples(start)
    monkeypatch.setattr(refinement, "QUIET", 0)
    classes = refine(chain, start, triples, np.zeros(5, dtype=int), random)
    monkeypatch.undo()
    assert leaving(chain, classes, triples, random).size


def closure(start, risk=None, **others):
    model = dynamics.Model(start=lambda: {"w": np.array(start)}, risk=risk, **others)
    return dynamics.load_system(model).closure()


@pytest.mark.parametrize(
    ("start", "risk", "labels", "signs"),
    [
        ([0.5, -0.5, 0.5], lambda theta, xp: xp.sum(xp.log(xp.cosh(theta["w"]))),
         [0, 0, 0], [1, -1, 1]),
        ([0.0, 0.0, 0.0], lambda theta, xp: xp.sum(theta["w"] ** 2) / 2 - theta["w"][0]
         + theta["w"][1], [0, 0, -1], [1, -1, 0]),
    ],
)  # fmt: skip
def test_opposite_entries_are_one_class_with_signs(start, risk, labels, signs):
    classes = closure(start, risk).classes
    assert (classes.labels.tolist(), classes.signs.tolist()) == (labels, signs)


def test_a_space_holds_the_start():
    """Of (w_0 - 1)^2 w_1^2 from (1, 1) nothing moves."""
    risk = lambda theta, xp: (theta["w"][0] - 1) ** 2 * theta["w"][1] ** 2  # noqa: E731
    assert closure([1.0, 1.0], risk).scalars == 0
    assert closure([0.5, 1.0], risk).scalars == 2


def test_parameter_groups_are_closed_each_for_itself():
    def gradient(x):
        """Of (x_0 + 3 x_1)^2 / 2."""
        total = field.add(x[0], field.multiply(three, x[1]))
        return np.stack([total, field.multiply(three, total)])

    three, start = field.residues(3), field.data_triples(np.array([0.1, 0.2]))
    for groups, basis in (([0, 0], [[1], [3]]), ([0, 1], [[1, 0], [0, 1]])):
        span = closed_span(gradient, start, np.array(groups), np.random.default_rng(0))
        np.testing.assert_allclose(exact_basis(span), basis, rtol=1e-15)


def test_a_space_in_floats():
    w = np.sqrt([2.0, 3.0, 5.0])
    rates = lambda z: (np.tanh(z @ w) - 1) * w  # noqa: E731
    basis, clear = numeric_basis(rates, np.zeros(3), np.zeros(3, int), np.random.default_rng(0))
    assert (basis.shape, clear) == ((3, 1), True)
    np.testing.assert_allclose(basis[:, 0] / basis[0, 0], w / w[0], rtol=1e-14)


def test_weights_that_differ_in_a_thousandth_are_two_unknowns():
    law = lambda: zip((0.5005, 0.4995), np.eye(2), strict=True)  # noqa: E731
    loss = lambda theta, sample, xp: (sample @ theta["w"] - 1) ** 2  # noqa: E731
    assert closure([0.1, 0.1], law=law, loss=loss).scalars == 2
