import numpy as np
import pytest

import dynamics
from dynamics.training.oscillation import Oscillation


@pytest.mark.parametrize("cut", [1, 64])
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


@pytest.fixture(scope="module")
def quadratic():
    system = dynamics.Model(start=lambda: {"w": 1.0}, risk=lambda theta, xp: theta["w"] ** 2 / 2)
    return system.ReducedPopulation(system.Parameters())


def test_descent_of_a_quadratic_zigzags_near_its_limit(quadratic):
    with pytest.warns(dynamics.TrainingWarning, match="stability limit is 2: period two is near"):
        outcome = dynamics.descend(quadratic, eta=1.9999, steps=3000).outcome
    assert outcome.kind == "reached horizon"
    assert "zigzag" in outcome.remedy
    assert "leaves 0.9999 of it" in outcome.remedy
    with pytest.warns(dynamics.TrainingWarning, match="stability limit is 2: it is passed"):
        assert dynamics.descend(quadratic, eta=2.0001, steps=3000).outcome.kind == "oscillating"
    with pytest.warns(dynamics.TrainingWarning, match="stability limit is 2: it is reached"):
        outcome = dynamics.descend(quadratic, eta=2.0, steps=3000).outcome
    assert outcome.kind == "oscillating"
    assert "a zigzag that neither grows nor shrinks; try eta=1.8" in outcome.remedy


def test_descent_that_has_reached_the_smallest_number_does_not_oscillate(quadratic):
    with pytest.warns(dynamics.TrainingWarning):
        run = dynamics.descend(quadratic, eta=1.7, steps=3000)
    assert abs(run.final_state[0]) == 5e-324
    assert run.outcome.kind == "reached horizon"
