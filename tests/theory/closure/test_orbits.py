"""Classes from a stated symmetry."""

import numpy as np
import pytest

from theory.closure.orbits import generators_of, orbit_classes
from theory.law import ModelError


def generators(stated, axes=("i",), name="a"):
    return generators_of([stated], {name: axes}, {"a": (2,)})


@pytest.mark.parametrize(
    ("signs", "start", "labels", "expected"),
    [
        ([1.0, -1.0], [0.0, 0.0], [-1, -1], [0, 0]),  # its square is -1
        ([-1.0, -1.0], [0.5, -0.5], [0, 0], [1, -1]),
    ],
)
def test_signs_carry_over_and_an_entry_that_is_minus_itself_vanishes(
    signs, start, labels, expected
):
    stated = {"i": (np.array([1, 0]), np.array(signs))}
    made = orbit_classes(np.array(start), generators(stated))
    assert made.labels.tolist() == labels
    assert (made.signs * (made.labels >= 0)).tolist() == expected


def test_a_start_that_is_not_symmetric_is_refused():
    with pytest.raises(ModelError, match=r"start is not symmetric: generator 0 \(i: 1 0\) moves"):
        orbit_classes(np.array([0.1, 0.2]), generators([1, 0]))


@pytest.mark.parametrize(
    ("stated", "axes", "name", "message"),
    [
        ([0, 0], ("i",), "a", "not a permutation of 0..1 on 'i'"),
        ({"j": [1, 0]}, ("i",), "a", "moves 'j', which axes lacks"),
        ([1, 0], ("i",), "b", "does not name the array a"),
        ([1, 0], ("i", "i"), "a", "it has 1 axes"),
        ({"i": (np.arange(2), np.array([2.0, 1.0]))}, ("i",), "a", "signs other than 1 and -1"),
    ],
)
def test_wrong_generators_are_refused(stated, axes, name, message):
    with pytest.raises(ModelError, match=message):
        generators(stated, axes, name)
