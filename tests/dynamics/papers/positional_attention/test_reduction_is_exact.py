"""Both laws of random sets: reduced against full, spectral against exact, samples."""

import dataclasses

import numpy as np
import pytest

import dynamics
from theory.papers.positional_attention.data_law import ANY, RANDOM_SETS
from theory.papers.positional_attention.samples import SignalSets
from theory.symmetry import Partition


def mixed(system, **sizes):
    return system.Parameters(random_sets="mixed", **sizes)


def test_the_reduction_is_that_of_the_full_problem(system):
    parameters = mixed(system, D=9, C=3)
    reduced, full = system.ReducedPopulation(parameters, "exact"), system.FullPopulation(parameters)
    result = dynamics.compare(reduced, full, eta=0.02, steps=3000)
    assert max(result.deviation.values()) < 1e-12
    assert full.law[1].sum() == pytest.approx(1, rel=1e-13)


@pytest.mark.parametrize(("D", "C"), [(16, 4), (32, 8)])
def test_the_spectral_expectation_holds_its_bound(system, D, C):
    parameters = mixed(system, D=D, C=C)
    for state in ((0.03, 0.0, 0.0), (0.3, 0.05, -0.02), (0.4, 0.6, -0.1)):
        exact = system.ReducedPopulation(parameters, "exact").error_estimate(state)
        smooth = system.ReducedPopulation(parameters, "spectral").error_estimate(state)
        distance = np.abs(exact["value"] - smooth["value"])
        assert (distance <= 1e-13 * exact["gross"] + smooth["estimate"]).all()


@pytest.mark.parametrize("kind", RANDOM_SETS)
@pytest.mark.parametrize("sizes", [[3, 3, 3], [1, 2, 4]])
def test_samples_follow_the_law(sizes, kind):
    """Of mixed sets none is of one sign; else each has the law of Assumption 1, conditioned."""
    chance, partition = 0.6, Partition.contiguous(sizes).shuffled(np.random.default_rng(0))
    law = SignalSets(partition, chance, 0.1, kind)
    values, labels, signals = law.draw(40_000, np.random.default_rng(1))
    for k, members in enumerate(partition.sets):
        inside = values[:, members]
        assert (inside[signals == k] == labels[signals == k, None]).all()
        random = inside[signals != k]
        grid = np.indices((3,) * members.size).reshape(members.size, -1).T - 1
        weight = np.where(grid == 0, 1 - chance, chance / 2).prod(axis=1)
        weight[np.abs(grid.sum(axis=1)) == members.size] *= kind == ANY
        weight /= weight.sum()
        codes = (random + 1) @ 3 ** np.arange(members.size)[::-1]
        share = np.bincount(codes.astype(int), minlength=weight.size) / len(random)
        error = np.sqrt(weight * (1 - weight) / len(random))
        assert (np.abs(share - weight) <= 5 * error).all()  # none where the weight is 0


def test_the_error_reaches_zero_and_alpha_grows_beyond_its_value_at_t1(system):
    """D=9 C=3: the criterion (L-1)(1-1/C)^p is .593 below 1; under Assumption 1 alpha falls."""
    run = dynamics.flow(system.ReducedPopulation(mixed(system, D=9, C=3), "exact"), time=1e4)
    assert run.events["event_III"].time == pytest.approx(684.08, rel=1e-4)
    assert run["error"][-1] == 0.0
    plain = dynamics.flow(system.ReducedPopulation(system.Parameters(D=9, C=3), "exact"), time=1e4)
    assert not plain.events["event_III"]
    assert plain.reasons["event_III"] == "still decreases when the run ends"


def test_all_events_agree(system):
    parameters = system.Parameters(**system.default_runs["compare"].parameters)
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(3), 3))
    full = system.FullPopulation(parameters, Partition(labels))
    reduced = system.ReducedPopulation(parameters)
    result = dynamics.compare(reduced, full, eta=0.1, steps=9000)
    for name, first in result.events["reduced"].items():
        assert first, name
        assert first.step == result.events["full"][name].step, name
    assert set(result.events["full"]) >= {"T0", "T1", "event_III"}
    assert max(result.deviation.values()) < 1e-12
    for name in ("G", "risk", "error", "bayes_error", "patch_association", "cosine", "alpha_G"):
        np.testing.assert_allclose(result.full[name], result.reduced[name], rtol=1e-10)
    assert (np.diagonal(result.full["A"], axis1=1, axis2=2) == parameters.beta).all()


def test_a_wrong_recursion_is_seen(system):
    parameters = system.Parameters(D=8, C=2)
    wrong = system.ReducedPopulation(dataclasses.replace(parameters, beta=1.01))
    full = system.FullPopulation(parameters)
    with pytest.raises(ValueError, match="different parameters"):
        dynamics.compare(wrong, full, 0.02, 100)
    wrong.parameters = parameters
    assert dynamics.compare(wrong, full, 0.02, 100).deviation["alpha"] > 1e-6
