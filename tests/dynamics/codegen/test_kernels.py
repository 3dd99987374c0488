"""Small kernels, as Python and compiled below a caller that allows reordering."""

import math

import mpmath
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


@pytest.mark.parametrize("way", ["python", "compiled"])
def test_logistic_losses_are_right_to_the_last_digits(way):
    function = elementary.logistic_losses
    if way == "compiled":
        parts = [codegen.kernel_source(elementary.logistic_losses)]
        function = codegen.build("Logistic losses.", ("x",), parts).logistic_losses
    margins = np.random.default_rng(0).uniform(-45, 45, 1000)
    half = -math.log(math.sqrt(2) - 1)  # there log 2 is taken out
    ends = [0.0, -0.0, 1e-9, -1e-9, 1e-300, 600.0, -600.0, 699.9, -1e6]
    ends += [half, -half, np.nextafter(half, 0), np.nextafter(half, 1)]
    margins = np.concatenate([margins, ends])
    losses = np.empty(margins.size)
    function(margins, losses, np.empty(margins.size))
    with mpmath.workdps(40):
        exact = [float(mpmath.log1p(mpmath.exp(-mpmath.mpf(float(x))))) for x in margins]
    np.testing.assert_allclose(losses, exact, rtol=1e-15)
    beyond = np.array([np.inf, -np.inf, np.nan, 1e4])
    out = np.empty(4)
    with np.errstate(invalid="ignore"):
        function(beyond, out, np.empty(4))
    assert out[0] < 1e-300
    assert out[3] < 1e-300
    assert out[1] == np.inf
    assert np.isnan(out[2])


@pytest.mark.parametrize("way", ["python", "compiled"])
def test_logistic_weights_are_right_to_the_last_digits(way):
    functions = (elementary.decays, elementary.logistic_weights)
    if way == "compiled":
        module = codegen.build("Weights.", ("x",), [codegen.kernel_source(*functions)])
        functions = (module.decays, module.logistic_weights)
    margins = np.random.default_rng(0).uniform(-700, 700, 1000)
    margins = np.concatenate([margins, [0.0, -0.0, 1e-300, 699.9, -699.9, -1e6, -np.inf, 1e6]])
    decayed, weights = np.empty((2, margins.size))
    functions[0](margins, decayed, np.empty(margins.size))
    functions[1](margins, decayed, weights)
    with mpmath.workdps(40):
        exact = [float(1 / (1 + mpmath.exp(mpmath.mpf(float(x))))) for x in margins]
    np.testing.assert_allclose(weights, exact, rtol=1e-15)
    out = np.empty((2, 3))
    functions[0](np.array([np.inf, 1e4, np.nan]), out[0], np.empty(3))
    functions[1](np.array([np.inf, 1e4, np.nan]), out[0], out[1])
    assert (out[1, :2] == 0.0).all()
    assert np.isnan(out[1, 2])


def test_logistic_and_its_loss_at_the_ends():
    assert elementary.logistic(0.0) == 0.5
    assert elementary.logistic(40.0) == pytest.approx(1.0, rel=1e-15)
    assert elementary.logistic_loss(800.0) == 0.0
    assert elementary.logistic_loss(-800.0) == 800.0
    assert elementary.logistic_loss(30.0) == pytest.approx(math.exp(-30), rel=1e-12)
    with np.errstate(over="ignore"):
        assert elementary.logistic(np.float64(-700.0)) > 0
