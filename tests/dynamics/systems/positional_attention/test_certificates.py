"""Gradient and risk against mpmath: spectral bounds hold, and say much; the exact sum rounds."""

import mpmath
import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

SMALL = [(4, 2), (6, 2), (6, 3), (8, 2), (8, 4), (10, 5), (14, 7), (16, 8), (18, 9)]
LARGE = [(9, 3), (10, 2), (12, 3), (12, 4), (12, 6), (14, 2), (16, 4), (18, 2), (18, 3), (18, 6)]
CASES = [
    ({"D": 16, "C": 8, "q": 0.2, "p": 9, "nu": 87.0, "beta": 2.4}, None),
    ({"D": 4, "C": 2, "q": 0.5, "nu": 0.1, "beta": 500.0}, None),
    ({"D": 8, "C": 2, "q": 1.0, "beta": 20.0}, None),
    ({"D": 8, "C": 2, "q": 1.0, "beta": 10.0}, (0.3, 0.0, 0.0)),
    ({"D": 8, "C": 2, "q": 1.0, "beta": 60.0}, (0.3, 0.0, 0.0)),
    ({"D": 18, "C": 6, "q": 0.5, "p": 9, "nu": 3.0, "beta": 4.0}, None),
    ({"D": 18, "C": 6, "q": 0.5, "p": 9, "nu": 3.0, "beta": 4.0}, (9.9, 0.0, 0.0)),
    ({"D": 8, "C": 2, "nu": 100.0}, None),
    # Types that a z does not allow have derivatives 1e124 times those of the others.
    ({"D": 18, "C": 9, "q": 0.2, "nu": 30.0, "beta": 291.0}, (0.3, 0.0, 0.0)),
    # Sums of many patches are tilted by more than a float64 holds.
    ({"D": 32, "C": 16, "q": 0.2, "nu": 1.0}, (0.6580357779191982, 0.0, 0.0)),
    (
        {"D": 28, "C": 14, "q": 0.05, "nu": 30.0, "beta": 30.0},
        (1.7743608892265381, 5.557656801603203, -3.530665177871507),
    ),
]


def reference(parameters, state):
    """Gradient and risk at 80 digits, and as many more as stand between the entries of S."""
    spread = parameters.scale * np.ptp([parameters.beta, *state[1:]])
    risk, gradient = naive.reduced(parameters, state, 80 + int(spread))
    return [*gradient, risk]


def errors(values, exact):
    with mpmath.workdps(80):
        pairs = zip(map(float, values), exact, strict=True)
        return np.array([float(abs(mpmath.mpf(value) - right)) for value, right in pairs])


def compared(problem, state, exact):
    """Bound and larger error of the certificate's value and of the kernel's; None where lost."""
    known = problem.error_bound(state)
    direct = np.append(problem.gradient(state), problem.risk(state))
    if not np.isfinite(known["bound"]).all():
        assert (known["bound"][~np.isfinite(known["bound"])] == np.inf).all()
        return None
    found = errors(known["value"], exact)
    if np.isfinite(direct).all():
        found = np.maximum(found, errors(direct, exact))
    return known["bound"], found


def check(system, settings_, states):
    """Whether every bound holds; how many there were."""
    parameters, held = system.Parameters(**settings_), 0
    problem = system.ReducedPopulation(parameters, "spectral")
    for given_state in states:
        state = np.array(given_state or (parameters.alpha0, 0.0, 0.0), dtype=float)
        pair = compared(problem, state, reference(parameters, state))
        if pair is not None:
            held += 1
            assert (pair[1] <= pair[0]).all(), (settings_, state.tolist(), *pair)
    return held


def parts_of_gross(system, settings_, state):
    """Errors of the exact sum, and their estimates, in parts of the gross."""
    parameters = system.Parameters(**settings_)
    problem = system.ReducedPopulation(parameters, "exact")
    at = np.array(state or (parameters.alpha0, 0.0, 0.0), dtype=float)
    known = problem.error_bound(at)
    np.testing.assert_array_equal(problem.gradient_bound(at), known["estimate"][:3])
    found = errors(known["value"], reference(parameters, at))
    return found / known["gross"], known["estimate"] / known["gross"]


