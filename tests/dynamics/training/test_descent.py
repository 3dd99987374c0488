import numba
import numpy as np
import pytest
from runs import same

import dynamics
from dynamics.training.minibatches import MiniBatches
from dynamics.validation import InvalidRequest


@pytest.fixture
def problem(system):
    return system.ReducedPopulation(system.Parameters(D=8, C=2))


@pytest.mark.parametrize("eta", [np.array(0.02), (0.02, 0.01)])
def test_a_step_subtracts_eta_times_the_gradient(problem, eta):
    run = dynamics.descend(problem, eta, steps=3, record=1)
    state, rates = problem.initial_state, np.broadcast_to(eta, 2)[[0, 1, 1]]
    for step in range(4):
        np.testing.assert_array_equal(run.states[step], state)
        state = state - rates * problem.gradient(state)
    np.testing.assert_array_equal(run.settings["eta"], eta)


@pytest.mark.parametrize("view", [None, "population"])
def test_any_group_may_rest_and_time_is_the_largest_learning_rate_times_steps(system, view):
    problem = system.problem(system.Parameters(D=6, C=2), view, {})
    for eta, still in (((0.0, 0.05), "v"), ((0.05, 0.0), "A")):
        run = dynamics.descend(problem, eta, steps=20, record=1)
        moved = (run.states != run.states[0]).any(axis=0)
        rates = problem.layout.per_entry(eta)
        assert moved.any(), still
        assert not moved[rates == 0].any()
        assert run.time[-1] == pytest.approx(1.0)


def test_records_do_not_change_the_run_nor_its_events(problem):
    every = dynamics.descend(problem, eta=0.02, steps=2000, record=1)
    for record in (None, "log", 700, np.array([5, 1999]), np.array([], dtype=int)):
        run = dynamics.descend(problem, eta=0.02, steps=2000, record=record)
        assert run.steps[0] == 0
        assert run.steps[-1] == 2000
        np.testing.assert_array_equal(run.states, every.states[run.steps])
        for name, event in every.events.items():
            assert event.step == run.events[name].step
            if event:
                np.testing.assert_array_equal(event.state, run.events[name].state)
                np.testing.assert_array_equal(event.state, every.states[event.step])


@pytest.mark.parametrize("view", ["ReducedPopulation", "FullPopulation", "mini-batches"])
def test_an_event_at_the_last_step_is_found(system, view):
    """Also where the step after it, whose rates it needs, is never taken."""
    parameters = system.Parameters(D=8, C=2)
    if view == "mini-batches":
        made = system.FullEmpirical(parameters, 41, batch=7, test_samples=30)
    else:
        made = getattr(system, view)(parameters)
    longer = dynamics.descend(made, 0.02, 100)
    step = longer.events["T0"].step
    assert 0 < step < 100
    run = dynamics.descend(made, 0.02, step)
    assert run.events["T0"].step == step
    np.testing.assert_array_equal(run.events["T0"].state, longer.events["T0"].state)
    assert not dynamics.descend(made, 0.02, step - 1).events["T0"]


def test_a_step_to_infinity_after_the_last_one_is_no_divergence(problem):
    advance = problem.advance

    def to_infinity_after_two(state, eta, first, last, buffers):
        assert advance(state, eta, first, last, buffers) == last
        return min(last, 2)

    problem.advance = to_infinity_after_two
    outcome = dynamics.descend(problem, 1e-3, 2).outcome
    assert (outcome.kind, outcome.remedy) == ("reached horizon", "")
    assert dynamics.descend(problem, 1e-3, 3).outcome.kind == "diverged"


