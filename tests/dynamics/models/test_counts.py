"""Probabilities of counts beside fractions."""

import itertools
import math
from fractions import Fraction

import pytest
import sympy

from dynamics import multinomial, multisets
from dynamics.models import counts as counting
from dynamics.validation import InvalidRequest


@pytest.mark.parametrize("most", [counting.MAX_EXACT, 3])
@pytest.mark.parametrize(
    ("n", "chances"), [(0, (1.0,)), (8, (0.5, 0.5)), (12, (0.1, 0.2, 0.7)), (600, (0.3, 0.7))]
)
def test_probabilities_are_those_of_fractions(n, chances, most, monkeypatch):
    """By coefficients of at most `most` draws, and beyond by one category after the other."""
    monkeypatch.setattr(counting, "MAX_EXACT", most)
    listed = list(multinomial(n, chances))
    assert math.fsum(probability for probability, _ in listed) == pytest.approx(1, abs=1e-12)
    assert len({counts for _, counts in listed}) == math.comb(n + len(chances) - 1, n)
    for probability, counts in listed:
        assert sum(counts) == n
        exact = Fraction(math.factorial(n))
        for k, chance in zip(counts, chances, strict=True):
            exact *= Fraction(chance) ** k / math.factorial(k)
        assert probability == pytest.approx(float(exact), rel=1e-11)


def test_probabilities_may_be_expressions_and_categories_of_equal_ones_are_alike():
    q = sympy.Symbol("q")
    listed = list(multinomial(3, (q, 1 - q)))
    assert [counts for _, counts in listed] == [counts for _, counts in multinomial(3, (0.5, 0.5))]
    assert sympy.expand(sum(probability for probability, _ in listed)) == 1
    assert listed[1][0] == 3 * q * (1 - q) ** 2
    table = {counts: p for p, counts in multinomial(9, (0.15, 0.15, 0.7))}
    assert all(p == table[b, a, c] for (a, b, c), p in table.items())


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
