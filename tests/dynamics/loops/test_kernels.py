"""The logistic function and its loss, as Python."""

import math

import numpy as np
import pytest

from dynamics.loops.kernels import elementary


def test_logistic_and_its_loss_at_the_ends():
    assert elementary.logistic(0.0) == 0.5
    assert elementary.logistic(40.0) == pytest.approx(1.0, rel=1e-15)
    assert elementary.logistic_loss(800.0) == 0.0
    assert elementary.logistic_loss(-800.0) == 800.0
    assert elementary.logistic_loss(30.0) == pytest.approx(math.exp(-30), rel=1e-12)
    with np.errstate(over="ignore"):
        assert elementary.logistic(np.float64(-700.0)) > 0
