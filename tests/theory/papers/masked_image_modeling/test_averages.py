"""What the lemmas state at numbers: against slow loops, slopes of the loss, and each other."""

import itertools

import naive
import numpy as np
import pytest

from theory.papers.masked_image_modeling.averages import paper_values, stated_gradient
from theory.papers.masked_image_modeling.images import ImageLaw
from theory.papers.masked_image_modeling.positions_alone import least_by_positions, position_loss
from theory.papers.masked_image_modeling.rows import Rows
from theory.papers.masked_image_modeling.symmetry import one_cluster, row_types

LAW = ImageLaw(np.array([[0, 0, 1, 1, 2]]), 2, (0.7, 1.3), (0.4, 0.6))
CROSSED = ImageLaw(np.array([[0, 0, 1, 1, 2], [0, 1, 0, 2, 1]]), 2, (0.5, 1.5), (0.5, 0.5))


def test_statements_are_the_slope_of_the_loss():
    draws = np.random.default_rng(0)
    phi, ups = draws.normal(size=(5, 3)), draws.normal(size=(5, 5))
    found = paper_values(LAW, phi, ups)
    latents = list(zip(LAW.z, LAW.odds, strict=True))
    for p in (0, 2):
        row, areas = (phi[p], ups[p]), LAW.area_ids.tolist()
        alpha, beta = naive.masked_rates(areas, p, 2, latents, row)
        assert found.loss[p] == pytest.approx(naive.masked_patch(areas, p, 2, latents, row))
        np.testing.assert_allclose(found.alpha[p], alpha, atol=1e-9)
        np.testing.assert_allclose(found.beta[0, p], beta, atol=1e-9)
    positions, features = np.eye(8)[:5], np.eye(8)[5:]
    Q = positions.T @ (ups @ positions + phi @ features)
    slope = positions @ stated_gradient(LAW, positions, features, Q)
    np.testing.assert_allclose(-slope @ features.T, found.alpha, atol=1e-14)
    np.testing.assert_allclose(-slope @ positions.T, found.beta.sum(axis=0), atol=1e-14)


def test_an_attention_map_is_that_of_single_scores():
    areas = np.array(one_cluster(10, 4, 3)).reshape(1, -1)
    rows = Rows(ImageLaw(areas, 4), row_types(areas))
    state = np.random.default_rng(2).normal(size=len(rows.scalars))
    found, values = rows.attention_map(state, z=1.2), dict(zip(rows.scalars, state, strict=True))
    keys = np.empty((10, 10))
    for p, q in itertools.product(range(10), repeat=2):
        one, other = int(areas[0, p]), int(areas[0, q])
        place = "own" if other == one else "global" if not other else "other" if one else "local"
        row, feature = "local" if one else "global", "target" if one and place == "own" else place
        ups = values[f"{row}_Ups_{'self' if p == q else place}"]
        keys[p, q] = np.exp(ups + 1.2 * values[f"{row}_Phi_{feature}"])
    np.testing.assert_allclose(found, keys / keys.sum(axis=1, keepdims=True), rtol=1e-12)


def test_the_least_loss_of_positions_is_no_larger_than_that_of_any_attention():
    least = least_by_positions(CROSSED, 2)
    assert least.upper - least.lower < 1e-7
    assert least.attention.sum() == pytest.approx(1.0)
    loss = position_loss(CROSSED, 2)
    draws = np.random.default_rng(2).dirichlet(np.full(5, 0.3), size=2000)
    values = [loss.value(u) for u in draws]
    assert least.lower <= min(values)
    assert least.upper == pytest.approx(min(values), rel=0.2)
