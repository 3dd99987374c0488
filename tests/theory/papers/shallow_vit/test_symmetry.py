"""Classes of pairs of patterns against all permutations, and the conditions of the collapse."""

import itertools
from dataclasses import replace

import bags
import numpy as np
import pytest

from theory.papers.shallow_vit.data_law import Law, Shares, law
from theory.papers.shallow_vit.symmetry import (
    Weights,
    broken,
    conditions,
    named,
    orbit_means,
    pattern_group,
    unordered,
)
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
@pytest.mark.parametrize("M", [3, 4, 5, 6])
def test_classes_are_the_orbits_of_all_permutations(M, exchange):
    found = classes(pattern_group(M, exchange))
    assert as_sets(found) == brute_orbits(M, exchange)
    assert as_sets(unordered(found)) == brute_orbits(M, exchange, symmetric=True)


def test_orbit_means_equal_the_mean_over_all_permutations():
    M, rng = 5, np.random.default_rng(1)
    fine, whole = (classes(pattern_group(M, exchange)) for exchange in (False, True))
    T = rng.normal(size=fine.count)[fine.labels]
    moved = []
    for head, tail in itertools.product(((0, 1), (1, 0)), itertools.permutations(range(2, M))):
        chosen = np.array([*head, *tail])
        moved.append(T[np.ix_(chosen, chosen)])
    mean = np.mean(moved, axis=0)
    known = {f"T_{pair}": T[tuple(where[0])] for pair, where in named_fine(fine).items()}
    for pair, where in named(whole).items():
        expression = orbit_means(M)[pair]
        value = float(expression.subs({s: known[s.name] for s in expression.free_symbols}))
        assert value == pytest.approx(mean[tuple(where[0])], abs=1e-14)
        assert np.ptp(mean[tuple(where.T)]) < 1e-14


def named_fine(fine):
    """Names as the positive sample's own entries have them."""
    letter = lambda i: str(i + 1) if i < 2 else "k"  # noqa: E731
    return {
        letter(i) + ("l" if min(i, j) > 1 and i != j else letter(j)): np.array([[i, j]])
        for i, j in fine.representatives
    }


@pytest.fixture(scope="module")
def start():
    rng = np.random.default_rng(0)
    V, K = (np.linalg.qr(rng.normal(size=(7, 7)))[0][:, :5] for _ in range(2))
    neurons, a = bags.closed_ensemble(V, rng.normal(size=(3, 7)), np.array([1.0, 1.0, -1.0]))
    return Weights(neurons, V, K, K, a)


def test_the_conditions_hold_where_they_should(start):
    for data, shares in (("fixed", EQUAL), ("fixed_disc", Shares(5, 10, 0.5, 0.2))):
        found = conditions(start, law(shares, data))
        assert broken(found) is None
        assert max(condition.deviation for condition in found) < 1e-14


def small(shape):
    return 1e-6 * np.random.default_rng(3).normal(size=shape)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: replace(s, K=s.K + small(s.K.shape)), "keys have equal"),
        (lambda s: replace(s, Q=s.Q + small(s.Q.shape)), "queries have equal"),
        (lambda s: replace(s, Q=s.Q * [1, 1, -1, 1, 1]), "W_K = W_Q"),
        (lambda s: replace(s, V=s.V + small(s.V.shape)), "sigma = 0"),
        (lambda s: replace(s, W_O=s.W_O + small(s.W_O.shape)), "neurons invariant"),
        (lambda s: replace(s, a=np.abs(s.a)), "36 neurons have a = 1, 0 have a = -1"),
        (lambda s: replace(s, a=np.tile(s.a[:, None], 50)), "output_weights = shared"),
    ],
)
def test_the_condition_that_fails_is_named(start, change, words):
    line = broken(conditions(change(start), law(EQUAL, "fixed")))
    assert words in line
    assert "\n" not in line


def test_samples_that_break_the_symmetry_are_named(start):
    uneven = law(Shares(5, 50, 0.5, 0.05), "fixed")
    line = broken(conditions(start, uneven))
    assert "equal non-discriminative counts" in line
    assert "[25, 3, 8, 7, 7] with y = +1" in line
    mirror = law(EQUAL, "fixed")
    lopsided = Law(mirror.counts, mirror.labels, np.array([0.6, 0.4]))
    assert "off by 0.333" in broken(conditions(start, lopsided))
