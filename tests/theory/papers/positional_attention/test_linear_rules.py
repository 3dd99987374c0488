"""Theorems 3.1 and 5.2: exact errors of linear models, and of algorithms without the sets."""

import itertools
from fractions import Fraction

import naive
import numpy as np
import pytest

from theory.papers.positional_attention import linear_rules as rules
from theory.symmetry import Partition

HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)


def sets_of(D, C):
    return Partition.contiguous([C] * (D // C))


@pytest.mark.parametrize(("D", "C", "q"), [(4, 2, HALF), (6, 2, Fraction(2, 5)), (6, 3, QUARTER)])
@pytest.mark.parametrize("weights", [None, (2, 2, 3, 3, 3, 3), (1, -2, 0, 3, 1, 5)])
def test_rules_against_loops(D, C, q, weights):
    chosen = (1,) * D if weights is None else weights[:D]
    partition = sets_of(D, C)
    reference = naive.rule_error(
        lambda x: sum(w * v for w, v in zip(chosen, x, strict=True)),
        [list(map(int, members)) for members in partition.sets],
        q,
    )
    assert rules.weighted_rule_error(chosen, partition, q) == reference
    assert rules.weighted_rule_error(chosen, partition, float(q)) == pytest.approx(float(reference))
    if weights is None:
        assert rules.sign_rule_error(D, C, q).error == reference
        floats = rules.sign_rule_error(D, C, float(q))
        assert floats == pytest.approx(tuple(map(float, rules.sign_rule_error(D, C, q))), rel=1e-12)


@pytest.mark.parametrize("q", [Fraction(1, 10), Fraction(9, 10), Fraction(1)])
def test_no_link_beats_the_sign_for_equal_weights(q):
    best = rules.best_link_error((1,) * 12, sets_of(12, 3), q)
    assert best == rules.sign_rule_error(12, 3, q).error


@pytest.mark.parametrize(
    ("D", "C", "q", "tilts", "error"),
    [(8, 2, HALF, (3, 1), 0.12170), (64, 4, QUARTER, (1, 1), 0.14777)],
)
def test_tilts(D, C, q, tilts, error):
    weights = rules.tilted_weights(sets_of(D, C), tilts)
    found = float(rules.weighted_rule_error(weights, sets_of(D, C), float(q)))
    assert found == pytest.approx(error, abs=5e-6)
    # Ties only: the sign of Z decides where it is not 0.
    sign = rules.sign_rule_error(D, C, float(q))
    assert sign.negative - 1e-15 <= found <= sign.error


def test_search_finds_the_shrunk_set():
    error, weights = rules.best_weights(sets_of(6, 2), 0.5, 3)
    assert error == pytest.approx(61 / 768, abs=1e-14)
    assert weights == (2, 2, 3, 3, 3, 3)


@pytest.mark.parametrize(("C", "k"), [(2, 0.74477), (16, 0.75558)])
def test_crossings(C, k):
    m = rules.crossing(C)
    assert m / C**2 == pytest.approx(k, abs=1e-5)
    assert rules.limit_error(C, m) == pytest.approx(1 / 8, abs=1e-12)
    D = 64 * C
    assert rules.crossing(C, D) == pytest.approx(0.7557 * C**2 - 0.03 - 0.4 * m / (D - C), abs=0.2)
    crossed = rules.sign_rule_error(D, C, rules.crossing(C, D) / (D - C))
    assert float(crossed.error) == pytest.approx(1 / 8)


def test_crossings_far_out():
    assert rules.gaussian_crossing() == pytest.approx(0.75568, abs=5e-6)
    assert rules.crossing(64) / 64**2 == pytest.approx(rules.gaussian_crossing(), abs=1e-4)
    assert rules.crossing(4, 16) / 12 == pytest.approx(0.958, abs=1e-3)
    assert np.isnan(rules.crossing(8, 32))
    walk = float(rules.sign_rule_error(4000, 4, 12 / 3996).error)
    assert rules.limit_error(4, 12.0) == pytest.approx(walk, abs=1e-4)


def least_error(D, C, q, samples):
    """A lower bound on the error of any algorithm that knows the sets from N samples only."""
    chance = next(itertools.islice(rules.distinct_sets(D // C), samples, None))
    return float(chance @ rules.unseen_errors(D, C, q))


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
    assert best == pytest.approx(rules.sign_rule_error(D, 2, q).error, abs=1e-14)
    assert least_error(D, 2, q, 0) == pytest.approx(best, abs=1e-14)


def test_unseen_sets_leave_fewer_patches_and_draws_may_repeat():
    found = rules.unseen_errors(24, 3, 0.4)
    expected = [(1 - k / 8) * rules.sign_rule_error(24 - 3 * k, 3, 0.4).error for k in range(8)]
    assert found == pytest.approx([*expected, 0.0], abs=1e-15)
    for samples, law in zip(range(5), rules.distinct_sets(4), strict=False):
        counts = np.zeros(5)
        for draw in itertools.product(range(4), repeat=samples):
            counts[len(set(draw))] += 1
        assert law == pytest.approx(counts / counts.sum(), abs=1e-15)


def test_samples_grow_with_the_number_of_sets():
    counts = [rules.least_samples(D, 4, 16 / (D - 4), 0.05) for D in (32, 64, 128, 256, 512, 1024)]
    assert counts == [5, 9, 19, 38, 76, 151]
    assert least_error(64, 4, 16 / 60, 9) <= 0.05 < least_error(64, 4, 16 / 60, 8)
    assert rules.least_samples(64, 4, 4 / 60, 0.05) == 0
    with pytest.raises(ValueError, match="error=0"):
        rules.least_samples(64, 4, 0.1, 0)
