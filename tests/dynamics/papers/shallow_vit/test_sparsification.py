"""Which tokens go, and what is noise: of training and test samples alike."""

import numpy as np
import pytest

from dynamics.papers.shallow_vit import sampling
from dynamics.papers.shallow_vit.empirical import TokenTraining, noisy_tokens
from dynamics.papers.shallow_vit.parameters import Parameters
from theory.papers.shallow_vit.data_law import SPARSIFIERS

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
    options = {"noisy_share": 0.2, "noisy_std": 1.0}
    whole, part = tokens(**options), tokens(**options, sparsify="noisiest", removed=0.2)
    far = np.linalg.norm(whole.values - np.eye(6)[whole.patterns], axis=2)
    assert ((far > 0.2).sum(axis=1) == 4).all()
    assert np.linalg.norm(part.values - np.eye(6)[part.patterns], axis=2).max() < 0.1


def test_noise_has_its_spread_and_noisy_tokens_theirs():
    many = tokens(samples=3000, noisy_share=0.5, noisy_std=2.0)
    noise = many.values - np.eye(6)[many.patterns]
    size = np.sqrt((noise**2).mean(axis=2))
    loud = noise[size > 0.2]
    assert loud.size == noise.size // 2
    assert loud.std() == pytest.approx(2.0, rel=0.01)
    assert noise[size <= 0.2].std() == pytest.approx(0.01, rel=0.01)
    places = (size > 0.2).mean(axis=0)
    np.testing.assert_allclose(places, 0.5, atol=0.05)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"sparsify": "random", "removed": 1.0}, "removes every token of L=20"),
        ({"removed": 0.2}, "which tokens to remove first"),
        ({"sparsify": "some", "removed": 0.2}, "irrelevant"),
        ({"sparsify": "random", "removed": -0.1}, "removed=-0.1"),
        ({"noisy_std": -1}, "noisy_std=-1"),
    ],
)
def test_wrong_requests_are_refused_in_one_line(options, word):
    with pytest.raises(ValueError, match=word) as refusal:
        tokens(**options)
    assert "nearest" in str(refusal.value)


@pytest.mark.parametrize(("share", "noisy"), [(0.5, 3), (0.1, 1), (0.29, 1)])
def test_halves_of_a_token_are_noisy(share, noisy):
    short = Parameters(**SIZES | {"L": 5, "alpha_star": 0.6, "alpha_confusion": 0.2}, noise=0.0)
    found = tokens(parameters=short, noisy_share=share)
    far = np.abs(found.values - np.eye(6)[found.patterns]).max(axis=2) > 0
    assert (far.sum(axis=1) == noisy).all()
