"""Runs laid side by side, bit for bit."""

import numpy as np


def same(first, second):
    """Every field of two trajectories is equal."""
    np.testing.assert_array_equal(first.states, second.states)
    np.testing.assert_array_equal(first.steps, second.steps)
    np.testing.assert_array_equal(first.time, second.time)
    assert first.layout == second.layout
    assert dict(first.parameters) == dict(second.parameters)
    assert dict(first.settings) == dict(second.settings)
    assert first.outcome == second.outcome
    assert dict(first.reasons) == dict(second.reasons)
    assert list(first.observables) == list(second.observables)
    for name, series in first.observables.items():
        np.testing.assert_array_equal(series, second.observables[name])
    assert list(first.events) == list(second.events)
    for name, event in first.events.items():
        other = second.events[name]
        np.testing.assert_equal(vars(event), vars(other))
