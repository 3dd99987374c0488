"""Probabilities of counts: sums, exact values, and the two ways in which they are computed."""

import itertools
import math
from fractions import Fraction

import pytest
import sympy

from dynamics import multinomial, multisets
from dynamics.models.counts import _exact, _successive
from dynamics.validation import InvalidRequest


@pytest.mark.parametrize(("n", "chances"), [(0, (1.0,)), (8, (0.5, 0.5)), (12, (0.1, 0.2, 0.7)),
                                            (500, (0.3, 0.7)), (3000, (0.01, 0.99))])  # fmt: skip
def test_probabilities_sum_to_one_over_all_counts(n, chances):
    listed = list(multinomial(n, chances))
    assert math.fsum(probability for probability, _ in listed) == pytest.approx(1, abs=1e-12)
    assert len({counts for _, counts in listed}) == math.comb(n + len(chances) - 1, n)
    assert all(sum(counts) == n for _, counts in listed)


def test_probabilities_may_be_expressions():
    q = sympy.Symbol("q")
    listed = list(multinomial(3, (q, 1 - q)))
    assert [counts for _, counts in listed] == [counts for _, counts in multinomial(3, (0.5, 0.5))]
    assert sympy.expand(sum(probability for probability, _ in listed)) == 1
    assert listed[1][0] == 3 * q * (1 - q) ** 2


def test_halves_are_exact():
    for probability, (minus, plus) in multinomial(50, (0.5, 0.5)):
        assert Fraction(probability) == Fraction(math.comb(50, plus), 2**50)
        assert minus + plus == 50


def test_categories_of_equal_probability_have_equal_probabilities():
    table = {counts: p for p, counts in multinomial(9, (0.15, 0.15, 0.7))}
    assert all(p == table[b, a, c] for (a, b, c), p in table.items())


def test_large_numbers_of_draws_agree_with_exact_coefficients():
    for counts in [(3, 200, 97), (100, 100, 100), (0, 0, 300)]:
        expected = _exact(counts, (0.1, 0.4, 0.5))
        assert _successive(counts, (0.1, 0.4, 0.5)) == pytest.approx(expected, rel=1e-11)


def test_multisets_are_draws_without_their_order():
    types = [(0.2, "x"), (0.3, "y"), (0.5, "z")]
    expected = {}
    for draws in itertools.product(types, repeat=4):
        key = tuple(sorted(value for _, value in draws))
        expected[key] = expected.get(key, 0.0) + math.prod(chance for chance, _ in draws)
    found = {values: probability for probability, values in multisets(types, 4)}
    assert found == pytest.approx(expected, rel=1e-13)


WRONG = [(-1, (1.0,)), (1.5, (1.0,)), (True, (1.0,)), (2, (0.5, 0.4)), (2, (1.5, -0.5)), (2, ())]


@pytest.mark.parametrize(("n", "chances"), WRONG)
def test_wrong_arguments_are_refused(n, chances):
    with pytest.raises(InvalidRequest):
        multinomial(n, chances)
