"""Reduced and full population: loops, mpmath, every entry; what "auto" chooses."""

import naive
import numpy as np
import pytest

import dynamics
from dynamics.papers.positional_attention.gram import GramEmpirical
from theory.symmetry import Partition

SETTINGS = [
    {},
    {"p": 5, "nu": 0.01, "q": 0.3},
    {"scale": 0.25, "beta": 2.0},
    {"D": 12, "C": 3, "q": 0.4, "scale": 0.7},
    {"D": 8, "C": 4, "q": 1.0},
]


@pytest.mark.parametrize("given", SETTINGS)
def test_generated_kernel_equals_mpmath(system, given):
    """At random states and late in training: nothing is a difference of nearby numbers."""
    parameters = system.Parameters(**given)
    problem, draw = system.ReducedPopulation(parameters), np.random.default_rng(7)
    states = draw.uniform((0.02, -0.5, -1.5), (0.4, 3.0, 0.5), size=(4, 3))
    late = dynamics.flow(problem, time=1e12, record=[1e12]).states[-1:] if not given else []
    for state in (*states, *late):
        risk, gradient = naive.reduced(parameters, state)
        assert problem.risk(state) == pytest.approx(float(risk), rel=1e-12)
        for computed, reference in zip(problem.gradient(state), gradient, strict=True):
            assert computed == pytest.approx(float(reference), rel=1e-11), state


@pytest.mark.parametrize(("p", "q", "scale"), [(3, 0.5, 1.0), (5, 0.3, 0.6)])
def test_full_gradient_equals_loops_over_everything(system, p, q, scale):
    parameters = system.Parameters(D=6, C=2, p=p, q=q, scale=scale)
    partition = Partition((0, 1, 0, 2, 1, 2))
    problem = system.FullPopulation(parameters, partition)
    draw = np.random.default_rng(1)
    matrix = draw.normal(size=(6, 6))
    np.fill_diagonal(matrix, parameters.beta)
    sets = [tuple(map(int, s)) for s in partition.sets]
    risk, d_alpha, d_matrix = naive.population(parameters, sets, 0.3, matrix)
    gradient = problem.gradient((0.3, matrix))
    np.fill_diagonal(d_matrix, 0.0)
    assert problem.risk((0.3, matrix)) == pytest.approx(risk, rel=1e-13)
    assert gradient[0] == pytest.approx(d_alpha, rel=1e-12)
    np.testing.assert_allclose(gradient[1:].reshape(6, 6), d_matrix, rtol=1e-11, atol=1e-15)


def test_rates_of_order_parameters_are_derivatives(system):
    parameters = system.Parameters(D=8, C=2)
    gram = GramEmpirical(system.Parameters(D=8, C=2, d=5, omega=0.08, nu=0.1), 60, 1)
    whole = (system.ReducedPopulation(parameters), system.FullPopulation(parameters))
    for problem in (*whole, gram):
        state, width = dynamics.descend(problem, eta=0.02, steps=200).final_state, 1e-5
        step, names = width * problem.gradient(state), problem.order_names
        now, *near = (problem.order_parameters(state + k * step) for k in (0, -1, 1))
        slope = dict(zip(names, (near[0] - near[1]) / (2 * width), strict=True))
        now = dict(zip(names, now, strict=True))
        assert now["d_alpha"] == pytest.approx(slope["alpha"], rel=1e-6)
        assert now["d_G"] == pytest.approx(slope["G"], rel=1e-5)


@pytest.mark.parametrize(
    ("settings", "tolerance", "chosen"),
    [
        ({}, 1e-10, "exact"),
        ({"D": 28}, 1e-6, "spectral"),
        ({"D": 4096, "C": 8, "q": 0.008}, 1e-8, "spectral"),
    ],
)
def test_the_cheapest_is_taken_and_said_why(system, settings, tolerance, chosen):
    problem = system.ReducedPopulation(system.Parameters(**settings), tolerance=tolerance)
    assert problem.settings["expectation"] == chosen
    assert "a gradient (predicted)" in problem.settings["auto"]


@pytest.mark.parametrize(
    "settings", [{"D": 6, "C": 2}, {"D": 8, "C": 2, "p": 5}, {"D": 9, "C": 3, "q": 0.6}]
)
def test_every_entry_the_declared_sum_and_the_derived_one_agree(system, settings):
    """Risk, gradient and Hessian at 100 random states, in parts of the gross."""
    parameters, draw = system.Parameters(**settings), np.random.default_rng(3)
    exact, smooth = (
        system.ReducedPopulation(parameters, kind, 1e-12) for kind in ("exact", "spectral")
    )
    full = system.FullPopulation(parameters)
    sets = np.arange(parameters.D) // parameters.C
    same = sets[:, None] == sets[None, :]
    for state in draw.uniform((-0.3, -1.0, -1.0), (0.3, 1.5, 1.0), (100, 3)):
        known = exact.error_estimate(state)
        matrix = np.where(same, state[1], state[2])
        np.fill_diagonal(matrix, parameters.beta)
        entries = np.concatenate([state[:1], matrix.ravel()])
        slope = full.gradient(entries)
        of_entries = [slope[0], slope[2], slope[parameters.D], full.risk(entries)]
        derived = [*smooth.gradient(state), smooth.risk(state)]
        for other in (of_entries, derived):
            assert (np.abs(known["value"] - other) <= 1e-11 * known["gross"]).all()
        curved = np.abs(smooth.jacobian(state) - exact.jacobian(state))
        assert (curved <= 1e-9 * known["gross"][:3, None]).all()
