import naive
import numpy as np
import pytest

import dynamics
from dynamics.validation import InvalidRequest
from theory.symmetry import Partition

SETTINGS = [
    {},
    {"p": 5, "nu": 0.01, "q": 0.3},
    pytest.param({"p": 9, "beta": 0.4, "q": 0.8}, marks=pytest.mark.long),
    {"scale": 0.25, "beta": 2.0},
    {"D": 12, "C": 3, "q": 0.4, "scale": 0.7},
    {"D": 8, "C": 4, "q": 1.0},
]


def test_reference_gradient(system):
    """Section 4 of the specification's measured values."""
    problem = system.ReducedPopulation(system.Parameters(D=16, C=4, q=0.5))
    found = problem.gradient((0.2, 0.03, -0.015))
    assert found[0] == pytest.approx(0.04525689, abs=5e-9)
    assert found[1:] == pytest.approx([-4.7201e-04, 1.8278e-04], abs=5e-9)


@pytest.mark.parametrize("given", SETTINGS)
def test_generated_kernel_equals_mpmath(system, given):
    """At random states, to 40 digits: risk and every component to 1e-12 relative."""
    parameters = system.Parameters(**given)
    problem, draw = system.ReducedPopulation(parameters), np.random.default_rng(7)
    for state in draw.uniform((0.02, -0.5, -1.5), (0.4, 3.0, 0.5), size=(4, 3)):
        risk, gradient = naive.reduced(parameters, state)
        assert problem.risk(state) == pytest.approx(float(risk), rel=1e-12)
        for computed, reference in zip(problem.gradient(state), gradient, strict=True):
            assert computed == pytest.approx(float(reference), rel=1e-12), state


def test_digits_are_kept_late_in_training(system):
    """Lambda - Gamma and Xi near 0: nothing is computed as a difference of nearby numbers."""
    parameters = system.Parameters()
    problem = system.ReducedPopulation(parameters)
    for state in dynamics.flow(problem, time=1e12, record=[1e12]).states:
        reference = naive.reduced(parameters, state)[1]
        for k in (1, 2):
            assert problem.gradient(state)[k] == pytest.approx(float(reference[k]), rel=1e-11)


@pytest.mark.parametrize("labels", [(0, 0, 1, 1, 2, 2), (0, 1, 0, 2, 1, 2)])
@pytest.mark.parametrize(("p", "q", "scale"), [(3, 0.5, 1.0), (5, 0.3, 0.6)])
def test_full_gradient_equals_loops_over_everything(system, labels, p, q, scale):
    parameters = system.Parameters(D=6, C=2, p=p, q=q, scale=scale)
    partition = Partition(labels)
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


@pytest.mark.parametrize(("D", "C", "q"), [(8, 2, 0.5), (9, 3, 0.6), (8, 4, 0.5)])
def test_full_gradient_is_constant_on_the_orbits_and_equals_the_reduced(system, D, C, q):
    """Lemma 4.1 at a random point of the symmetric manifold, with a scattered partition."""
    parameters = system.Parameters(D=D, C=C, q=q)
    labels = np.random.default_rng(3).permutation(np.repeat(np.arange(D // C), C))
    full = system.FullPopulation(parameters, Partition(labels))
    reduced = system.ReducedPopulation(parameters)
    alpha, gamma, rho = state = (0.25, 0.7, -0.3)
    same = labels[:, None] == labels[None, :]
    matrix = np.where(same, gamma, rho)
    np.fill_diagonal(matrix, parameters.beta)
    values = full.orbit_values(full.gradient((alpha, matrix))[None, :])
    expected = reduced.gradient(state)
    for name, value in zip(reduced.state_names, expected, strict=True):
        np.testing.assert_allclose(values[name], value, rtol=1e-10)
    order = dict(zip(full.order_names, full.order_parameters((alpha, matrix)), strict=True))
    twin = dict(zip(reduced.order_names, reduced.order_parameters(state), strict=True))
    for name in full.order_names:
        assert order[name] == pytest.approx(twin[name], rel=1e-10, abs=1e-15), name
    seen, twin = full.observables((alpha, matrix)), reduced.observables(state)
    for name in ("G", "risk", "error", "bayes_error", "patch_association", "cosine", "alpha_G"):
        assert seen[name] == pytest.approx(twin[name], rel=1e-10), name


def test_rates_of_order_parameters_are_derivatives(system):
    parameters = system.Parameters(D=8, C=2)
    for problem in (system.ReducedPopulation(parameters), system.FullPopulation(parameters)):
        state, width = dynamics.descend(problem, eta=0.02, steps=200).final_state, 1e-5
        step, names = width * problem.gradient(state), problem.order_names
        now, *near = (problem.order_parameters(state + k * step) for k in (0, -1, 1))
        slope = dict(zip(names, (near[0] - near[1]) / (2 * width), strict=True))
        now = dict(zip(names, now, strict=True))
        assert now["d_alpha"] == pytest.approx(slope["alpha"], rel=1e-6)
        assert now["d_G"] == pytest.approx(slope["G"], rel=1e-5)


@pytest.mark.parametrize("sizes", [[2, 2, 2, 2], [2, 2, 4], [4, 4, 4]])
def test_partitions_of_other_sizes_are_refused(system, sizes):
    with pytest.raises(InvalidRequest, match="are not the sizes of the sets"):
        system.FullPopulation(system.Parameters(D=8, C=4), Partition.contiguous(sizes))
