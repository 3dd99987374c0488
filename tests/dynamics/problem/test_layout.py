"""The parts of a flat state."""

import numpy as np
import pytest

from dynamics.problem import Layout
from dynamics.validation import InvalidRequest

LAYOUT = Layout(("v", "A", "b"), ((2,), (2, 2), ()), groups=("first", "second", "first"))


def test_a_state_is_taken_flat_or_in_parts_which_are_views():
    states, flat = np.arange(21.0).reshape(3, 7), np.arange(7.0)
    np.testing.assert_array_equal(LAYOUT.part(states, "A")[1], [[9.0, 10.0], [11.0, 12.0]])
    np.testing.assert_array_equal(LAYOUT.part(states, "b"), states[:, 6])
    assert np.shares_memory(LAYOUT.part(states, "v"), states)
    assert (LAYOUT.size, LAYOUT.scalars, LAYOUT.group_names) == (7, ["b"], ("first", "second"))
    for given in (flat, (flat[:2], flat[2:6].reshape(2, 2), 6.0)):
        np.testing.assert_array_equal(LAYOUT.flatten(given), flat)
    with pytest.raises(InvalidRequest, match="v \\(2"):
        LAYOUT.flatten(flat[:5])
    np.testing.assert_array_equal(LAYOUT.per_entry((0.1, 0.2)), [0.1] * 2 + [0.2] * 4 + [0.1])
