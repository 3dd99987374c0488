"""The odds of relevant against confusion tokens, measured in the attention that training has."""

import math

import jax
import noisy_vit
import numpy as np
import pytest

import dynamics

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
