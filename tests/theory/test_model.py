"""A model as it is written: its constants, its doors, and what is refused, in one line each."""

import numpy as np
import pytest

from theory.law import ModelError
from theory.model import Model, check_name

TWO, HALF = np.int64(2), np.float64(0.5)


def start(n=TWO, scale=HALF):
    return {"w": np.full(n, scale)}


def law(q=0.25):
    yield q, {"x": np.array([1.0, 0.0]), "y": 1}
    yield 1 - q, {"x": np.array([0.0, 1.0]), "y": -1}


def loss(theta, sample, xp, n, q, beta=1.0):
    return theta["w"][0] * beta


def risk(theta, xp):
    return theta["w"][0] ** 2


DOORS = {"law": law, "loss": loss}


def test_constants_are_the_keyword_arguments_in_the_order_of_the_functions():
    model = Model(start=start, **DOORS)
    assert model.constants == {"n": 2, "scale": 0.5, "q": 0.25, "beta": 1.0}
    assert list(model.constants) == ["n", "scale", "q", "beta"]
    assert [type(value) for value in model.constants.values()] == [int, float, float, float]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda theta, sample, xp, eta=1: 0, "constant 'eta' of loss.*rename it, e.g. eta_0"),
        (lambda theta, sample, xp, risk=1: 0, "constant 'risk' of loss"),
        (lambda theta, sample, xp, q=0.5: 0, r"'q' has two defaults, 0\.25 in law and 0\.5 in l"),
        (lambda theta, sample, xp, n=2.0: 0, r"'n' has two defaults, 2 in start and 2\.0 in loss"),
        (lambda theta, sample, xp, c: 0, "'c' of loss has no default anywhere"),
        (lambda theta, sample, xp, c=[1]: 0, r"'c' has the default \[1\]"),
        (lambda theta, sample, xp, c=float("nan"): 0, "'c' has the default nan"),
        (lambda theta, sample, xp, *args: 0, r"loss takes \*args"),
        (lambda theta, sample, xp, **more: 0, r"loss takes \*more"),
        (lambda theta: 0, r"loss\(theta\) can be loss\(theta, sample, xp, \.\.\.\)"),
    ],
)
def test_constants_that_cannot_be(function, message):
    test_doors_and_tables({"law": law, "loss": function}, message)


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ({}, "needs law and loss, or risk, or sample, loss and symmetry"),
        ({"law": law}, "needs law and loss"),
        ({"loss": loss, "sample": lambda rng: 0}, "sample needs symmetry"),
        ({"risk": risk, "law": law}, "a law or a closed risk, not both"),
        ({"risk": risk, "observe": lambda theta, sample, xp: {}}, "averaged over a law"),
        (DOORS | {"symmetry": list}, "symmetry needs axes"),
        (DOORS | {"start": 3}, "start is int, not a function"),
        (DOORS | {"law": [(1.0, 0)]}, "law is list, not a function"),
        (DOORS | {"eta": 0}, "eta is a positive number"),
        (DOORS | {"eta": float("inf")}, "eta is a positive number"),
        (DOORS | {"steps": 0.5}, "steps a whole number"),
        (DOORS | {"names": ["alpha"]}, "names is list; names can be a dict"),
        (DOORS | {"events": "w > 1"}, "events is str; events can be a dict"),
        (DOORS | {"groups": ("w",)}, "groups is tuple; groups can be a dict"),
        (DOORS | {"groups": {"w": 3}}, "groups: 3 of 'w' is not a word"),
    ],
)
def test_doors_and_tables(functions, message):
    with pytest.raises(ModelError, match=message) as caught:
        Model(**({"start": start} | functions))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1.0], "start gives list; start can give a dict of arrays"),
        ({}, "start gives an empty dict"),
        ({"w w": 1.0}, "names an array 'w w'"),
        ({"w": [0.1, None]}, "w holds no real numbers"),
        ({"w": []}, "w holds no real numbers"),
        ({"w": [[1.0], [1.0, 2.0]]}, "start: w is not an array"),
        ({"w": [1.0, np.nan]}, "w has an entry that is not finite"),
        ({"q": 1.0}, "names an array 'q', a reserved name or a constant"),
        ({"u": 1.0}, "groups: no trained array is named 'w'; names: u"),
    ],
)
def test_starts_that_cannot_be(given, message):
    model = Model(start=lambda: given, **DOORS | {"loss": lambda theta, sample, xp: 0},
                  groups={"w": "value"})  # fmt: skip
    with pytest.raises(ModelError, match=message) as caught:
        model.starting_arrays(model.constants)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["al pha", 3, "", "a", "risk", "time", "d_w", "time_T1", "path_x", "R", "eta"]
)
def test_names_that_something_else_has(name):
    with pytest.raises(ModelError):
        check_name("names", name, {"a": 1.0})
    check_name("names", "alpha", {"a": 1.0})
