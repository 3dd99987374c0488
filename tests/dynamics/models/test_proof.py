"""Classes proved by evaluation in the field, and classes refuted."""

from pathlib import Path

import numpy as np
import pytest

import dynamics
from dynamics.models.engine.proof import prove
from theory.closure.partition import EntryClasses

POSITIONAL = str(Path(__file__).parents[2] / "support" / "models" / "positional.py")
PROVED = {
    # Classes, entries that never move.
    "linear_icl": (2, 12),
    "deep_linear": (4, 24),
    "softmax_icl": (2, 0),
    "single_location": (2, 6),
    "topic_model": (8, 0),
    "merged_staircase": (60, 24),
    POSITIONAL: (3, 9),
}


def realization_of(system):
    return system.ReducedPopulation.definition.realization(system.Parameters())


def closed(name):
    system = dynamics.load_system(name)
    made, closure = realization_of(system), system.closure()
    return prove(made, closure.classes), closure


@pytest.mark.parametrize("name", PROVED)
def test_classes_and_resting_entries_are_proved(name):
    found, _ = closed(name)
    assert (found.closed, found.frozen, found.leaving) == (*PROVED[name], ())
    assert found.weights in ("unknown", "")


@pytest.mark.long
def test_classes_of_1792_entries_are_proved():
    found, _ = closed("induction_head")
    assert (found.closed, found.frozen, found.holds) == (17, 1656, True)


def model(risk, **start):
    arrays = {name: np.atleast_1d(np.asarray(value, float)) for name, value in start.items()}
    return dynamics.load_system(dynamics.Model(start=lambda: arrays, risk=risk))


def classes(labels, start, signs=None):
    labels = np.array(labels)
    return EntryClasses(labels, np.ones(labels.size) if signs is None else signs, np.array(start))


@pytest.mark.parametrize("size", [1e-11, 1.0])
def test_a_window_that_no_state_saw_refutes_a_class(size):
    def risk(theta, xp):
        w = theta["w"]
        mean = (w[0] + w[1]) / 2
        window = xp.where((mean > 0.01) & (mean < 0.0105), w[0] - w[1], 0.0)
        return xp.sum(-(w**2) / 2 + w**4 / 4) + 1.5 * (w[0] * w[1]) ** 2 + size * window

    found = prove(realization_of(model(risk, w=[1e-3, 1e-3])), classes([0, 0], [1e-3, 1e-3]))
    assert (found.closed, found.leaving) == (0, (1,))


def test_an_entry_with_a_small_gradient_is_not_at_rest():
    def risk(theta, xp):
        c = np.array([1e-16, 1e-3])
        b = theta["b"][0]
        return 1e11 * theta["a"][0] ** 2 + xp.sum(c * xp.log(1 + xp.exp(100 * b))) / 100

    made = realization_of(model(risk, a=1e-3, b=1.0))
    found = prove(made, classes([0, -1], [1e-3, 1.0]))
    assert (found.frozen, found.leaving) == (0, (1,))


def test_entries_that_stay_opposite_are_a_class_with_signs():
    def risk(theta, xp):
        w = theta["w"]
        return xp.sum(xp.tanh(w) ** 2) + (w[0] * w[1] + 1) ** 2

    made = realization_of(model(risk, w=[0.5, -0.5]))
    assert prove(made, classes([0, 0], [0.5, -0.5], np.array([1.0, -1.0]))).holds
    assert not prove(made, classes([0, 0], [0.5, -0.5])).holds


def test_weights_that_differ_in_a_millionth_refute_a_class():
    def law(moved=0.0):
        yield 0.5 + moved, {"x": np.array([1.0, 0.0])}
        yield 0.5 - moved, {"x": np.array([0.0, 1.0])}

    def loss(theta, sample, xp):
        return (sample["x"] @ theta["w"] - 1) ** 2

    system = dynamics.load_system(
        dynamics.Model(start=lambda: {"w": np.full(2, 0.1)}, law=law, loss=loss)
    )
    realization = system.ReducedPopulation.definition.realization
    tied = classes([0, 0], [0.1, 0.1])
    found = prove(realization(system.Parameters()), tied)
    assert (found.holds, found.weights) == (True, "unknown")
    found = prove(realization(system.Parameters(moved=1e-6)), tied)
    assert (found.holds, found.weights) == (False, "given")
