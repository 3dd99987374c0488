"""The realistic problem against triple loops, central differences, and the reduced one."""

import naive
import numpy as np
import pytest
from realistic import SYSTEM, problem

import dynamics
from dynamics.loops import Updates
from theory.papers.positional_attention import samples as sampling
from theory.symmetry import Partition

SIZES = [(9, 3, 7), (24, 4, 6), (64, 4, 8)]


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
                state, updates, first, last, (rows, np.empty(0, int), np.empty((0, whole.size)))
            )
        assert np.array_equal(state, whole)


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
        ({"batch": 0}, "batch=0"),
        ({"dtype": "float16"}, "float32"),
        ({"start": "zero"}, "symmetric"),
        ({"nonsense": 1}, "nonsense"),
        ({"partition": Partition.contiguous([4, 3])}, "partition"),
    ],
)
def test_wrong_requests_are_refused(options, word):
    with pytest.raises(ValueError, match=word):
        problem(**options)


@pytest.mark.parametrize(
    ("sizes", "samples", "seed", "found"), [({"q": 0.5, "random_sets": "mixed"}, 400, 1, "")]
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
