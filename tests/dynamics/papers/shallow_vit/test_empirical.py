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
]


def problem(samples=7, seed=1, options=None, **parameters):
    given = Parameters(**(SMALL | {"noise": 0.3} | parameters))
    return FullEmpirical(given, samples, seed, **({"test_samples": 20} | (options or {})))


def somewhere(made, seed=0):
    """A state where attention is uneven and some samples have reached a small margin."""
    state = made.initial_state
    return state + 0.3 * np.random.default_rng(seed).standard_normal(state.size)


def twin(made, state):
    """Loss and gradient by loops; frozen parts have none."""
    given, found = made.parameters, made.tokens
    weights = [made.layout.part(state, name).tolist() for name in made.layout.names]
    samples = list(zip(found.values.tolist(), found.labels.tolist(), strict=True))
    arguments = (weights, made.start.a.tolist(), samples, given.margin, given.loss)
    slopes = [np.array(part) for part in noisy_vit.gradient(*arguments)]
    for name in {"attention": ("W_K", "W_Q"), "values": ("W_V",)}.get(given.frozen, ()):
        slopes[made.layout.names.index(name)][:] = 0.0
    return noisy_vit.loss(*arguments), slopes


@pytest.mark.parametrize("case", CASES)
def test_gradient_equals_loops(case):
    made = problem(**case)
    state = somewhere(made)
    loss, slopes = twin(made, state)
    gradient = made.gradient(state)
    assert made.risk(state) * made.parameters.margin == pytest.approx(loss, rel=1e-12)
    for name, expected in zip(made.layout.names, slopes, strict=True):
        found = made.layout.part(gradient, name)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12 * abs(gradient).max())
        assert expected.any() or not found.any()


def test_a_whole_number_of_samples_may_be_a_float():
    np.testing.assert_array_equal(problem(7.0).tokens.values, problem(7).tokens.values)


def test_some_samples_of_the_small_margin_have_reached_it():
    made = problem(margin=0.05)
    assert 0.0 < made.order_parameters(somewhere(made))[1] < 1.0


@pytest.mark.parametrize("case", CASES)
def test_gradient_equals_central_differences_of_the_risk(case):
    made = problem(**case)
    state, generator = somewhere(made), np.random.default_rng(0)
    gradient, width = made.gradient(state), 1e-6
    trained = made.layout.per_entry(
        tuple(float(made.layout.part(gradient, name).any()) for name in made.layout.names)
    )
    for _ in range(5):
        direction = trained * generator.standard_normal(state.size)
        direction /= np.linalg.norm(direction)
        ends = [made.risk(state + side * width * direction) for side in (1, -1)]
        slope = made.parameters.margin * (ends[0] - ends[1]) / (2 * width)
        assert abs(slope - gradient @ direction) < 1e-7 * max(1.0, np.linalg.norm(gradient))


@pytest.mark.parametrize(
    ("case", "batch"),
    [
        ({"data": "fixed"}, None),
        ({"data": "fixed_disc"}, 4),
        ({"data": "iid"}, None),
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
    for name in ("risk", "active", "error", "relevant", "relevant_by_other", "B_11", "lucky_U"):
        np.testing.assert_allclose(result.full[name], result.reduced[name], rtol=0, atol=1e-11)
    for name, event in result.events["reduced"].items():
        other = result.events["full"][name]
        assert event.reached == other.reached
        assert not event or event.time == pytest.approx(other.time, abs=1e-9)


def test_frozen_parts_do_not_move():
    for frozen, names in (("attention", ("W_K", "W_Q")), ("values", ("W_V",))):
        run = dynamics.descend(problem(frozen=frozen), 0.1, 10)
        for name in ("W_O", "W_V", "W_K", "W_Q"):
            assert (run[name][-1] == run[name][0]).all() == (name in names)


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


def test_batches_average_to_the_full_gradient():
    whole, parts = problem(samples=11), problem(samples=11, options={"batch": 4})
    state = somewhere(whole)
    steps, updates = [], Updates(np.ones(state.size))
    for step in range(3):
        moved = state.copy()
        parts.advance(
            moved, updates, step, step + 1, (np.empty((1, 4)), np.empty(0, int), moved[None])
        )
        steps.append(state - moved)
    mean = np.average(steps, axis=0, weights=[4, 4, 3])
    np.testing.assert_allclose(mean, whole.gradient(state), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(parts.gradient(state), whole.gradient(state), rtol=1e-13)


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


def test_a_run_that_overflows_is_said_to_have_diverged():
    made = problem(loss="linear")
    assert dynamics.descend(made, 1e3, 200).outcome.kind == DIVERGED


def test_sparsified_samples_are_trained_on():
    made = problem(options={"sparsify": "irrelevant", "removed": 0.3})
    assert made.tokens.values.shape[1] == made.test.values.shape[1] == 4
    state = somewhere(made)
    _, slopes = twin(made, state)
    flat = np.concatenate([part.ravel() for part in slopes])
    np.testing.assert_allclose(made.gradient(state), flat, rtol=1e-10, atol=1e-13)


def test_seeds_share_out_what_is_drawn():
    one, other = problem(), problem(options={"start": 5})
    np.testing.assert_array_equal(one.tokens.values, other.tokens.values)
    assert not np.array_equal(one.initial_state, other.initial_state)
    again = problem()
    assert one.identity == again.identity
    assert one.identity != other.identity


def test_a_symmetric_start_is_that_of_the_reduced_problem():
    parameters = Parameters(**(SMALL | {"m": 12, "sigma": 0.0, "delta": 0.0}))
    reduced = ReducedPopulation(parameters, samples=4, seed=2, start="symmetric")
    full = FullEmpirical(parameters, 4, 2, start="symmetric", test_samples=1)
    values = full.orbit_values(full.initial_state)
    for name in reduced.layout.names:
        expected = reduced.layout.part(reduced.initial_state, name)
        np.testing.assert_array_equal(values[name], expected)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"samples": 0}, "samples=0"),
        ({"samples": 2.5}, "samples=2.5"),
        ({"options": {"batch": 0}}, "batch=0"),
        ({"options": {"test_samples": 0}}, "test_samples=0"),
        ({"options": {"start": -1}}, "start=-1"),
        ({"options": {"start": "some"}}, "symmetric"),
        ({"options": {"start": "symmetric"}}, "sigma=0.1 breaks a symmetric start"),
        ({"options": {"nonsense": 1}}, "nonsense"),
        ({"options": {"sparsify": "noisiest", "removed": 0.99}}, "removes every token of L=6"),
    ],
)
def test_wrong_requests_are_refused(options, word):
    with pytest.raises(ValueError, match=word):
        problem(**options)
