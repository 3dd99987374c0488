"""The odds of relevant against confusion tokens, measured in the attention that training has."""

import math

import jax
import noisy_vit
import numpy as np
import pytest
import tokens

import dynamics
from dynamics.papers.shallow_vit.reader import Reader

LAW = {"m": 24, "L": 20, "d": 6, "alpha_confusion": 0.1, "noise": 0.0}
VIEWS = ["ReducedPopulation", "FullPopulation", "FullEmpirical"]


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
@pytest.mark.parametrize("law", [{"data": "fixed"}, {}, {"margin": 5.0}])
def test_without_noise_they_never_change(system, view, law):
    made = problem(system, view, **law)
    run = dynamics.descend(made, eta=0.2, steps=150, record=10)
    assert run["odds"].max() < 1e-12
    assert np.ptp(run["B_11"]) > 0.05


@pytest.mark.parametrize("view", VIEWS)
def test_one_sample_with_an_attention_of_its_own_is_seen(system, view):
    """Scores are as they were: what changes is the data that training reads."""
    made = problem(system, view)
    state = dynamics.descend(made, eta=0.2, steps=20).final_state
    before = made.observables(state)
    assert before["odds"] < 1e-12
    if view == "ReducedPopulation":
        changed(made, "times", lambda times: times.at[0, 0].add(1.0))
    else:
        changed(made, "X", lambda tokens: tokens.at[0].multiply(1.5))
    after = made.observables(state)
    assert 1e-2 < after["odds"] < 1.0
    assert after["B_11"] == before["B_11"]


def test_of_tokens_without_noise_they_are_those_of_loops(system):
    """With the tokens of one sample longer than others, so that there is something to measure."""
    made = problem(system, "FullPopulation", data="fixed")
    state = dynamics.descend(made, eta=0.2, steps=20).final_state
    changed(made, "X", lambda tokens: tokens.at[1].multiply(1.3))
    keys, queries = (made.layout.part(state, name) for name in ("W_K", "W_Q"))
    values = np.asarray(made.payload[0].samples["X"])
    places, labels = made.tokens.patterns, made.tokens.labels
    samples = [
        (tokens.attention(x.T, keys, queries).T, order.tolist(), label)
        for x, order, label in zip(values, places, labels, strict=True)
    ]
    expected = change(samples, 5.0)
    assert expected > 1e-2
    assert made.observables(state)["odds"] == pytest.approx(expected, rel=1e-11)


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


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("law", [{"data": "iid"}, {"alpha_confusion": 0.0}])
def test_they_say_nothing_where_counts_are_not_common(system, view, law):
    made = problem(system, view, **law)
    assert np.isnan(made.observables(made.initial_state)["odds"])


def test_sparsified_tokens_have_odds_where_counts_stay_common(system):
    for kind, common in (("random", False), ("irrelevant", True)):
        made = problem(system, "FullEmpirical", {"sparsify": kind, "removed": 0.2})
        odds = made.observables(made.initial_state)["odds"]
        assert odds < 1e-12 if common else np.isnan(odds)


def test_a_change_is_the_mean_over_queries_with_their_weights():
    """Two positive samples of weights 1 and 3, the odds of the second e times too large."""
    counts = np.array([[6, 2, 1], [6, 2, 1], [2, 6, 1]])
    labels, weights = np.array([1.0, 1.0, -1.0]), np.array([0.125, 0.375, 0.5])
    reader = Reader(None, None, None, counts, labels, weights)
    masses = np.full((3, 3, 2), 0.25)
    masses[:, :, 0] = 0.75
    asked, each = np.tile(np.arange(3), (3, 1)), weights[:, None] * np.ones((1, 3))
    assert reader.odds(masses, asked, each) == pytest.approx(0.0, abs=1e-14)
    masses[1, 2, 0] *= np.e
    assert reader.odds(masses, asked, each) == pytest.approx(np.expm1(0.75))
    each[1:, 2] = 0.0
    assert reader.odds(masses, asked, each) == pytest.approx(0.0, abs=1e-14)
    one = Reader(None, None, None, counts[:2], labels[:2], weights[:2])
    assert np.isnan(one.odds(masses[:2], asked[:2], each[:2]))
