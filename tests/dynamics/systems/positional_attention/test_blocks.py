"""The order of samples in memory: chosen by size, without effect on what is computed."""

import naive
import numpy as np
import pytest

import dynamics
from dynamics.systems.positional_attention.full import blocks
from dynamics.systems.positional_attention.full.blocks import Blocking, sample_blocks, samples_of

SYSTEM = dynamics.load_system("positional_attention")


@pytest.mark.parametrize(
    ("size", "depth", "batch", "blocking"),
    [
        (16, 16, 2000, (128, False)),
        (32, 32, 2000, (128, False)),
        (64, 64, 1000, (16, False)),
        (100, 100, 1000, (8, False)),
        (196, 196, 500, (8, True)),
        (196, 196, 3, (3, True)),
        (16, 16, 5, (5, False)),
        (16, 1, 10**6, (128, False)),
    ],
)
def test_blocks_are_chosen_by_size(size, depth, batch, blocking):
    assert Blocking.of(size, depth, 8, batch) == blocking


@pytest.mark.parametrize(
    ("samples", "lanes"), [(1, 4), (255, 4), (256, 8), (500, 8), (512, 16), (10**7, 16)]
)
def test_sums_are_cut_by_the_samples_of_a_step(samples, lanes):
    assert blocks.lanes_for(samples) == lanes


@pytest.mark.parametrize("along", [False, True])
@pytest.mark.parametrize("count", [1, 7, 8, 9, 41])
def test_samples_are_read_back(count, along):
    generator = np.random.default_rng(count)
    patches, labels = generator.normal(size=(count, 5, 3)), generator.choice([-1.0, 1.0], count)
    batch = sample_blocks(patches, labels, np.ones(count), Blocking(8, along))
    assert batch.patches.shape[2:] == ((8, 3) if along else (3, 8))
    assert batch.total == count
    assert batch.weights.sum() == np.abs(batch.labels).sum() == count
    members = generator.permutation(count)
    chosen, signs = samples_of(batch, members)
    np.testing.assert_array_equal(chosen, patches[members])
    np.testing.assert_array_equal(signs, labels[members])


def problem(samples, **options):
    return SYSTEM.FullEmpirical(SYSTEM.Parameters(D=6, C=2, d=21), samples, **options)


@pytest.mark.parametrize("samples", [1, 7, 8, 9, 41])
def test_gradients_along_patches_are_those_of_loops(samples, monkeypatch):
    monkeypatch.setattr(blocks, "LONG", 10**9)
    across = problem(samples)
    monkeypatch.setattr(blocks, "WIDTHS", (8,))
    monkeypatch.setattr(blocks, "LONG", 2)
    along = problem(samples)
    assert (across._data.batch.along, along._data.batch.along) == (False, True)
    for one, other in zip(across.data(), along.data(), strict=True):
        np.testing.assert_array_equal(one, other)
    state = along.initial_state
    value, matrix = along.layout.part(state, "v"), along.layout.part(state, "A")
    risk, by_value, by_matrix = naive.empirical(along.parameters, along.data(), value, matrix)
    np.fill_diagonal(by_matrix, 0.0)
    expected = np.concatenate([by_value, by_matrix.ravel()])
    for made in (across, along):
        np.testing.assert_allclose(made.gradient(state), expected, 1e-10, 1e-13)
        assert made.risk(state) == pytest.approx(risk, rel=1e-12)
        assert made.observables(state)["risk"] == pytest.approx(risk, rel=1e-12)


def test_mini_batches_along_patches_take_the_same_steps(monkeypatch):
    across = dynamics.descend(problem(41, batch=9), 0.05, 30)
    monkeypatch.setattr(blocks, "WIDTHS", (8,))
    monkeypatch.setattr(blocks, "LONG", 2)
    made = problem(41, batch=9)
    assert made.batch(np.arange(9), 0).along
    along = dynamics.descend(made, 0.05, 30)
    np.testing.assert_allclose(along.final_state, across.final_state, 1e-10, 1e-13)
