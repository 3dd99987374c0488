"""The realistic problem against triple loops, central differences, and the reduced one."""

import naive
import numpy as np
import pytest
from realistic import SYSTEM, problem

import dynamics
from dynamics.loops import Updates
from theory.papers.positional_attention import samples as sampling
from theory.symmetry import Partition

SIZES = [(8, 2, 3), (9, 3, 7), (10, 5, 1), (16, 4, 16), (24, 4, 6), (64, 4, 8)]


@pytest.mark.parametrize("degree", [3, 5])
@pytest.mark.parametrize("sizes", SIZES)
def test_gradient_equals_triple_loops(sizes, degree):
    size, set_size, depth = sizes
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


@pytest.mark.parametrize("degree", [3, 5])
@pytest.mark.parametrize("size", [8, 16, pytest.param(64, marks=pytest.mark.long)])
def test_gradient_equals_central_differences_of_the_risk(size, degree):
    made = problem(size, 4, 8, 700, degree)
    state, generator = made.initial_state, np.random.default_rng(0)
    gradient = made.gradient(state)
    for _ in range(3):
        direction = generator.standard_normal(state.size)
        made.layout.part(direction, "A")[np.diag_indices(size)] = 0.0
        direction /= np.linalg.norm(direction)
        slopes = []
        for width in (2e-3, 1e-3):
            # Fourth order, so that 1e-10 is met before rounding is.
            risks = [made.risk(state + k * width * direction) for k in (-2, -1, 1, 2)]
            slopes.append((risks[0] - 8 * risks[1] + 8 * risks[2] - risks[3]) / (12 * width))
        extrapolated = slopes[1] + (slopes[1] - slopes[0]) / 15
        gross = np.abs(gradient * direction).sum()
        assert abs(extrapolated - gradient @ direction) < 1e-10 * max(1.0, gross)


@pytest.mark.long
def test_single_precision_is_near_double():
    one, two = problem(samples=500), problem(samples=500, dtype="float32")
    exact, rounded = one.gradient(one.initial_state), two.gradient(two.initial_state)
    assert 1e-9 < abs(rounded - exact).max() / abs(exact).max() < 1e-5


def test_the_diagonal_is_held_unless_it_is_trained():
    held, trained = problem(), problem(diagonal=True)
    places = np.diag_indices(8)
    for made, moves in ((held, False), (trained, True)):
        run = dynamics.descend(made, 0.05, 20)
        assert (run["A"][-1][places] != made.parameters.beta).all() == moves


def test_learning_rates_of_v_and_of_a_are_separate():
    run = dynamics.descend(problem(), (0.1, 1e-12), 20)
    assert abs(run["A"][-1] - run["A"][0]).max() < 1e-10 < abs(run["v"][-1] - run["v"][0]).max()


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


def test_a_run_on_mini_batches_cut_anywhere_ends_in_the_same_bits():
    made = problem(samples=110, batch=40)
    whole = dynamics.descend(made, 0.02, 20).final_state
    for cut in (1, 3, 7):
        state, updates = made.initial_state, Updates(np.full(whole.size, 0.02))
        for first, last in ((0, cut), (cut, 20)):
            rows = np.empty((last - first, 7))
            made.advance(
                state,
                updates,
                first,
                last,
                (rows, np.empty(0, int), np.empty((0, whole.size))),
            )
        assert np.array_equal(state, whole)


def test_batches_average_to_the_full_gradient():
    whole, parts = problem(samples=110), problem(samples=110, batch=40)
    state = whole.initial_state
    updates = Updates(np.full(state.size, 1e-9))
    steps = []
    for step in range(3):
        moved = state.copy()
        parts.advance(
            moved, updates, step, step + 1, (np.empty((1, 7)), np.empty(0, int), moved[None])
        )
        steps.append((state - moved) / 1e-9)
    mean = np.average(steps, axis=0, weights=[40, 40, 30])
    np.testing.assert_allclose(mean, whole.gradient(state), atol=1e-6)
    np.testing.assert_array_equal(parts.gradient(state), parts.gradient(state))
    np.testing.assert_allclose(parts.gradient(state), whole.gradient(state), rtol=1e-12, atol=1e-15)


def test_more_samples_begin_with_the_fewer_ones():
    few, many = problem(samples=10), problem(samples=200)
    np.testing.assert_array_equal(few.data()[0], many.data()[0][:10])
    np.testing.assert_array_equal(few.data()[1], many.data()[1][:10])


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


def test_samples_follow_assumption_1():
    parameters = SYSTEM.Parameters(D=12, C=3, q=0.4, d=6)
    made = SYSTEM.FullEmpirical(parameters, 40_000, 3)
    patches, labels = made.data()
    values = patches @ made.feature
    np.testing.assert_allclose(values, np.rint(values), atol=1e-12)
    sums = np.rint(values).reshape(-1, 4, 3).sum(axis=2) * labels[:, None]
    assert (sums.max(axis=1) == 3).all()
    noise = patches - values[..., None] * made.feature
    assert abs(noise.var() * 6 / 5 - parameters.sigma**2) < 0.01 * parameters.sigma**2
    # A patch is random with probability 3/4, and then carries a feature with probability q.
    assert abs((np.rint(values) == 0).mean() - 0.75 * 0.6) < 0.005
    assert abs(labels.mean()) < 0.02


