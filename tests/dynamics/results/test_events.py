"""Events are objects, reached or not; one that was not reached is false and says why."""

import math
import pickle

import numpy as np
import pytest

import dynamics
from dynamics.results.trajectory import Trajectory


@pytest.fixture(scope="module")
def run():
    """T0 is reached at step 28, T1 is not within the 100 steps."""
    system = dynamics.load_system("positional_attention")
    problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    return dynamics.descend(problem, eta=0.02, steps=100)


def test_an_event_that_was_not_reached_is_false_and_says_why(run):
    reached, missing = run.events["T0"], run.events["T1"]
    assert (bool(reached), reached.reached, reached.step, reached.reason) == (True, True, 28, "")
    assert (bool(missing), missing.reached, missing.step, missing.horizon) == (
        False, False, None, None
    )  # fmt: skip
    assert math.isnan(missing.time)
    assert missing.reason == run.reasons["T1"] == "not reached by time 2"
    assert missing.state.shape == run.final_state.shape
    assert np.isnan(missing.state).all()


def test_events_are_a_mapping_that_names_what_there_is(run):
    assert isinstance(run.events, dict)
    assert run.events.get("T2") is None
    assert [name for name, event in run.events.items() if event][:1] == ["T0"]
    with pytest.raises(KeyError, match=r"no event 'T2'; events are T0, T1"):
        run.events["T2"]
    again = pickle.loads(pickle.dumps(run.events))
    assert again["T0"].step == 28


def test_events_survive_storage(run, tmp_path):
    again = dynamics.load(dynamics.save(run, tmp_path / "run.zarr"))
    assert isinstance(again, Trajectory)
    for name, event in run.events.items():
        np.testing.assert_equal(vars(again.events[name]), vars(event))
        assert again.events[name] == event
