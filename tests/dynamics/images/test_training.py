"""Networks on images and their trials: what they see, Adam against its formula, interruptions."""

import os
import signal
from dataclasses import replace

import jax
import numpy as np
import pytest
from scipy.signal import correlate2d
from small_images import write_bars

from dynamics.images import datasets, protocol
from dynamics.images.datasets import shuffled
from dynamics.images.networks import Convolution, Transformer, patches_of
from dynamics.images.protocol import Trial, estimate
from dynamics.images.reconstruction import Reconstruction, attention
from dynamics.images.training import Adam, Classification, accuracy, train
from dynamics.training.checkpoint import Checkpoint
from dynamics.validation import InvalidRequest

SIDE, CHANNELS, COUNT, CLASSES = 4, 2, 120, 3
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


SMALL = Transformer("positional", patch=2, width=8, heads=2, layers=1, spread=1.0)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return datasets.load(write_bars(tmp_path_factory.mktemp("bars"), side=8))


def trial(**options):
    return Trial(**{"network": SMALL, "records": (0, 4), "adam": Adam(batch=8)} | options)


def test_means_have_the_standard_error_of_independent_seeds():
    random = np.random.default_rng(0)
    draws = random.normal(size=(4000, 5))
    estimates = [estimate(row) for row in draws]
    assert np.std([e.mean for e in estimates]) == pytest.approx(5**-0.5, rel=0.05)
    assert np.mean([e.error**2 for e in estimates]) == pytest.approx(0.2, rel=0.05)
    assert np.isnan(estimate([0.5]).error)
    pairs = [1.0, 3.0], [0.0, 0.0], [-1.0, -1.0]
    assert [estimate(pair).errors for pair in pairs] == [2.0, 0.0, -np.inf]


def test_neighbours_of_the_original_image_are_found_in_the_shuffled_one(images):
    run = protocol.train_trial(images, trial(shuffle=2))
    shuffled, original = run.near(as_shuffled=True), run.near()
    assert shuffled.sum() == original.sum()
    assert not np.array_equal(shuffled, original)
    y, x = np.divmod(run.order, 4)
    for i, j in np.argwhere(original):
        assert abs(y[i] - y[j]) + abs(x[i] - x[j]) == 1


def test_a_run_is_kept_under_its_name_and_another_data_set_is_refused(images, tmp_path):
    first = protocol.train_trial(images, trial(), tmp_path)
    again = protocol.train_trial(images, trial(), tmp_path)
    np.testing.assert_array_equal(first.accuracy, again.accuracy)
    assert [path.name for path in tmp_path.iterdir()] == [f"{trial().name}.checkpoint"]
    other = replace(images, train=images.train._replace(labels=1 - images.train.labels))
    with pytest.raises(InvalidRequest, match="another run"):
        protocol.train_trial(other, trial(), tmp_path)


def test_blocks_that_cut_patches_are_refused(images):
    for size, message in ((1, r"shuffle=1 does not fit patch=2.*nearest: 2"), (8, "shuffle=8")):
        with pytest.raises(InvalidRequest, match=message):
            protocol.check_shuffle(images, SMALL, size)
    protocol.check_shuffle(images, SMALL, 4)
