"""Classes of samples from numbers that equal ones share."""

import numpy as np

from theory.closure.partition import split_samples


def test_samples_with_equal_numbers_are_one_class():
    values = np.array([1.0, 2.0, 1.0, 2.0 + 1e-15, 3.0])
    groups = split_samples(np.zeros(5), [(values, np.full(5, 1e-16))])
    assert groups.labels.tolist() == [0, 1, 0, 1, 2]
    assert groups.first.tolist() == [0, 1, 4]
    np.testing.assert_allclose(groups.summed(np.full(5, 0.2)), [0.4, 0.4, 0.2])


def test_a_second_number_splits_further():
    groups = split_samples(
        np.zeros(4),
        [
            (np.array([1.0, 1.0, 2.0, 2.0]), np.zeros(4)),
            (np.array([5.0, 6.0, 5.0, 5.0]), np.zeros(4)),
        ],
    )
    assert groups.labels.tolist() == [0, 1, 2, 2]


def test_a_number_that_is_not_finite_is_a_class_of_its_own():
    groups = split_samples(np.zeros(3), [(np.array([1.0, np.nan, 1.0]), np.zeros(3))])
    assert groups.labels.tolist() == [0, 1, 0]
