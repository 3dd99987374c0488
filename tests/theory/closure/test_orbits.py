"""Classes from a stated symmetry."""

import numpy as np
import pytest

from theory.closure.orbits import generators_of, orbit_classes
from theory.law import ModelError


def test_signs_carry_over_and_an_entry_that_is_minus_itself_vanishes():
    flip = {"i": (np.array([1, 0]), np.array([1.0, -1.0]))}
    made = orbit_classes(np.zeros(2), generators_of([flip], {"a": ("i",)}, {"a": (2,)}))
    # a_0 -> a_1 -> -a_0: the square of the generator is -1.
    assert made.labels.tolist() == [-1, -1]
    swap = {"i": (np.array([1, 0]), np.array([-1.0, -1.0]))}
    made = orbit_classes(np.array([0.5, -0.5]), generators_of([swap], {"a": ("i",)}, {"a": (2,)}))
    assert made.labels.tolist() == [0, 0]
    assert made.signs.tolist() == [1, -1]


def test_a_start_that_is_not_symmetric_is_refused():
    swap = generators_of([[1, 0]], {"a": ("i",)}, {"a": (2,)})
    with pytest.raises(ModelError, match=r"start is not symmetric: generator 0 \(i: 1 0\) moves"):
        orbit_classes(np.array([0.1, 0.2]), swap)


@pytest.mark.parametrize(
    ("stated", "axes", "message"),
    [
        ([[0, 0]], {"a": ("i",)}, "not a permutation of 0..1 on 'i'"),
        ([{"j": [1, 0]}], {"a": ("i",)}, "moves 'j', which axes lacks"),
        ([[1, 0]], {"b": ("i",)}, "does not name the array a"),
        ([[1, 0]], {"a": ("i", "i")}, "it has 1 axes"),
        ([{"i": ([1, 0], [2.0, 1.0])}], {"a": ("i",)}, "signs other than 1 and -1"),
    ],
)
def test_wrong_generators_are_refused(stated, axes, message):
    stated = [
        {k: (np.array(v[0]), np.array(v[1])) if isinstance(v, tuple) else v for k, v in s.items()}
        if isinstance(s, dict)
        else s
        for s in stated
    ]
    with pytest.raises(ModelError, match=message):
        generators_of(stated, axes, {"a": (2,)})
