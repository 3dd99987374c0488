"""One network of the protocol: what a seed decides, and where neighbours are after shuffling."""

from dataclasses import replace

import numpy as np
import pytest
from small_images import write_bars

from dynamics.images import datasets, protocol
from dynamics.images.networks import Convolution, Transformer
from dynamics.images.protocol import Trial, estimate, patch_order
from dynamics.images.training import Adam
from dynamics.validation import InvalidRequest

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
    assert estimate([1.0, 3.0]).errors == 2.0
    assert (estimate([0.0, 0.0]).errors, estimate([-1.0, -1.0]).errors) == (0.0, -np.inf)


def test_patches_in_moved_blocks_know_where_they_came_from():
    """Each pixel holds its patch; in the shuffled image the patches are those of the order."""
    order = np.random.default_rng(1).permutation(4)
    patches = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    pixels = patches.repeat(2, axis=1).repeat(2, axis=2)
    moved = datasets.shuffled(pixels, order, 4)[:, ::2, ::2]
    np.testing.assert_array_equal(moved.ravel(), patch_order(order, 2))


def test_neighbours_of_the_original_image_are_found_in_the_shuffled_one(images):
    run = protocol.train_trial(images, trial(shuffle=2))
    shuffled, original = run.near(as_shuffled=True), run.near()
    assert shuffled.sum() == original.sum()
    assert not np.array_equal(shuffled, original)
    y, x = np.divmod(run.order, 4)
    for i, j in np.argwhere(original):
        assert abs(y[i] - y[j]) + abs(x[i] - x[j]) == 1


def test_networks_of_a_seed_share_split_order_and_start(images):
    one = protocol.train_trial(images, trial(shuffle=2, seed=3))
    other = protocol.train_trial(
        images, trial(shuffle=2, seed=3, network=replace(SMALL, attention="vanilla"))
    )
    far = protocol.train_trial(images, trial(shuffle=2, seed=4))
    np.testing.assert_array_equal(one.order, other.order)
    np.testing.assert_array_equal(one.run.thetas["position"][0], other.run.thetas["position"][0])
    assert not np.array_equal(one.order, far.order)
    assert one.accuracy.shape == (2,)


def test_a_run_is_kept_under_its_name_and_another_data_set_is_refused(images, tmp_path):
    first = protocol.train_trial(images, trial(), tmp_path)
    again = protocol.train_trial(images, trial(), tmp_path)
    np.testing.assert_array_equal(first.accuracy, again.accuracy)
    assert [path.name for path in tmp_path.iterdir()] == [f"{trial().name}.checkpoint"]
    other = replace(images, train=images.train._replace(labels=1 - images.train.labels))
    with pytest.raises(InvalidRequest, match="another run"):
        protocol.train_trial(other, trial(), tmp_path)


def test_names_of_trials_differ():
    networks = [SMALL, replace(SMALL, spread=0.1), replace(SMALL, patch=1), Convolution()]
    trials = [Trial(n, seed, move) for n in networks for seed in (0, 1) for move in (0, 2)]
    assert len({each.name for each in trials}) == len(trials)


def test_blocks_that_cut_patches_are_refused(images):
    with pytest.raises(InvalidRequest, match=r"shuffle=1 cannot be at patch=2.*nearest: 2"):
        protocol.check_shuffle(images, SMALL, 1)
    with pytest.raises(InvalidRequest, match="shuffle=8"):
        protocol.check_shuffle(images, SMALL, 8)
    protocol.check_shuffle(images, SMALL, 4)


def test_the_scores_at_a_record_are_of_that_record(images):
    run = protocol.train_trial(images, trial())
    assert run.scores().shape == (2, 16, 16)
    assert not np.array_equal(run.scores(0), run.scores(1))
    assert run.association("gram").contrast.shape == (1,)
    first, last = (run.association("gram", record).contrast for record in (0, 1))
    assert last == run.association("gram").contrast != first
    assert run.association("scores").contrast.shape == (2,)


def test_one_seed_has_no_error():
    assert str(estimate([0.25])) == "0.2500 (one seed)"
    assert str(estimate([0.25, 0.25])) == "0.2500 ± 0.0000"


def test_a_patch_as_large_as_the_image_leaves_nothing_to_shuffle(images):
    with pytest.raises(InvalidRequest) as refusal:
        protocol.check_shuffle(images, replace(SMALL, patch=8), 8)
    assert str(refusal.value) == (
        "patch=8 makes one patch of 8 x 8 pixels: nothing to shuffle; patch can be one of 1, 2, 4; "
        "nearest: 4"
    )
