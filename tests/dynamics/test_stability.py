import numpy as np
import pytest

import dynamics


def test_limit_is_two_over_the_largest_curvature(system):
    problem = system.ReducedPopulation(system.Parameters())
    state, width = np.array([0.1082, 1.4999, -0.5027]), 1e-6
    columns = []
    for k in range(3):
        step = width * np.eye(3)[k]
        slope = problem.gradient(state + step) - problem.gradient(state - step)
        columns.append(slope / (2 * width))
    largest = np.linalg.eigvals(np.array(columns).T).real.max()
    assert dynamics.stability_limit(problem, state) == pytest.approx(2 / largest, rel=1e-5)
    assert dynamics.stability_limit(problem, state) == pytest.approx(0.0315, abs=1e-4)


def test_reduced_and_full_have_the_same_limit_where_alpha_decides(system):
    parameters = system.Parameters(D=8, C=2)
    reduced, full = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    run = dynamics.compare(reduced, full, 0.02, 500)
    first = dynamics.stability_limit(reduced, run.reduced.final_state)
    second = dynamics.stability_limit(full, run.full.final_state)
    assert first == pytest.approx(second, rel=1e-5)


def test_no_positive_curvature_means_no_limit(system):
    problem = system.ReducedPopulation(system.Parameters())
    assert dynamics.stability_limit(problem, problem.initial_state) == float("inf")
