"""What lies on the edge of the rectangle: each nullcline and each fixed point once."""

import itertools

import numpy as np
import pytest

from dynamics.analysis.phase_portrait import fixed_points, nullcline

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
