"""Kernels over the configurations against sums that gather every set, the signal set too."""

import numpy as np
import pytest

import dynamics
from dynamics.systems.positional_attention.kernels import reduced as kernels
from dynamics.systems.positional_attention.reduced import configurations
from theory.papers.positional_attention.data_law import SetLaw

SYSTEM = dynamics.load_system("positional_attention")


@pytest.fixture(params=[2, 3, 4, 5, 6, 7], ids=lambda sets: f"L={sets}")
def rows(request):
    return configurations.enumeration(2 * request.param, SetLaw(2, 0.4))


@pytest.mark.parametrize("size", [1.0, 400.0], ids=["products", "sums"])
def test_a_weight_is_that_of_all_sets(rows, size):
    kinds, columns = rows.sum_index.size, rows.latents[2].size
    table = size * np.random.default_rng(0).normal(size=(kinds, columns))
    margin = table.ravel()[rows.index].sum(axis=0)
    chance = np.empty(margin.size)
    kernels.spread_signal(table, rows)
    assert table.ravel()[rows.index[1:]].sum(axis=0) == pytest.approx(margin, abs=1e-10 * size)
    products = (len(rows.index) - 1) * np.abs(table).max() < kernels.SAFE_EXPONENT
    assert products == (size == 1.0)
    kernels.weigh(table, rows, np.empty(table.size), chance)
    naive = rows.probability * np.exp(-np.logaddexp(0.0, margin))
    assert chance == pytest.approx(naive, rel=1e-11, abs=1e-290)


def test_weights_go_back_to_the_entries_of_all_sets(rows):
    chance = np.random.default_rng(1).uniform(size=rows.probability.size)
    total = np.empty(rows.sum_index.size * rows.latents[2].size)
    kernels.scatter(chance, rows, total)
    naive = np.zeros(total.size)
    for held in rows.index:
        np.add.at(naive, held, chance)
    assert total == pytest.approx(naive, rel=1e-13)


def test_a_share_that_no_configuration_has_hides_no_error(monkeypatch):
    """With q = 1 a set of two has no sum of 1 or -1: shares of these may be no number."""
    problem = SYSTEM.ReducedPopulation(SYSTEM.Parameters(D=8, C=2, q=1.0), "exact")
    data, out = problem._data, np.empty(2)

    def shares(state, constants, latents, parts):
        parts[:3] = -np.abs(np.random.default_rng(2).normal(size=parts[:3].shape))
        parts[:3, [1, 3]] = np.nan

    monkeypatch.setattr(kernels, "share_table", shares)
    kernels.summary(np.ones(3), data, out)
    assert np.isfinite(out[0])
    assert out[1] == pytest.approx(1.0)  # every margin is negative
