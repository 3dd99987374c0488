"""The noisy problem against loops, central differences, and training on patterns."""

import noisy_vit
import numpy as np
import pytest

import dynamics
from dynamics.loops import Updates
from dynamics.papers.shallow_vit.empirical import FullEmpirical
from dynamics.papers.shallow_vit.parameters import Parameters
from dynamics.papers.shallow_vit.problems import ReducedPopulation
from dynamics.results.outcome import DIVERGED

SMALL = {"M": 4, "L": 6, "m": 11, "d": 6, "xi": 0.5, "alpha_star": 0.5, "alpha_confusion": 0.2}
CASES = [
    {},
    {"margin": 0.05},
    {"margin": 30.0, "data": "iid"},
    {"loss": "linear"},
    {"output_weights": "per_position"},
    {"output_weights": "per_position", "loss": "linear", "margin": 3.0},
    {"frozen": "attention", "margin": 0.1},
    {"frozen": "values", "data": "fixed_disc"},
    {"options": {"sparsify": "irrelevant", "removed": 0.3}},
]


def problem(samples=7, seed=1, options=None, **parameters):
    given = Parameters(**(SMALL | {"noise": 0.3} | parameters))
    return FullEmpirical(given, samples, seed, **({"test_samples": 20} | (options or {})))


def somewhere(made):
    """A state where attention is uneven and some samples have reached a small margin."""
    state = made.initial_state
    return state + 0.3 * np.random.default_rng(0).standard_normal(state.size)


@pytest.mark.parametrize("case", CASES)
def test_loss_and_gradient_are_those_of_loops(case):
    made = problem(**case)
    given, found, state = made.parameters, made.tokens, somewhere(made)
    assert found.values.shape[1] == made.test.values.shape[1] == (4 if "options" in case else 6)
    weights = [made.layout.part(state, name).tolist() for name in made.layout.names]
    samples = list(zip(found.values.tolist(), found.labels.tolist(), strict=True))
    arguments = (weights, made.start.a.tolist(), samples, given.margin, given.loss)
    gradient = made.gradient(state)
    assert made.risk(state) * given.margin == pytest.approx(noisy_vit.loss(*arguments), rel=1e-12)
    frozen = {"attention": ("W_K", "W_Q"), "values": ("W_V",)}.get(given.frozen, ())
    for name, expected in zip(made.layout.names, noisy_vit.gradient(*arguments), strict=True):
        found, expected = made.layout.part(gradient, name), np.array(expected)
        expected *= name not in frozen
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12 * abs(gradient).max())
    if given.margin == 0.05:
        assert 0.0 < made.order_parameters(state)[1] < 1.0


@pytest.mark.parametrize(
    ("case", "batch"),
    [
        ({"data": "fixed"}, None),
        ({"data": "fixed_disc"}, 4),
        ({"output_weights": "per_position", "data": "fixed_disc"}, 5),
        ({"frozen": "attention", "data": "iid"}, 4),
        ({"loss": "linear", "data": "fixed_disc"}, None),
    ],
)
def test_without_noise_it_is_training_on_patterns(case, batch):
    parameters = Parameters(**(SMALL | {"noise": 0.0, "L": 12, "m": 40, "xi": 0.05} | case))
    eta = 1e-3 if parameters.loss == "linear" else 0.1
    reduced = ReducedPopulation(parameters, samples=14, seed=3, batch=batch)
    full = FullEmpirical(parameters, 14, 3, batch=batch, test_samples=1)
    result = dynamics.compare(reduced, full, eta=eta, steps=300, record=50)
    assert max(result.deviation.values()) < 1e-12
    assert abs(result.full["W_O"][-1] - result.full["W_O"][0]).max() > 1e-3
    for name in ("risk", "active", "error", "relevant", "relevant_by_relevant",
                 "relevant_by_confusion", "relevant_by_other", "B_11", "lucky_U"):  # fmt: skip
        np.testing.assert_allclose(result.full[name], result.reduced[name], rtol=0, atol=1e-11)
    for name, event in result.events["reduced"].items():
        other = result.events["full"][name]
        assert event.reached == other.reached
        assert not event or event.time == pytest.approx(other.time, abs=1e-9)


def test_order_parameters_are_of_all_samples_whatever_the_batch():
    made = problem(samples=10, options={"batch": 4})
    updates, state = Updates(np.full(made.layout.size, 0.1)), made.initial_state
    tracked = np.empty((9, 4))
    none = (np.empty(0, int), np.empty((0, state.size)))
    whole, cut, states = state.copy(), state.copy(), []
    made.advance(whole, updates, 0, 9, (tracked, *none))
    for step in range(9):
        states.append(cut.copy())
        made.advance(cut, updates, step, step + 1, (np.empty((1, 4)), *none))
    expected = [made.order_parameters(at) for at in states]
    np.testing.assert_allclose(tracked, expected, rtol=1e-13, atol=1e-14)


def test_what_is_reported_is_that_of_loops():
    made = problem(samples=9, options={"test_samples": 15}, margin=0.4, data="fixed_disc")
    state = somewhere(made)
    seen = made.observables(state)
    weights = [made.layout.part(state, name).tolist() for name in made.layout.names]
    for prefix, found in (("", made.tokens), ("test_", made.test)):
        outputs = [
            noisy_vit.output(weights, made.start.a.tolist(), x.tolist()) for x in found.values
        ]
        reached = found.labels * [output[0] for output in outputs]
        name = "test_loss" if prefix else "risk"
        assert seen[name] == pytest.approx(np.maximum(0.4 - reached, 0.0).mean() / 0.4, rel=1e-12)
        assert seen[f"{prefix}error"] == pytest.approx((reached <= 0.0).mean())
        if prefix:
            continue
        assert seen["active"] == pytest.approx((reached < 0.4).mean())
        mass = [[np.array(query[0])[kinds == 0].sum() for query in output[1]]
                for output, kinds in zip(outputs, found.kinds, strict=True)]  # fmt: skip
        assert seen["relevant"] == pytest.approx(np.mean(mass), rel=1e-12)
        for kind, word in enumerate(("relevant", "confusion", "other")):
            expected = np.array(mass)[found.kinds == kind].mean()
            assert seen[f"relevant_by_{word}"] == pytest.approx(expected, rel=1e-12)


def test_the_test_loss_is_the_hinge_whatever_is_trained_on():
    hinge, linear = problem(), problem(loss="linear")
    state = somewhere(hinge)
    assert hinge.observables(state)["test_loss"] == linear.observables(state)["test_loss"]
    assert hinge.risk(state) != linear.risk(state)
    assert dynamics.descend(linear, 1e3, 200).outcome.kind == DIVERGED


def test_seeds_share_out_what_is_drawn():
    one, other = problem(), problem(options={"start": 5})
    np.testing.assert_array_equal(one.tokens.values, other.tokens.values)
    assert not np.array_equal(one.initial_state, other.initial_state)
    assert problem().identity == one.identity != other.identity


def test_a_symmetric_start_is_that_of_the_reduced_problem():
    parameters = Parameters(**(SMALL | {"m": 12, "sigma": 0.0, "delta": 0.0}))
    reduced = ReducedPopulation(parameters, samples=4, seed=2, start="symmetric")
    full = FullEmpirical(parameters, 4, 2, start="symmetric", test_samples=1)
    values = full.orbit_values(full.initial_state)
    for name in reduced.layout.names:
        expected = reduced.layout.part(reduced.initial_state, name)
        np.testing.assert_array_equal(values[name], expected)
