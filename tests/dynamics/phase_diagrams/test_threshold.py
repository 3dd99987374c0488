"""Where half of the trials succeed: synthetic data of known N50, bounds, a slow twin."""

import numpy as np
import pytest

from dynamics.phase_diagrams import threshold
from dynamics.phase_diagrams.threshold import DROP, MOST_SLOPE
from dynamics.validation import InvalidRequest

LEVELS = np.array([2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128], dtype=float)


def chances(value, slope):
    return 1 / (1 + (value / LEVELS) ** slope)


def likelihood(k, n, value, slope):
    p = np.clip(1 / (1 + (value / LEVELS) ** slope), 1e-300, 1 - 1e-16)
    return float((k * np.log(p) + (n - k) * np.log(1 - p)).sum())


@pytest.mark.parametrize(("value", "slope"), [(5.0, 1.5), (60.0, 0.8)])
def test_exact_shares_give_the_number_back(value, slope):
    found = threshold(LEVELS, 1e4 * chances(value, slope), 1e4)
    assert found.kind == "measured"
    assert found.value == pytest.approx(value, rel=1e-6)
    assert found.slope == pytest.approx(slope, rel=1e-6)
    np.testing.assert_allclose(found.chance(LEVELS), chances(value, slope), rtol=1e-5)


def test_the_top_and_the_ends_against_a_fine_grid():
    k = np.array([0, 1, 3, 5, 9, 12, 13, 17, 19, 20, 20, 20])
    found = threshold(LEVELS, k, 20)
    values, slopes = np.geomspace(5, 40, 501), np.geomspace(0.3, MOST_SLOPE, 120)
    profile = np.array([max(likelihood(k, 20, u, s) for s in slopes) for u in values])
    inside = values[profile >= profile.max() - DROP]
    assert found.value == pytest.approx(values[profile.argmax()], rel=4e-3)
    assert found.low == pytest.approx(inside[0], rel=4e-3)
    assert found.high == pytest.approx(inside[-1], rel=4e-3)


def test_a_jump_from_never_to_always_has_an_interval():
    k = np.where(LEVELS < 10, 0, 20)
    found = threshold(LEVELS, k, 20)
    assert found.kind == "measured"
    assert found.value == pytest.approx(np.sqrt(8 * 12), rel=1e-3)
    assert 7.5 < found.low < 8.6
    assert 11.3 < found.high < 12.5


def test_what_lies_outside_the_levels_is_a_bound():
    never, always = np.zeros(12), np.full(12, 20.0)
    assert str(threshold(LEVELS, never, 20)).startswith("> ")
    assert threshold(LEVELS, never, 20).kind == "above"
    assert threshold(LEVELS, always, 20).kind == "below"
    early = threshold(LEVELS[:3], [14, 18, 20], 20)
    assert (early.kind, early.error) == ("below", np.inf)
    assert early.low < early.high < 2.2
    assert np.isnan(early.value)
    assert threshold(LEVELS, always[::-1] - LEVELS / 8, 20).kind == "nowhere"


def test_levels_without_trials_are_left_out():
    assert threshold([2, 4, 6, 8], [0.0, 5.0, np.nan, 20.0], 20).levels.tolist() == [2, 4, 8]
    for levels, k in (([2, 4], [21, 3]), ([2.0], [np.nan])):
        with pytest.raises(InvalidRequest, match="positive levels"):
            threshold(levels, k, 20)
