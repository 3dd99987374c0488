import math

import numpy as np
import pytest
from scipy.optimize import brentq

from dynamics.analysis.phase_portrait.roots import between, scan


@pytest.mark.parametrize(
    ("function", "ends"),
    [
        (lambda x: x - 0.3, (0.0, 1.0)),
        (lambda x: math.exp(30 * x) - 5.0, (-1.0, 1.0)),
        (lambda x: x**5 - 1e-9, (-1.0, 1.0)),
        (lambda x: math.cos(x) - x, (0.0, 2.0)),
        (lambda x: math.tanh(200 * (x - 0.7)), (0.0, 1.0)),
    ],
)
def test_the_zero_is_that_of_brentq(function, ends):
    taken = []

    def counted(x):
        taken.append(x)
        return function(x)

    found = between(counted, ends, (function(ends[0]), function(ends[1])), 1e-13)
    assert found == pytest.approx(brentq(function, *ends, xtol=1e-14), abs=1e-12)
    assert len(taken) < 60
    assert all(ends[0] <= x <= ends[1] for x in taken)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: 1 / (x - 0.3),
        lambda x: math.copysign(1.0, x - 0.3) + 0.2,
        lambda x: math.nan if 0.2 < x < 0.4 else x - 0.3,
    ],
    ids=["pole", "jump", "gap"],
)
def test_a_change_of_sign_without_a_zero_is_none(function):
    assert math.isnan(between(function, (0.0, 1.0), (function(0.0), function(1.0)), 1e-13))


def test_a_zero_at_an_end_is_found():
    assert between(lambda x: x, (0.0, -1.0), (0.0, -1.0), 1e-13) == 0.0


@pytest.mark.parametrize("gap", [0.3, 1e-2, 1e-3, 1e-4])
def test_scan_sees_zeros_between_nodes(gap):
    """Two zeros in one interval of the nodes, and a third far away."""
    zeros = [0.2345, 0.2345 + gap, 0.9]

    def function(x):
        return (x - zeros[0]) * (x - zeros[1]) * (x - zeros[2])

    found = scan(function, np.linspace(-1, 1, 12).tolist(), 1e-14)
    np.testing.assert_allclose(found, zeros, atol=1e-11)


def test_scan_is_not_misled_by_poles_and_by_what_is_not_a_number():
    assert scan(lambda x: 1 / (x - 0.123), np.linspace(-1, 1, 9).tolist(), 1e-13) == []
    found = scan(
        lambda x: math.sqrt(x) - 0.5 if x > 0 else math.nan, np.linspace(-1, 1, 10).tolist(), 1e-13
    )
    np.testing.assert_allclose(found, [0.25], atol=1e-12)
