"""Adam on images: against its formula step by step, and from checkpoints to the same end."""

import os
import signal

import jax
import numpy as np
import pytest

from dynamics.images.networks import Convolution, Transformer
from dynamics.images.training import Adam, Classification, accuracy, train
from dynamics.training.checkpoint import Checkpoint
from dynamics.validation import InvalidRequest

SIDE, COUNT, CLASSES = 4, 120, 3
NETWORKS = (
    Transformer("positional", width=8, heads=2, layers=1, spread=1.0), Convolution((4, 4)),
)  # fmt: skip


def data(seed=0):
    """Images whose class is the number of their bright rows."""
    random = np.random.default_rng(seed)
    labels = (np.arange(COUNT) % CLASSES).astype(np.int32)
    pixels = 0.1 * random.normal(size=(COUNT, SIDE, SIDE, 1))
    pixels += (np.arange(SIDE) < labels[:, None])[:, :, None, None]
    return pixels.astype(np.float32), labels


def trained(network, records, seed=0, **options):
    start = network.start(SIDE, 1, CLASSES, seed)
    return train(Classification(network), start, data(), records, seed, Adam(batch=8), **options)


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: type(network).__name__)
def test_networks_learn(network):
    run = trained(network, (0, 300))
    before, after = (accuracy(network, run.theta(k), data(1)) for k in (0, 1))
    assert before < 0.6
    assert after > 0.9
    assert np.isnan(run.loss[0])
    assert run.loss[1] < 1.0


def test_adam_is_that_of_the_formula():
    """All images are in every batch, so that their order does not matter."""
    network, adam = NETWORKS[0], Adam(eta=1e-2, batch=COUNT, warmup=4)
    images, task = data(), Classification(network)
    start = network.start(SIDE, 1, CLASSES, 0)
    run = train(task, start, images, (12,), adam=adam)
    slopes = jax.jit(jax.grad(lambda theta: task.loss(theta, images, None)))
    theta = {name: array.astype(np.float64) for name, array in start.items()}
    mean, square = (dict.fromkeys(theta, 0.0) for _ in range(2))
    for t in range(1, 13):
        slope = slopes({name: np.float32(array) for name, array in theta.items()})
        for name in theta:
            g = np.asarray(slope[name], np.float64)
            mean[name] = 0.9 * mean[name] + 0.1 * g
            square[name] = 0.999 * square[name] + 0.001 * g * g
            m, v = mean[name] / (1 - 0.9**t), square[name] / (1 - 0.999**t)
            theta[name] = theta[name] - 1e-2 * min(1, t / 4) * m / (np.sqrt(v) + 1e-8)
    for name in ("head", "position", "wide"):
        np.testing.assert_allclose(run.theta()[name], theta[name], atol=2e-3)
    assert np.abs(theta["head"]).max() > 0.05


def test_an_interrupted_run_ends_as_one_that_was_not(tmp_path):
    network, records = NETWORKS[0], (0, 130, 350)
    whole = trained(network, records)
    checkpoint, done = Checkpoint(tmp_path / "run.checkpoint"), []

    def stop(steps):
        done.append(steps)
        if sum(done) > 150:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        trained(network, records, checkpoint=checkpoint, progress=stop)
    assert 150 < sum(done) < 350
    resumed = []
    run = trained(network, records, checkpoint=checkpoint, progress=resumed.append)
    assert resumed[0] == sum(done)
    assert sum(resumed) == 350
    for name, array in whole.thetas.items():
        np.testing.assert_array_equal(run.thetas[name], array)
    np.testing.assert_array_equal(run.loss, whole.loss)
    again = trained(network, records, checkpoint=checkpoint, progress=resumed.append)
    assert resumed[-1] == 350
    np.testing.assert_array_equal(again.loss, whole.loss)


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    def run(seed, data):
        checkpoint = Checkpoint(tmp_path / "run.checkpoint")
        return trained(NETWORKS[1], (5,), seed, checkpoint=checkpoint, request={"data": data})

    run(0, "one")
    for seed, data, message in ((0, "two", "data: stored one, requested two"), (1, "one", "seed")):
        with pytest.raises(InvalidRequest, match=message):
            run(seed, data)
    (tmp_path / "run.checkpoint").write_bytes(b"no checkpoint")
    with pytest.raises(InvalidRequest, match="cannot be read"):
        run(0, "one")