def test_divergence_is_an_outcome_with_all_that_was_finite(problem):
    run = dynamics.descend(problem, eta=1.0, steps=100, record=1)
    assert run.outcome.kind == "diverged"
    assert run.outcome.failed
    assert run.steps[-1] == run.outcome.step < 20
    assert np.isfinite(run.states).all()
    assert not np.isfinite(run.final_state - problem.gradient(run.final_state)).all()
    remedy = dynamics.descend(problem, eta=1.0, steps=20_000).outcome.remedy
    eta = float(remedy.split("stability limit")[1].split("try eta=")[1])
    assert not dynamics.descend(problem, eta=eta, steps=20_000).outcome.failed


def test_lasting_oscillation_is_an_outcome_and_not_event_three(system):
    """D=16 C=4 q=0.5: the stability limit falls to 0.0315 near time 1700; eta passes it at 0.04."""
    problem = system.ReducedPopulation(system.Parameters())
    run = dynamics.descend(problem, eta=0.04, steps=50_000, record=1)
    assert run.outcome.kind == "oscillating"
    assert run.outcome.failed
    change = np.diff(run["alpha"][run.outcome.step + 1 :])
    assert (change[1:] * change[:-1] < 0).all()
    assert run.reasons["event_III"] == "oscillating"
    assert "0.04 is above the stability limit" in run.outcome.remedy


@pytest.mark.parametrize("view", [None, "population"])
@pytest.mark.parametrize("second", [0.4, 0.001])
def test_rates_are_per_unit_of_time_of_each_learning_rate(system, view, second):
    """T0 is the first step at which log G grows as log alpha, by central differences."""
    problem = system.problem(system.Parameters(D=6, C=2, q=0.5), view, {})
    run = dynamics.descend(problem, (0.02, second), 300, record=1)
    eta, found = problem.layout.per_entry((0.02, second)), []
    for state in run.states:
        change = -1e-4 * eta * problem.gradient(state)
        ends = problem.observables_along(state + np.outer((-1, 1), change))
        alpha, G = ends["alpha_G"] / ends["G"], ends["G"]
        found.append(alpha.mean() > 0 and np.diff(G) / G.mean() >= np.diff(alpha) / alpha.mean())
    assert 5 < run.events["T0"].step == np.argmax(found)


@pytest.mark.parametrize("unit", [1.0, 2.0**30])
@pytest.mark.parametrize(
    ("start", "eta", "kind"),
    [
        (1.0, 0.5, "converged"), (2.0, 0.5, "converged"), (2.0, 1e-30, "converged"),
        (1.0, 1e-30, "reached horizon"), (1.0, 1e-17, "reached horizon"),
        (2.0 + 1e-6, 1e-12, "reached horizon"),  # a step is 1e-18
    ],
)  # fmt: skip
def test_what_has_converged_is_at_rest(start, eta, kind, unit):
    """Of a parabola around 2, in any unit of length: not where the step alone is small."""
    system = dynamics.Model(
        start=lambda: {"u": unit}, risk=lambda theta, xp: (theta["u"] - 2 * unit) ** 2 / 2
    )
    problem = system.ReducedPopulation(system.Parameters())
    run = dynamics.descend(problem, eta, 100, initial=[start * unit])
    assert run.outcome.kind == kind
    assert ("too small for a step" in run.outcome.remedy) == (kind == "reached horizon")
    assert (run.final_state == (2 if kind == "converged" else start) * unit).all()


@pytest.mark.long
@pytest.mark.parametrize(
    ("settings", "view", "how"),
    [
        ({"D": 24, "C": 4}, "ReducedPopulation", ["exact"]),
        ({"D": 32, "C": 4}, "ReducedPopulation", ["spectral"]),
        ({"D": 12, "C": 3}, "FullPopulation", []),
    ],
)
def test_results_are_bitwise_equal_twice_and_for_one_or_two_threads(system, settings, view, how):
    threads, runs = numba.get_num_threads(), []
    try:
        for count in (1, 2, 2):
            numba.set_num_threads(count)
            problem = getattr(system, view)(system.Parameters(**settings, q=0.4), *how)
            runs.append(dynamics.descend(problem, eta=0.01, steps=30, record=1))
    finally:
        numba.set_num_threads(threads)
    for run in runs[1:]:
        same(run, runs[0])


