"""Closures of gradients that are written in the field."""

from fractions import Fraction

import numpy as np
import pytest
from breaking import break_by_descent

import dynamics
from theory.closure import modular, refinement
from theory.closure.conservation import Products, quadratic_forms
from theory.closure.linear import closed_span, exact_basis, numeric_basis
from theory.closure.refinement import leaving, refine
from theory.program import field


def numbers(*given):
    return np.array([field.residues(Fraction(x)) for x in given])


def triples(start):
    return field.data_triples(np.asarray(start, dtype=float))


def times(factor, x):
    return field.multiply(np.broadcast_to(field.residues(Fraction(factor)), x.shape), x)


def minus(a, b):
    return field.add(a, field.negative(b))


def refined(gradient, start, arrays=None):
    start = np.asarray(start, dtype=float)
    arrays = np.zeros(start.size, dtype=int) if arrays is None else np.array(arrays)
    return refine(gradient, start, triples(start), arrays, np.random.default_rng(0))


def chain(x):
    """Each entry is pulled by the cube of the one before it: classes part one a round."""
    before = np.roll(x, 1, axis=0)
    before[0] = field.residues(1)
    return minus(field.multiply(field.multiply(before, before), before), x)


def test_a_refinement_that_stops_early_is_refuted(monkeypatch):
    monkeypatch.setattr(refinement, "QUIET", 0)
    classes = refined(chain, np.full(5, 0.5))
    monkeypatch.undo()
    left = leaving(chain, classes, triples(np.full(5, 0.5)), np.random.default_rng(1))
    assert left.size


def opposite(x):
    """Entries that stay opposite, by an odd function of each."""
    return field.odd("tanh", x)


def test_opposite_entries_are_one_class_with_signs():
    classes = refined(opposite, [0.5, -0.5, 0.5])
    assert classes.labels.tolist() == [0, 0, 0]
    assert classes.signs.tolist() == [1, -1, 1]
    unsigned = type(classes)(classes.labels, np.ones(3), classes.start)
    assert leaving(opposite, unsigned, triples(classes.start), np.random.default_rng(0)).size


def test_entries_at_0_get_their_signs_from_the_first_gradient():
    pull = numbers(1, -1, 0)[:, None]
    classes = refined(lambda x: minus(x, np.broadcast_to(pull, x.shape)), np.zeros(3))
    assert classes.labels.tolist() == [0, 0, -1]
    assert classes.signs.tolist() == [1, -1, 0]


def spanned(gradient, start, groups=None):
    groups = np.zeros(len(start), dtype=int) if groups is None else np.array(groups)
    return closed_span(gradient, triples(start), groups, np.random.default_rng(0))


def pulled(w):
    """Gradient of (v.w - 1)^2 / 2."""

    def gradient(x):
        total = minus(field.multiply(w[:, None], x).sum(axis=0) % field.PRIMES, field.residues(1))
        return field.multiply(w[:, None], total[None])

    return gradient


def test_a_space_is_the_span_of_a_general_direction():
    span = spanned(pulled(numbers("3/10", "-17/10", "9/10")), np.zeros(3))
    np.testing.assert_allclose(exact_basis(span), [[1], [-17 / 3], [3]], rtol=1e-15)


def test_parameter_groups_are_closed_each_for_itself():
    for groups, size in ((None, 1), ([0, 1], 2)):
        assert len(spanned(pulled(numbers(1, 1)), [0.1, 0.2], groups).rows) == size


def test_a_space_holds_the_start():
    """Of (x_0 - 1)^2 x_1^2 from (1, 1) nothing moves."""

    def gradient(x):
        off = minus(x[0], field.residues(1))
        one, two = field.multiply(off, field.power(x[1], 2)), field.power(off, 2)
        return np.stack([times(2, one), times(2, field.multiply(two, x[1]))])

    assert len(spanned(gradient, [1.0, 1.0]).rows) == 0
    assert len(spanned(gradient, [0.5, 1.0]).rows) == 2


def test_the_same_space_in_floats():
    w = np.sqrt([2.0, 3.0, 5.0])
    rates = lambda z: (np.tanh(z @ w) - 1) * w  # noqa: E731
    basis, clear = numeric_basis(rates, np.zeros(3), np.zeros(3, int), np.random.default_rng(0))
    assert (basis.shape, clear) == ((3, 1), True)
    np.testing.assert_allclose(basis[:, 0] / basis[0, 0], w / w[0], rtol=1e-14)


def test_the_quadratic_law_of_a_product_of_two_scalars():
    """L = (u s^2 - 1)^2 / 2 keeps 2 u^2 - s^2 along the flow, and descent breaks it at order 1."""

    def gradient(x):
        u, s = x
        off = minus(field.multiply(u, field.power(s, 2)), field.residues(1))
        two = field.multiply(off, field.multiply(u, s))
        return np.stack([field.multiply(off, field.power(s, 2)), times(2, two)])

    start, products = triples([0.5, 0.8]), Products.of(np.zeros(2, dtype=int))
    span = spanned(gradient, [0.5, 0.8])
    (form,) = quadratic_forms(products, gradient, span, start, np.random.default_rng(0))
    assert modular.fractions(form) == (1, 0, Fraction(-1, 2))
    system = dynamics.load_system(
        dynamics.Model(
            start=lambda: {"u": np.full(1, 0.5), "s": np.full(1, 0.8)},
            risk=lambda theta, xp: (theta["u"][0] * theta["s"][0] ** 2 - 1) ** 2 / 2,
        )
    )
    (law,) = system.closure().laws
    assert law.text(["u", "s"]) == "2*u**2 - s**2"
    reduced = system.ReducedPopulation(system.Parameters())
    changes, order = break_by_descent(
        law,
        lambda eta: dynamics.descend(reduced, eta, round(2 / eta), record=1).states,
        [4e-3, 2e-3, 1e-3],
    )
    assert changes.max() < 0.05
    assert order == pytest.approx(1.0, abs=0.05)


def test_weights_that_differ_in_a_thousandth_are_two_unknowns():
    law = lambda: zip((0.5005, 0.4995), np.eye(2), strict=True)  # noqa: E731
    model = dynamics.Model(
        start=lambda: {"w": np.full(2, 0.1)}, law=law,
        loss=lambda theta, sample, xp: (sample @ theta["w"] - 1) ** 2,
    )  # fmt: skip
    assert dynamics.load_system(model).closure().scalars == 2
