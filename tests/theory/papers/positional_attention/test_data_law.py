"""The law of the random sets: in symbols, in numbers, by enumeration."""

import itertools
import math

import pytest
import sympy

from theory.papers.positional_attention import data_law as laws
from theory.papers.positional_attention.notation import NOTATION


@pytest.mark.parametrize("kind", laws.RANDOM_SETS)
@pytest.mark.parametrize(("C", "chance"), [(2, 0.5), (5, 0.1), (3, 1.0)])
def test_types_are_the_values_of_a_set_counted(C, chance, kind):
    counted = dict.fromkeys(map(tuple, laws.SetLaw(C, chance).types[:, :2].tolist()), 0.0)
    one_sign = {(C, 0), (0, C)}
    for values in itertools.product((1, -1, 0), repeat=C):
        key = values.count(1), values.count(-1)
        weight = math.prod(1 - chance if v == 0 else chance / 2 for v in values)
        counted[key] += weight if kind == laws.ANY or key not in one_sign else 0.0
    total = sum(counted.values())
    law = laws.SetLaw(C, chance, kind)
    expected = [counted[a, b] / total for a, b, _ in law.types.tolist()]
    assert law.probabilities == pytest.approx(expected, rel=1e-14, abs=1e-300)
    assert law.probabilities.sum() == pytest.approx(1, rel=1e-14)
    assert law.probabilities @ law.sums == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("kind", laws.RANDOM_SETS)
def test_small_partitions_are_enumerated_by_the_law_of_their_sets(kind):
    sets, chance = ((0, 1), (2, 3), (4, 5)), sympy.Rational(2, 5)
    law = laws.SetLaw(2, float(chance), kind)
    types = {tuple(t[:2]): p for t, p in zip(law.types.tolist(), law.probabilities, strict=True)}
    total = 0
    counted = dict.fromkeys(itertools.product(types, repeat=2), 0.0)
    for label, values, weight in laws.configurations(sets, kind):
        number = weight.subs(laws.q, chance)
        total += number
        signal = [s for s in sets if all(values[i] == label for i in s)]
        if label == 1 and kind == laws.MIXED:
            assert len(signal) == 1
            random = [[values[i] for i in s] for s in sets if s != signal[0]]
            key = tuple((inside.count(1), inside.count(-1)) for inside in random)
            counted[key] += 2 * float(number)
    assert total == 1
    if kind == laws.MIXED:
        for (one, two), share in counted.items():
            assert share == pytest.approx(types[one] * types[two], rel=1e-13, abs=1e-300)


def test_large_sets_do_without_exact_factorials():
    exact, large = laws.SetLaw(150, 0.3), laws.SetLaw(151, 0.3)
    assert exact.probabilities.sum() == pytest.approx(1, rel=1e-12)
    assert large.probabilities.sum() == pytest.approx(1, rel=1e-10)
    weight = sympy.lambdify(NOTATION.symbols("a b C q"), laws.type_probability(), "mpmath")
    for plus, minus in ((20, 30), (0, 1), (151, 0)):
        k = large.types[:, :2].tolist().index([plus, minus])
        expected = float(weight(plus, minus, 151, 0.3))
        assert large.probabilities[k] == pytest.approx(expected, rel=1e-10)


def test_the_irreducible_error_is_that_of_the_likelihood():
    """Against a loop over labels: the best rule sees how many sets are all 1, and all -1."""
    sets, chance = ((0, 1), (2, 3), (4, 5)), sympy.Rational(2, 5)
    chances = {}
    for label, values, weight in laws.configurations(sets):
        chances.setdefault(values, {1: 0, -1: 0})[label] += weight.subs(laws.q, chance)
    expected = sum(min(pair.values()) for pair in chances.values())
    assert laws.bayes_error(laws.SetLaw(2, 0.4), 3) == pytest.approx(float(expected), rel=1e-13)
