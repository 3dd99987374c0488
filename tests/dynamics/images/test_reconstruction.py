"""Masked reconstruction: what is hidden is not seen, and its attention is on whole images."""

import jax
import numpy as np

from dynamics.images.networks import Transformer, patches_of
from dynamics.images.reconstruction import Reconstruction, attention

NETWORK = Transformer(patch=1, width=8, heads=2, layers=1, spread=1.0)
TASK = Reconstruction(NETWORK, masked=0.5)


def stripes(count=64, seed=0):
    """Images whose rows are constant: a hidden pixel is known from its row."""
    rows = np.random.default_rng(seed).normal(size=(count, 4, 1, 1))
    return np.broadcast_to(rows, (count, 4, 4, 1)).astype(np.float32)


def started():
    theta = TASK.start(4, 1, 0)
    theta["head"] = np.random.default_rng(1).normal(size=theta["head"].shape).astype("f4")
    return theta


def test_hidden_patches_are_not_seen():
    theta, pixels = started(), stripes(3)
    hidden = np.random.default_rng(2).random((3, 16)) < 0.5
    changed = np.where(hidden.reshape(3, 4, 4, 1), 9.0, pixels).astype(np.float32)
    np.testing.assert_allclose(
        TASK.filled(theta, pixels, hidden), TASK.filled(theta, changed, hidden), atol=1e-6
    )
    whole = np.zeros_like(hidden)
    difference = TASK.filled(theta, pixels, whole) - TASK.filled(theta, changed, whole)
    assert np.abs(difference).max() > 1e-2


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


def test_attention_is_that_of_whole_images():
    theta = started()
    maps = attention(NETWORK, theta, stripes(3), -1)
    assert maps.shape == (3, 2, 16, 16)
    np.testing.assert_allclose(maps.sum(axis=-1), 1, atol=1e-12)
    _, every = NETWORK.forward(theta, NETWORK.embedded(theta, stripes(3)))
    np.testing.assert_allclose(maps, every[-1], atol=1e-6)
