"""The parts of a flat state."""

import numpy as np
import pytest

from dynamics.problem import Layout
from dynamics.validation import InvalidRequest

LAYOUT = Layout(("v", "A", "b"), ((2,), (2, 2), ()), groups=("first", "second", "first"))


def test_parts_of_many_states_are_views_in_their_shapes():
    states = np.arange(21.0).reshape(3, 7)
    assert LAYOUT.size == 7
    np.testing.assert_array_equal(LAYOUT.part(states, "A")[1], [[9.0, 10.0], [11.0, 12.0]])
    np.testing.assert_array_equal(LAYOUT.part(states, "b"), states[:, 6])
    assert np.shares_memory(LAYOUT.part(states, "v"), states)
    assert LAYOUT.scalars == ["b"]


def test_a_state_is_taken_flat_or_in_parts():
    flat = np.arange(7.0)
    parts = (flat[:2], flat[2:6].reshape(2, 2), 6.0)
    np.testing.assert_array_equal(LAYOUT.flatten(parts), flat)
    np.testing.assert_array_equal(LAYOUT.flatten(flat), flat)
    with pytest.raises(InvalidRequest, match="v \\(2"):
        LAYOUT.flatten(flat[:5])


def test_learning_rates_of_groups_stand_at_their_entries():
    assert LAYOUT.group_names == ("first", "second")
    rates = LAYOUT.per_entry((0.1, 0.2))
    np.testing.assert_array_equal(rates, [0.1, 0.1, 0.2, 0.2, 0.2, 0.2, 0.1])
