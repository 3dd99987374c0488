"""Patch association: uniform p-values where there is none, small ones where there is."""

import numpy as np
import pytest
from scipy.stats import kstest

from dynamics.images.association import association, neighbours, strata
from dynamics.images.networks import Transformer

GRID = 6
NEAR = neighbours(GRID, GRID)
STARTS = 40


def scores(seed):
    """Gram matrix of the positions and scores of all heads, of a network at its start."""
    model = Transformer("positional", width=16, heads=4, layers=2)
    theta = model.start(GRID, 1, 10, seed)
    P = theta["position"]
    heads = [np.asarray(model.scores(theta, layer, P[None])[0]) for layer in range(2)]
    return {"gram": P @ P.T, "scores": np.concatenate(heads)}


@pytest.mark.parametrize("which", ["gram", "scores"])
def test_p_values_of_starts_are_uniform(which):
    found = [association(scores(seed)[which], NEAR, seed, 199) for seed in range(STARTS)]
    for values in ([each.p_value for each in found], [each.either for each in found]):
        assert kstest(values, "uniform").pvalue > 0.01
        assert 0.3 < np.mean(values) < 0.7


def test_the_contrast_is_a_difference_of_means():
    matrices = np.random.default_rng(0).normal(size=(3, GRID**2, GRID**2))
    others = ~NEAR & ~np.eye(GRID**2, dtype=bool)
    found = association(matrices, NEAR, relabellings=9)
    for matrix, contrast in zip(matrices, found.contrast, strict=True):
        rows = [matrix[i] - np.delete(matrix[i], i).mean() for i in range(GRID**2)]
        spread = np.sqrt((np.array(rows)[~np.eye(GRID**2, dtype=bool)] ** 2).mean())
        expected = (np.array(rows)[NEAR].mean() - np.array(rows)[others].mean()) / spread
        assert contrast == pytest.approx(expected)


def test_positions_that_follow_the_variance_are_no_association_within_strata_of_it():
    """Relabelled freely they are the strongest that 999 relabellings can say."""
    near, free, within = neighbours(8, 8), [], []
    variance = pytest.importorskip("sklearn.datasets").load_digits().images.var(axis=0).ravel()
    level = np.sqrt(variance / variance.max())
    for seed in range(20):
        random = np.random.default_rng(seed)
        positions = random.normal(size=(64, 16)) + np.outer(4 * level, random.normal(size=16))
        gram = positions @ positions.T
        free.append(association(gram, near, seed).p_value)
        within.append(association(gram, near, seed, within=strata(variance)).p_value)
    assert max(free) == 0.001
    assert np.median(within) > 0.05