def test_records_that_do_not_fit_are_refused_before_the_first_step(problem, monkeypatch):
    monkeypatch.setattr("dynamics.training.settings.MOST_RECORDED", 60)
    with pytest.raises(InvalidRequest) as caught:
        dynamics.descend(problem, 0.02, 100)
    assert "record='log' keeps" in str(caught.value)
    near = int(str(caught.value).rsplit(": ", 1)[1])
    run = dynamics.descend(problem, 0.02, 100, record=near)
    assert run.states.size <= 60


def test_what_comes_after_an_event_of_the_whole_run(monkeypatch):
    """With a = 2 - 2 (1 - eta)^t, and b from 1 to .5, the largest at the start."""
    system = dynamics.Model(
        start=lambda: {"a": 0.0, "b": 1.0},
        risk=lambda theta, xp: (theta["a"] - 2) ** 2 / 2 + (theta["b"] - 0.5) ** 2,
        events={
            "top": "a exceeds the maximum of b", "at": "a >= 0.2 after top",
            "later": "a >= 1.5 after top",
            "beyond": "a exceeds the maximum of b + 0.6 after later",
            "end": "a >= 1.9 after beyond", "never": "a >= 3 after beyond",
        },
    )  # fmt: skip
    pair = system.ReducedPopulation(system.Parameters())
    monkeypatch.setattr("dynamics.training.descent.LARGEST_CHUNK", 7)
    run = dynamics.descend(pair, 0.01, 1000)
    a = 2 - 2 * 0.99 ** np.arange(1001)
    top = np.argmax(a > 1)
    wanted = {
        "top": top, "at": top, "later": np.argmax(a >= 1.5), "beyond": np.argmax(a > 1.6),
        "end": np.argmax(a >= 1.9),
    }  # fmt: skip
    assert {name: run.events[name].step for name in wanted} == wanted
    for name in wanted:
        assert run.events[name].state[0] == pytest.approx(a[wanted[name]], rel=1e-12)
    assert run.reasons["never"] == "not reached by time 10"
    flow = dynamics.flow(pair, 10.0)
    for name in wanted:
        assert run.events[name].time == pytest.approx(flow.events[name].time, rel=0.03)


@pytest.mark.parametrize(("samples", "size"), [(12, 4), (13, 4), (5, 1), (7, 6), (6, 6), (6, 100)])
def test_every_epoch_takes_every_sample_once(samples, size):
    many = -(-samples // size)
    for epoch in range(20):
        dealt = MiniBatches(3, samples, size).members(epoch * many, (epoch + 1) * many)
        assert [part.size for part in dealt[:-1]] == [size] * (many - 1)
        assert sorted(np.concatenate(dealt)) == list(range(samples))
        assert all((np.diff(part) > 0).all() for part in dealt)


def test_epochs_differ_in_their_batches():
    """In who is together, not only in the order; and every pair meets as often as chance has it."""
    together, epochs = np.zeros((12, 12)), 600
    for part in MiniBatches(0, 12, 4).members(0, 3 * epochs):
        together[np.ix_(part, part)] += 1
    pairs = together[np.triu_indices(12, 1)]
    assert abs(pairs - epochs * 3 / 11).max() < 5 * np.sqrt(epochs * 3 / 11 * 8 / 11)
    one, other = (MiniBatches(seed, 12, 4).members(0, 30) for seed in (0, 1))
    assert any((a != b).any() for a, b in zip(one, other, strict=True))


def test_the_number_of_the_step_decides():
    whole = MiniBatches(5, 13, 4).members(0, 40)
    for first in range(40):
        for last in range(first, 41):
            dealt = MiniBatches(5, 13, 4).members(first, last)
            assert len(dealt) == last - first
            assert all((a == b).all() for a, b in zip(dealt, whole[first:last], strict=True))
