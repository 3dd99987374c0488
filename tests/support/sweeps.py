"""Datasets of sweeps made by hand, and sweeps of boundaries that are known."""

import json
from itertools import product

import numpy as np
import xarray

import dynamics

KINDS = (
    "converged", "reached horizon", "oscillating", "diverged", "precision lost", "interrupted",
    "killed its worker",
)  # fmt: skip
CONVERGED, HORIZON, OSCILLATING, DIVERGED = range(4)
SYSTEM = dynamics.load_system("positional_attention")
GIVEN = {"D": 8, "C": "2,3,4", "q": "0.2:0.6:3", "nu": "1e-3,1e-2", "time": 50}
"""A small sweep that tests run, damage and interrupt."""


def sweep(axes, variables, outcome=HORIZON, fixed=None, derived=None):
    """A dataset of a sweep: axes name -> values; a variable is a function of a point."""
    shape = tuple(len(values) for values in axes.values())
    data = {}
    for name, rule in {**variables, "outcome": outcome}.items():
        kind = np.int8 if name == "outcome" else np.float64
        found = np.empty(shape, kind)
        for place, point in zip(np.ndindex(shape), product(*axes.values()), strict=True):
            found[place] = rule(**dict(zip(axes, point, strict=True))) if callable(rule) else rule
        data[name] = (tuple(axes), found)
    attributes = {
        "system": "positional_attention",
        "fixed": json.dumps(fixed or {"p": 3, "beta": 1.0, "time": 1e5}),
        "derived": json.dumps(derived or {}),
        "kinds": json.dumps(KINDS),
    }
    attributes |= SYSTEM.presentation.attributes()
    return xarray.Dataset(data, {name: list(values) for name, values in axes.items()}, attributes)


SHAPES = {
    "straight": lambda x, y: 3 * x + 2 * y > 2.3,
    "upright": lambda x, y: x > 0.4321,
    "curved": lambda x, y: y > 0.2 + 0.7 * x**2,
    "disk": lambda x, y: (x - 0.47) ** 2 + (y - 0.55) ** 2 < 0.31**2,
    "two": lambda x, y: (
        ((x - 0.25) ** 2 + (y - 0.3) ** 2 < 0.17**2) | ((x - 0.7) ** 2 + (y - 0.7) ** 2 < 0.2**2)
    ),
    "edge": lambda x, y: (x - 1.0) ** 2 + (y - 0.5) ** 2 < 0.35**2,
    "finger": lambda x, y: (np.abs(y - 0.5) < 0.1) & (x < 0.77),
    "wave": lambda x, y: y > 0.5 + 0.2 * np.sin(7 * x),
}
"""Yes or no on the unit square, nothing in them narrower than an eighth of a side."""
