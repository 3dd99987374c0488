"""What is read off a state, beside what the tokens say; identities and odds along training."""

import math

import jax
import noisy_vit
import numpy as np
import pytest

import dynamics

VIEWS = ["ReducedPopulation", "FullPopulation", "FullEmpirical"]


@pytest.fixture
def trained(system):
    parameters = system.Parameters(m=12, L=20, alpha_confusion=0.1, data="fixed_disc", margin=3.5)
    problem = system.FullPopulation(parameters, samples=6, seed=2)
    return problem, dynamics.descend(problem, eta=0.2, steps=60)


def test_losses_on_fresh_samples_are_those_of_loops(trained):
    problem, run = trained
    weights = [run[name][-1].tolist() for name in run.layout.names]
    test, margin = problem.test, problem.parameters.margin
    outputs = [noisy_vit.output(weights, problem.start.a, x)[0] for x in test.values.tolist()]
    reached = test.labels * outputs
    loss = test.weights @ np.maximum(margin - reached, 0.0) / margin
    assert run["test_loss"][-1] == pytest.approx(loss, abs=1e-12)
    assert run["test_error"][-1] == pytest.approx(test.weights @ (reached <= 0))
    assert test.weights.sum() == pytest.approx(1.0)


def test_scores_and_neurons_are_counted_one_by_one(trained):
    problem, run = trained
    weights = [run[name][-1] for name in run.layout.names]
    keys, queries = weights[2:]
    scores = keys[:, :5].T @ queries[:, :5]
    assert run["B_11"][-1] == pytest.approx((scores[0, 0] + scores[1, 1]) / 2)
    assert run["B_k1"][-1] == pytest.approx(scores[2:, :2].mean())
    assert run["B_kl"][-1] == pytest.approx((scores[2:, 2:].sum() - np.trace(scores[2:, 2:])) / 6)
    assert run["q1_norm2"][-1] == pytest.approx(keys[:, 0] @ keys[:, 0])
    a, opened = problem.start.a, []
    for counts in ([10, 2, 3, 3, 2], [2, 10, 3, 3, 2]):
        order = np.repeat(range(5), counts)
        tokens = np.eye(problem.parameters.d)[order].tolist()
        _, seen = noisy_vit.output([part.tolist() for part in weights], a, tokens)
        opened += [np.array(seen[list(order).index(j)][2]) > 0 for j in range(5)]
    gates = np.array(opened).T
    classes = {(sign > 0, *row) for sign, row in zip(a, gates.tolist(), strict=True)}
    found = [run[name][-1] for name in ("gate_classes", "lucky_W", "lucky_U")]
    assert found == [len(classes), (gates[:, 0] & (a > 0)).sum(), (gates[:, 6] & (a < 0)).sum()]


def test_definition_2_counts_angles(system):
    parameters = system.Parameters(m=300, sigma=1.2, d=5)
    problem = system.ReducedPopulation(parameters)
    start = problem.start
    cosines = start.W_O @ start.p[:, 0] / np.linalg.norm(start.W_O, axis=1)
    expected = (np.arccos(cosines) <= 1.2).sum()
    assert 20 < expected < 280
    assert problem.observables(problem.initial_state)["lucky_angle"] == expected


@pytest.mark.parametrize("view", ["ReducedPopulation", "FullPopulation"])
def test_a_run_that_diverged_is_read_without_warnings(system, view):
    """And an output that is 0, or not a number, is an error, in training and on fresh samples."""
    problem = getattr(system, view)(system.Parameters(m=12, L=20, alpha_confusion=0.1))
    assert problem.settings["tokens"] == "without noise"
    assert dynamics.descend(problem, eta=1e200, steps=20).outcome.failed
    for state in (np.full(problem.layout.size, np.nan), np.zeros(problem.layout.size)):
        seen = problem.observables(state)
        assert seen["test_error"] == seen["error"] == 1.0


@pytest.mark.parametrize("view", VIEWS)
def test_states_read_together_are_read_as_each_alone(system, view):
    law = {"m": 12, "L": 20, "d": 6, "alpha_confusion": 0.1, "data": "fixed_disc"}
    problem = getattr(system, view)(system.Parameters(**law), samples=6, seed=2)
    states = dynamics.descend(problem, eta=0.2, steps=9, record=1).states
    together = problem.observables_along(states)
    for name, values in together.items():
        assert values.tolist() == [problem.observables(state)[name] for state in states], name


LAW = {"m": 24, "L": 20, "d": 6, "alpha_confusion": 0.1, "noise": 0.0}


def problem(system, view, options=None, **law):
    parameters = system.Parameters(**(LAW | {"data": "fixed_disc"} | law))
    return getattr(system, view)(parameters, samples=9, seed=3, **(options or {}))


def changed(made, name, change):
    """Change an array of the training samples in place."""
    data, embedding = made.payload
    with jax.enable_x64(True):
        samples = data.samples | {name: change(data.samples[name])}
    made.payload = data._replace(samples=samples), embedding


def change(samples, ratio):
    """Samples of (attention of every query to every key, patterns, label), in loops."""
    found = []
    for query in range(5):
        total = 0.0
        for side in (1.0, -1.0):
            logs = []
            for attention, patterns, label in samples:
                relevant, confusion = (0, 1) if side > 0 else (1, 0)
                for seen, pattern in zip(attention, patterns, strict=True):
                    if label == side and pattern == query:
                        one, two = (
                            math.fsum(s for s, p in zip(seen, patterns, strict=True) if p == key)
                            for key in (relevant, confusion)
                        )
                        logs.append(math.log(one / two))
            total += math.fsum(logs) / len(logs)
        found.append(abs(math.exp(total) / ratio**2 - 1.0))
    return max(found)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("law", [{"data": "fixed"}, {}])
def test_without_noise_they_never_change(system, view, law):
    made = problem(system, view, **law)
    run = dynamics.descend(made, eta=0.2, steps=150, record=10)
    assert run["odds"].max() < 1e-12
    assert np.ptp(run["B_11"]) > 0.05


@pytest.mark.parametrize("view", VIEWS)
def test_one_sample_with_an_attention_of_its_own_is_seen(system, view):
    made = problem(system, view)
    state = dynamics.descend(made, eta=0.2, steps=20).final_state
    assert made.observables(state)["odds"] < 1e-12
    if view == "ReducedPopulation":
        changed(made, "times", lambda times: times.at[0, 0].add(1.0))
    else:
        changed(made, "X", lambda tokens: tokens.at[0].multiply(1.5))
    assert 1e-2 < made.observables(state)["odds"] < 1.0


def test_of_noisy_tokens_they_are_those_of_loops(system):
    made = problem(system, "FullEmpirical", {"test_samples": 5}, noise=0.3)
    generator = np.random.default_rng(0)
    state = made.initial_state + 0.1 * generator.standard_normal(made.layout.size)
    weights = [made.layout.part(state, name).tolist() for name in made.layout.names]
    found, samples = made.tokens, []
    for x, patterns, label in zip(found.values, found.patterns, found.labels, strict=True):
        asked = noisy_vit.output(weights, made.start.a.tolist(), x.tolist())[1]
        samples.append(([query[0] for query in asked], patterns.tolist(), label))
    expected = change(samples, 5.0)
    assert expected > 1e-2
    assert made.observables(state)["odds"] == pytest.approx(expected, rel=1e-10)
