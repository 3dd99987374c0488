"""The spectral expectation against enumeration, and where nothing can be enumerated."""

import numpy as np
import pytest

import dynamics
from dynamics.expectations import spectral_sum


def both(system, tolerance, **settings):
    of, law = system.ReducedPopulation, system.Parameters(**settings)
    return of(law, "exact"), of(law, "spectral", tolerance)


@pytest.mark.parametrize(
    ("D", "C", "q", "p"),
    [(16, 4, 0.5, 3), (18, 3, 0.3, 3), pytest.param(18, 3, 0.3, 5, marks=pytest.mark.long)],
)
def test_equals_enumeration_along_a_trajectory(system, D, C, q, p):
    for tolerance in (1e-6, 1e-8, 1e-10):
        exact, smooth = both(system, tolerance, D=D, C=C, q=q, p=p)
        run = dynamics.flow(exact, time=1e12, record=12)
        for state in run.states:
            found = smooth.error_estimate(state)
            reference = np.append(exact.gradient(state), exact.risk(state))
            error = np.abs(found["value"] - reference)
            assert (error <= tolerance * found["gross"]).all()
            assert (error <= found["estimate"]).all()
            assert (found["estimate"] <= tolerance * found["gross"]).all()


LARGE = {"D": 196, "q": 16 / 196, "nu": 1e-4}


@pytest.mark.parametrize(
    ("settings", "state", "expected"),
    [
        (LARGE, (0.05, 1.5, -0.05), "6.290060e+00 -2.259351e-04 4.728057e-06"),
        ({"D": 64, "q": 0.25}, (0.05, 2.0, -0.15), "4.072638e+00 -3.216343e-04 2.624380e-05"),
        (LARGE, (0.0138, 4.29, -0.0876), "7.995663e-03 -7.569277e-06 1.284663e-07"),
    ],
)
def test_reference_gradients(system, settings, state, expected):
    problem = system.ReducedPopulation(system.Parameters(C=4, **settings))
    assert problem.settings["expectation"] == "spectral"
    assert " ".join(f"{g:.6e}" for g in problem.gradient(state)) == expected


def test_estimates_at_perturbed_states_of_large_systems(system):
    """Against a run at 1e-11, up to D = 4096, states off the trajectory by a quarter."""
    draw = np.random.default_rng(5)
    for D, C, q, state in [
        (196, 4, 16 / 196, (0.02, 3.1, -0.067)),
        (1024, 8, 0.03, (0.006, 2.0, -0.01)),
        (4096, 8, 0.008, (0.0066, 3.3, -0.0066)),
    ]:
        parameters = system.Parameters(D=D, C=C, q=q, nu=1e-4)
        loose = system.ReducedPopulation(parameters, "spectral", 1e-7)
        tight = system.ReducedPopulation(parameters, "spectral", 1e-11)
        for _ in range(10):
            moved = np.array(state) * draw.uniform(0.75, 1.25, size=3)
            found, reference = loose.error_estimate(moved), tight.error_estimate(moved)
            error = np.abs(found["value"] - reference["value"])
            assert (error <= found["estimate"] + reference["estimate"]).all()


def test_hessian_is_the_slope_of_the_gradient(system):
    """Where nothing can be enumerated: differences, with the error falling as the width squared."""
    parameters = system.Parameters(D=4096, C=8, q=16 / 4096, nu=1e-4)
    problem = system.ReducedPopulation(parameters, "spectral", 1e-11)
    state = np.array([0.0066, 3.3, -0.0066])
    jacobian, errors = problem.jacobian(state), []
    for width in (4e-3, 2e-3):
        steps = width * np.diag(state)
        rows = [problem.gradient(state + s) - problem.gradient(state - s) for s in steps]
        errors.append(np.abs(np.array(rows).T / (2 * width * state) / jacobian - 1).max())
    assert errors[0] < 0.1
    assert 3.8 < errors[0] / errors[1] < 4.2


def test_flow_where_nothing_can_be_enumerated(system):
    parameters = system.Parameters(D=196, C=4, q=16 / 196, nu=1e-4)
    run = dynamics.flow(system.ReducedPopulation(parameters), time=1e4, record=[0.0, 1e4])
    assert run.events["T0"].time == pytest.approx(0.0335462, abs=1e-7)
    for name, value, digits in (
        ("alpha", 0.04372047, 6e-9), ("gamma", 0.07110248, 6e-8), ("risk", 0.400094554, 6e-10)
    ):  # fmt: skip
        assert run[name][-1] == pytest.approx(value, abs=digits)
    assert "error" not in run.observables


def test_more_work_than_the_budget_is_not_a_number_and_no_wrong_digit(system, monkeypatch):
    monkeypatch.setattr(spectral_sum, "BUDGET", 100.0)
    problem = system.ReducedPopulation(system.Parameters(), "spectral")
    assert np.isnan(problem.gradient(problem.initial_state)).all()
    assert np.isnan(problem.risk(problem.initial_state))
    for run in (dynamics.descend(problem, eta=0.02, steps=9), dynamics.flow(problem, time=1.0)):
        assert run.outcome.kind == "precision lost"
        assert "above its budget" in run.outcome.remedy


def test_where_no_digit_is_left_it_says_so(system):
    """Off every trajectory both signs of a large F meet at one z and cancel."""
    problem = system.ReducedPopulation(system.Parameters(), "spectral")
    for state in ((np.nan, 0.0, 0.0), (1e200, 0.0, 0.0), (0.1, np.nan, 0.0)):
        assert np.isnan(problem.gradient(np.array(state))).all()
    problem = system.ReducedPopulation(system.Parameters(D=196, C=4, q=16 / 196), "spectral")
    lost = 0
    for scale in np.linspace(0.0, 1.0, 11):
        state = np.array([0.022, 3.1, -0.067]) + scale * np.array([0.048, 1.1, -0.013])
        found = problem.gradient(state)
        if failure := problem.gradient_failure(state):
            lost += 1
            assert "no digit is left" in failure
            assert np.isnan(found).all()
        else:
            known = problem.error_estimate(state)
            assert (known["estimate"] <= 0.1 * known["gross"]).all()
            assert np.isfinite(found).all()
    assert 0 < lost < 11
    run = dynamics.descend(problem, 0.01, 5, initial=state)
    assert run.outcome.kind == "precision lost"


def test_shares_of_hundreds_from_which_weights_underflow(system):
    """Types whose weight underflows at a saddle point count in the integral as they are."""
    pair = both(system, 1e-10, D=48, C=16, q=0.5, nu=1e4)
    for state in (
        (0.005793864399820496, -0.020460705704035194, -0.027178888645016663),
        (-0.014378077230723227, -0.30339086399489534, 0.0),
    ):
        wanted, found = (each.error_estimate(np.array(state)) for each in pair)
        error = np.abs(found["value"] - wanted["value"])
        assert (error <= found["estimate"] + 1e-13 * wanted["gross"]).all()
        assert (found["estimate"] <= 1e-9 * found["gross"]).all()
