"""Committees: rows with given overlaps, the risk at any dimension, and published risks."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import orth
from scipy.optimize import minimize
from scipy.special import erf

import dynamics
from dynamics import rows_with_overlaps
from dynamics.validation import InvalidRequest
from dynamics.verdicts.library import committee

PUBLISHED = {0.1: 0.10370, 1.0: 0.060632, 10.0: 0.0044393, 100.0: 6.4416e-4, 1000.0: 9.3728e-5}
"""Time / (n d) -> risk: IdePHICS/DimensionlessDynamicsSGD, computation-database, classic limit,
erf, ode, at n = 10 (their p), k = 2, d = 3, noise 1e-3, gamma / p = 5e-3, no quadratic term. Their
noise adds to Q what the gradient flow does not have: .6 % of the risk at the last time."""


def system():
    return dynamics.load_system("committee")


def third(C, j, a, b):
    """E[g'(u_j) u_a g(u_b)] for Gaussian u of covariance C."""
    root = np.sqrt((1 + C[j, j]) * (1 + C[b, b]) - C[j, b] ** 2)
    return 2 / np.pi * (C[a, b] * (1 + C[j, j]) - C[j, a] * C[j, b]) / (1 + C[j, j]) / root


def rates(C, n, k):
    """Rates of the overlaps in units of time / d, by the equations of Saad and Solla."""
    a = np.repeat([1 / n, -1 / k], [n, k])
    moves = np.zeros_like(C)
    for j in range(n):
        for m in range(n + k):
            moves[j, m] = -a[j] * sum(a[b] * third(C, j, m, b) for b in range(n + k))
    return moves + moves.T


def by_equations(C, n, k, times):
    rate = lambda _, values: rates(values.reshape(C.shape), n, k).ravel()  # noqa: E731
    solved = solve_ivp(rate, (0, times[-1]), C.ravel(), t_eval=times, rtol=1e-11, atol=1e-13)
    return solved.y.T.reshape(-1, *C.shape)


def test_the_risk_is_that_of_draws():
    law = system().Parameters(n=3, k=2, d=5)
    full = system().FullPopulation(law)
    rng = np.random.default_rng(0)
    W, V = rng.standard_normal((3, 5)), np.sqrt(5) * np.eye(2, 5)
    x = rng.standard_normal((400_000, 5))
    student, teacher = (erf(x @ rows.T / np.sqrt(10)).mean(axis=1) for rows in (W, V))
    losses = (student - teacher) ** 2 / 2
    assert abs(losses.mean() - full.risk(W.ravel())) < 4 * losses.std() / np.sqrt(len(x))


@pytest.mark.parametrize("d", [100, np.inf])
def test_rows_by_overlaps_follow_the_equations_of_the_overlaps(d):
    times, student_first = np.array([1.0, 10.0, 50.0]), np.array([2, 3, 0, 1])
    gram = committee.gram(2, 2, d)
    problem, state = committee.few_rows(system(), system().Parameters(), gram)
    run = dynamics.flow(problem, 200.0, rtol=1e-10, initial=state, record=4 * times)
    there = np.searchsorted(run.time, 4 * times)
    turned = by_equations(gram[np.ix_(student_first, student_first)], 2, 2, times)
    for k, C in zip(there, turned, strict=True):
        Q = [run[f"Q_{pair}"][k] for pair in ("1_1", "1_2", "2_2")]
        R = [run[f"R_{pair}"][k] for pair in ("1_1", "1_2", "2_1", "2_2")]
        np.testing.assert_allclose(Q, [C[0, 0], C[0, 1], C[1, 1]], atol=1e-7)
        np.testing.assert_allclose(R, C[:2, 2:].ravel(), atol=1e-7)


def test_training_in_a_thousand_dimensions_is_that_of_eight_weights():
    law, steps = system().Parameters(d=1000), 300
    problem, state = committee.few_rows(system(), law, committee.gram(2, 2, 1000))
    every = dynamics.descend(system().FullPopulation(law), 1000.0, steps)
    few = dynamics.descend(problem, 4.0, steps, initial=state)
    assert (every.final_state.size, few.final_state.size) == (2000, 8)
    for name in few.observables:
        np.testing.assert_allclose(few[name], every[name], atol=1e-12)


def published_rows():
    """The rows of the published start, the teacher first: numpy's generator with their seed 3."""
    rng = np.random.default_rng(3)
    teacher, student = rng.normal(size=(2, 3)), rng.normal(size=(10, 3))
    teacher /= np.linalg.norm(teacher, axis=1, keepdims=True)
    teacher = np.sqrt(3) * orth(teacher.T).T
    signs = np.sign(teacher @ student[0])  # positive in theirs; an SVD may choose either
    return np.concatenate([signs[:, None] * teacher, student])


@pytest.mark.long
@pytest.mark.parametrize("d", [3, 12])
def test_published_risks_of_ten_neurons_in_three_dimensions(d):
    rows, law = published_rows(), system().Parameters(n=10, d=d)
    problem, state = committee.few_rows(system(), law, rows @ rows.T / 3)
    if d == 3:
        frame = np.linalg.svd(rows[:2])[2][2]  # orthogonal to the teacher
        turned = rows[2:] @ np.vstack([rows[:2] / np.sqrt(3), frame]).T
        problem, state = system().ReducedPopulation(law), turned.ravel()
    times = np.array([*PUBLISHED]) * law.n * d
    run = dynamics.flow(problem, times[-1], initial=state, record=times)
    risks = run["risk"][np.searchsorted(run.time, times)]
    np.testing.assert_allclose(risks, [*PUBLISHED.values()], rtol=0.01)


@pytest.mark.parametrize("k", [2, 3])
def test_equal_neurons_do_best_at_the_plateau(k):
    full = system().FullPopulation(system().Parameters(n=k, k=k, d=k))
    best = minimize(lambda row: full.risk(np.tile(row, k)), np.full(k, 0.5), tol=1e-12)
    assert best.fun == pytest.approx(committee.symmetric_risk(k), rel=1e-8)
    assert best.x @ best.x / k == pytest.approx(1 / (2 * k - 1), rel=1e-4)  # of norm sqrt(d Q)


@pytest.mark.parametrize(("m", "d"), [(1, 1), (4, 9), (6, 2), (12, 3)])
def test_rows_have_the_overlaps_of_others_at_any_dimension(m, d):
    others = np.random.default_rng(m + d).standard_normal((m, d))
    gram = others @ others.T
    rows = rows_with_overlaps(gram)
    np.testing.assert_allclose(rows @ rows.T, gram, atol=1e-14 * m * np.abs(gram).max())
    assert np.array_equal(rows, np.tril(rows))
    assert (np.diag(rows) >= 0).all()


WRONG = [
    ([[1.0, 0.5], [0.4, 1.0]], "gram is not symmetric: entry (0, 1) is 0.5, and (1, 0) is 0.4"),
    ([[1.0, 1.5], [1.5, 1.0]], "gram is not positive semidefinite: its least eigenvalue is -0.5"),
    ([[1.0, 0.5]], "gram has the shape (1, 2); it must be (m, m)"),
    ([1.0], "gram has the shape (1,); it must be (m, m)"),
    (np.zeros((0, 0)), "gram has the shape (0, 0); it must be (m, m)"),
    ([[np.nan]], "gram is not finite"),
    ([["x"]], "gram must be a matrix of numbers"),
    ([[1.0], [1.0, 2.0]], "gram must be a matrix of numbers"),
]


@pytest.mark.parametrize(("gram", "message"), WRONG)
def test_what_is_no_matrix_of_overlaps_is_refused_in_a_line(gram, message):
    with pytest.raises(InvalidRequest) as caught:
        rows_with_overlaps(gram)
    assert str(caught.value).startswith(message)
