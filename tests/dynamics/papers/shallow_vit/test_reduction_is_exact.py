"""Training on patterns is training on tokens without noise, and so are its inner products."""

import noisy_vit
import numpy as np
import pytest

import dynamics
from dynamics.papers.shallow_vit.recursions import gram, slopes_of

SMALL = {"m": 24, "L": 12, "alpha_confusion": 0.1, "d": 6, "noise": 0.0}
MODES = [
    ("fixed", "shared", None, None),
    ("fixed_disc", "per_position", 8, None),
    ("fixed_disc", "shared", 9, 4),
    ("iid", "per_position", 9, 4),
]


@pytest.mark.parametrize(("data", "weights", "samples", "batch"), MODES)
def test_full_pattern_and_inner_products_agree_over_300_steps(
    system, data, weights, samples, batch
):
    parameters = system.Parameters(**SMALL, data=data, output_weights=weights)
    options = {"samples": samples, "batch": batch, "seed": 4}
    reduced = system.ReducedPopulation(parameters, **options)
    full = system.FullPopulation(parameters, **options)
    found = dynamics.compare(reduced, full, eta=0.1, steps=300)
    assert max(found.deviation.values()) < 1e-12
    for name, series in found.reduced.observables.items():
        difference = np.abs(series - found.full.observables[name])
        assert np.isnan(series).all() or np.nanmax(difference) < 1e-12, name
    for name, event in found.events["reduced"].items():
        other = found.events["full"][name]
        assert event.step == other.step
    assert gram(reduced, 0.1, 300).deviation < 1e-12


OPTIONS = [
    {}, {"loss": "linear"}, {"output_weights": "per_position"}, {"margin": 0.02},
    {"frozen": "attention"}, {"frozen": "values"}, {"M": 7, "d": 10},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS)
def test_gradients_are_those_of_the_tokens(system, options):
    given = {"m": 7, "L": 12, "alpha_confusion": 0.17, "xi": 0.3, "d": 6, "data": "fixed_disc"}
    parameters = system.Parameters(**(given | options))
    full = system.FullPopulation(parameters, samples=3, seed=1)
    reduced = system.ReducedPopulation(parameters, samples=3, seed=1)
    vectors, orders = full.vectors, full.vectors.sequences
    if orders is None:
        orders = [np.repeat(range(parameters.M), counts) for counts in vectors.counts]
    samples = [
        (np.eye(parameters.d)[order].tolist(), label)
        for order, label, weight in zip(orders, vectors.labels, vectors.weights, strict=True)
        for _ in range(round(3 * weight))
    ]
    state = full.initial_state
    weights = [full.layout.part(state, name).tolist() for name in full.layout.names]
    given = (weights, full.start.a.tolist(), samples, parameters.margin, parameters.loss)
    assert noisy_vit.loss(*given) == pytest.approx(parameters.margin * full.risk(state), abs=1e-14)
    slope = full.gradient(state)
    frozen = {"attention": ("W_K", "W_Q"), "values": ("W_V",)}.get(parameters.frozen, ())
    for name, expected in zip(full.layout.names, noisy_vit.gradient(*given), strict=True):
        expected = np.array(expected) * (name not in frozen)
        np.testing.assert_allclose(full.layout.part(slope, name), expected, rtol=0, atol=1e-13)
    patterns = full.orbit_values(slope)
    for name in reduced.layout.names:
        part = reduced.layout.part(reduced.gradient(reduced.initial_state), name)
        assert part == pytest.approx(patterns[name], abs=1e-15)


def test_gradients_are_those_of_plain_matrices_where_patterns_are_many(system):
    for M in (3, 5, 6, 10, 13):
        parameters = system.Parameters(
            M=M, m=33, L=30, d=14, data="iid", alpha_confusion=0.1, xi=0.5, margin=0.2
        )
        problem = system.ReducedPopulation(parameters, samples=20)
        state = problem.initial_state
        for scale in (1.0, 40.0):
            for name in ("K", "Q"):
                state[problem.layout.slice_of(name)] *= scale
            hidden, values, keys, queries = (
                problem.layout.part(state, name) for name in problem.layout.names
            )
            E, T = slopes_of(problem, hidden @ values, keys.T @ queries)
            expected = (E @ values.T, hidden.T @ E, queries @ T.T, keys @ T)
            slope = problem.gradient(state)
            for name, part in zip(problem.layout.names, expected, strict=True):
                found = problem.layout.part(slope, name)
                assert found == pytest.approx(part, abs=1e-13 * max(1.0, np.abs(part).max()))
