"""The reduction against brute force: the acceptance runs, and what follows from them."""

import masked
import numpy as np
import pytest

import dynamics
from dynamics.papers.masked_image_modeling.full import random_basis
from dynamics.validation import InvalidRequest


def event_steps(events):
    return {name: event.step for name, event in events.items()}


def agree(result, bound=1e-12):
    assert max(result.deviation.values()) < bound
    assert event_steps(result.events["reduced"]) == event_steps(result.events["full"])
    assert result.full["dead"].max() < bound
    for name in set(result.full.observables) & set(result.reduced.observables):
        one, two = result.full[name], result.reduced[name]
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-11, err_msg=name)


def test_t1_over_3000_steps(system, crossed):
    """Section 7 (a): 44 scalars, in a random basis."""
    parameters = crossed(masked=4)
    reduced, full = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    assert reduced.layout.size == 44
    result = dynamics.compare(reduced, full, eta=2.0, steps=3000)
    agree(result)
    assert result.full["risk"][-1] == pytest.approx(0.4586236549702, abs=5e-13)
    assert result.reduced["risk"][-1] == pytest.approx(0.4586236549702, abs=5e-13)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["counts", "contour"])
@pytest.mark.parametrize("given", [{"masked": 4}, {"masked": 3, "z": "0.7,1.3", "odds": "0.4,0.6"}])
def test_both_expectations_over_3000_steps(system, crossed, kind, given):
    """Section 7 (a), T1 and T2."""
    parameters = crossed(**given)
    reduced = system.ReducedPopulation(parameters, kind)
    agree(dynamics.compare(reduced, system.FullPopulation(parameters), eta=2.0, steps=3000))


def test_random_latents_and_the_contour(system, crossed):
    parameters = crossed(masked=3, z="0.7,1.3", odds="0.4,0.6")
    reduced = system.ReducedPopulation(parameters, "contour")
    agree(dynamics.compare(reduced, system.FullPopulation(parameters), eta=2.0, steps=100))


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


@pytest.mark.parametrize("z", ["1", "0.6,1.5"])
def test_full_gradient_is_that_of_dense_attention(system, z):
    """At a generic Q, where queries that are not masked have entries of their own."""
    parameters = system.Parameters(P=6, C_global=2, C_local=2, masked=2, z=z, d=11)
    full = system.FullPopulation(parameters, basis=4)
    basis = random_basis(11, np.random.default_rng(4))
    np.testing.assert_allclose(basis @ basis.T, np.eye(11), atol=1e-14)
    matrix = np.random.default_rng(1).normal(size=(11, 11))
    risk, slope = masked.population(parameters, matrix, basis)
    assert full.risk(matrix) == pytest.approx(risk, rel=1e-13)
    np.testing.assert_allclose(full.gradient(matrix).reshape(11, 11), slope, atol=1e-15)


def test_full_gradient_is_the_slope_of_the_risk(system):
    parameters = system.Parameters(P=6, C_global=2, C_local=2, masked=3)
    full = system.FullPopulation(parameters)
    draw = np.random.default_rng(2)
    state, direction = draw.normal(size=(2, full.layout.size))
    errors = []
    for width in (4e-3, 2e-3):
        ahead, behind = (full.risk(state + side * width * direction) for side in (1, -1))
        errors.append(abs((ahead - behind) / (2 * width) - direction @ full.gradient(state)))
    assert errors[1] < 0.3 * errors[0]


@pytest.mark.parametrize("kind", ["counts", "contour"])
def test_reduced_gradient_is_the_slope_of_the_risk(system, kind):
    """Central differences; a state stands for its class in every row of its type."""
    parameters = system.Parameters(P=20, C_global=8, C_local=3, masked=9)
    problem = system.ReducedPopulation(parameters, kind)
    rows = problem.rows
    sizes = [rows.sizes[a:b] for a, b in zip(rows.starts[:-1], rows.starts[1:], strict=True)]
    counts = np.concatenate([many * row for many, row in zip(rows.many, sizes, strict=True)])
    state = np.random.default_rng(0).normal(size=problem.layout.size)
    gradient, width = problem.gradient(state), 1e-5
    for k in range(state.size):
        ahead, behind = state.copy(), state.copy()
        ahead[k] += width
        behind[k] -= width
        slope = (problem.risk(ahead) - problem.risk(behind)) / (2 * width)
        assert slope / counts[k] == pytest.approx(gradient[k], rel=1e-6, abs=1e-10)


def test_a_wrong_gradient_is_seen(system):
    """The comparison can fail: another number of masked patches leaves the full run."""
    parameters = system.Parameters(P=8, C_global=4, C_local=2, masked=3)
    wrong = system.ReducedPopulation(system.Parameters(P=8, C_global=4, C_local=2, masked=4))
    wrong.parameters = parameters
    result = dynamics.compare(wrong, system.FullPopulation(parameters), eta=1.0, steps=50)
    assert max(result.deviation.values()) > 1e-3


def test_scalars_are_as_many_as_by_refinement_with_dicts(system, crossed):
    small = [
        system.Parameters(P=10, C_global=4, C_local=2),
        system.Parameters(P=12, C_global=4, C_local=4),
        system.Parameters(family="two_cluster_grid", b11=2, b10=2, C_local=2, T=1),
        system.Parameters(family="two_cluster_grid", b11=2, b10=2, C_local=2, T=2),
        crossed(),
    ]
    sizes = [system.ReducedPopulation(parameters).layout.size for parameters in small]
    assert sizes == [masked.scalars(parameters.area_ids.tolist()) for parameters in small]
    assert (sizes[0], sizes[-1]) == (12, 44)


def test_a_small_grid_of_two_clusters_is_reduced_exactly(system):
    parameters = system.Parameters(
        family="two_cluster_grid", b11=1, b10=2, C_local=2, T=1, masked=4
    )
    full = system.FullPopulation(parameters)
    agree(dynamics.compare(system.ReducedPopulation(parameters), full, eta=2.0, steps=200))
    contour = system.ReducedPopulation(parameters, "contour")
    agree(dynamics.compare(contour, full, eta=2.0, steps=100))


def test_names_of_rows(system, crossed):
    grid = system.Parameters(family="two_cluster_grid")
    problem = system.ReducedPopulation(grid)
    assert problem.rows.names == ("B11", "B10", "B00")
    assert problem.rows.many.tolist() == [8.0, 16.0, 16.0]
    assert system.ReducedPopulation(crossed()).rows.names == ("B11", "B10", "B01", "B00")
    names = system.ReducedPopulation(system.Parameters()).state_names
    assert "local_Phi_target" in names
    assert "global_Ups_own" in names
    alike = system.Parameters(P=12, C_global=4, C_local=4)
    assert system.ReducedPopulation(alike).rows.names == ("patch",)


def test_sizes_that_cannot_be_enumerated_are_refused_with_the_number(system):
    with pytest.raises(InvalidRequest, match=r"needs 601,080,390 masked images .* nearest: 4"):
        system.FullPopulation(system.Parameters(P=32, C_global=16, C_local=4))
