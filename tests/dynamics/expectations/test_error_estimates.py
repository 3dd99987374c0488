"""Gradient and risk against mpmath: what the estimated errors say."""

import mpmath
import naive
import numpy as np
import pytest

SIZES = [
    (4, 2), (6, 2), (6, 3), (8, 2), (8, 4), (9, 3), (10, 2), (10, 5), (12, 3), (12, 4), (12, 6),
    (14, 2), (14, 7), (15, 3), (16, 4), (16, 8), (18, 2), (18, 9),
]  # fmt: skip
"""At most 3,000 configurations each."""
CASES = [
    ({"D": 16, "C": 8, "q": 0.2, "p": 9, "nu": 87.0, "beta": 2.4}, None),
    ({"D": 4, "C": 2, "q": 0.5, "nu": 0.1, "beta": 500.0}, None),
    ({"D": 8, "C": 2, "q": 1.0, "beta": 20.0}, None),
    ({"D": 8, "C": 2, "q": 1.0, "beta": 60.0}, (0.3, 0.0, 0.0)),
    ({"D": 18, "C": 6, "q": 0.5, "p": 9, "nu": 3.0, "beta": 4.0}, (9.9, 0.0, 0.0)),
    ({"D": 8, "C": 2, "nu": 100.0}, None),
    # Types that a z does not allow have derivatives 1e124 times those of the others.
    ({"D": 18, "C": 9, "q": 0.2, "nu": 30.0, "beta": 291.0}, (0.3, 0.0, 0.0)),
    # Sums of many patches are tilted by more than a float64 holds.
    ({"D": 32, "C": 16, "q": 0.2, "nu": 1.0}, (0.6580357779191982, 0.0, 0.0)),
    # H is of order 1e17, F = 0 where half of the sets stand against the signal.
    ({"D": 8, "C": 4, "p": 9, "nu": 1.0, "beta": 10.0}, (8.659643233600654, 0.0, 0.0)),
    ({"D": 8, "C": 4, "p": 9, "nu": 1.0, "beta": 10.0}, (9.0, 0.0, 0.0)),
    # Sets of one sign have the largest |h|; in the mixed law they have no probability.
    ({"D": 6, "C": 2, "nu": 100.0, "beta": 87.0, "random_sets": "mixed"}, (5.0, 0.0, 0.0)),
]


def reference(parameters, state):
    """Gradient and risk at 60 digits, and as many more as stand between the entries of S."""
    spread = parameters.scale * np.ptp([parameters.beta, *state[1:]])
    risk, gradient = naive.reduced(parameters, state, 60 + int(spread))
    return [*gradient, risk]


def errors(values, exact):
    with mpmath.workdps(80):
        pairs = zip(map(float, values), exact, strict=True)
        return np.array([float(abs(mpmath.mpf(value) - right)) for value, right in pairs])


def found_and_estimated(problem, state):
    """Errors and their estimates, shape (4,) each; None where there is no gradient."""
    known = problem.error_estimate(state)
    direct = np.append(problem.gradient(state), problem.risk(state))
    if not np.isfinite(known["estimate"]).all():
        assert (known["estimate"] == np.inf).all()
        assert np.isnan(direct).all()
        assert problem.gradient_failure(state)
        return None
    np.testing.assert_array_equal(known["value"], direct)
    return errors(direct, reference(problem.parameters, state)), known["estimate"]


def parts_of_gross(system, settings, state):
    """Errors of the exact sum, and their estimates, in parts of the gross."""
    parameters = system.Parameters(**settings)
    problem = system.ReducedPopulation(parameters, "exact")
    at = np.array(state or (parameters.alpha0, 0.0, 0.0), dtype=float)
    known = problem.error_estimate(at)
    np.testing.assert_array_equal(problem.gradient_error(at), known["estimate"][:3])
    found = errors(known["value"], reference(parameters, at))
    return found / known["gross"], known["estimate"] / known["gross"]


@pytest.mark.parametrize(("settings", "state"), CASES)
def test_where_digits_are_lost(system, settings, state):
    """No zeros at large beta, large shares of both signs, a risk of large margins."""
    parameters = system.Parameters(**settings)
    at = np.array(state or (parameters.alpha0, 0.0, 0.0), dtype=float)
    pair = found_and_estimated(system.ReducedPopulation(parameters, "spectral"), at)
    assert pair is None or (pair[0] <= pair[1]).all()
    # Where shares of 1e10 cancel in F, its sign is rounding, and the estimate says so.
    assert np.less_equal(*parts_of_gross(system, settings, state)).all()


