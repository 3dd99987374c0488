"""The reduction against brute force: the acceptance runs, and what follows from them."""

import numpy as np
import pytest

import dynamics


def agree(result):
    assert max(result.deviation.values()) < 1e-12
    for name, event in result.events["reduced"].items():
        assert event.step == result.events["full"][name].step, name
    assert result.full["dead"].max() < 1e-12
    for name in set(result.full.observables) & set(result.reduced.observables):
        one, two = result.full[name], result.reduced[name]
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-11, err_msg=name)


T2 = {"masked": 3, "z": "0.7,1.3", "odds": "0.4,0.6"}


@pytest.mark.parametrize(
    ("kind", "given", "risk"),
    [
        ("counts", {"masked": 4}, 0.4586236549702),
        pytest.param("contour", {"masked": 4}, 0.4586236549702, marks=pytest.mark.long),
        pytest.param("counts", T2, None, marks=pytest.mark.long),
        ("contour", T2, None),
    ],
)
def test_both_expectations_over_3000_steps(system, crossed, kind, given, risk):
    """Section 7 (a), T1 and T2: 44 scalars, in a random basis."""
    parameters = crossed(**given)
    reduced, full = system.ReducedPopulation(parameters, kind), system.FullPopulation(parameters)
    assert reduced.layout.size == 44
    result = dynamics.compare(reduced, full, eta=2.0, steps=3000 if risk else 100)
    agree(result)
    if risk:
        assert result.full["risk"][-1] == pytest.approx(risk, abs=5e-13)
        assert result.reduced["risk"][-1] == pytest.approx(risk, abs=5e-13)


def test_full_gradient_descent_sees_the_phases(system):
    """Section 7 (a'): two phases at (8, 2), one at (4, 4)."""
    default_run = system.default_runs["compare"]
    parameters = system.Parameters(**default_run.parameters)
    problems = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    result = dynamics.compare(*problems, default_run.eta, default_run.steps)
    agree(result)
    assert result.full["rho0"][0] == pytest.approx(1.99758, abs=5e-6)
    assert result.full.events["E2"].step == 13
    assert result.full["risk"][-1] == pytest.approx(0.0917977, abs=5e-8)
    assert result.full["floor"][-1] == pytest.approx(1 / 11, rel=1e-12)
    one_phase = system.Parameters(P=12, C_global=4, C_local=4, masked=3)
    problems = system.ReducedPopulation(one_phase), system.FullPopulation(one_phase)
    result = dynamics.compare(*problems, 1.0, 500)
    agree(result)
    assert result.full.events["E2"].step == 0
    assert not result.full.events["E0"]
    assert result.full["rho"].max() < 1


def test_a_wrong_gradient_is_seen(system):
    parameters = system.Parameters(P=8, C_global=4, C_local=2, masked=3)
    wrong = system.ReducedPopulation(system.Parameters(P=8, C_global=4, C_local=2, masked=4))
    wrong.parameters = parameters
    result = dynamics.compare(wrong, system.FullPopulation(parameters), eta=1.0, steps=50)
    assert max(result.deviation.values()) > 1e-3
