"""The empirical problem against the full population, loops, and the reduction."""

import jax
import numpy as np
import pytest

import dynamics
from dynamics.cache.programs import compiled_program
from dynamics.papers.masked_image_modeling.full import FullProblem
from theory.papers.masked_image_modeling import images


@pytest.fixture
def small(system):
    """Two clusters that cross without symmetry."""
    areas = "0,0,0,0,1,1,2,2;0,0,1,1,0,2,0,2"
    return system.Parameters(family="custom", areas=areas, masked=3, z="0.7,1.3", odds="0.4,0.6")


def test_the_gradient_is_that_of_tokens_and_autograd(system, small):
    problem, every = system.FullPopulation(small), images.all_images(small)
    positions, features = problem.positions, problem.features
    offsets = np.array([0, 3])[every.cluster]
    content = features[small.area_ids[every.cluster] + offsets[:, None]] * every.latent[..., None]
    masked = np.zeros(every.latent.shape)
    np.put_along_axis(masked, every.masked, 1.0, axis=1)
    shown = (1 - masked)[..., None] * content

    def risk(Q):
        tokens = positions + shown
        scores = tokens @ Q @ tokens.transpose(0, 2, 1)
        error = jax.nn.softmax(scores, axis=-1) @ shown - content
        return every.weight @ (masked[..., None] * error**2).sum(axis=(1, 2)) / 2

    state = np.random.default_rng(0).normal(size=(small.d, small.d))
    with jax.enable_x64(True):
        value, slope = compiled_program(jax.value_and_grad(risk))(state)
    assert problem.risk(state) == pytest.approx(float(value), rel=1e-14)
    np.testing.assert_allclose(problem.gradient(state), np.ravel(slope), rtol=0, atol=1e-15)


def test_samples_follow_the_law(small):
    count = 40_000
    made = images.sampled_images(small, count, np.random.default_rng(1))
    error = 4 / np.sqrt(count)
    assert abs(made.cluster.mean() - 0.5) < error
    assert abs((made.latent == 0.7).mean(axis=0) - 0.4).max() < error
    for k, areas in enumerate(small.area_ids):
        own = made.latent[made.cluster == k]
        for a in range(3):
            assert np.ptp(own[:, areas == a], axis=1).max() == 0
        assert abs(np.corrcoef(own[:, 0], own[:, np.argmax(areas)])[0, 1]) < 2 * error
    assert (np.diff(made.masked, axis=1) > 0).all()
    shares = np.bincount(made.masked.ravel(), minlength=8) / count
    assert abs(shares - 3 / 8).max() < error


def test_the_population_is_the_limit(system):
    parameters = system.Parameters(P=16, C_global=8, C_local=4, masked=6)
    reduced = system.ReducedPopulation(parameters)
    distance = []
    for samples in (20, 320):
        full = [system.FullEmpirical(parameters, samples, seed) for seed in range(2)]
        runs = [dynamics.compare(reduced, each, 2.0, 20, record=20) for each in full]
        distance.append(np.mean([max(run.deviation.values()) for run in runs]))
    assert 2 < distance[0] / distance[1] < 8


def test_batches_take_every_sample_once_an_epoch(system, small):
    problem = system.FullEmpirical(small, samples=10, seed=0, batch=4)
    state = problem.initial_state
    batches = problem.minibatches.members(0, 6)
    for members in batches:
        parts = [array[members] for array in problem.images[:-1]]
        part = images.Images(*parts, np.full(members.size, 1 / members.size))
        state = state - 0.5 * FullProblem(small, part).gradient(state)
    run = dynamics.descend(problem, eta=0.5, steps=6, record=2)
    np.testing.assert_allclose(run.final_state, state, atol=1e-14)
    fresh = system.FullEmpirical(small, samples=10, seed=0)  # risk of all samples
    np.testing.assert_array_equal(run["risk"], [fresh.risk(state) for state in run.states])
    for epoch in (batches[:3], batches[3:]):
        assert sorted(np.concatenate(epoch)) == list(range(10))


def test_the_spread_is_that_of_the_entries_of_a_class_not_of_its_mean(system):
    small = system.Parameters(P=8, C_global=4, C_local=2, masked=4)
    problem = system.FullEmpirical(small, samples=8, seed=0, start="random", spread=0.1)
    state = problem.initial_state
    queries = problem.positions @ problem.layout.part(state, "Q")
    entries = problem.rows.orbit_values(
        (queries @ problem.positions.T)[None], (queries @ problem.features.T)[None]
    )
    widest = max(float(np.ptp(values)) for values in entries.values())
    assert problem.observables(state)["spread"] == widest > 0.1
