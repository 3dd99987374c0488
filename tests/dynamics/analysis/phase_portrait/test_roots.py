"""Fixed points, also on the edge of the rectangle, and the slow manifold."""

import itertools

import numpy as np
import pytest
from scalars import Scalars, fold

from dynamics.analysis.phase_portrait import fixed_points, nullcline, portrait
from dynamics.analysis.phase_portrait.elimination import follow_branch
from dynamics.analysis.phase_portrait.roots import kind_of

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
    x = np.linspace(-1, 1, 81)
    values, slopes = follow_branch(fold(), "u", {"x": x}, ((80,), 1.3), (-3.0, 3.0))
    there = np.isfinite(values)
    assert abs(x[there].min() + 2 / (3 * np.sqrt(3))) < 0.025
    expected = [rests(at)[-1] for at in x[there]]
    np.testing.assert_allclose(values[there], expected, atol=1e-12)
    assert (slopes[there] > 0).all()
    nothing, _ = follow_branch(fold(), "u", {"x": x}, ((40,), 0.01), (-0.5, 0.5))
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
