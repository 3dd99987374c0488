"""Configurations of the random sets: all of them, and those that are drawn."""

import itertools
import math

import numpy as np
import pytest

from dynamics.papers.positional_attention import configurations
from theory.papers.positional_attention.data_law import RANDOM_SETS, SetLaw

STATE = (0.2, 0.3, -0.1)


def test_law_equals_all_sequences_of_patches():
    assert configurations.number_of_configurations(6, 4) == 11_628
    D, C, q = 8, 2, 0.3  # 3^6 sequences
    chosen = configurations.enumeration(D, SetLaw(C, q))
    found = {}
    for sets, chance in zip(chosen.counts[:, 1:].astype(int), chosen.probability, strict=True):
        found[tuple(sorted((a, b, C - a - b) for a, b in sets.tolist()))] = chance
    naive = {}
    for values in itertools.product((1, -1, 0), repeat=D - C):
        chance = math.prod(1 - q if v == 0 else q / 2 for v in values)
        sets = [values[k : k + C] for k in range(0, D - C, C)]
        key = tuple(sorted(tuple(s.count(v) for v in (1, -1, 0)) for s in sets))
        naive[key] = naive.get(key, 0.0) + chance
    assert naive.keys() == found.keys()
    for key, chance in naive.items():
        assert found[key] == pytest.approx(chance, rel=1e-13)


def test_unbiased_with_the_standard_error_it_reports(system):
    """Over 100 seeds: the mean is the exact value, the spread is the reported error."""
    parameters = system.Parameters()
    exact = system.ReducedPopulation(parameters, "exact").error_estimate(STATE)
    seeds = range(100)
    drawn = [system.ReducedPopulation(parameters, "sampled", samples=400, seed=s) for s in seeds]
    found = [problem.error_estimate(STATE) for problem in drawn]
    values = np.array([one["value"] for one in found])
    reported = np.array([one["standard_error"] for one in found]).mean(axis=0)
    spread = values.std(axis=0, ddof=1)
    assert (np.abs(values.mean(axis=0) - exact["value"]) < 4 * spread / np.sqrt(len(seeds))).all()
    assert (reported > 0.9 * spread).all()
    assert (reported < 1.7 * spread).all()
    assert "standard_error" not in exact


@pytest.mark.parametrize("kind", RANDOM_SETS)
def test_draws_follow_the_law(kind):
    D, C, q, samples = 12, 3, 0.4, 4000
    whole = configurations.enumeration(D, SetLaw(C, q, kind))
    law = dict(zip(map(key, whole.counts), whole.probability, strict=True))
    found, width = dict.fromkeys(law, 0.0), 2 * D + 1
    for seed in range(20):
        drawn = configurations.sample(D, SetLaw(C, q, kind), samples, seed)
        for counts, share in zip(drawn.counts, drawn.probability, strict=True):
            found[key(counts)] += share / 20
        sums = np.bincount(totals(drawn, D), drawn.probability, width)
        exact = np.bincount(totals(whole, D), whole.probability, width)
        assert np.abs(sums - exact).max() <= 1.0001 / samples
    for which, chance in law.items():
        error = np.sqrt(chance / (20 * samples))
        assert abs(found[which] - chance) < 5 * error + 1e-9


def key(counts):
    return tuple(sorted(map(tuple, counts[1:].tolist())))


def totals(rows, D):
    """Sum of all patches of each configuration, from -D on."""
    return (D + rows.counts @ (1, -1) @ np.ones(rows.counts.shape[1])).astype(int)