@pytest.mark.parametrize(("settings_", "state"), CASES)
def test_where_digits_are_lost(system, settings_, state):
    """No zeros at large beta, large shares of both signs, a risk of large margins."""
    if settings_.get("p", 3) == 3:
        check(system, settings_, [state])
    # Where shares of 1e10 cancel in F, its sign is rounding, and the estimate says so.
    found, estimate = parts_of_gross(system, settings_, state)
    assert (found <= estimate).all()


def test_the_exact_sum_is_right_to_its_rounding(system):
    """Three random states and problems of each size, in parts of the gross."""
    draw = np.random.default_rng(0)
    for D, C in [*SMALL, (9, 3), (12, 3), (12, 4)]:
        for law in ("any", "mixed", "any"):
            settings_ = {"D": D, "C": C, "q": draw.uniform(0.05, 1), "beta": draw.uniform(-2, 4)}
            settings_ |= {"nu": 10 ** draw.uniform(-6, 0), "random_sets": law}
            state = tuple(draw.uniform((-0.5, -3, -3), (0.5, 3, 3)))
            found, estimate = parts_of_gross(system, settings_, state)
            assert (found < 1e-13).all()
            assert (found <= estimate).all()


@pytest.mark.parametrize("alpha", [8.659643233600654, 8.6, 8.65, 9.0])
def test_exponents_whose_terms_cancel_are_known_to_their_rounding(system, alpha):
    """H is of order 1e17, F = 0 where half of the sets stand against the signal."""
    settings_ = {"D": 8, "C": 4, "p": 9, "nu": 1.0, "beta": 10.0}
    check(system, settings_, [(alpha, 0.0, 0.0)])
    problem = system.ReducedPopulation(system.Parameters(**settings_), "spectral")
    _, upper = (
        problem.error_bound(np.array([alpha, 0.0, 0.0])),
        problem.addressed.data.columns.upper,
    )
    assert upper[0, 3] >= np.log(2) / 256


def test_sums_of_many_patches_are_no_reason_to_refuse(system):
    problem = system.ReducedPopulation(system.Parameters(D=32, C=16, q=0.2, nu=1.0), "spectral")
    known = problem.error_bound(np.array([0.6580357779191982, 0.0, 0.0]))
    assert (known["bound"] <= 1e-8 * known["gross"]).all()


@pytest.mark.parametrize("alpha", [3.0, 40.0])
def test_an_integral_that_rounding_would_fill_is_not_computed(system, alpha):
    """No contour is left whose rounding is below the bound: it took 1e8 nodes, or minutes."""
    parameters = system.Parameters(D=8, C=2, nu=1.0, beta=20.0)
    problem = system.ReducedPopulation(parameters, "spectral")
    assert np.isnan(problem.gradient(np.array([alpha, 0.0, 0.0]))).all()
    nodes, status = problem.addressed.data.report
    assert (nodes < 1e4, status) == (True, 3.0)
    assert problem.error_bound(np.array([0.1, 0.0, 0.0]))["bound"][0] < 1e-8


@pytest.mark.parametrize("alpha", [1.0, 5.0])
def test_types_that_a_law_leaves_out_scale_no_weight(system, alpha):
    """Sets of one sign have the largest |h|; in the mixed law they have no probability."""
    given_ = {"D": 6, "C": 2, "nu": 100.0, "beta": 87.0, "random_sets": "mixed"}
    assert check(system, given_, [(alpha, 0.0, 0.0)]) == 1


def test_a_bound_beyond_all_numbers_is_infinite_without_a_warning(system):
    parameters = system.Parameters(D=8, C=2, p=9)
    problem = system.ReducedPopulation(parameters, "spectral")
    known = problem.error_bound(np.array([-9.0e53, 2.4e3, 4.7e3]))
    assert not np.isnan(known["bound"]).any()
    assert (known["bound"] == np.inf).any()


