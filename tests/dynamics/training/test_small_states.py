"""Flows whose states are far below 1 for a while, against closed forms; both integrators."""

import numpy as np
import pytest

import dynamics
from dynamics.training.flow import integrate_flow


def double_well(w):
    return -(w**2) / 2 + w**4 / 4


LOGISTIC = dynamics.Model(
    start=lambda w0=1e-10: {"w": w0},
    risk=lambda theta, xp: double_well(theta["w"]),
    events={"T": "w >= 0.5"},
)
DELAYED = dynamics.Model(
    start=lambda x0=0.1: {"x": x0, "c": 0.0},
    risk=lambda theta, xp: -theta["c"] - (theta["c"] - 13.6) * theta["x"] ** 2 / 2,
)
BESIDE = dynamics.Model(
    start=lambda: {"w": 1e-20, "x": 1.0, "still": 0.0},
    risk=lambda theta, xp: (
        double_well(theta["w"])
        + (theta["x"] - 3) ** 2 / 20
        + (xp.cos(theta["x"] + theta["still"]) + xp.cos(theta["x"] - theta["still"])) / 20
    ),
    events={"T": "w >= 0.5"},
)
INTEGRATORS = {"ReducedPopulation": "collocation", "FullPopulation": "LSODA"}


def arrival(w0):
    """Time at which w of the logistic flow is a half: w^2 / (1 - w^2) grows like exp(2 t)."""
    return np.log(0.5 / w0) - np.log(0.75) / 2 + np.log1p(-(w0**2)) / 2


@pytest.mark.parametrize("kind", INTEGRATORS)
def test_growth_from_small_states_takes_the_time_of_the_closed_form(kind):
    for w0 in (1e-3, 1e-20, 1e-100):
        problem = getattr(LOGISTIC, kind)(LOGISTIC.Parameters(w0=w0))
        run = dynamics.flow(problem, time=1.2 * arrival(w0))
        assert run.settings["integrator"] == INTEGRATORS[kind]
        assert run.events["T"].time == pytest.approx(arrival(w0), rel=3e-8)
        w = run["w"].reshape(-1)
        assert (w > 0).all()
        exact = 1 / np.sqrt(1 + (1 / w0**2 - 1) * np.exp(-2 * run.time))
        np.testing.assert_allclose(w, exact, rtol=1e-5)


@pytest.mark.parametrize(("kind", "x0"), zip(INTEGRATORS, (0.1, -0.1), strict=True))
def test_an_entry_that_falls_to_1e_41_returns(kind, x0):
    """A delayed loss of stability: ln|x| + x^2/4 - (c - a)^2/2 is kept, and so is the sign of x."""
    problem = getattr(DELAYED, kind)(DELAYED.Parameters(x0=x0))
    run = dynamics.flow(problem, time=27.2)
    x, c = np.abs(run["x"]).reshape(-1), run["c"].reshape(-1)
    assert x.min() < 1e-40
    assert (np.sign(run["x"]) == np.sign(x0)).all()
    kept = np.log(x) + x**2 / 4 - (c - 13.6) ** 2 / 2
    np.testing.assert_allclose(kept, kept[0], rtol=0, atol=5e-6)


def test_an_entry_that_is_0_by_symmetry_takes_no_steps():
    """Its gradient is a difference of sines, which rounds: beside it an entry of 1e-20 grows."""
    problem = BESIDE.FullPopulation(BESIDE.Parameters())
    assert dynamics.flow(problem, time=50.0).events["T"].time == pytest.approx(
        arrival(1e-20), rel=3e-8
    )
    made = integrate_flow(problem, problem.initial_state, 50.0, 1e-8)
    assert made.nodes.size < 700
