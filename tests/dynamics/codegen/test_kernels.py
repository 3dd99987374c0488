"""Small kernels, as Python and compiled below a caller that allows reordering."""

import math

import numpy as np
import pytest

from dynamics import codegen
from dynamics.codegen.kernels import elementary

CALLER = "@kernel\ndef caller(values, scratch):\n    exponentials(values, scratch)\n"


@pytest.fixture(scope="module")
def compiled():
    parts = [codegen.kernel_source(elementary.exponentials), CALLER]
    return codegen.build("Exponentials.", ("x",), parts)


@pytest.mark.parametrize("way", ["python", "compiled", "below a caller"])
def test_exponentials_are_right_to_the_last_digits(compiled, way):
    function = {
        "python": elementary.exponentials,
        "below a caller": compiled.caller,
        "compiled": compiled.exponentials,
    }[way]
    points = np.random.default_rng(0).uniform(-700, 700, 2000)
    points = np.concatenate([points, [0.0, 1.0, -700.0, 700.0, 1e-300, 0.5 * math.log(2)]])
    values = points.copy()
    function(values, np.empty_like(values))
    np.testing.assert_allclose(values, np.exp(points), rtol=3e-16 + 2.3e-16)


def test_logistic_and_its_loss_at_the_ends():
    assert elementary.logistic(0.0) == 0.5
    assert elementary.logistic(40.0) == pytest.approx(1.0, rel=1e-15)
    assert elementary.logistic_loss(800.0) == 0.0
    assert elementary.logistic_loss(-800.0) == 800.0
    assert elementary.logistic_loss(30.0) == pytest.approx(math.exp(-30), rel=1e-12)
    with np.errstate(over="ignore"):
        assert elementary.logistic(np.float64(-700.0)) > 0
