"""Flows whose states are far below 1 for a while, against closed forms; both integrators."""

import numpy as np
import pytest

import dynamics
from dynamics.training.flow import integrate_flow

LOGISTIC = """
def start(w0=1e-10):
    return {"w": w0}


def risk(theta, xp):
    w = theta["w"]
    return -w**2 / 2 + w**4 / 4


events = {"T": "w >= 0.5"}
"""
DELAYED = """
def start(x0=0.1):
    return {"x": x0, "c": 0.0}


def risk(theta, xp, a=13.6):
    x, c = theta["x"], theta["c"]
    return -c - (c - a) * x**2 / 2
"""
BESIDE = """
def start(w0=1e-20):
    return {"w": w0, "x": 1.0, "still": 0.0}


def risk(theta, xp):
    w, x, still = theta["w"], theta["x"], theta["still"]
    even = (xp.cos(x + still) + xp.cos(x - still)) / 2
    return -w**2 / 2 + w**4 / 4 + (x - 3) ** 2 / 20 + 0.1 * even


events = {"T": "w >= 0.5"}
"""
INTEGRATORS = {"ReducedPopulation": "collocation", "FullPopulation": "LSODA"}


def arrival(w0):
    """Time at which w of the logistic flow is a half: w^2 / (1 - w^2) grows like exp(2 t)."""
    return np.log(0.5 / w0) - np.log(0.75) / 2 + np.log1p(-(w0**2)) / 2


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")

    def load(name, text):
        file = folder / f"{name}.py"
        file.write_text(text)
        return dynamics.load_system(str(file))

    return load


@pytest.mark.parametrize("kind", INTEGRATORS)
def test_growth_from_small_states_takes_the_time_of_the_closed_form(load, kind):
    system = load("logistic", LOGISTIC)
    for w0 in (1e-3, 1e-20, 1e-100):
        problem = getattr(system, kind)(system.Parameters(w0=w0))
        run = dynamics.flow(problem, time=1.2 * arrival(w0))
        assert run.settings["integrator"] == INTEGRATORS[kind]
        assert run.events["T"].time == pytest.approx(arrival(w0), rel=3e-8)
        w = run["w"].reshape(-1)
        assert (w > 0).all()
        exact = 1 / np.sqrt(1 + (1 / w0**2 - 1) * np.exp(-2 * run.time))
        np.testing.assert_allclose(w, exact, rtol=1e-5)


@pytest.mark.parametrize(("kind", "x0"), zip(INTEGRATORS, (0.1, -0.1), strict=True))
def test_an_entry_that_falls_to_1e_41_returns(load, kind, x0):
    """A delayed loss of stability: ln|x| + x^2/4 - (c - a)^2/2 is kept, and so is the sign of x."""
    system = load("delayed", DELAYED)
    problem = getattr(system, kind)(system.Parameters(x0=x0))
    run = dynamics.flow(problem, time=27.2)
    x, c = np.abs(run["x"]).reshape(-1), run["c"].reshape(-1)
    assert x.min() < 1e-40
    assert (np.sign(run["x"]) == np.sign(x0)).all()
    kept = np.log(x) + x**2 / 4 - (c - 13.6) ** 2 / 2
    np.testing.assert_allclose(kept, kept[0], rtol=0, atol=5e-6)


def test_an_entry_that_is_0_by_symmetry_takes_no_steps(load):
    """Its gradient is a difference of sines, which rounds: beside it an entry of 1e-20 grows."""
    system = load("beside", BESIDE)
    problem = system.FullPopulation(system.Parameters())
    assert dynamics.flow(problem, time=50.0).events["T"].time == pytest.approx(
        arrival(1e-20), rel=3e-8
    )
    made = integrate_flow(problem, problem.initial_state, 50.0, 1e-8)
    assert made.nodes.size < 700
