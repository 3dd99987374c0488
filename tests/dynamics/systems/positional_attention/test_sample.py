import numpy as np
import pytest

STATE = (0.2, 0.3, -0.1)


def test_unbiased_with_the_standard_error_it_reports(system):
    """Over 300 seeds: the mean is the exact value, the spread is the reported error."""
    parameters = system.Parameters()
    exact = system.ReducedPopulation(parameters, "exact").error_bound(STATE)
    seeds = range(300)
    found = [
        system.ReducedPopulation(parameters, "sampled", samples=400, seed=seed).error_bound(STATE)
        for seed in seeds
    ]
    values = np.array([one["value"] for one in found])
    reported = np.array([one["standard_error"] for one in found]).mean(axis=0)
    spread = values.std(axis=0, ddof=1)
    assert (np.abs(values.mean(axis=0) - exact["value"]) < 4 * spread / np.sqrt(len(seeds))).all()
    np.testing.assert_allclose(reported, spread, rtol=0.15)
    assert "standard_error" not in exact


def test_terms_add_up_to_the_gradient(system):
    problem = system.ReducedPopulation(system.Parameters(), "exact")
    found = problem.error_bound(STATE)
    terms = problem.expectation.configurations.probability
    assert terms.sum() == pytest.approx(1, rel=1e-14)
    assert (found["gross"] >= np.abs(found["value"]) * (1 - 1e-12)).all()


def test_a_seed_is_a_run(system):
    parameters = system.Parameters(D=64, C=4, q=0.25)
    first, again, other = (
        system.ReducedPopulation(parameters, "sampled", samples=1000, seed=seed).gradient(STATE)
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()


def test_agrees_with_the_spectral_expectation_where_nothing_can_be_enumerated(system):
    parameters = system.Parameters(D=64, C=4, q=0.25)
    state = (0.05, 0.5, -0.05)
    found = system.ReducedPopulation(parameters, "sampled", samples=20_000).error_bound(state)
    smooth = system.ReducedPopulation(parameters, "spectral").error_bound(state)
    distance = np.abs(found["value"] - smooth["value"])
    assert (distance < 4 * found["standard_error"]).all()
