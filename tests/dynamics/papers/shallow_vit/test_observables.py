"""What is read off a state, beside what the tokens say; identities along training."""

import numpy as np
import pytest
import tokens

import dynamics


@pytest.fixture
def trained(system):
    parameters = system.Parameters(m=12, L=20, alpha_confusion=0.1, data="fixed_disc", margin=3.5)
    problem = system.FullPopulation(parameters, samples=6, seed=2)
    return problem, dynamics.descend(problem, eta=0.2, steps=60)


def test_attention_loss_and_errors_are_those_of_the_tokens(trained):
    problem, run = trained
    parts = [run[name][-1] for name in run.layout.names]
    vectors, a, depth = problem.vectors, problem.start.a, problem.parameters.d
    samples = [
        (*tokens.tokens_of(counts, depth), label, weight)
        for counts, label, weight in zip(
            vectors.counts, vectors.labels, vectors.weights, strict=True
        )
    ]
    reached = [y * tokens.output(x, a, parts) for x, _, y, _ in samples]
    weights = [w for *_, w in samples]
    margin = problem.parameters.margin
    expected = {
        "risk": np.dot(weights, [max(margin - r, 0.0) for r in reached]) / margin,
        "active": np.dot(weights, [r < margin for r in reached]),
        "error": np.dot(weights, [r <= 0 for r in reached]),
        "relevant": tokens.relevant(samples, parts),
    }
    for kind in ("relevant", "confusion", "other"):
        expected[f"relevant_by_{kind}"] = tokens.relevant(samples, parts, kind)
    for name, value in expected.items():
        assert run[name][-1] == pytest.approx(value, abs=1e-12), name
    test = problem.test
    fresh = [
        y * tokens.output(x.T, a, parts) for x, y in zip(test.values, test.labels, strict=True)
    ]
    loss = np.dot(test.weights, [max(margin - r, 0.0) for r in fresh]) / margin
    assert run["test_loss"][-1] == pytest.approx(loss, abs=1e-12)
    assert run["test_error"][-1] == pytest.approx(np.dot(test.weights, [r <= 0 for r in fresh]))
    assert test.weights.sum() == pytest.approx(1.0)
    assert (1000 * test.weights == np.round(1000 * test.weights)).all()


def test_scores_and_neurons_are_counted_one_by_one(trained):
    problem, run = trained
    hidden, values, keys, queries = (run[name][-1] for name in run.layout.names)
    scores = keys[:, :5].T @ queries[:, :5]
    assert run["B_11"][-1] == pytest.approx((scores[0, 0] + scores[1, 1]) / 2)
    assert run["B_k1"][-1] == pytest.approx(scores[2:, :2].mean())
    assert run["B_kl"][-1] == pytest.approx((scores[2:, 2:].sum() - np.trace(scores[2:, 2:])) / 6)
    assert run["q1_norm2"][-1] == pytest.approx(keys[:, 0] @ keys[:, 0])
    assert run["symmetry"][-1] >= abs(scores[0, 0] - scores[1, 1])
    a, classes, lucky = problem.start.a, set(), {"W": 0, "U": 0}
    pair = [[10, 2, 3, 3, 2], [2, 10, 3, 3, 2]]
    masses = []
    for counts in pair:
        x, order = tokens.tokens_of(counts, problem.parameters.d)
        weights = tokens.attention(x, keys, queries)
        masses.append([x @ weights[:, order.index(j)] for j in range(5)])
    for i, row in enumerate(hidden):
        gates = tuple(bool(row @ values @ seen > 0) for sample in masses for seen in sample)
        classes.add((a[i] > 0, gates))
        lucky["W"] += bool(a[i] > 0 and gates[0])
        lucky["U"] += bool(a[i] < 0 and gates[5 + 1])
    assert run["gate_classes"][-1] == len(classes)
    assert run["lucky_W"][-1] == lucky["W"]
    assert run["lucky_U"][-1] == lucky["U"]


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
    run = dynamics.descend(problem, eta=1e200, steps=20)
    assert run.outcome.failed
    lost = problem.observables(np.full(problem.layout.size, np.nan))
    assert lost["test_error"] == lost["error"] == 1.0
    tied = problem.observables(np.zeros(problem.layout.size))
    assert tied["test_error"] == tied["error"] == 1.0


@pytest.mark.parametrize("view", ["ReducedPopulation", "FullPopulation"])
def test_a_run_without_the_noise_of_its_law_says_so(system, view):
    said = [
        getattr(system, view)(system.Parameters(m=12, noise=noise)).settings.get("tokens")
        for noise in (0.5, 0.0)
    ]
    assert said == ["without noise", None]


@pytest.mark.parametrize("view", ["ReducedPopulation", "FullPopulation", "FullEmpirical"])
def test_states_read_together_are_read_as_each_alone(system, view):
    law = {"m": 12, "L": 20, "d": 6, "alpha_confusion": 0.1, "data": "fixed_disc"}
    problem = getattr(system, view)(system.Parameters(**law), samples=6, seed=2)
    states = dynamics.descend(problem, eta=0.2, steps=9, record=1).states
    together = problem.observables_along(states)
    for name, values in together.items():
        assert values.tolist() == [problem.observables(state)[name] for state in states], name