def test_fresh_projections_have_the_law_of_fresh_samples():
    parameters = SYSTEM.Parameters(D=8, C=2, q=0.5, d=8)
    made = SYSTEM.FullEmpirical(parameters, 50_000, 0, test_samples=50_000)
    state = np.random.default_rng(1).standard_normal(made.layout.size) * 0.3
    direct = made.observables(state)
    assert direct["test_error"] == pytest.approx(direct["error"], abs=0.01)


def test_unequal_sets_and_any_partition():
    parameters = SYSTEM.Parameters(D=8, C=2)
    for partition in (
        Partition.contiguous([3, 3, 2]),
        Partition.grid(2, 4, 1, 2),
        Partition.contiguous([2, 6]).shuffled(np.random.default_rng(0)),
    ):
        made = SYSTEM.FullEmpirical(parameters, 100, 0, partition)
        run = dynamics.descend(made, 0.01, 10)
        assert np.isfinite(run["risk"]).all()
        patches, labels = made.data()
        values = np.rint(patches @ made.feature) * labels[:, None]
        sums = np.stack([values[:, members].mean(axis=1) for members in partition.sets])
        assert (sums.max(axis=0) == 1).all()


def test_grid_blocks_are_those_of_figure_1b():
    sets = [list(1 + members) for members in Partition.grid(4, 4, 2, 2).sets]
    assert sets == [[1, 2, 5, 6], [3, 4, 7, 8], [9, 10, 13, 14], [11, 12, 15, 16]]
    with pytest.raises(ValueError, match="do not tile"):
        Partition.grid(4, 4, 3, 2)


def test_convolution_labels_are_the_sign_of_the_cubic():
    law = sampling.Convolution(Partition.contiguous([2, 2]))
    x, y = law.values(500, np.random.default_rng(0))
    expected = (x[:, 0] + x[:, 1]) ** 3 + (x[:, 2] + x[:, 3]) ** 3
    assert (y == np.sign(expected)).all()


def test_noise_free_symmetric_start_follows_the_reduced_run():
    """Each orbit's mean of A leaves the reduced run by O(N^-1/2) (slope: tests marked long)."""
    parameters = SYSTEM.Parameters(D=8, C=2, d=1, sigma=0.0)
    full = SYSTEM.FullEmpirical(parameters, 50_000, 0, start="symmetric")
    result = dynamics.compare(SYSTEM.ReducedPopulation(parameters), full, eta=0.02, steps=200)
    assert 1e-7 < result.deviation["gamma"] < 1e-3
    assert 1e-4 < result.deviation["alpha"] < 1e-2


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"samples": 0}, "samples=0"),
        ({"samples": 2.5}, "samples=2.5"),
        ({"batch": 0}, "batch=0"),
        ({"dtype": "float16"}, "float32"),
        ({"start": "zero"}, "symmetric"),
        ({"nonsense": 1}, "nonsense"),
        ({"partition": Partition.contiguous([4, 3])}, "partition"),
        ({"partition": Partition.contiguous([8])}, "partition"),
    ],
)
def test_wrong_requests_are_refused(options, word):
    with pytest.raises(ValueError, match=word):
        problem(**options)


@pytest.mark.parametrize(
    ("sizes", "samples", "seed", "found"),
    [
        ({"q": 0.5, "random_sets": "mixed"}, 400, 1, ""),
        ({"q": 0.5, "random_sets": "mixed"}, 400, 2, "does not fall below its value at T1; "),
    ],
)
def test_alpha_rises_on_samples_that_are_fitted_without_error(sizes, samples, seed, found):
    law = SYSTEM.Parameters(D=8, C=2, d=2, sigma=0.0, nu=1e-2, **sizes)
    problem = SYSTEM.FullEmpirical(law, samples, seed, start="symmetric", test_samples=2000)
    run = dynamics.descend(problem, eta=0.05, steps=6000)
    assert run["error"][-1] == 0 < run["test_error"][-1]
    assert run.events["event_III"].reached != bool(found)
    assert run.reasons["event_III"] == f"{found}training error is zero: memorisation"


def test_what_is_not_fitted_or_fitted_everywhere_is_not_memorised():
    problem = SYSTEM.FullEmpirical(SYSTEM.Parameters(D=8, C=2), 10, test_samples=10)
    for error, test_error in ((0.0, 0.0), (0.1, 0.2), (float("nan"), 0.2)):
        assert problem.remarks({"error": error, "test_error": test_error}) == {}
    assert problem.remarks({"error": 0.0, "test_error": 0.1}) != {}
