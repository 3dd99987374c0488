"""What runs on samples report: of the state they name, whatever was computed before or beside."""

import numpy as np
import pytest
from realistic import SYSTEM, problem

import dynamics
from dynamics.papers.positional_attention.matrices import associated_share
from theory.papers.positional_attention.attention import own_attention, softmax


def test_order_parameters_are_of_their_state_whatever_was_looked_at_before():
    made, generator = problem(samples=20), np.random.default_rng(1)
    states = [made.initial_state + generator.standard_normal(made.layout.size) for _ in range(3)]
    states.append(states[0].copy())
    states[3][0] += 1.0  # the same A, another v
    states.append(np.full(made.layout.size, np.nan))
    slopes = [generator.standard_normal(made.layout.size) for _ in states]
    alone = [
        problem(samples=20).order_parameters(*each) for each in zip(states, slopes, strict=True)
    ]
    for before in states:
        for state, slope, expected in zip(states, slopes, alone, strict=True):
            made.gradient(before)
            made.risk(before)
            made.observables(before)
            np.testing.assert_array_equal(made.order_parameters(state, slope), expected)


@pytest.mark.parametrize(("dtype", "samples"), [("float64", 40_000), ("float32", 4000)])
def test_ties_are_errors_on_training_and_fresh_samples(dtype, samples):
    """Full attention at D = 4, C = 2: F = 0 where the random set is all -y, chance (q/2)^2."""
    parameters = SYSTEM.Parameters(D=4, C=2, q=0.5, d=4)
    made = SYSTEM.FullEmpirical(parameters, samples, 0, test_samples=40_000, dtype=dtype)
    layout, state = made.layout, made.initial_state
    layout.part(state, "v")[:] = 0.2 * made.feature
    same = np.kron(np.eye(2), np.ones((2, 2)))
    layout.part(state, "A")[:] = np.where(same > 0, parameters.beta, -400.0)
    found = made.observables(state)
    for name, count in (("error", samples), ("test_error", 40_000)):
        assert found[name] == pytest.approx(1 / 16, abs=1 / np.sqrt(count)), name
    state[:] = 0.0
    assert made.observables(state)["error"] == made.observables(state)["test_error"] == 1.0


@pytest.mark.parametrize("degree", [3, 5, 7])
def test_a_test_error_is_a_share_of_fresh_samples(degree):
    made = problem(8, 2, 5, 20, degree, test_samples=4097)
    matrix = np.random.default_rng(2).standard_normal((8, 8))
    state = made.layout.flatten(([0.3, 0.0, 0.2, 0.0, 0.0], matrix))
    weights, fresh = softmax(matrix, made.parameters.scale), made.fresh
    attended = 8 * (0.3 * fresh.values + 0.2 * fresh.sigma * fresh.noise) @ weights.T
    outputs = (attended**degree + made.parameters.nu * attended).sum(axis=1)
    assert made.observables(state)["test_error"] == (fresh.labels * outputs <= 0).mean()


@pytest.mark.parametrize("labels", [[0, 0, 1, 1, 2, 2], [1, 0, 0, 1, 0, 2], [0, 1, 2, 3, 4, 5]])
def test_associated_share_by_sorting_each_row(labels):
    """Definition 2.2 row by row: the largest entries are exactly the own set; ties are not."""
    generator = np.random.default_rng(5)
    matrices = generator.integers(0, 3, size=(200, 6, 6)).astype(float)
    matrices += 3.0 * (np.equal.outer(labels, labels) & (generator.random((200, 6, 6)) < 0.8))
    expected = []
    for matrix in matrices:
        rows = []
        for row, own in zip(matrix, labels, strict=True):
            inside = [entry for entry, label in zip(row, labels, strict=True) if label == own]
            outside = [entry for entry, label in zip(row, labels, strict=True) if label != own]
            rows.append(min(inside) > max(outside))
        expected.append(np.mean(rows))
    shares = associated_share(matrices, np.equal.outer(labels, labels))
    np.testing.assert_array_equal(shares, expected)
    assert 0 < np.mean(shares) < 1


@pytest.mark.parametrize(
    "options", [{}, {"batch": 7}, {"dtype": "float32"}, {"start": "symmetric"}]
)
@pytest.mark.parametrize("record", [None, 1, [3, 17]])
def test_observables_of_a_run_are_of_the_states_of_its_records(options, record):
    made = problem(samples=41, **options)
    tolerance = 1e-4 if "dtype" in options else 1e-11
    run = dynamics.descend(made, 0.01, 40, record=record)
    for k, state in enumerate(run.states):
        for name, value in made.observables(state).items():
            assert run[name][k] == pytest.approx(value, rel=tolerance, abs=1e-15), (name, k)
    assert (np.diff(run["risk"]) != 0).all()


def test_observables_of_a_state_by_their_definitions():
    made = problem(samples=41)
    state = made.initial_state + 0.3 * np.random.default_rng(4).standard_normal(made.layout.size)
    matrix, labels = made.layout.part(state, "A"), made.partition.labels
    same = np.equal.outer(labels, labels)
    within = matrix[same & ~np.eye(labels.size, dtype=bool)]
    expected = {
        "gamma": within.mean(),
        "rho": matrix[~same].mean(),
        "gamma_spread": within.std(),
        "rho_spread": matrix[~same].std(),
        "G": own_attention(softmax(matrix, made.parameters.scale), made.partition),
        "patch_association": associated_share(matrix[None], same)[0],
    }
    found = made.observables(state)
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-12), name
