import numpy as np
import pytest

import dynamics
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


@pytest.mark.parametrize(
    ("sizes", "factor"),
    [
        (lambda n: 0.9999**n, 0.9999),
        (lambda n: 0.9999999**n, 0.9999999),
        (lambda n: 1.0 + 0.5 * 0.99**n, None),
        (lambda n: np.ones(n.size), None),
        (lambda n: 2.0 - n / n.size, None),
    ],
)
def test_the_factor_of_an_amplitude_that_vanishes(sizes, factor):
    steps = np.arange(2000)
    watch = Oscillation(0)
    watch.feed(0, ((-1.0) ** steps * sizes(steps))[:, None])
    assert watch.lasting(1999)
    found = watch.decay(1999)
    assert (found is None) == (factor is None)
    assert found is None or 1 - found == pytest.approx(1 - factor, rel=0.01)


def test_descent_near_the_limit_of_a_quadratic_converges_in_a_zigzag(tmp_path):
    file = tmp_path / "quadratic.py"
    file.write_text(
        "def start():\n    return {'w': 1.0}\n\n\n"
        "def risk(theta, xp):\n    return theta['w'] ** 2 / 2\n"
    )
    system = dynamics.load_system(str(file))
    problem = system.ReducedPopulation(system.Parameters())
    outcome = dynamics.descend(problem, eta=1.9999, steps=3000).outcome
    assert outcome.kind == "reached horizon"
    assert "zigzag" in outcome.remedy
    assert "leaves 0.9999 of it" in outcome.remedy
    assert dynamics.descend(problem, eta=2.0001, steps=3000).outcome.kind == "oscillating"
