"""Power laws whose exponents are known."""

import numpy as np
import pytest

from dynamics.results.power_law import exponent, power_law


def test_a_power_law_with_errors():
    draws, x = np.random.default_rng(1), np.geomspace(1, 30, 8)
    errors = np.full(8, 0.1)
    pulls = []
    for _ in range(120):
        found = power_law(x, 3.0 * x**-2.0 * np.exp(errors * draws.standard_normal(8)), errors)
        pulls.append((found.exponent + 2.0) / found.error)
    assert abs(np.mean(pulls)) < 0.2
    assert 0.75 < np.std(pulls) < 1.1
    exact = power_law(x, 3.0 * x**-2.0, errors)
    assert exact.exponent == pytest.approx(-2.0)
    assert exact.prefactor == pytest.approx(3.0)
    crooked = power_law(x, x**-2.0 * np.exp(0.5 * (-1.0) ** np.arange(8)), errors)
    assert crooked.error > 3 * exact.error
    assert np.isnan(power_law([1.0, 2.0], [1.0, np.nan], [0.1, 0.1]).exponent)


def test_an_exponent_is_that_of_polyfit():
    sizes, values = np.array([2.0, 3.0, 5.0, 9.0]), np.array([1.0, 0.4, 0.2, 0.03])
    slope = np.polyfit(np.log(sizes), np.log(values), 1)[0]
    assert exponent(sizes, values) == pytest.approx(slope, rel=1e-13)
    assert power_law(sizes, values).r2 == pytest.approx(
        np.corrcoef(np.log(sizes), np.log(values))[0, 1] ** 2
    )


def test_two_values_have_an_exponent_and_no_error():
    assert exponent([1.0, 2.0], [1.0, 4.0]) == pytest.approx(2.0)
    assert np.isnan(power_law([1.0, 2.0], [1.0, 4.0]).error)
    assert np.isnan(power_law([], []).exponent)
    assert np.isnan(exponent([1.0], [1.0]))
    assert np.isnan(exponent([1.0, 2.0], [1.0, 0.0]))
