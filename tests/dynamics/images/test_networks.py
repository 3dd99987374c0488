"""Networks on images and masked reconstruction: what they see, and what they cannot see."""

import jax
import numpy as np
import pytest
from scipy.signal import correlate2d

from dynamics.images.datasets import shuffled
from dynamics.images.networks import Convolution, Transformer, patches_of
from dynamics.images.reconstruction import Reconstruction, attention

SIDE, CHANNELS = 4, 2
KINDS = ("vanilla", "positional")


def pixels(count=3, side=SIDE, seed=0):
    return np.random.default_rng(seed).normal(size=(count, side, side, CHANNELS)).astype("f4")


def network(attention, **options):
    return Transformer(attention, width=8, heads=2, spread=1.0, **options)


def started(model, seed=1, side=SIDE):
    theta = model.start(side, CHANNELS, 5, seed)
    theta["head"] = np.random.default_rng(seed).normal(size=theta["head"].shape).astype("f4")
    return theta


@pytest.mark.parametrize(("attention", "patch"), [("vanilla", 1), ("positional", 2)])
def test_shuffled_images_are_images_at_other_positions(attention, patch):
    """Exactly indifferent: blocks in another order are positions in another order."""
    model = network(attention, patch=patch)
    theta, images = started(model), pixels()
    order = np.random.default_rng(2).permutation((SIDE // patch) ** 2)
    moved = dict(theta, position=theta["position"][order])
    before = np.asarray(model.outputs(theta, images))
    after = np.asarray(model.outputs(moved, shuffled(images, order, patch)))
    np.testing.assert_allclose(after, before, atol=1e-5)
    unmoved = np.asarray(model.outputs(theta, shuffled(images, order, patch)))
    assert np.abs(unmoved - before).max() > 1e-2


@pytest.mark.parametrize("attention", KINDS)
def test_attention_is_stochastic_and_positional_attention_sees_no_pixels(attention):
    model = network(attention)
    theta = started(model)
    maps = [model.forward(theta, model.embedded(theta, pixels(seed=s)))[1] for s in (0, 1)]
    first, second = map(np.asarray, maps)
    assert first.shape == (2, 3 if attention == "vanilla" else 1, 2, 16, 16)
    np.testing.assert_allclose(first.sum(axis=-1), 1, atol=1e-5)
    assert (np.abs(first - second).max() < 1e-7) == (attention == "positional")


def test_positional_scores_are_those_of_definition_3_2():
    model = network("positional")
    theta = started(model)
    P, weights = theta["position"], [theta[name][1][:, :4] for name in ("query", "key")]
    scores = (P @ weights[0]) @ (P @ weights[1]).T / 2.0
    np.testing.assert_allclose(model.scores(theta, 1, P[None])[0, 0], scores, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("attention", KINDS)
def test_patches_that_are_dropped_are_not_seen(attention):
    model = network(attention)
    theta, images = started(model), pixels()
    present = np.random.default_rng(3).random((3, 16)) < 0.5
    present[:, 0] = True
    changed = np.where(present.reshape(3, SIDE, SIDE)[..., None], images, 7.0)
    before = model.outputs(theta, images, present)
    np.testing.assert_allclose(model.outputs(theta, changed, present), before, atol=1e-6)
    assert np.abs(model.outputs(theta, changed) - model.outputs(theta, images)).max() > 1e-2
    whole = model.outputs(theta, images, np.ones((3, 16), bool))
    np.testing.assert_allclose(whole, model.outputs(theta, images), atol=1e-5)


def test_a_layer_of_filters_is_a_correlation():
    model = Convolution((3,))
    theta, images = started(model), pixels(1)
    filters = theta["filters_0"].reshape(3, 3, CHANNELS, 3)
    correlated = lambda c, k: correlate2d(images[0, :, :, c], filters[:, :, c, k], "same")  # noqa: E731
    expected = [sum(correlated(c, k) for c in range(CHANNELS)) for k in range(3)]
    outputs = np.maximum(expected, 0).mean(axis=(1, 2)) @ theta["head"]
    np.testing.assert_allclose(model.outputs(theta, images)[0], outputs, rtol=1e-4, atol=1e-5)


TASK = Reconstruction(Transformer(patch=1, width=8, heads=2, layers=1, spread=1.0), masked=0.5)


def test_hidden_patches_are_not_seen():
    theta, images = TASK.start(4, 1, 0), pixels()[..., :1]
    theta["head"] = np.random.default_rng(1).normal(size=theta["head"].shape).astype("f4")
    hidden = np.random.default_rng(2).random((3, 16)) < 0.5
    changed = np.where(hidden.reshape(3, SIDE, SIDE, 1), 9.0, images).astype("f4")
    before = TASK.filled(theta, images, hidden)
    np.testing.assert_allclose(TASK.filled(theta, changed, hidden), before, atol=1e-6)
    whole = np.zeros_like(hidden)
    difference = TASK.filled(theta, images, whole) - TASK.filled(theta, changed, whole)
    assert np.abs(difference).max() > 1e-2
    maps = attention(TASK.network, theta, images, -1)  # that of whole images
    assert maps.shape == (3, 2, 16, 16)
    np.testing.assert_allclose(maps.sum(axis=-1), 1, atol=1e-12)
    _, every = TASK.network.forward(theta, TASK.network.embedded(theta, images))
    np.testing.assert_allclose(maps, every[-1], atol=1e-6)


def test_the_loss_is_the_mean_square_over_half_of_the_patches():
    """Without a head all patches are filled with zero: the loss is their mean square."""
    theta, pixels = TASK.start(4, 1, 0), np.full((5, 4, 4, 1), 3.0, np.float32)
    assert float(TASK.loss(theta, (pixels,), jax.random.key(0))) == 9.0
    uneven = np.zeros((1, 4, 4, 1), np.float32)
    uneven[0, 0] = 4.0
    losses = [float(TASK.loss(theta, (uneven,), jax.random.key(k))) for k in range(400)]
    assert abs(np.mean(losses) - (patches_of(uneven, 1) ** 2).mean()) < 0.3
    assert len(set(losses)) > 2  # masks are drawn anew
    assert set(np.round(np.array(losses) * 8 / 16)) <= {0, 1, 2, 3, 4}
