import numpy as np
import pytest

from dynamics.training.oscillation import Oscillation


@pytest.mark.parametrize("cut", [1, 7, 64, 10_000])
@pytest.mark.parametrize(
    ("rates", "lasting"),
    [
        ((-1.0) ** np.arange(1000), True),
        (np.r_[np.ones(500), (-1.0) ** np.arange(500)], True),
        (np.r_[(-1.0) ** np.arange(960), np.ones(40)], False),
        ((-0.97) ** np.arange(1000), False),
        (np.r_[np.ones(960), (-1.0) ** np.arange(40)], False),
        (np.zeros(1000), False),
        ((-1.0) ** np.arange(20_000) * np.linspace(2, 1, 20_000), True),
    ],
)
def test_oscillation(rates, lasting, cut):
    watch = Oscillation(0)
    for first in range(0, len(rates), cut):
        watch.feed(first, rates[first : first + cut, None])
    assert watch.lasting(len(rates) - 1) == lasting
