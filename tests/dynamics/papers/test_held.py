"""A fast expectation has the gradient of the recursion that its model file declares."""

from pathlib import Path

import numpy as np
import pytest

import dynamics
from dynamics.models import masked_image_modeling, positional_attention
from dynamics.models.engine import load
from dynamics.models.engine.declaration import states_near

SIZE = {"P": 7, "C_global": 3, "C_local": 2, "masked": 3}


@pytest.mark.parametrize(
    ("name", "expectation", "names", "given"),
    [
        ("positional_attention", "spectral", positional_attention.names, {"D": 8, "C": 2}),
        (
            "positional_attention",
            "spectral",
            positional_attention.names,
            {"D": 8, "C": 2, "p": 11, "random_sets": "mixed"},
        ),
        (
            "masked_image_modeling",
            "contour",
            masked_image_modeling.names(*(SIZE[k] for k in ("P", "C_global", "C_local")), ""),
            SIZE,
        ),
    ],
)
def test_fast_gradient_is_the_declared_one(name, expectation, names, given):
    system = dynamics.load_system(name)
    fast = system.ReducedPopulation(system.Parameters(**given), expectation)
    file = load(Path(__file__).parents[3] / "dynamics" / "models" / f"{name}.py")
    declared = file.ReducedPopulation(file.Parameters(**given))
    places = [list(names).index(scalar) for scalar in declared.state_names]
    compared = 0
    for state in states_near(declared.initial_state):
        ordered = np.empty_like(state)
        ordered[places] = state
        slope, expected = fast.gradient(ordered)[places], declared.gradient(state)
        if np.isfinite(slope).all():  # far from the start the fast one may refuse
            np.testing.assert_allclose(slope, expected, rtol=1e-8, atol=1e-13)
            compared += 1
    assert compared >= 3
