"""Classes of entries and of samples from numbers typed by hand: what must be one class or not."""

import numpy as np
import pytest
from trainings import HandTraining

from theory.closure.partition import random_state, refine_entries, split_samples
from theory.law import ModelError


def refined(gradient, start, **options):
    return refine_entries(HandTraining(gradient, start, **options), np.random.default_rng(0))


def test_equal_gradients_are_one_class_and_others_are_not():
    target = np.array([1.0, 1.0, 2.0])
    classes = refined(lambda a: a - target, np.zeros(3))
    assert classes.labels.tolist() == [0, 0, 1]
    assert classes.sizes.tolist() == [2, 1]


def test_opposite_entries_are_one_class_with_signs():
    target = np.array([1.0, -1.0, 1.0])
    classes = refined(lambda a: a - target, np.zeros(3))
    assert classes.labels.tolist() == [0, 0, 0]
    assert classes.signs.tolist() == [1, -1, 1]
    started = refined(lambda a: a * (1 - a**2), np.array([-0.3, 0.3]))
    assert started.labels.tolist() == [0, 0]
    assert started.lift(np.array([-0.7])).tolist() == [-0.7, 0.7]


def test_equal_increments_from_different_starts_are_no_class():
    classes = refined(lambda a: np.full(2, a.sum()), np.array([0.1, 0.2]))
    assert classes.labels.tolist() == [0, 1]


def test_entries_without_a_gradient_never_move():
    classes = refined(lambda a: a * [1, 0, 1] - [1, 0, 1], np.array([0.0, 5.0, 0.0]))
    assert classes.labels.tolist() == [0, -1, 0]
    assert classes.lift(np.array([3.0])).tolist() == [3.0, 5.0, 3.0]


def test_an_entry_that_wakes_late_is_seen():
    """B moves only once a is not 0: at the start its gradient vanishes."""

    def gradient(state):
        a, b = state
        return np.array([a - 1, a**2 * (b - 1)])

    assert refined(gradient, np.zeros(2)).labels.tolist() == [0, 1]


def test_arrays_of_very_different_scales_have_tolerances_of_their_own():
    """One tolerance for all would merge the three entries of the first array."""
    target = np.array([1.0, 1.0 + 1e-3, 1.0, 1.0, 2.0])
    scale = np.array([1e-10, 1e-10, 1e-10, 1.0, 1.0])
    classes = refined(lambda a: scale * (a - target), np.zeros(5), arrays=[0, 0, 0, 1, 1])
    assert classes.labels.tolist() == [0, 1, 0, 2, 3]


@pytest.mark.parametrize("wanted", [[0, 0, 1, 1, 0, 2], [0, 1, 2, 3, 4, 5], [0, 0, 0, 0, 0, 0]])
def test_a_random_symmetric_gradient_gives_its_orbits_back(wanted):
    """g_i depends on i only by its class: the classes found are these and no coarser ones."""
    labels = np.array(wanted)
    couplings = np.random.default_rng(1).standard_normal((6, 6))

    def gradient(a):
        means = np.array([a[labels == k].mean() for k in range(labels.max() + 1)])
        pull = couplings[: means.size, : means.size] @ means + np.arange(1, means.size + 1)
        return np.tanh(0.3 * pull)[labels]

    assert refined(gradient, np.zeros(6)).labels.tolist() == wanted


def test_a_state_of_a_run_refines_classes_found_before():
    def gradient(a):
        return a - 8 + np.array([3.0 * (a[0] > 5), 0.0])

    training = HandTraining(gradient, np.zeros(2))
    generator = np.random.default_rng(0)
    before = refine_entries(training, generator)
    assert before.count == 1
    after = refine_entries(training, generator, [np.array([6.0, 6.0])], before)
    assert after.labels.tolist() == [0, 1]
    assert (after.splits[0].first, after.splits[0].second) == (0, 1)


def test_points_that_are_not_finite_are_drawn_again_nearer():
    def gradient(a):
        with np.errstate(divide="ignore"):
            return 1 / np.maximum(0.05 - np.abs(a), 0.0)

    classes = refined(gradient, np.zeros(2))
    assert classes.labels.tolist() == [0, 0]


def test_a_gradient_that_is_not_finite_at_the_start_is_refused():
    with pytest.raises(ModelError, match=r"gradient at the start is nan \(entry 1\)"):
        refined(lambda a: np.array([1.0, np.nan]), np.zeros(2))


def test_projection_lift_and_residual_fit_together():
    classes = refined(lambda a: a - [1, -1, 2], np.zeros(3))
    state = random_state(classes, np.random.default_rng(3), 1.0)
    np.testing.assert_array_equal(classes.lift(classes.project(state)), state)
    assert np.abs(classes.residual(state)).max() == 0
    off = np.array([1.0, 1.0, 0.0])
    np.testing.assert_allclose(classes.residual(off), off)


def test_a_difference_of_rounding_does_not_split():
    noise = 1e-16 * np.arange(3)
    assert refined(lambda a: a - 1 + noise, np.zeros(3)).count == 1


def test_a_difference_above_rounding_splits():
    offset = np.array([0.0, 0.0, 1e-11])
    assert refined(lambda a: a - 1 + offset, np.zeros(3)).labels.tolist() == [0, 0, 1]


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
