"""Which samples a step takes: new batches every epoch, decided by the number of the step alone."""

import numpy as np
import pytest

from dynamics.training.minibatches import MiniBatches


@pytest.mark.parametrize(("samples", "size"), [(12, 4), (13, 4), (5, 1), (7, 6)])
def test_every_epoch_takes_every_sample_once(samples, size):
    many = -(-samples // size)
    for epoch in range(20):
        dealt = MiniBatches(3, samples, size).members(epoch * many, (epoch + 1) * many)
        assert [part.size for part in dealt[:-1]] == [size] * (many - 1)
        assert sorted(np.concatenate(dealt)) == list(range(samples))
        assert all((np.diff(part) > 0).all() for part in dealt)


def test_epochs_differ_in_their_batches():
    """In who is together, not only in the order; and every pair meets as often as chance has it."""
    together, epochs = np.zeros((12, 12)), 600
    for part in MiniBatches(0, 12, 4).members(0, 3 * epochs):
        together[np.ix_(part, part)] += 1
    pairs = together[np.triu_indices(12, 1)]
    assert abs(pairs - epochs * 3 / 11).max() < 5 * np.sqrt(epochs * 3 / 11 * 8 / 11)
    one, other = (MiniBatches(seed, 12, 4).members(0, 30) for seed in (0, 1))
    assert any((a != b).any() for a, b in zip(one, other, strict=True))


def test_the_number_of_the_step_decides():
    whole = MiniBatches(5, 13, 4).members(0, 40)
    for first in range(40):
        for last in range(first, 41):
            dealt = MiniBatches(5, 13, 4).members(first, last)
            assert len(dealt) == last - first
            assert all((a == b).all() for a, b in zip(dealt, whole[first:last], strict=True))


@pytest.mark.parametrize("size", [6, 7, 100])
def test_a_batch_of_all_samples_or_more_is_all_of_them(size):
    for part in MiniBatches(0, 6, size).members(3, 8):
        assert part.tolist() == list(range(6))
