"""One network of the protocol: what a seed decides, and where neighbours are after shuffling."""

from dataclasses import replace

import numpy as np
import pytest
from small_images import write_bars

from dynamics.images import datasets, protocol
from dynamics.images.networks import Transformer
from dynamics.images.protocol import Trial, estimate
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
