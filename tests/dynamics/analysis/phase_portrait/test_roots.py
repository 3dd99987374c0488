"""Nullclines and fixed points, also on the edge of the rectangle, and the slow manifold."""

import itertools
import math

import numpy as np
import pytest
from scalars import Scalars
from scipy.optimize import brentq

from dynamics.analysis.phase_portrait import fixed_points, nullcline, portrait
from dynamics.analysis.phase_portrait.elimination import follow_branch
from dynamics.analysis.phase_portrait.roots import kind_of

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


BOX = ((-2.0, 2.2), (-1.5, 1.4))


def points(field):
    lines = [nullcline(lambda x, y, k=k: field(x, y)[k], *BOX, grid=16) for k in range(2)]
    return fixed_points(field, BOX, *(line.branches for line in lines))


@pytest.mark.parametrize(("sign", "kind"), [(-1, "sink"), (1, "source")])
def test_a_spiral(sign, kind):
    (point,) = points(lambda x, y: (sign * (x - 0.3) - 2 * y, 2 * (x - 0.3) + sign * y))
    assert point.kind == kind
    np.testing.assert_allclose(point.position, (0.3, 0), atol=1e-10)
    np.testing.assert_allclose(np.abs(point.eigenvalues.imag), 2, atol=1e-6)


def test_a_zero_eigenvalue_is_not_called_anything_else():
    assert kind_of(np.array([-1.0, 0.0])) == "degenerate"
    assert kind_of(np.array([-1.0, 1e-3])) == "saddle"


@pytest.mark.parametrize(
    ("others", "field"),
    [
        (["saddle"], lambda x, y: ((1 - x * y) * y, (1 - x * y) * x)),
        (["source"], lambda x, y: ((1 - x * x - y * y) * x, (1 - x * x - y * y) * y)),
        ([], lambda x, y: (y - np.tanh(40 * x), 3 * y - 3 * np.tanh(40 * x))),
        ([], lambda x, y: (max(x, 0.0), max(x, 0.0) * (y - 0.2))),  # a half of the plane
    ],
)
def test_zeros_that_fill_a_curve_or_a_region_are_no_fixed_points_of_their_own(others, field):
    found = points(field)
    assert [point.kind for point in found if point.kind != "continuum"] == others
    continua = [point for point in found if point.kind == "continuum"]
    assert 1 <= len(continua) <= 4
    for point in continua:
        np.testing.assert_allclose(field(*point.position), 0.0, atol=1e-9)


@pytest.mark.parametrize("ratio", [1e-3, 1e-6, 1e-8])
def test_a_slow_direction_is_no_continuum(ratio):
    """Turned, so that both rates have parts of both directions."""
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    matrix = -turn @ np.diag([1.0, ratio]) @ turn.T
    (point,) = points(lambda x, y: tuple(matrix @ (x - 0.1, y - 0.2)))
    assert point.kind == "sink"


UNIT = (0.0, 1.0)


def found(rates, box):
    lines = [nullcline(rate, *box, grid=8).branches for rate in rates]
    points = fixed_points(lambda x, y: tuple(rate(x, y) for rate in rates), box, *lines)
    return {tuple(np.round(point.position, 9) + 0.0): point.kind for point in points}


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(
    ("function", "box"),
    [
        (lambda x, y: x, (UNIT, UNIT)),
        (lambda x, y: x, ((-1.0, 0.0), UNIT)),
        (lambda x, y: y - 1.0, (UNIT, UNIT)),
        (lambda x, y: y, (UNIT, UNIT)),
        (lambda x, y: x * (2.0 + y * y), (UNIT, UNIT)),
        (lambda x, y: 3.0 * x - 0.3, ((0.1, 1.0), UNIT)),  # 6e-17 at the edge
        (lambda x, y: 0.1 * 3 - 3.0 * x, ((0.1, 1.0), UNIT)),
        (lambda x, y: 3.0 * x - 0.3, ((-1.0, 0.1), UNIT)),
    ],
)
def test_a_nullcline_along_an_edge_is_one_branch_whatever_the_sign(sign, function, box):
    line = nullcline(lambda x, y: sign * function(x, y), *box, grid=8)
    (branch,) = line.branches
    assert line.converged
    assert max(abs(function(x, y)) for x, y in branch) < 1e-12
    assert np.ptp(branch, axis=0).max() == 1.0


SPECIES = (lambda x, y: x * (1.0 - x - y / 2), lambda x, y: y * (1.0 - y - x / 2))
KINDS = {
    (0.0, 0.0): "source", (0.0, 1.0): "saddle", (1.0, 0.0): "saddle",
    (round(2 / 3, 9), round(2 / 3, 9)): "sink",
}  # fmt: skip


@pytest.mark.parametrize(
    "box", list(itertools.product([(0.0, 1.0), (-1.0, 1.0), (-0.3, 1.4)], repeat=2))
)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_two_species_have_four_fixed_points_in_every_box_that_holds_them(sign, box):
    rates = [lambda x, y, f=f: sign * f(x, y) for f in SPECIES]
    turned = {"source": "sink", "sink": "source", "saddle": "saddle"}
    kinds = KINDS if sign > 0 else {place: turned[kind] for place, kind in KINDS.items()}
    assert found(rates, box) == kinds


def test_where_one_rate_only_is_zero_there_is_no_fixed_point():
    assert found((lambda x, y: x, lambda x, y: 1.0), (UNIT, UNIT)) == {}
    assert found((lambda x, y: x + 1e-3, lambda x, y: y), (UNIT, UNIT)) == {}


def rests(x):
    """Real roots of u^3 - u = x."""
    roots = np.roots([1, 0, -1, -x])
    return np.sort(roots[np.abs(roots.imag) < 1e-9].real)


def test_one_branch_is_followed_to_its_fold():
    x, fold = np.linspace(-1, 1, 81), Scalars(("u", "x"), lambda u, x: (u**3 - u - x, -1.0), (0, 0))
    values, slopes = follow_branch(fold, "u", {"x": x}, ((80,), 1.3), (-3.0, 3.0))
    there = np.isfinite(values)
    assert abs(x[there].min() + 2 / (3 * np.sqrt(3))) < 0.025
    expected = [rests(at)[-1] for at in x[there]]
    np.testing.assert_allclose(values[there], expected, atol=1e-12)
    assert (slopes[there] > 0).all()
    nothing, _ = follow_branch(fold, "u", {"x": x}, ((40,), 0.01), (-0.5, 0.5))
    assert not np.isfinite(nothing).any()


def test_a_fast_scalar_of_a_plane_rests_on_its_nullcline():
    """It attracts where 3 u^2 > 1, and repels between the folds."""
    fast = Scalars(("u", "x"), lambda u, x: (1e3 * (u**3 - u - x), -1.0), (1.0, 0.0))
    found = portrait(fast, 0.9, ("u", "x"), ((-2.0, 2.0), (-1.0, 1.0)), 0, 16).slow
    assert found.name == "u"
    for lines, attracts in ((found.attracting, True), (found.repelling, False)):
        points = np.concatenate(lines)
        np.testing.assert_allclose(points[:, 0] ** 3 - points[:, 0], points[:, 1], atol=1e-9)
        assert ((3 * points[:, 0] ** 2 > 1) == attracts).all()
    assert [len(found.attracting), len(found.repelling)] == [2, 1]
