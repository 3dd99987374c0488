from functools import partial
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

import dynamics
from dynamics.experiments.positional_attention.gram import GramEmpirical
from dynamics.training import descent_run

SYSTEM = dynamics.load_system("positional_attention")
SMALL = SYSTEM.Parameters(D=8, C=2)


@pytest.mark.parametrize(("largest", "between"), [(37, 256), (37, 0), (4096, 10**9)])
def test_where_chunks_are_cut_changes_nothing(largest, between, monkeypatch):
    problem = SYSTEM.ReducedPopulation(SMALL)
    reference = dynamics.descend(problem, eta=0.02, steps=5000, record=7)
    monkeypatch.setattr(descent_run, "LARGEST_CHUNK", largest)
    monkeypatch.setattr(descent_run, "BETWEEN_LOOKS", between)
    run = dynamics.descend(problem, eta=0.02, steps=5000, record=7)
    np.testing.assert_array_equal(run.states, reference.states)
    for name, event in reference.events.items():
        assert event.step == run.events[name].step
    assert run.reasons == reference.reasons
    assert run.outcome == reference.outcome


@pytest.fixture(params=["every entry", "reduced", "mini-batches"])
def problem(request):
    """Problems whose loops are JAX's and compiled, and one of which each step has data."""
    if request.param == "reduced":
        return SYSTEM.ReducedPopulation(SMALL)
    batch = 7 if request.param == "mini-batches" else None
    return SYSTEM.FullEmpirical(SMALL, 41, batch=batch, test_samples=30)


@pytest.mark.parametrize("eta", [0.02, 1e-30])
def test_the_pass_at_the_end_is_what_is_computed_there(problem, eta, monkeypatch):
    """One gradient has what order parameters and the next step are by themselves.

    Where each step has data of its own it is called from here, and counted; where a step that the
    loop makes moves nothing it is called too, to see whether that is for a small gradient.
    """
    run = descent_run.Run(problem, (eta, eta), problem.initial_state + 0.01, np.array([0, 3]))
    assert run.last_pass().step == 0
    run.go(20, lambda: True)
    state, gradients, gradient = run.now.copy(), [], problem.gradient
    with monkeypatch.context() as patch:
        patch.setattr(problem, "gradient", lambda at: gradients.append(at) or gradient(at))
        last = run.last_pass()
    assert len(gradients) == (0 if problem.autonomous and last.moves else 1)
    np.testing.assert_allclose(last.order_parameters, problem.order_parameters(state), 1e-9)
    assert last.moves == (eta > 1e-10)
    assert not last.at_rest
    np.testing.assert_array_equal(run.now, state)
    assert run.last_pass() is last


@pytest.mark.parametrize("eta", [0.02, 1e-30, np.inf])
def test_the_pass_at_the_last_record_is_made_on_the_way(eta, monkeypatch):
    """A run whose schedule ends at its last step has there what one of another schedule has."""
    problem = SYSTEM.FullEmpirical(SMALL, 41, test_samples=30)
    runs = []
    for last_record in (3, 20):
        schedule = np.array([0, 3, last_record])
        run = descent_run.Run(problem, (eta, eta), problem.initial_state + 0.01, schedule)
        run.go(20, lambda: True)
        with monkeypatch.context() as patch:
            if last_record == 20 and not run.diverged:
                patch.setattr(problem, "advance", None)  # no step is made for it
            runs.append((run, run.last_pass(), run.records()))
    (one, first, records), (other, second, same) = runs
    assert (one.step, one.diverged) == (other.step, other.diverged)
    np.testing.assert_array_equal(one.now, other.now)
    for name in ("order_parameters", "moves", "by_rounding", "at_rest"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), name)
    np.testing.assert_array_equal(records[1][-1], same[1][-1])


def test_rates_of_the_last_pass_are_those_of_steps_with_two_learning_rates():
    """Of encodings too, whose loop is written out: rates are per unit of the first eta."""
    problem = GramEmpirical(SMALL, 41, test_samples=30)
    run = descent_run.Run(problem, (0.01, 0.1), problem.initial_state, np.array([0, 3]))
    run.go(3, lambda: True)
    expected = run._order_parameters(run.now)[0]
    np.testing.assert_allclose(run.last_pass().order_parameters, expected, 1e-12)
    rows, state = run.replay(problem.initial_state, 0, 3)
    np.testing.assert_allclose(rows[-1], expected, 1e-12)
    np.testing.assert_array_equal(state, run.now)


def test_an_interruption_at_the_last_pass_finds_the_chunk_in_place(monkeypatch):
    """A gradient that is compiled for it can be interrupted: what is saved then goes on."""
    problem = SYSTEM.FullEmpirical(SMALL, 41, test_samples=30)

    def interrupted(state):
        raise KeyboardInterrupt

    run = descent_run.Run(problem, (1e-30, 1e-30), problem.initial_state, np.array([0, 2, 9]))
    with monkeypatch.context() as patch:
        patch.setattr(problem, "gradient", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run.go(9, lambda: True)
    assert run.step == 9
    steps, states = run.recorded()
    np.testing.assert_array_equal(steps, [0, 2])
    np.testing.assert_array_equal(states, [problem.initial_state] * 2)
    assert not run.last_pass().moves


def test_a_problem_of_a_callers_own_need_not_say_whether_its_steps_are_alike():
    inner = SYSTEM.ReducedPopulation(SMALL)

    class Own:
        def __getattr__(self, name):
            if name == "autonomous":
                raise AttributeError(name)
            return getattr(inner, name)

    own, same = (dynamics.descend(problem, 0.02, 20) for problem in (Own(), inner))
    np.testing.assert_array_equal(own.states, same.states)
    assert own.outcome == same.outcome


def test_a_step_to_infinity_after_the_last_one_moves_and_is_no_divergence():
    problem = SYSTEM.FullEmpirical(SMALL, 41, test_samples=30)
    advance = problem.advance

    def to_infinity_after_two(state, eta, first, last, buffers):
        assert advance(state, eta, first, last, buffers) == last
        if last <= 2:
            return last
        state[:] = buffers[2][-1, : state.size]
        return 2

    problem.advance = to_infinity_after_two
    run = descent_run.Run(problem, (1e-3, 1e-3), problem.initial_state, np.array([0, 2]))
    run.go(2, lambda: True)
    assert (run.step, run.diverged) == (2, False)
    assert run.last_pass().moves
    np.testing.assert_array_equal(run.records()[1][-1], run.now)


def test_a_state_whose_next_is_not_finite_is_not_at_rest():
    problem = SYSTEM.FullEmpirical(SMALL, 41, test_samples=30)
    run = descent_run.Run(problem, (np.inf, np.inf), problem.initial_state, np.array([0]))
    assert run.last_pass().moves


def test_chunks_of_slow_steps_are_short(monkeypatch):
    """An interruption waits for the end of a chunk. A clock counts how often it is looked at."""
    problem = SYSTEM.FullEmpirical(SYSTEM.Parameters(D=8, C=2, d=16), 41, test_samples=30)
    run = descent_run.Run(problem, (0.01, 0.01), problem.initial_state, np.array([0]))
    reached = []
    for seconds in (1.0, 0.001):
        clock = SimpleNamespace(perf_counter=partial(next, (seconds * k for k in count())))
        monkeypatch.setattr(descent_run, "time", clock)
        run.go(run.step + 30, lambda: bool(reached.append(run.step)) or True)
    assert reached == [0, 4, 6, *range(7, 32), 35, 51]
