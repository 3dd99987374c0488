"""What is refused, samples and starts of the law, and which tokens go or are noise."""

import numpy as np
import pytest

import dynamics
from dynamics.papers.shallow_vit import sampling
from dynamics.papers.shallow_vit.empirical import TokenTraining, noisy_tokens
from dynamics.papers.shallow_vit.parameters import Parameters
from dynamics.papers.shallow_vit.starts import random_start
from dynamics.validation import InvalidRequest
from theory.papers.shallow_vit.data_law import SPARSIFIERS


def test_a_flow_is_refused(system):
    problem = system.ReducedPopulation(system.Parameters(m=24))
    with pytest.raises(InvalidRequest, match="time=10 asks for a gradient flow"):
        dynamics.flow(problem, 10)
    assert not system.flows


@pytest.mark.parametrize("data", ["fixed", "fixed_disc", "iid"])
def test_samples_are_balanced_nested_and_of_the_law(system, data):
    parameters = system.Parameters(data=data)
    few, many = (
        sampling.count_vectors(parameters, n, sampling.streams(5).training) for n in (301, 4000)
    )
    assert (many.counts[:301] == few.counts).all()
    assert (many.labels == np.tile([1, -1], 2000)).all()
    assert (many.counts.sum(axis=1) == 50).all()
    star = np.where(many.labels > 0, many.counts[:, 0], many.counts[:, 1])
    confusion = np.where(many.labels > 0, many.counts[:, 1], many.counts[:, 0])
    assert (star > confusion).all()
    if data != "iid":
        assert (np.unique(star), np.unique(confusion)) == (25, 3)
    assert star.mean() == pytest.approx(parameters.n_star, abs=0.3)
    others = many.counts[:, 2:].mean(axis=0)
    assert others == pytest.approx(np.full(3, 22 / 3) if data != "fixed" else [8, 7, 7], abs=0.2)


def test_places_stand_for_their_counts_and_noise_has_its_size(system):
    parameters = system.Parameters(noise=0.3)
    found = sampling.count_vectors(parameters, 40, sampling.streams(1).training)
    streams = sampling.streams(1)
    seen = noisy_tokens(parameters, 40, TokenTraining(), streams.training, streams.tokens)
    for row, counts in zip(seen.patterns, found.counts, strict=True):
        assert (np.bincount(row, minlength=5) == counts).all()
    per_position = system.Parameters(output_weights="per_position")
    alone = sampling.vectors(per_position, 40, sampling.streams(1))
    assert (alone.sequences == seen.patterns).all()
    assert (seen.values - np.eye(10)[seen.patterns]).std() == pytest.approx(0.3, rel=0.02)


def test_the_start_is_that_of_assumption_1(system):
    parameters = system.Parameters(m=400, sigma=0.3, delta=0.4, d=12, output_weights="per_position")
    made = random_start(parameters, sampling.streams(2).start)
    assert made.a.shape == (400, 50)
    assert np.unique(np.abs(made.a)) == pytest.approx([1 / 20])
    assert made.a.mean() == pytest.approx(0, abs=1e-3)
    assert np.abs(made.p.T @ made.p - np.eye(5)).max() < 1e-14
    errors = np.linalg.norm(made.W_V[:, :5] - made.p, axis=0)
    assert errors == pytest.approx(np.full(5, 0.3), rel=1e-12)
    assert made.W_O.std() == pytest.approx(0.01, rel=0.05)
    calm = random_start(system.Parameters(m=400, delta=0.0, d=12), sampling.streams(2).start)
    assert (calm.W_K == calm.W_Q).all()
    assert np.abs(calm.W_K.T @ calm.W_K - np.eye(12)).max() < 1e-14
    assert np.linalg.norm((made.W_K - calm.W_K)[:, :5], axis=0) == pytest.approx(np.full(5, 0.4))
    assert (made.W_K[:, 5:] == calm.W_K[:, 5:]).all()
    assert (calm.W_O == made.W_O).all()


SIZES = {"M": 4, "L": 20, "alpha_star": 0.3, "alpha_confusion": 0.1, "d": 6}


def tokens(seed=0, samples=30, parameters=None, **options):
    given = parameters or Parameters(**SIZES, data="fixed_disc")
    streams = sampling.streams(seed)
    return noisy_tokens(given, samples, TokenTraining(**options), streams.training, streams.tokens)


def by_kind(found):
    return np.stack([(found.kinds == kind).sum(axis=1) for kind in range(3)], axis=1)


@pytest.mark.parametrize("kind", SPARSIFIERS)
def test_the_same_number_goes_everywhere_and_the_rest_is_as_it_was(kind):
    whole, part = tokens(), tokens(sparsify=kind, removed=0.25)
    assert part.values.shape == (30, 15, 6)
    for n in range(30):
        rows = [row.tobytes() for row in whole.values[n]]
        places = [rows.index(row.tobytes()) for row in part.values[n]]
        assert places == sorted(places)
        assert (whole.kinds[n][places] == part.kinds[n]).all()
        assert (whole.patterns[n][places] == part.patterns[n]).all()


def test_irrelevant_tokens_go_before_confusion_before_relevant():
    expected = {0.3: [6, 2, 6], 0.6: [6, 2, 0], 0.7: [6, 0, 0], 0.85: [3, 0, 0]}
    for removed, counts in expected.items():
        found = tokens(sparsify="irrelevant", removed=removed)
        assert (by_kind(found) == counts).all()


def test_the_noisiest_are_the_noisy_ones():
    many = tokens(samples=3000, noisy_share=0.5, noisy_std=2.0)
    noise = many.values - np.eye(6)[many.patterns]
    loud = np.sqrt((noise**2).mean(axis=2)) > 0.2
    assert noise[loud].std() == pytest.approx(2.0, rel=0.01)
    assert noise[~loud].std() == pytest.approx(0.01, rel=0.01)
    np.testing.assert_allclose(loud.mean(axis=0), 0.5, atol=0.05)
    options = {"noisy_share": 0.2, "noisy_std": 1.0}
    whole, part = tokens(**options), tokens(**options, sparsify="noisiest", removed=0.2)
    far = np.linalg.norm(whole.values - np.eye(6)[whole.patterns], axis=2)
    assert ((far > 0.2).sum(axis=1) == 4).all()
    assert np.linalg.norm(part.values - np.eye(6)[part.patterns], axis=2).max() < 0.1


@pytest.mark.parametrize(("share", "noisy"), [(0.5, 3), (0.1, 1), (0.29, 1)])
def test_halves_of_a_token_are_noisy(share, noisy):
    short = Parameters(**SIZES | {"L": 5, "alpha_star": 0.6, "alpha_confusion": 0.2}, noise=0.0)
    found = tokens(parameters=short, noisy_share=share)
    far = np.abs(found.values - np.eye(6)[found.patterns]).max(axis=2) > 0
    assert (far.sum(axis=1) == noisy).all()
