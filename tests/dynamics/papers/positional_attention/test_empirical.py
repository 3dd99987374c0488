"""The realistic problem against triple loops, and the reduced one."""

import naive
import numpy as np
import pytest
from realistic import SYSTEM, problem

import dynamics
from dynamics.loops import Updates
from theory.papers.positional_attention import samples as sampling
from theory.symmetry import Partition


@pytest.mark.parametrize(
    ("size", "set_size", "depth", "degree"),
    [(8, 2, 3, 3), (9, 3, 7, 5), (10, 5, 1, 3), (24, 4, 6, 5)],
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


def test_unequal_sets_and_any_partition():
    for partition in (
        Partition.grid(2, 4, 1, 2),
        Partition.contiguous([2, 6]).shuffled(np.random.default_rng(0)),
    ):
        made = SYSTEM.FullEmpirical(SYSTEM.Parameters(D=8, C=2), 100, 0, partition)
        patches, labels = made.data()
        values = np.rint(patches @ made.feature) * labels[:, None]
        sums = np.stack([values[:, members].mean(axis=1) for members in partition.sets])
        assert (sums.max(axis=0) == 1).all()


def test_convolution_labels_are_the_sign_of_the_cubic():
    law = sampling.Convolution(Partition.contiguous([2, 2]))
    x, y = law.values(500, np.random.default_rng(0))
    expected = (x[:, 0] + x[:, 1]) ** 3 + (x[:, 2] + x[:, 3]) ** 3
    assert (y == np.sign(expected)).all()


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


@pytest.mark.parametrize(("seed", "found"), [(1, ""), (2, "does not fall below its value at T1; ")])
def test_alpha_rises_on_samples_that_are_fitted_without_error(seed, found):
    law = SYSTEM.Parameters(D=8, C=2, d=2, sigma=0.0, nu=1e-2, random_sets="mixed")
    problem = SYSTEM.FullEmpirical(law, 400, seed, start="symmetric", test_samples=2000)
    run = dynamics.descend(problem, eta=0.05, steps=6000)
    assert run["error"][-1] == 0 < run["test_error"][-1]
    assert run.events["event_III"].reached != bool(found)
    assert run.reasons["event_III"] == f"{found}training error is zero: memorisation"