def test_the_exact_sum_is_right_to_its_rounding(system):
    """Random states and problems of each size, in parts of the gross."""
    draw = np.random.default_rng(0)
    for D, C in [*SIZES[:5], (14, 7), (18, 9), (9, 3), (12, 4)]:
        for law in ("any", "mixed"):
            settings = {"D": D, "C": C, "q": draw.uniform(0.05, 1), "beta": draw.uniform(-2, 4)}
            settings |= {"nu": 10 ** draw.uniform(-6, 0), "random_sets": law}
            state = tuple(draw.uniform((-0.5, -3, -3), (0.5, 3, 3)))
            found, estimate = parts_of_gross(system, settings, state)
            assert (found < 1e-13).all()
            assert (found <= estimate).all()


def test_an_integral_that_rounding_would_fill_has_no_result(system):
    """No contour has a rounding below the gross; an error beyond all numbers is infinite."""
    problem = system.ReducedPopulation(system.Parameters(D=8, C=2, nu=1.0, beta=20.0), "spectral")
    for alpha in (3.0, 40.0):
        state = np.array([alpha, 0.0, 0.0])
        assert np.isnan(problem.gradient(state)).all()
        assert "no digit is left" in problem.gradient_failure(state)
    assert problem.error_estimate(np.array([0.1, 0.0, 0.0]))["estimate"][0] < 1e-8
    problem = system.ReducedPopulation(system.Parameters(D=8, C=2, p=9), "spectral")
    known = problem.error_estimate(np.array([-9.0e53, 2.4e3, 4.7e3]))
    assert (known["estimate"] == np.inf).all()


@pytest.mark.parametrize("beta", [20.0, 200.0])
def test_no_digit_is_lost_without_zeros_at_large_beta(system, beta):
    """The gradient by gamma is of order e^(-2 beta), every set's share by gamma too."""
    parameters, state = system.Parameters(D=8, C=2, q=1.0, beta=beta), np.array([0.3, 0.0, 0.0])
    problem = system.ReducedPopulation(parameters, "exact")
    found, exact = problem.gradient(state), reference(parameters, state)
    assert abs(found[1] - float(exact[1])) < 1e-14 * problem.error_estimate(state)["gross"][1]


@pytest.mark.parametrize("count", [40, pytest.param(5000, marks=pytest.mark.long)])
def test_few_errors_are_above_their_estimate(system, count):
    """In 5,000 states five, none tenfold; the estimate says much, too."""
    draw, above, ratios, missing = np.random.default_rng(11), [], [], 0
    for _ in range(count // 4):
        D, C = SIZES[draw.integers(len(SIZES))]
        near, far = draw.uniform(-2, 4), draw.uniform(-50, 50)
        parameters = system.Parameters(
            D=D, C=C, p=int(draw.choice([3, 3, 5, 7, 9, 11])), q=draw.uniform(0.02, 1),
            nu=10 ** draw.uniform(-6, 1), beta=draw.choice([near, far]),
            random_sets=str(draw.choice(["any", "mixed"])),
        )  # fmt: skip
        problem = system.ReducedPopulation(parameters, "spectral")
        for _ in range(4):
            alpha = 10 ** draw.uniform(-3, 0.5) * draw.choice([1, 1, -1])
            entries = draw.uniform((-3, -6), (6, 3)) if draw.random() < 0.8 else (0.0, 0.0)
            pair = found_and_estimated(problem, np.array([alpha, *entries]))
            if pair is None:
                missing += 1
                continue
            found, estimate = pair
            above += [(found / estimate).max()] if (found > estimate).any() else []
            with np.errstate(over="ignore"):  # of errors below 1e-300
                ratios += list(estimate[found > 0] / found[found > 0])
    assert len(above) <= count // 1000
    assert max(above, default=0.0) < 10.0
    assert np.median(ratios) < 1000.0
    assert missing < count // 4


def test_the_first_state_of_a_problem_may_be_zero(system):
    parameters = system.Parameters(D=8, C=2)
    first, later = (system.ReducedPopulation(parameters, "exact") for _ in range(2))
    later.gradient((0.3, 0.2, -0.1))
    for state in ((0.0, 0.0, 0.0), (0.3, 0.0, 0.0), (0.3, 0.0, 0.0)):
        np.testing.assert_array_equal(first.gradient(state), later.gradient(state))
        assert first.risk(state) == later.risk(state)
    assert first.risk((0.0, 0.0, 0.0)) == pytest.approx(np.log(2.0), rel=1e-15)
