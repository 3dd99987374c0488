"""Theorem 3.1: exact errors of generalized linear models."""

from fractions import Fraction

import naive
import numpy as np
import pytest

from theory.papers.positional_attention.linear_rules import (
    best_link_error,
    best_weights,
    crossing,
    gaussian_crossing,
    limit_error,
    sign_rule_error,
    tilted_weights,
    weighted_rule_error,
)
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
    assert weighted_rule_error(chosen, partition, q) == reference
    assert weighted_rule_error(chosen, partition, float(q)) == pytest.approx(float(reference))
    if weights is None:
        assert sign_rule_error(D, C, q).error == reference
        floats = sign_rule_error(D, C, float(q))
        assert floats == pytest.approx(tuple(map(float, sign_rule_error(D, C, q))), rel=1e-12)


@pytest.mark.parametrize("q", [Fraction(1, 10), HALF, Fraction(9, 10), Fraction(1)])
def test_no_link_beats_the_sign_for_equal_weights(q):
    for D, C in ((6, 2), (12, 3), (16, 4)):
        equal = (1,) * D
        assert best_link_error(equal, sets_of(D, C), q) == sign_rule_error(D, C, q).error


@pytest.mark.parametrize(
    ("D", "C", "q", "tilts", "error"),
    [
        (8, 2, HALF, (3, 1), 0.12170),
        (64, 4, QUARTER, (1, 1), 0.14777),
        (9, 3, Fraction(3, 5), (1,), 0.0541),
    ],
)
def test_tilts(D, C, q, tilts, error):
    weights = tilted_weights(sets_of(D, C), tilts)
    found = float(weighted_rule_error(weights, sets_of(D, C), float(q)))
    assert found == pytest.approx(error, abs=5e-5 if D == 9 else 5e-6)
    # Ties only: the sign of Z decides where it is not 0.
    sign = sign_rule_error(D, C, float(q))
    assert sign.negative - 1e-15 <= found <= sign.error


def test_search_finds_the_shrunk_set():
    error, weights = best_weights(sets_of(6, 2), 0.5, 3)
    assert error == pytest.approx(61 / 768, abs=1e-14)
    assert weights == (2, 2, 3, 3, 3, 3)


@pytest.mark.parametrize(("C", "k"), [(2, 0.74477), (4, 0.75377), (8, 0.75525), (16, 0.75558)])
def test_crossings(C, k):
    m = crossing(C)
    assert m / C**2 == pytest.approx(k, abs=1e-5)
    assert limit_error(C, m) == pytest.approx(1 / 8, abs=1e-12)
    D = 64 * C
    assert crossing(C, D) == pytest.approx(0.7557 * C**2 - 0.03 - 0.4 * m / (D - C), abs=0.2)
    assert float(sign_rule_error(D, C, crossing(C, D) / (D - C)).error) == pytest.approx(1 / 8)


def test_crossings_far_out():
    assert gaussian_crossing() == pytest.approx(0.75568, abs=5e-6)
    assert crossing(64) / 64**2 == pytest.approx(gaussian_crossing(), abs=1e-4)
    assert crossing(4, 16) / 12 == pytest.approx(0.958, abs=1e-3)
    assert np.isnan(crossing(8, 32))
    walk = float(sign_rule_error(4000, 4, 12 / 3996).error)
    assert limit_error(4, 12.0) == pytest.approx(walk, abs=1e-4)
