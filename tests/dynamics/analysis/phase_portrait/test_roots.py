import numpy as np
import pytest

from dynamics.analysis.phase_portrait import fixed_points, nullcline
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
