"""The Hessian by every trained entry: against differences, brute force and the reduction."""

import numpy as np
import pytest

from dynamics.papers.positional_attention.manifold import Manifold, hessian, representatives
from theory.symmetry import Partition


@pytest.mark.parametrize("p", [3, 5])
def test_hessian_is_the_slope_of_the_gradient(system, p):
    """Block by block, because alpha bends 1e3 times more than A."""
    parameters = system.Parameters(D=8, C=2, q=0.4, p=p, scale=0.7, beta=0.8)
    full = system.FullPopulation(parameters, Partition(np.array([0, 1, 2, 3, 3, 1, 0, 2])))
    matrix = 0.4 * np.random.default_rng(0).normal(size=(8, 8))
    np.fill_diagonal(matrix, parameters.beta)
    state, width = full.layout.flatten((0.15, matrix)), 1e-3
    trained = Manifold(parameters, full).trained
    found, wanted = hessian(state, full.law, parameters)[np.ix_(trained, trained)], []
    for k in trained:
        step = width * np.eye(state.size)[k]
        near, far = (full.gradient(state + m * step) - full.gradient(state - m * step)
                     for m in (1, 2))  # fmt: skip
        wanted.append((8 * near - far)[trained] / (12 * width))
    wanted = np.array(wanted).T
    for block in (np.s_[:1, :1], np.s_[:1, 1:], np.s_[1:, :1], np.s_[1:, 1:]):
        error = np.abs(found[block] - wanted[block]).max()
        assert error < 1e-6 * np.abs(wanted[block]).max()


@pytest.mark.parametrize(("D", "C", "q"), [(8, 2, 0.5), (9, 3, 0.6), (8, 4, 0.5)])
def test_multisets_averaged_over_the_group_are_brute_force(system, D, C, q):
    parameters = system.Parameters(D=D, C=C, q=q)
    quick = Manifold(parameters)
    brute = Manifold(parameters, system.FullPopulation(parameters))
    for state in ((0.13, 0.4, -0.2), (0.08, 2.0, -1.5)):
        wanted = brute.hessian(state)
        assert np.abs(quick.hessian(state) - wanted).max() < 1e-12 * np.abs(wanted).max()
    probability = representatives(parameters)[1]
    assert probability.sum() == pytest.approx(1, abs=1e-14)
    assert probability.size < brute.full.law[1].size
