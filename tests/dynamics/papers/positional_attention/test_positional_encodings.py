"""A = P^T P: the chain rule against central differences, everything else against (T) at A."""

import numpy as np
import pytest

import dynamics
from dynamics.papers.positional_attention.gram import GramEmpirical
from dynamics.results.outcome import DIVERGED
from dynamics.validation import InvalidRequest
from theory.papers.positional_attention.samples import Convolution
from theory.symmetry import Partition

SYSTEM = dynamics.load_system("positional_attention")
PARAMETERS = SYSTEM.Parameters(D=8, C=2, d=5, omega=0.08, nu=0.1, beta=0.7)
LAWS = [None, Convolution(Partition.grid(2, 4, 1, 2))]


def moved(problem, seed=0):
    return problem.initial_state + 0.1 * np.random.default_rng(seed).standard_normal(
        problem.layout.size
    )


@pytest.mark.parametrize("law", LAWS)
def test_gradient_equals_central_differences_of_the_risk(law):
    problem = GramEmpirical(PARAMETERS, 60, 1, law=law)
    state, width = moved(problem), 3e-4
    found, expected = problem.gradient(state), []
    for k in range(state.size):
        step = width * (np.arange(state.size) == k)
        risks = [problem.risk(state + m * step) for m in (-2, -1, 1, 2)]
        expected.append((risks[0] - 8 * risks[1] + 8 * risks[2] - risks[3]) / (12 * width))
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


def test_it_is_the_full_problem_at_the_gram_matrix():
    problem = GramEmpirical(PARAMETERS, 60, 3)
    plain = SYSTEM.FullEmpirical(PARAMETERS, 60, 3, diagonal=True)
    state = moved(problem)
    matrix = problem.matrices(state[None])[0]
    full = np.concatenate([state[: PARAMETERS.d], matrix.ravel()])
    assert problem.risk(state) == pytest.approx(plain.risk(full), rel=1e-13)
    assert problem.observables(state) == pytest.approx(plain.observables(full), rel=1e-12)
    assert np.linalg.eigvalsh(matrix).min() > -1e-12
    orbits, expected = problem.orbit_values(state[None]), plain.orbit_values(full[None])
    for name, values in expected.items():
        np.testing.assert_array_equal(orbits[name], values)


def test_the_start_has_the_paper_s_scales():
    size = 400
    made = GramEmpirical(SYSTEM.Parameters(D=size, C=4, d=2, beta=2.0), 1, 0)
    matrix = made.matrices(made.initial_state[None])[0]
    # Mean of D chi-squares and of D (D - 1) products: three standard errors.
    diagonal, rest = np.diag(matrix), matrix[~np.eye(size, dtype=bool)]
    assert diagonal.mean() == pytest.approx(2.0, abs=3 * 2 * np.sqrt(2) / size)
    assert rest.std() == pytest.approx(2.0 / np.sqrt(size), rel=0.02)


def test_a_run_that_diverges_is_never_scored_as_right_and_a_negative_beta_is_refused():
    problem = GramEmpirical(PARAMETERS, 40, 5)
    assert dynamics.descend(problem, 50.0, 200).outcome.kind == DIVERGED
    lost = np.full(problem.layout.size, np.nan)
    assert problem.observables(lost)["test_error"] == 1.0
    with pytest.raises(InvalidRequest, match="beta="):
        GramEmpirical(SYSTEM.Parameters(D=8, C=2, beta=-1.0), 20)
