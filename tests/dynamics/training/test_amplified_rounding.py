"""Rules that divide the rounding of a gradient by itself: entries held, and a remark."""

from pathlib import Path

import numpy as np
import pytest

import dynamics

MODELS = Path(__file__).resolve().parents[2] / "support" / "models"


@pytest.fixture(scope="module")
def tree():
    system = dynamics.load_system(MODELS / "causal_tree.py")
    return system, system.Parameters()


def start():
    return {"a": [0.5, 1.0], "b": [0.0, 0.0]}


def risk(theta, xp, far=1e-20):
    a, b = theta["a"], theta["b"]
    return (a[0] * a[1] - 1.0) ** 2 + (b[0] * b[1]) ** 2 + far * b[0]


def test_adam_leaves_the_classes_where_nothing_is_held(tree, monkeypatch):
    """Steps 0 to 3 of a causal tree: 1e-17, 4e-12, 2e-6, 1e-2; held entries do not move."""
    system, parameters = tree
    full, classes = system.FullPopulation(parameters), system.closure(parameters).classes
    still = classes.labels < 0
    assert still.sum() > 100
    with pytest.warns(dynamics.TrainingWarning, match="adam multiplies them by"):
        held = dynamics.descend(full, eta=0.01, steps=4, rule="adam", record=1)
    assert held.settings["held"] == still.sum()
    assert (held.states[:, still] == held.states[0, still]).all()
    monkeypatch.setattr(type(full), "moving", lambda self, start: np.ones(start.size, dtype=bool))
    with pytest.warns(dynamics.TrainingWarning, match="rounding"):
        free = dynamics.descend(full, eta=0.01, steps=4, rule="adam", record=1)
    off = [np.abs(classes.residual(full.gradient(state))).max() for state in free.states[:4]]
    assert (np.log10(off) > [-18, -13, -8, -4]).all()
    assert (np.log10(off) < [-15, -9, -4, 0]).all()


def test_a_draw_holds_nothing(tree):
    """What never moves from the declared start may move from another, or on few samples."""
    system, parameters = tree
    drawn = system.FullEmpirical(parameters, samples=200, seed=0)
    assert drawn.moving(drawn.initial_state).all()
    full, noise = system.FullPopulation(parameters), np.random.default_rng(0)
    assert not full.moving(full.initial_state).all()
    beside = full.initial_state + 1e-3 * noise.standard_normal(full.layout.size)
    assert full.moving(beside).all()


@pytest.mark.parametrize(("rule", "factor"), [("sign", "1e\\+20"), ("adam", "1e\\+08")])
def test_a_run_says_by_how_much_rounding_is_amplified(rule, factor):
    system = dynamics.load_system(dynamics.Model(start=start, risk=risk))
    problem = system.FullPopulation(system.Parameters())
    told = f"of 1 of 4 numbers .* 1e-20 beside 1e.00.* {rule} multiplies them by {factor}"
    with pytest.warns(dynamics.TrainingWarning, match=told):
        run = dynamics.descend(problem, eta=0.01, steps=3, rule=rule)
    assert len(run.remarks) == 1
    for other in ("gd", "momentum", "normalized"):
        assert dynamics.descend(problem, eta=0.01, steps=3, rule=other).remarks == ()
    calm = system.FullPopulation(system.Parameters(far=1e-3))
    assert dynamics.descend(calm, eta=0.01, steps=3, rule=rule).remarks == ()
