"""Mini-batches of the three problems: each epoch deals the samples out anew."""

import itertools

import numpy as np
import pytest

import dynamics
from dynamics.loops import Updates
from dynamics.papers.shallow_vit.recursions import slopes_of

LAW = {"m": 24, "L": 12, "alpha_confusion": 0.1, "d": 6, "noise": 0.0, "data": "fixed_disc"}
VIEWS = ["ReducedPopulation", "FullPopulation", "FullEmpirical"]
SAMPLES, BATCH, EPOCH = 13, 4, 4  # an epoch has batches of 4, 4, 4 and 1


def problem(system, view, batch=BATCH, seed=0, **law):
    return getattr(system, view)(
        system.Parameters(**(LAW | law)), samples=SAMPLES, seed=seed, batch=batch
    )


def stepped(made, state, eta, *cuts):
    """The state after advancing from cut to cut."""
    state, updates = state.copy(), Updates(np.full(state.size, eta))
    none = np.empty(0, np.int64), np.empty((0, state.size))
    for first, last in itertools.pairwise(cuts):
        made.advance(state, updates, first, last, (np.empty((last - first, 4)), *none))
    return state


@pytest.mark.parametrize("view", VIEWS)
def test_a_step_is_on_the_samples_that_it_is_dealt(system, view):
    made, reduced = problem(system, view), problem(system, "ReducedPopulation", batch=None)
    start, vectors, seen = made.initial_state, reduced.vectors, []
    hidden, values, keys, queries = reduced.parts(reduced.initial_state)
    indices = np.arange(vectors.labels.size)
    for step in range(3 * EPOCH):
        (dealt,) = made.minibatches.members(step, step + 1)
        seen.append(dealt.tolist())
        moved = start - stepped(made, start, 1.0, step, step + 1)
        expected = np.zeros_like(hidden)
        for sample in dealt:
            alone = problem(system, "ReducedPopulation", batch=None)
            alone.weights_of = lambda _, s=sample: 1.0 * (indices == vectors.member[s])
            by_response, _ = slopes_of(alone, hidden @ values, keys.T @ queries)
            expected += by_response @ values.T / len(dealt)
        np.testing.assert_allclose(made.layout.part(moved, "W_O"), expected, rtol=0, atol=1e-13)
        assert expected.any()
    for epoch in range(3):
        parts = seen[epoch * EPOCH : (epoch + 1) * EPOCH]
        assert sorted(itertools.chain(*parts)) == list(range(SAMPLES))
    assert sorted(seen[:EPOCH]) != sorted(seen[EPOCH : 2 * EPOCH])


@pytest.mark.parametrize("view", VIEWS)
def test_a_run_cut_anywhere_ends_in_the_same_bits(system, view):
    made = problem(system, view)
    whole = dynamics.descend(made, eta=0.1, steps=50)
    cut = stepped(made, made.initial_state, 0.1, 0, 1, 2, 3, 4, 5, 50)
    assert (cut == whole.final_state).all()


@pytest.mark.parametrize("view", VIEWS)
def test_a_batch_is_not_taken_for_that_of_another_call(system, view):
    """Where a batch is past the margin the state stands still, and only the samples change."""
    made = problem(system, view)
    run = dynamics.descend(made, eta=0.1, steps=200, record=1)
    state = run.states[np.flatnonzero(run["active"])[-1]]
    moving = [(stepped(made, state, 0.1, k, k + 1) != state).any() for k in range(40)]
    still = next(k for k in range(39) if not moving[k] and moving[k + 1])
    both = stepped(made, state, 0.1, still, still + 2)
    assert (both != state).any()
    assert (stepped(made, state, 0.1, still, still + 1, still + 2) == both).all()
