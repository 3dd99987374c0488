"""The law of count vectors against the enumeration of every token of every sample."""

import itertools
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from theory.papers.shallow_vit.data_law import Shares, chances, law, support_size


def brute(shares, data):
    """(label, counts) -> exact probability, token by token."""
    M, found = shares.M, defaultdict(Fraction)
    half = Fraction(1, 2)
    if data == "iid":
        star, confusion = Fraction(str(shares.alpha_star)), Fraction(str(shares.alpha_confusion))
        chance = [star, confusion, *[(1 - star - confusion) / (M - 2)] * (M - 2)]
        free, head = range(M), ()
    else:
        chance, free = [None, None, *[Fraction(1, M - 2)] * (M - 2)], range(2, M)
        head = (0,) * shares.n_star + (1,) * shares.n_confusion
    for tail in itertools.product(free, repeat=shares.L - len(head)):
        weight = half
        for pattern in tail:
            weight *= chance[pattern]
        counts = np.bincount([*head, *tail], minlength=M).tolist()
        if counts[0] < counts[1]:
            counts[:2] = counts[1::-1]
        if counts[0] > counts[1] and weight:
            found[1, *counts] += weight
            found[-1, counts[1], counts[0], *counts[2:]] += weight
    total = sum(found.values())
    return {key: value / total for key, value in found.items()}


@pytest.mark.parametrize("data", ["fixed_disc", "iid"])
@pytest.mark.parametrize("shares", [Shares(4, 6, 0.5, 0.2), Shares(4, 5, 0.6, 0.4)])
def test_every_count_vector_with_its_probability(shares, data):
    found = law(shares, data)
    keys = map(tuple, np.column_stack([found.labels, found.counts]).tolist())
    seen = dict(zip(keys, found.probability, strict=True))
    expected = brute(shares, data)
    assert set(seen) == set(expected)
    assert max(abs(seen[key] - float(value)) for key, value in expected.items()) < 1e-15


def test_sizes_of_the_paper():
    figure_4 = Shares(5, 50, 0.5, 0.05)
    assert (figure_4.n_star, figure_4.n_confusion) == (25, 3)
    assert law(figure_4, "fixed").counts.tolist() == [[25, 3, 8, 7, 7], [3, 25, 8, 7, 7]]
    assert support_size(figure_4, "fixed_disc") == 552
    assert support_size(figure_4, "iid") == 304200


@pytest.mark.parametrize(
    ("share", "tokens", "number"), [(0.05, 50, 3), (0.29, 100, 29), (0.145, 100, 15), (0.3, 7, 2)]
)
def test_halves_are_rounded_up_whatever_a_float_makes_of_them(share, tokens, number):
    assert Shares(5, tokens, share, 0.0).n_star == number


def test_chances_of_shares_that_are_decimals_sum_to_one():
    found = chances(Shares(5, 50, 0.7, 0.3 + 5e-10))
    assert found.sum() == pytest.approx(1, abs=1e-15)
    assert found == pytest.approx([0.7, 0.3, 0, 0, 0], abs=1e-9)
