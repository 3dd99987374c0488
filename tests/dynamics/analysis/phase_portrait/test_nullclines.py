"""Every branch once, points on the curve; the twin looks at many lines for changes of sign."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import brentq

from dynamics.analysis.phase_portrait import nullcline

SQUARE = (-2.0, 2.0)


def parabola(x, y):
    return (y - x * x / 4 + 1.2) / math.hypot(1, x / 2)


def exponential(x, y):
    return (y - math.exp(x) - 0.5) / math.hypot(1, math.exp(x))


def circle(x, y):
    return math.hypot(x - 0.8, y + 1.7) - 0.14


FIELDS = {
    "three branches": (parabola, exponential, circle),
    "nearly touching": (lambda x, y: y - math.sin(x), lambda x, y: y - math.sin(x) - 0.02),
    "small loop by a line": (
        lambda x, y: math.hypot(x - 0.3137, y - 0.211) - 3e-3,
        lambda x, y: (y - x + 0.15) / math.sqrt(2),
    ),
    "along nodes": (lambda x, y: y, lambda x, y: y - 1.0),
}
CLOSED = {"three branches": 1, "small loop by a line": 1}


@pytest.mark.parametrize("name", FIELDS)
def test_every_branch_once_and_on_the_curve(name):
    factors = FIELDS[name]
    found = nullcline(lambda x, y: math.prod(f(x, y) for f in factors), SQUARE, SQUARE)
    assert found.converged
    assert len(found.branches) == len(factors)
    assert sum(found.closed) == CLOSED.get(name, 0)
    on = [
        [k for k, f in enumerate(factors) if max(abs(f(*point)) for point in branch) < 1e-10]
        for branch in found.branches
    ]
    assert sorted(itertools.chain(*on)) == list(range(len(factors)))


@pytest.mark.parametrize("gap", [1e-1, 1e-4])
def test_branches_that_meet_in_a_saddle_but_for_a_gap(gap):
    found = nullcline(lambda x, y: (y - 0.1) ** 2 - (x - 0.03) ** 2 - gap**2, SQUARE, SQUARE)
    assert (len(found.branches), found.closed) == (2, (False, False))
    above, below = sorted(found.branches, key=lambda branch: -branch[:, 1].min())
    np.testing.assert_allclose(above[:, 1], 0.1 + np.hypot(above[:, 0] - 0.03, gap), atol=1e-10)
    np.testing.assert_allclose(below[:, 1], 0.1 - np.hypot(below[:, 0] - 0.03, gap), atol=1e-10)


def wavy(seed):
    """A random smooth field with branches everywhere."""
    rng = np.random.default_rng(seed)
    parts = [(*rng.uniform(-4, 4, 2), rng.uniform(0, 6), rng.normal()) for _ in range(6)]
    return lambda x, y: sum(c * math.sin(a * x + b * y + p) for a, b, p, c in parts)


@pytest.mark.parametrize("seed", range(2))
def test_on_every_line_as_many_zeros_as_a_dense_scan(seed):
    function = wavy(seed)
    found = nullcline(function, SQUARE, SQUARE)
    assert found.converged
    heights = np.linspace(*SQUARE, 801)
    for x in np.random.default_rng(seed).uniform(-2, 2, 25):
        values = [function(x, y) for y in heights]
        zeros = [
            brentq(lambda y, x=x: function(x, y), *heights[k : k + 2])
            for k in range(800)
            if values[k] * values[k + 1] < 0
        ]
        crossed = []
        for branch in found.branches:
            for (a, b), (c, d) in itertools.pairwise(branch):
                if (a < x) != (c < x):
                    crossed.append(b + (d - b) * (x - a) / (c - a))
        np.testing.assert_allclose(sorted(crossed), zeros, atol=2e-3)


POLES = {
    "one over": (lambda x, y: 1 / (x - 0.1 * y), 0),
    "one over zero": (lambda x, y: 1 / x, 0),
    "tangent": (lambda x, y: math.tan(3 * (x + 0.2 * y)), 5),
    "zero and pole cross": (lambda x, y: (y - 0.5 * x) / (x - 0.3), 2),
}


@pytest.mark.parametrize("name", POLES)
def test_poles_and_jumps_are_no_branches(name):
    function, branches = POLES[name]
    found = nullcline(function, SQUARE, SQUARE)
    assert len(found.branches) == branches
    assert all(abs(function(*point)) < 1e-8 for branch in found.branches for point in branch)


def test_a_branch_ends_where_there_is_no_number():
    found = nullcline(
        lambda x, y: math.sqrt(x + 0.33) - y if x > -0.33 else math.nan, SQUARE, SQUARE
    )
    (branch,) = found.branches
    np.testing.assert_allclose(branch[:, 1] ** 2, branch[:, 0] + 0.33, atol=1e-10)
    assert branch[:, 0].min() < -0.2


def test_more_than_the_budget_can_resolve_is_said():
    found = nullcline(lambda x, y: (y - math.sin(x)) * (y - math.sin(x) - 1e-3), SQUARE, SQUARE,
                      budget=6_000, grid=16)  # fmt: skip
    assert not found.converged
    assert found.unresolved > 0