@pytest.mark.parametrize("beta", [20.0, 60.0, 200.0])
def test_no_digit_is_lost_without_zeros_at_large_beta(system, beta):
    """The gradient by gamma is of order e^(-2 beta), every set's share by gamma too."""
    parameters, state = system.Parameters(D=8, C=2, q=1.0, beta=beta), np.array([0.3, 0.0, 0.0])
    problem = system.ReducedPopulation(parameters, "exact")
    found, exact = problem.gradient(state), reference(parameters, state)
    assert abs(found[1] - float(exact[1])) < 1e-14 * problem.error_bound(state)["gross"][1]


def of_order(low, high):
    """Positive numbers, evenly on a logarithmic axis."""
    return st.floats(low, high).map(lambda order: 10.0**order)


def problems(sizes, degrees):
    chance = st.sampled_from([1.0, 0.5]) | st.floats(1e-3, 1.0)
    beta = st.floats(-2.0, 4.0) | st.floats(-50.0, 800.0) | st.sampled_from([1.0, 20.0])
    fields = {"p": degrees, "q": chance, "nu": of_order(-12.0, 2.0), "beta": beta}
    fields["scale"] = st.sampled_from([1.0, 1.0, 0.25])
    fields["random_sets"] = st.sampled_from(["any", "any", "mixed"])
    size = st.sampled_from(sizes)
    return st.builds(lambda s, f: {"D": s[0], "C": s[1], **f}, size, st.fixed_dictionaries(fields))


def states():
    """The start, alpha of order 1 to 10 of both signs, small alpha; entries of A near and far."""
    sign, near = st.sampled_from([1.0, -1.0]), st.just(0.0) | of_order(-12.0, 0.0)
    entry = st.floats(-6.0, 6.0) | near
    alpha = st.builds(lambda s, a: s * a, sign, of_order(0.0, 1.0) | of_order(-4.0, 0.0))
    return st.none() | st.tuples(alpha, entry, entry) | st.tuples(alpha, st.just(0.0), st.just(0.0))


@pytest.mark.parametrize(
    ("count", "sizes", "degrees"),
    [
        (160, SMALL, (3,)),
        pytest.param(20_000, 8 * SMALL + LARGE, (3, 5, 7, 9), marks=pytest.mark.long),
    ],
)
def test_no_bound_is_violated(system, count, sizes, degrees, capsys):
    """So many states, four of every problem."""
    held = [0, 0]

    @settings(max_examples=count // 4, deadline=None, derandomize=True, database=None)
    @given(problems(sizes, st.sampled_from(degrees)), st.lists(states(), min_size=4, max_size=4))
    def run(settings_, given_states):
        held[0] += check(system, settings_, given_states)
        held[1] += len(given_states)

    run()
    if count > 160:
        with capsys.disabled():
            print(f"\n{held[1]} states, {held[0]} bounds on gradient and risk, none violated")
    assert held[1] >= count
    assert held[0] > count / 3


def test_the_bound_is_not_vain_on_ordinary_states(system):
    """Its median is within 100 times the error."""
    draw, ratios = np.random.default_rng(11), []
    for D, C in [*SMALL[1:], (12, 3), (12, 4)] * 2:
        beta, nu = draw.uniform(0.0, 2.0), 10 ** draw.uniform(-6, -2)
        parameters = system.Parameters(D=D, C=C, q=draw.uniform(0.05, 1.0), nu=nu, beta=beta)
        problem = system.ReducedPopulation(parameters, "spectral")
        moved = draw.uniform((0.02, -0.5, -1.5), (0.4, 3.0, 0.5))
        for state in (problem.initial_state, moved):
            bound, found = compared(problem, state, reference(parameters, state))
            ratios += list(bound[found > 0] / found[found > 0])
    assert len(ratios) > 100
    assert 1.0 <= np.median(ratios) <= 100.0


def test_the_first_state_of_a_problem_may_be_zero(system):
    parameters = system.Parameters(D=8, C=2)
    first, later = (system.ReducedPopulation(parameters, "exact") for _ in range(2))
    later.gradient((0.3, 0.2, -0.1))
    for state in ((0.0, 0.0, 0.0), (0.3, 0.0, 0.0), (0.3, 0.0, 0.0)):
        np.testing.assert_array_equal(first.gradient(state), later.gradient(state))
        assert first.risk(state) == later.risk(state)
    assert first.risk((0.0, 0.0, 0.0)) == pytest.approx(np.log(2.0), rel=1e-15)
