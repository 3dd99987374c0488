"""The realistic problem against triple loops; its observables are of the state they name."""

import naive
import numpy as np
import pytest

import dynamics
from dynamics.loops import Updates
from dynamics.papers.positional_attention.matrices import associated_share
from theory.papers.positional_attention import samples as sampling
from theory.papers.positional_attention.attention import own_attention, softmax
from theory.symmetry import Partition

SYSTEM = dynamics.load_system("positional_attention")


def problem(size=8, set_size=2, depth=5, samples=20, degree=3, seed=1, **options):
    parameters = SYSTEM.Parameters(D=size, C=set_size, d=depth, p=degree, omega=0.08, nu=0.1)
    return SYSTEM.FullEmpirical(parameters, samples, seed, **options)


@pytest.mark.parametrize(
    ("size", "set_size", "depth", "degree"), [(9, 3, 7, 5), (10, 5, 1, 3), (24, 4, 6, 5)]
)
def test_gradient_equals_triple_loops(size, set_size, depth, degree):
    made = problem(size, set_size, depth, 5 if size > 16 else 37, degree)
    state = made.initial_state
    value, matrix = made.layout.part(state, "v"), made.layout.part(state, "A")
    risk, by_value, by_matrix = naive.empirical(made.parameters, made.data(), value, matrix)
    np.fill_diagonal(by_matrix, 0.0)
    gradient = made.gradient(state)
    assert made.risk(state) == pytest.approx(risk, rel=1e-12)
    for name, expected in (("v", by_value), ("A", by_matrix)):
        found = made.layout.part(gradient, name)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * abs(expected).max())


def test_the_diagonal_is_held_unless_it_is_trained():
    held, trained = problem(), problem(diagonal=True)
    places = np.diag_indices(8)
    for made, moves in ((held, False), (trained, True)):
        run = dynamics.descend(made, 0.05, 20)
        assert (run["A"][-1][places] != made.parameters.beta).all() == moves


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_step_is_on_the_samples_of_its_batch(dtype):
    made = problem(samples=110, batch=40, dtype=dtype)
    state, updates = made.initial_state, Updates(np.full(made.layout.size, 1.0))
    value, matrix = made.layout.part(state, "v"), made.layout.part(state, "A")
    for step, members in enumerate(made.minibatches.members(0, 6)):
        moved = state.copy()
        made.advance(
            moved, updates, step, step + 1, (np.empty((1, 7)), np.empty(0, int), moved[None])
        )
        data = [part[members] for part in made.data()]
        _, by_value, by_matrix = naive.empirical(made.parameters, data, value, matrix)
        np.fill_diagonal(by_matrix, 0.0)
        expected = np.concatenate([by_value, by_matrix.ravel()])
        accuracy = 1e-12 if dtype == "float64" else 1e-5
        np.testing.assert_allclose(state - moved, expected, atol=accuracy)


def test_more_samples_begin_with_the_fewer_ones():
    for few, many in zip(problem(samples=10).data(), problem(samples=200).data(), strict=True):
        np.testing.assert_array_equal(few, many[:10])


def test_descent_does_not_know_the_direction_of_the_feature():
    """Adam does: it goes along unit vectors."""
    parameters = SYSTEM.Parameters(D=8, C=2)
    first, turned = (
        SYSTEM.FullEmpirical(parameters, 60, 1, start="symmetric", feature=feature)
        for feature in ("first", "random")
    )
    assert np.linalg.norm(turned.feature) == pytest.approx(1.0)
    assert abs(turned.feature[0]) < 0.9
    runs = [dynamics.descend(problem, 0.05, 200) for problem in (first, turned)]
    for name in ("alpha", "gamma", "rho", "risk", "test_error", "cosine"):
        np.testing.assert_allclose(runs[1][name], runs[0][name], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(runs[1].final_state[:8] @ turned.feature, runs[1]["alpha"][-1])


def test_patches_are_the_feature_times_values_of_assumption_1_and_noise():
    partition = Partition.contiguous([2, 4, 6]).shuffled(np.random.default_rng(0))
    parameters = SYSTEM.Parameters(D=12, C=3, q=0.4, d=6)
    made = SYSTEM.FullEmpirical(parameters, 40_000, 3, partition)
    patches, labels = made.data()
    values = patches @ made.feature
    np.testing.assert_allclose(values, np.rint(values), atol=1e-12)
    signed = np.rint(values) * labels[:, None]
    sums = np.stack([signed[:, members].mean(axis=1) for members in partition.sets])
    assert (sums.max(axis=0) == 1).all()
    noise = patches - values[..., None] * made.feature
    assert abs(noise.var() * 6 / 5 - parameters.sigma**2) < 0.01 * parameters.sigma**2
    # A patch is random with probability 2/3, and then carries a feature with probability q.
    assert abs((signed == 0).mean() - 2 / 3 * 0.6) < 0.005
    assert abs(labels.mean()) < 0.02


def test_convolution_labels_are_the_sign_of_the_cubic():
    law = sampling.Convolution(Partition.contiguous([2, 2]))
    x, y = law.values(500, np.random.default_rng(0))
    expected = (x[:, 0] + x[:, 1]) ** 3 + (x[:, 2] + x[:, 3]) ** 3
    assert (y == np.sign(expected)).all()


@pytest.mark.parametrize(("seed", "found"), [(1, ""), (2, "does not fall below its value at T1; ")])
def test_alpha_rises_on_samples_that_are_fitted_without_error(seed, found):
    law = SYSTEM.Parameters(D=8, C=2, d=2, sigma=0.0, nu=1e-2, random_sets="mixed")
    problem = SYSTEM.FullEmpirical(law, 400, seed, start="symmetric", test_samples=2000)
    run = dynamics.descend(problem, eta=0.05, steps=6000)
    assert run["error"][-1] == 0 < run["test_error"][-1]
    assert run.events["event_III"].reached != bool(found)
    assert run.reasons["event_III"] == f"{found}training error is zero: memorisation"


def test_order_parameters_are_of_their_state_whatever_was_looked_at_before():
    made, generator = problem(samples=20), np.random.default_rng(1)
    states = [made.initial_state + generator.standard_normal(made.layout.size) for _ in range(3)]
    states.append(states[0] + (np.arange(made.layout.size) == 0))  # the same A, another v
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
    inside = [np.equal(labels, own) for own in labels]
    expected = [
        np.mean([min(row[own]) > max(row[~own]) for row, own in zip(matrix, inside, strict=True)])
        for matrix in matrices
    ]
    shares = associated_share(matrices, np.equal.outer(labels, labels))
    np.testing.assert_array_equal(shares, expected)
    assert 0 < np.mean(shares) < 1


@pytest.mark.parametrize(
    ("options", "record"),
    [({}, 1), ({"batch": 7}, [3, 17]), ({"dtype": "float32"}, None), ({"start": "symmetric"}, 1)],
)
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
    within, between = matrix[same & ~np.eye(labels.size, dtype=bool)], matrix[~same]
    expected = {
        "gamma": within.mean(), "gamma_spread": within.std(),
        "rho": between.mean(), "rho_spread": between.std(),
        "G": own_attention(softmax(matrix, made.parameters.scale), made.partition),
        "patch_association": associated_share(matrix[None], same)[0],
    }  # fmt: skip
    found = made.observables(state)
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-12)
