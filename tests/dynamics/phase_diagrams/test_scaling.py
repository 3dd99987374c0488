"""Power laws and thresholds that are known, beside the normal equations and a fine grid."""

import itertools

import numpy as np
import pytest
import xarray
from scipy import stats
from sweeps import DIVERGED, HORIZON, sweep

from dynamics import plotting
from dynamics.phase_diagrams import scaling, threshold
from dynamics.phase_diagrams.threshold import DROP, MOST_SLOPE
from dynamics.validation import InvalidRequest

AXES = {"D": [8, 16, 32, 64], "C": [2, 4], "q": [0.1, 0.2, 0.4], "seed": [0, 1]}


def law(D, C, q, seed):
    return 3.0 * D**1.5 * (q * (D - C)) ** -0.5


def noisy(D, C, q, seed):
    return law(D, C, q, seed) * np.exp(0.1 * np.sin(1e3 * q + 7 * D + 3 * seed + C))


def test_a_power_law_is_found_exactly():
    found = scaling(sweep(AXES, {"time_T1": law}, fixed={"p": 3}), "time_T1", ["D", "q*(D-C)"])
    np.testing.assert_allclose([*found.exponents, found.prefactor], [1.5, -0.5, 3.0], rtol=1e-11)
    assert found.r2 == pytest.approx(1.0)
    assert found.spread < 1e-13
    assert (found.used, found.left_out, found.held, found.remark) == (48, {}, {"p": 3}, "")
    np.testing.assert_allclose(found.fitted, found.measured, rtol=1e-12)


def test_errors_are_those_of_the_normal_equations():
    grid = sweep(AXES, {"time_T1": noisy})
    found = scaling(grid, "time_T1", ["D", "q", "C"])
    points = list(itertools.product(*AXES.values()))
    matrix = np.array([[1.0, np.log(D), np.log(q), np.log(C)] for D, C, q, _ in points])
    target = np.log([noisy(*point) for point in points])
    inverse = np.linalg.inv(matrix.T @ matrix)
    best = inverse @ matrix.T @ target
    residuals = target - matrix @ best
    variance = residuals @ residuals / (48 - 4)
    errors = np.sqrt(variance * np.diag(inverse))
    np.testing.assert_allclose(found.exponents, best[1:], rtol=1e-9)
    np.testing.assert_allclose(found.errors, errors[1:], rtol=1e-9)
    assert np.log(found.prefactor) == pytest.approx(best[0], rel=1e-9)
    half = stats.t.ppf(0.975, 44) * errors[1:]
    np.testing.assert_allclose(found.intervals[:, 1] - best[1:], half, rtol=1e-8)
    assert found.spread == pytest.approx(np.sqrt(variance))
    assert found.r2 == pytest.approx(1 - residuals.var() / target.var())
    one = scaling(grid, "time_T1", ["D"], at={"q": 0.2, "C": 4, "seed": 0})
    (x, y), (own,) = np.log([AXES["D"], [noisy(D, 4, 0.2, 0) for D in AXES["D"]]]), one.exponents
    assert own == pytest.approx(stats.linregress(x, y).slope)
    assert one.held["q"] == 0.2


def test_what_is_left_out_is_counted_with_its_reason():
    def outcome(D, C, q, seed):
        return {(8, 2): -2, (8, 4): DIVERGED, (16, 2): -1}.get((D, C), HORIZON)

    def time(D, C, q, seed):
        return np.nan if q == 0.4 or D == 8 else law(D, C, q, seed) * (1 if seed else -1)

    grid = sweep(AXES, {"time_T1": time, "risk": law}, outcome)
    grid["time_T1"] = grid["time_T1"].where(grid["outcome"] >= 0)
    found = scaling(grid, "time_T1", ["D"])
    assert found.left_out == {
        "not a valid combination": 6, "diverged": 6, "not computed yet": 6, "not reached": 10,
        "not positive": 10,
    }  # fmt: skip
    assert found.used + sum(found.left_out.values()) == 48
    grid["risk"] = grid["risk"].where(grid["q"] < 0.3)
    found = scaling(grid, "risk", ["(q-0.15)*D"])
    assert found.left_out["not a number"] == 10
    assert found.left_out["(q-0.15)*D is not positive"] == 10


@pytest.mark.parametrize(
    ("quantity", "factors", "message"),
    [
        ("risk", ["D", "E"], "factor='E' is not in the dataset; .*nearest"),
        ("risk", ["D", "p"], "factor='p' does not vary: it is 3 in every run"),
        ("risk", ["q", "D", "C", "D*C"], "collinear: D, C, D[*]C vary together"),
        ("risk", ["q", "q**2"], "q, q[*][*]2 vary together"),
        ("risk", ["D("], "factor=.* cannot be read"),
        ("risk", [], "factors=.* is not a list"),
        ("risk<1", ["D"], "is a yes or no"),
        ("risc", ["D"], "nearest: risk"),
        ("zero", ["D"], "zero: 0 runs are too few to fit 1 exponents.*left out: 48 not positive"),
    ],
)
def test_what_cannot_be_fitted_is_refused_in_one_line(quantity, factors, message):
    grid = sweep(AXES, {"risk": law, "zero": 0.0}, fixed={"p": 3})
    with pytest.raises(InvalidRequest, match=message) as caught:
        scaling(grid, quantity, factors)
    assert "\n" not in str(caught.value)


def test_a_fit_that_explains_little_says_that_it_is_no_power_law():
    grid = sweep(AXES, {"risk": lambda D, C, q, seed: np.exp(-20 * (q - 0.2) ** 2) * D**0.01})
    poor = scaling(grid, "risk", ["q"])
    assert poor.r2 < 0.8
    assert poor.remark == "no power law in q: R^2 is below 0.8"
    assert "no power law in q" in plotting.scaling(poor)[0].figure.get_suptitle()


def test_a_logarithm_is_offered_beside_the_power_law():
    nu = np.geomspace(1e-8, 1e-2, 7)
    dataset = xarray.Dataset(
        {"risk": ("nu", 5.0 + 2.0 * np.log(1 / nu)), "outcome": ("nu", np.ones(7, int))}, {"nu": nu}
    )
    law = scaling(dataset, "risk", ["nu"])
    assert law.logarithmic == pytest.approx((5.0, 2.0, 1.0))
    assert law.logarithmic_text == "risk = 5 + 2 log(1/nu), R^2 = 1.0000"
    panel = plotting.scaling(law)[0].figure.axes[1]
    dashed = next(line for line in panel.lines if line.get_linestyle() == "--")
    np.testing.assert_allclose(dashed.get_ydata(), 5.0 - 2.0 * np.log(dashed.get_xdata()))


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
