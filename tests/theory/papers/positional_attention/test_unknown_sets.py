"""The least error of algorithms that do not know the sets, against brute force."""

import itertools

import numpy as np
import pytest

from theory.papers.positional_attention.linear_rules import (
    distinct_sets,
    least_samples,
    sign_rule_error,
    unseen_errors,
)


def least_error(D, C, q, samples):
    """A lower bound on the error of any algorithm that knows the sets from N samples only."""
    chance = next(itertools.islice(distinct_sets(D // C), samples, None))
    return float(chance @ unseen_errors(D, C, q))


def pairings(members):
    """All partitions into pairs."""
    if not members:
        yield ()
        return
    first, *rest = members
    for other in rest:
        left = [i for i in rest if i != other]
        yield from (((first, other), *tail) for tail in pairings(left))


def laws(D, q):
    """P(x, y = +1 | partition) for all partitions into pairs, shape (partitions, 3^D); x -> -x."""
    values = np.array(list(itertools.product((-1, 0, 1), repeat=D)))
    chance = np.where(values == 0, 1 - q, q / 2)
    tables = []
    for sets in pairings(list(range(D))):
        law = np.zeros(len(values))
        for pair in sets:
            others = np.delete(np.arange(D), pair)
            inside = (values[:, list(pair)] == 1).all(axis=1)
            law += inside * chance[:, others].prod(axis=1) / len(sets)
        tables.append(law / 2)
    return np.array(tables), np.array(tables)[:, ::-1]


@pytest.mark.parametrize(("D", "q"), [(4, 0.5), (6, 0.5), (6, 0.9)])
def test_sign_rule_is_the_best_of_all_without_a_sample(D, q):
    plus, minus = laws(D, q)
    best = np.minimum(plus.mean(axis=0), minus.mean(axis=0)).sum()
    assert best == pytest.approx(sign_rule_error(D, 2, q).error, abs=1e-14)
    assert least_error(D, 2, q, 0) == pytest.approx(best, abs=1e-14)


def test_distinct_sets_is_the_law_of_distinct_draws():
    for samples, law in zip(range(5), distinct_sets(4), strict=False):
        counts = np.zeros(5)
        for draw in itertools.product(range(4), repeat=samples):
            counts[len(set(draw))] += 1
        assert law == pytest.approx(counts / counts.sum(), abs=1e-15)


def test_unseen_errors_are_those_of_fewer_patches():
    found = unseen_errors(24, 3, 0.4)
    expected = [(1 - k / 8) * sign_rule_error(24 - 3 * k, 3, 0.4).error for k in range(8)]
    assert found == pytest.approx([*expected, 0.0], abs=1e-15)


def test_samples_grow_with_the_number_of_sets():
    """At C = 4 and q(D - C) = 16, for an error of 0.05."""
    counts = [least_samples(D, 4, 16 / (D - 4), 0.05) for D in (32, 64, 128, 256, 512, 1024)]
    assert counts == [5, 9, 19, 38, 76, 151]
    for D, count in ((64, 9), (128, 19)):
        q = 16 / (D - 4)
        assert least_error(D, 4, q, count) <= 0.05 < least_error(D, 4, q, count - 1)
    assert least_samples(64, 4, 4 / 60, 0.05) == 0
    with pytest.raises(ValueError, match="error=0"):
        least_samples(64, 4, 0.1, 0)
