"""Classes of pairs of patterns against all permutations, and the conditions of the collapse."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from theory.papers.shallow_vit import symmetry
from theory.papers.shallow_vit.data_law import Law, Shares, law
from theory.symmetry import classes

EQUAL = Shares(M=5, L=50, alpha_star=0.5, alpha_confusion=0.08)


def brute_orbits(M, exchange=True, symmetric=False):
    """Orbits of pairs by applying every permutation, as a set of sets."""
    found = set()
    heads = ((0, 1), (1, 0)) if exchange else ((0, 1),)
    for i, j in itertools.product(range(M), repeat=2):
        orbit = set()
        for head, tail in itertools.product(heads, itertools.permutations(range(2, M))):
            moved = (*head, *tail)
            orbit.add((moved[i], moved[j]))
            if symmetric:
                orbit.add((moved[j], moved[i]))
        found.add(frozenset(orbit))
    return found


def as_sets(found):
    return {frozenset(map(tuple, np.argwhere(found.labels == k))) for k in range(found.count)}


@pytest.mark.parametrize("exchange", [True, False])
@pytest.mark.parametrize("M", [3, 4, 6])
def test_classes_are_the_orbits_of_all_permutations(M, exchange):
    found = classes(symmetry.pattern_group(M, exchange))
    assert as_sets(found) == brute_orbits(M, exchange)
    assert as_sets(symmetry.unordered(found)) == brute_orbits(M, exchange, symmetric=True)


def test_orbit_means_equal_the_mean_over_all_permutations():
    fine, whole = (classes(symmetry.pattern_group(5, exchange)) for exchange in (False, True))
    T = np.random.default_rng(1).normal(size=fine.count)[fine.labels]
    heads, tails = ((0, 1), (1, 0)), itertools.permutations(range(2, 5))
    orders = [[*head, *tail] for head, tail in itertools.product(heads, tails)]
    mean = np.mean([T[np.ix_(order, order)] for order in orders], axis=0)
    known = {f"T_{symmetry.pair_name(pair)}": T[tuple(pair)] for pair in fine.representatives}
    for pair, where in symmetry.named(whole).items():
        value = symmetry.orbit_means(5)[pair]
        value = float(value.subs({letter: known[letter.name] for letter in value.free_symbols}))
        np.testing.assert_allclose(mean[tuple(where.T)], value, atol=1e-14)


def closed_ensemble(values, neurons, a):
    """Rows of W_O and their a, completed under permutations of patterns 3.. and 1 with 2."""
    dimension, M = values.shape
    inverse, rows, signs = np.linalg.pinv(values), [], []
    for others in itertools.permutations(range(2, M)):
        for first in ((0, 1), (1, 0)):
            moved = np.eye(dimension) + (values[:, [*first, *others]] - values) @ inverse
            rows.append(neurons @ moved)
            signs.append(a if first == (0, 1) else -a)
    return np.concatenate(rows), np.concatenate(signs)


@pytest.fixture(scope="module")
def start():
    rng = np.random.default_rng(0)
    V, K = (np.linalg.qr(rng.normal(size=(7, 7)))[0][:, :5] for _ in range(2))
    neurons, a = closed_ensemble(V, rng.normal(size=(3, 7)), np.array([1.0, 1.0, -1.0]))
    return symmetry.Weights(neurons, V, K, K, a)


def test_the_conditions_hold_where_they_should(start):
    for data, shares in (("fixed", EQUAL), ("fixed_disc", Shares(5, 10, 0.5, 0.2))):
        found = symmetry.conditions(start, law(shares, data))
        assert symmetry.broken(found) is None
        assert max(condition.deviation for condition in found) < 1e-14


def off(matrix):
    return matrix + 1e-6 * np.random.default_rng(3).normal(size=matrix.shape)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: replace(s, K=off(s.K)), "keys have equal"),
        (lambda s: replace(s, Q=off(s.Q)), "queries have equal"),
        (lambda s: replace(s, Q=s.Q * [1, 1, -1, 1, 1]), "W_K = W_Q"),
        (lambda s: replace(s, V=off(s.V)), "sigma = 0"),
        (lambda s: replace(s, W_O=off(s.W_O)), "neurons invariant"),
        (lambda s: replace(s, a=np.abs(s.a)), "36 neurons have a = 1, 0 have a = -1"),
        (lambda s: replace(s, a=np.tile(s.a[:, None], 50)), "output_weights = shared"),
    ],
)
def test_the_condition_that_fails_is_named(start, change, words):
    assert words in symmetry.broken(symmetry.conditions(change(start), law(EQUAL, "fixed")))


def test_samples_that_break_the_symmetry_are_named(start):
    uneven = law(Shares(5, 50, 0.5, 0.05), "fixed")
    assert "[25, 3, 8, 7, 7] with y = +1" in symmetry.broken(symmetry.conditions(start, uneven))
    mirror = law(EQUAL, "fixed")
    lopsided = Law(mirror.counts, mirror.labels, np.array([0.6, 0.4]))
    assert "off by 0.333" in symmetry.broken(symmetry.conditions(start, lopsided))
