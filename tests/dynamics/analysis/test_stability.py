"""Until when the scalars of a reduction are stable, held against departures in closed form."""

from math import inf

import numpy as np
import pytest

import dynamics
from dynamics.analysis.stability import departure, of_growth, stability
from dynamics.analysis.transverse_growth import TransverseGrowth
from dynamics.results.stability import LEFT, OFF


def pair(rate, still=0.0):
    """Two entries that stay equal; their difference grows as exp(rate * time)."""

    def start():
        return {"w": np.zeros(2), "still": np.full(2, still)}

    def risk(theta, xp):
        w = theta["w"]
        return ((w[0] + w[1]) / 2 - 1) ** 2 - rate * (w[0] - w[1]) ** 2 / 4

    system = dynamics.Model(start=start, risk=risk)
    parameters = system.Parameters()
    return system.ReducedPopulation(parameters), system.FullPopulation(parameters)


def test_a_departure_reaches_its_size_when_its_exponential_does():
    rate, horizon = 3.0, 10.0
    reduced, full = pair(rate, still=7.0)
    found = stability(reduced, full, dynamics.flow(reduced, horizon))
    at = np.log(LEFT / OFF) / rate
    assert found.limited
    # Starts have a part across in what never moves, and so at most OFF in the difference.
    assert len(found.left) == 3
    assert all(at * (1 - 1e-6) <= time < horizon for time in found.left)
    assert found.growth == pytest.approx(np.exp(rate * horizon), rel=1e-6)
    assert found.safe <= at


def test_a_departure_follows_the_exponential_all_along():
    """The implicit integrator damps it: its steps are long beside the time in which it grows."""
    reduced, full = pair(0.5)
    start = full.initial_state + OFF * np.array([1.0, -1.0, 0.0, 0.0])
    run = dynamics.flow(reduced, 60.0)
    found = departure(full, run, start, inf)
    expected = OFF * np.exp(0.5 * found.time)
    np.testing.assert_allclose(found.distance, expected, rtol=1e-5)
    assert found.reaches() == pytest.approx(2 * np.log(LEFT / OFF), rel=1e-6)
    assert found.reaches(1e300) == inf


def test_a_space_that_attracts_is_stable_without_full_training(monkeypatch):
    reduced, full = pair(-0.5)
    monkeypatch.setattr("dynamics.analysis.stability.departure", None)
    found = stability(reduced, full, dynamics.flow(reduced, 1e4))
    assert (found.until, found.limited, found.left) == (1e4, False, ())
    assert found.growth == 1.0
    assert str(found) == "the classes hold to time 1e+04: no departure grows"


@pytest.mark.filterwarnings("ignore:eta=1 at step 1")
def test_steps_may_repel_where_the_flow_attracts():
    reduced, full = pair(-3.0)  # a step of 1 multiplies the difference by -2
    found = stability(reduced, full, dynamics.descend(reduced, 1.0, 60))
    assert found.limited
    assert min(found.left) == pytest.approx(np.log2(LEFT / OFF), abs=3.0)
    assert not stability(reduced, full, dynamics.descend(reduced, 0.1, 600)).limited


def test_the_growth_alone_tells_the_time_to_which_it_is_small():
    time = np.linspace(0.0, 10.0, 101)
    found = of_growth(TransverseGrowth.of(time, np.full(101, -2.0)), 4)
    # Equation (1): exp(2 t) < 1e7 / 2, at the record before.
    assert found.safe == pytest.approx(np.log(LEFT / OFF / 2) / 2, abs=0.1)
    assert found.safe < np.log(LEFT / OFF / 2) / 2
    assert str(found).startswith("the classes hold to time 7.7 at least: by time 10")
    assert not of_growth(TransverseGrowth.of(time, np.full(101, -0.5)), 4).limited


def test_a_declared_reduction_lies_in_the_space_of_every_entry():
    """Its scalars are lifted by their names, several of one class among them."""
    system = dynamics.load_system("sparse_parity")
    parameters = system.Parameters()
    reduced, full = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    state = reduced.initial_state
    lifted = full.lift(np.stack([state, state - reduced.gradient(state)]), reduced.scalars)
    np.testing.assert_allclose(lifted[0], full.initial_state)
    slope = full.gradient(full.initial_state)
    np.testing.assert_allclose(lifted[1], full.initial_state - slope, atol=1e-14)
    assert np.abs(full.outside(slope)).max() < 1e-15
    found = stability(reduced, full, dynamics.descend(reduced, 0.2, 20))
    assert (found.left, found.until) == ((inf, inf, inf), pytest.approx(4.0))
