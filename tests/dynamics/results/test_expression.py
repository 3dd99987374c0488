"""Expressions beside Python's own evaluation of the same text, and power laws that are known."""

import math

import numpy as np
import pytest

from dynamics.results.expression import FUNCTIONS, Expression
from dynamics.results.power_law import exponent, power_law
from dynamics.validation import InvalidRequest

GIVEN = {"D": 24, "C": 4, "q": 0.3, "nu": 1e-3, "m": 7}
TEXTS = (
    "D", "3", "-D", "+q", "D+C", "D-C", "D*C", "D/C", "D//5", "D%5", "D**2", "D**-2", "-D**2",
    "q*(D-C)", "m/(D-C)", "2**-C", "round(D/7)", "floor(q*D)", "ceil(q*D)", "round(2.5)",
    "min(D, C, m)", "max(q, nu)", "abs(C-D)", "log(D)", "log2(D)", "log10(nu)", "exp(-q)",
    "sqrt(D)", "D//C*C + D%C", "(D-1)//2**2", "1e-3*D", "min(D)" , " D\t",
)  # fmt: skip


def python(text, given):
    """The slow, obvious twin: Python itself."""
    mathematics = {name: getattr(math, name, None) or __builtins__[name] for name in FUNCTIONS}
    one = {"min": lambda *v: min(v), "max": lambda *v: max(v)}
    return eval(text.strip(), {"__builtins__": {}}, mathematics | one | given)


@pytest.mark.parametrize("text", TEXTS)
def test_numbers_are_pythons(text):
    found, expected = Expression(text).value(GIVEN), python(text, GIVEN)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("text", TEXTS)
def test_arrays_are_taken_entry_by_entry(text):
    several = GIVEN | {"D": np.array([24, 36, 48]), "C": np.array([[4], [12]])}
    found = Expression(text).value(several)
    shapes = [np.shape(several[name]) for name in Expression(text).names]
    assert np.shape(found) == np.broadcast_shapes(*shapes)
    rows = np.broadcast_to(found, (2, 3))
    for i, j in np.ndindex(2, 3):
        point = GIVEN | {"D": several["D"][j].item(), "C": several["C"][i, 0].item()}
        expected = python(text, point)
        assert rows[i, j] == pytest.approx(expected, rel=1e-15, abs=0)


@pytest.mark.parametrize(
    "text",
    [
        "", "  ", "D +", "(D", "D)", "D C", "2D", "D; C", "x = 1", "D.real", "D[0]", "[D]", "(D,)",
        "'D'", "True", "None", "1j", "D and C", "D < C", "not D", "~D", "D @ C", "D << 3", "D | C",
        "lambda: 1", "D if C else 1", "__import__('os')", "open(D)", "log", "log(D, 2)", "min()",
        "round(D, ndigits=2)", "min(*D)", "(log)(D)(C)", "f'{D}'", "1e999", "2if D else 3",
        "(D := 3)", "\0", "(" * 200 + "D" + ")" * 200, "D+" * 200 + "D", "-" * 299 + "D", None, 3,
        "{D}", "...", "sum(x for x in D)", "await D", "abs(D", "#", "D\nC", "D!",
    ],
)  # fmt: skip
def test_everything_else_is_refused_in_one_line(text):
    if text == "-" * 299 + "D":
        assert Expression(text).value({"D": 2}) == -2
        return
    with pytest.raises(InvalidRequest, match="nearest") as caught:
        Expression(text, "q")
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("q=")


@pytest.mark.parametrize("text", ["9**9**9**9", "(9**300)**300", "10**5000", "exp(1e6)"])
def test_what_would_take_for_ever_is_refused(text):
    with pytest.raises(InvalidRequest):
        Expression(text).value({})


@pytest.mark.parametrize(
    "text", ["1/(D-D)", "D//0", "D%0", "log(-D)", "sqrt(C-D)", "(-D)**0.5", "0**-1", "log(0)"]
)
def test_a_number_that_is_not_defined_is_refused_and_an_entry_is_not(text):
    with pytest.raises(InvalidRequest, match="expression="):
        Expression(text).value(GIVEN)
    arrays = {"D": np.array([24.0, 24.0]), "C": 4}
    if Expression(text).names:
        assert not np.isfinite(Expression(text).value(arrays)).any()
        whole = {"D": np.array([24, 24]), "C": 4}
        assert not np.isfinite(Expression(text).value(whole)).any()


def test_one_bad_entry_leaves_the_others():
    found = Expression("log(x)").value({"x": np.array([1.0, -1.0, np.nan, np.e])})
    np.testing.assert_array_equal(np.isnan(found), [False, True, True, False])
    np.testing.assert_array_equal(found[[0, 3]], [0.0, 1.0])
    found = Expression("round(x)").value({"x": np.array([1.6, np.nan])})
    np.testing.assert_array_equal(found, [2.0, np.nan])
    assert math.isnan(Expression("min(1, x)").value({"x": math.nan}))
    assert math.isnan(Expression("x+1").value({"x": math.nan}))


def test_whole_numbers_in_arrays_do_not_wrap_round():
    for text in ("x**9", "x*x*x*x", "x**5 + 2**70", "x*2**100"):
        found = Expression(text).value({"x": np.array([10**5])})
        assert found[0] == pytest.approx(python(text, {"x": 10**5}), rel=1e-12)


def test_what_is_missing_is_named():
    with pytest.raises(InvalidRequest, match=r"q='m/\(D-C\)' needs C.*formula in D, m; nearest"):
        Expression("m/(D-C)", "q").value({"D": 16, "m": 2})
    with pytest.raises(InvalidRequest, match="not a number"):
        Expression("m").value({"m": "2"})


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
