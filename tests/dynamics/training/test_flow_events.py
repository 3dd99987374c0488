"""Events of a flow: against another integrator with its own roots, and on paths made up for it."""

from types import SimpleNamespace

import numpy as np
import pytest
import sympy
from reference_flow import Reference
from scipy.optimize import brentq

import dynamics
from dynamics.problem import ExpectedProblem
from dynamics.training.flow_events import STEPS
from dynamics.training.flow_events import locate_events as locate
from dynamics.training.flow_path import FlowPath
from theory.events import Crossing, ExceedsRunMaximum, RisesAgain, event_rules

MIXED = {"random_sets": "mixed"}
STEEP = {"D": 12, "C": 4, "q": 0.2, "nu": 0.1, "beta": 3}
QUICK = [({"D": 8, "C": 2, **MIXED}, 2e3), ({}, 1e3), (STEEP, 3e3)]


def share(parameters, state):
    """G/D, typed from the paper."""
    C, s = parameters.C, parameters.scale
    inside = np.exp(s * parameters.beta) + (C - 1) * np.exp(s * state[1])
    return inside / (inside + (parameters.D - C) * np.exp(s * state[2]))


def extreme(run, k, entry):
    """Time at which an entry of the state is largest or smallest, near its k-th step."""
    slope = lambda state: run.problem.gradient(state)[entry]  # noqa: E731
    return run.root(slope, run.times[k - 1], run.times[k + 1])


def independent(problem, horizon):
    """Every event of the system, from its definition in section 8 of the specification."""
    parameters, run = problem.parameters, Reference(problem, horizon)

    def growth(state):
        """Of log G minus that of log alpha: dG/G = (1 - G/D) (d inside/inside - d rho)."""
        rate, C = -problem.gradient(state), parameters.C
        same = (C - 1) * np.exp(parameters.scale * state[1])
        inside = same + np.exp(parameters.scale * parameters.beta)
        of_sets = parameters.scale * (same / inside * rate[1] - rate[2])
        return (1 - share(parameters, state)) * of_sets - rate[0] / state[0]

    margin = run.first(lambda state: state[1] - state[2])
    times = {"T0": run.first(growth), "patch_association": margin}
    half = lambda state: share(parameters, state) - 0.5  # noqa: E731
    times["T1"] = begin = run.first(half, times["T0"])
    sizes = np.abs(run.states[:, 2])
    k, top = int(sizes.argmax()), sizes.max()
    if 0 < k < sizes.size - 1:
        top = abs(run.at(extreme(run, k, 2))[2])
    times["T1_paper"] = run.first(lambda state: state[1] - top, times["T0"])
    times["event_III"] = None
    if begin is not None:
        alphas, first = run.states[:, 0], run.at(begin)[0]
        fallen = np.minimum.accumulate(np.where(run.times > begin, alphas, np.inf)) < first
        (above,) = np.nonzero(fallen & (alphas > 1.05 * first))
        if above.size and alphas[-1] > first:
            low = int(np.searchsorted(run.times, begin, side="right"))
            k = low + int(alphas[low : above[0]].argmin())
            times["event_III"] = extreme(run, k, 0)
    return times


@pytest.mark.parametrize(("settings", "horizon"), QUICK)
def test_events_are_those_of_another_integrator(system, settings, horizon):
    """To five digits, and within the uncertainty that is given; which is not given away."""
    problem = system.ReducedPopulation(system.Parameters(**settings), "exact")
    run, times = dynamics.flow(problem, horizon), independent(problem, horizon)
    assert set(run.events) == set(times)
    for name, event in run.events.items():
        if times[name] is None:
            assert not event, name
            continue
        error = abs(event.time - times[name])
        assert error <= 1e-5 * times[name], name
        assert error <= event.uncertainty, name
        assert event.uncertainty <= 1e-4 * times[name], name


def test_a_flat_minimum_is_that_of_alpha_and_not_of_its_slaved_value(system):
    """By 0.47 it lags after the value to which alpha relaxes, whose minimum is at 282.5033."""
    alpha = sympy.Symbol("alpha", real=True)
    problem = system.ReducedPopulation(system.Parameters(**STEEP), "exact")
    problem.events = (
        Crossing("low", "", "", 0.16685 - alpha),
        RisesAgain("rise", "", "", alpha, 1e-4, after="low"),
    )
    event = dynamics.flow(problem, 1500.0).events["rise"]
    run = Reference(problem, 300.0)
    assert extreme(run, int(run.states[:, 0].argmin()), 0) == pytest.approx(282.96970, abs=1e-5)
    assert event.time == pytest.approx(282.96970, rel=1e-5)
    assert abs(event.time - 282.96970) <= event.uncertainty < 1e-4 * event.time


def test_no_rise_where_alpha_did_not_fall(system):
    """From T1 on alpha rises, then falls: nothing rises again."""
    parameters = system.Parameters(D=6, C=2, q=0.1, beta=3)
    for horizon, reason in (
        (300.0, "does not fall below its value at T1"),
        (1e4, "falls to the horizon"),
    ):
        run = dynamics.flow(system.ReducedPopulation(parameters), horizon)
        assert run.events["T1"].time == pytest.approx(6.95906, rel=1e-5)
        assert not run.events["event_III"]
        assert run.reasons["event_III"] == reason


v, w = sympy.symbols("v w", real=True)


def path(rules, first, second, nodes, rates=(), error=0.0):
    """A path whose state is the time, with two functions of it as order parameters."""
    values = lambda t: np.array([first(t), second(t)])  # noqa: E731
    problem = SimpleNamespace(
        events=rules,
        order_names=("v", "w"),
        rates=rates,
        parameters=None,
        order_parameters=lambda state, slope=None: values(state[0]),
        gradient=lambda state: -np.ones(1),
        curvature=lambda state: 1.0,
    )
    at, errors = lambda t: np.array([t]), lambda state: error + 0.0 * state
    return FlowPath(problem, np.array(nodes), at, errors)


@pytest.mark.parametrize("rates", [(), ("v",), ("v", "w")])
@pytest.mark.parametrize("on", [5.03, 5.2, 5.299])
def test_an_event_waits_for_its_guard(on, rates):
    """The value holds from 3 on; the guard turns on between two points of the path."""
    rule = Crossing("T", "", "", v, w)
    made = path((rule,), lambda t: t - 3.0, lambda t: t - on, np.arange(0.0, 8.0, 0.5), rates)
    assert locate(made)["T"].time == pytest.approx(on, rel=1e-12)


@pytest.mark.parametrize("rates", [(), ("v",)])
@pytest.mark.parametrize(("strict", "time"), [(False, 2.02), (True, 2.31)])
def test_what_rests_at_zero_holds_from_its_first_time_or_after_its_last(strict, time, rates):
    """0 from 2.02 to 2.31: not negative from 2.02 on, positive from 2.31 on."""
    rule = Crossing("T", "", "", v, strict=strict)
    rests = lambda t: min(t - 2.02, max(0.0, t - 2.31))  # noqa: E731
    for nodes in ([0.0, 2.0, 2.5, 4.0], np.linspace(0.0, 4.0, 41), [0.0, 3.0, 4.0]):
        made = path((rule,), rests, lambda t: 1.0, nodes, rates)
        assert locate(made)["T"].time == pytest.approx(time, rel=1e-9)


def test_a_maximum_is_exceeded_when_its_plateau_ends():
    rule = ExceedsRunMaximum("T", "", "", v, w)
    level = lambda t: min(t, max(1.0, t - 1.04))  # noqa: E731
    made = path((rule,), level, lambda t: min(t, 1.0), [0.0, 1.5, 3.0])
    assert locate(made)["T"].time == pytest.approx(2.04, rel=1e-12)


def test_an_event_at_the_start_of_its_search_is_as_uncertain_as_that():
    rules = (Crossing("T", "", "", v - 1), Crossing("U", "", "", w, after="T"))
    made = path(rules, lambda t: t, lambda t: 1.0, [0.0, 0.9, 2.0], error=1e-9)
    times = locate(made)
    assert times["U"] == times["T"]
    assert times["T"].uncertainty == pytest.approx(STEPS * np.sqrt(2) * 1e-9, rel=1e-5)


def test_a_minimum_without_a_rate_is_as_uncertain_as_it_is_flat():
    """There an error of 8e-6 in the state changes v by 64e-12: v rises by that within 8e-6."""
    rule = RisesAgain("T", "", "", v, 0.05)
    falls = lambda t: (t - 2.2) ** 2 + 0.5 * t  # noqa: E731
    made = path((rule,), falls, lambda t: 1.0, np.linspace(0.0, 9.0, 19), error=1e-6)
    found = locate(made)["T"]
    assert abs(found.time - 1.95) <= found.uncertainty
    assert found.uncertainty == pytest.approx(STEPS * 2e-6, rel=0.1)


def test_what_rounding_alone_moves_has_no_events_and_stalls_nothing(system, monkeypatch):
    """At beta = 0 no patch is nearer to itself than to others: gamma = rho = 0 for ever."""
    problem = system.ReducedPopulation(system.Parameters(D=8, C=2, q=0.9, beta=0.0))
    calls, gradient = [], ExpectedProblem.gradient
    monkeypatch.setattr(
        ExpectedProblem, "gradient", lambda self, state: calls.append(1) or gradient(self, state)
    )
    run = dynamics.flow(problem, time=1e4)
    assert np.abs(run.final_state[1:]).max() < 1e-12
    assert not any(run.events.values())
    assert len(calls) < 5000


@pytest.mark.parametrize("rtol", [1e-8, 1e-12])
@pytest.mark.parametrize("beta", [2.0, 0.0])
def test_what_holds_at_once_is_at_time_0_and_what_rounding_does_is_none(beta, rtol, system):
    """The margin gamma - rho is 0 at the start and grows; at beta = 0 by rounding alone."""
    settings = {"D": 12, "C": 3, "q": 0.49, "p": 5, "nu": 0.02, "random_sets": "mixed"}
    problem = system.ReducedPopulation(system.Parameters(**settings, beta=beta))
    event = dynamics.flow(problem, time=100.0, rtol=rtol).events["patch_association"]
    assert event.reached == (beta > 0)
    assert not event or (event.time, event.uncertainty) == (0.0, 0.0)


def test_what_holds_by_noise_at_first_hides_no_event(system):
    """The margin falls at once, far below the error of the path, and rises through 0 at 0.9."""
    settings = {"D": 10, "C": 2, "p": 5, "q": 0.7646, "nu": 0.0414, "beta": 0.514}
    law = system.Parameters(**settings, alpha0=7.27e-4, random_sets="mixed")
    problem = system.ReducedPopulation(law, "exact")
    slope = problem.gradient(problem.initial_state)
    assert slope[2] < slope[1]
    event = dynamics.flow(problem, time=10.0).events["patch_association"]
    other = dynamics.flow(problem, time=10.0, rtol=1e-10, compiled=False)
    exact = other.events["patch_association"]
    assert abs(event.time - exact.time) <= event.uncertainty + exact.uncertainty < 1e-4


@pytest.mark.parametrize("compiled", [True, False])
def test_rates_count_in_guards_and_in_maxima_too(system, compiled):
    """Where G >= 0 holds all the time, a guard on a rate is what decides."""
    problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    texts = {
        "guard": "G >= 0 while d_alpha < 0",
        "alone": "alpha stops growing",
        "exceeds": "G + d_alpha exceeds the maximum of 5 + alpha",
    }
    problem.events = event_rules(texts, problem.order_names)
    run = dynamics.flow(problem, 1e4, record=2000, compiled=compiled)
    assert run.events["guard"].time == pytest.approx(run.events["alone"].time, rel=2e-5)
    event = run.events["exceeds"]
    row = dict(zip(problem.order_names, problem.order_parameters(event.state), strict=True))
    level = 5.0 + max(run["alpha"].max(), run.events["alone"].state[0])
    assert row["G"] + row["d_alpha"] == pytest.approx(level, rel=1e-6)


def test_a_guard_counts_by_its_value_and_not_by_its_form(system):
    """An exponential is positive; where it is below all numbers it is 0, in descents too."""
    problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    texts = {"guarded": "gamma >= 0.3 while exp(-100000*gamma) > 0", "bare": "gamma >= 0.3"}
    problem.events = event_rules(texts, problem.order_names)
    for run in (dynamics.flow(problem, 1e3), dynamics.descend(problem, 0.5, 2000)):
        assert run.events["bare"].reached
        assert not run.events["guarded"].reached


@pytest.mark.parametrize("error", [0.0, 1e-9])
@pytest.mark.parametrize("rates", [(), ("v",)])
@pytest.mark.parametrize("strict", [False, True])
def test_what_ceases_at_an_earlier_event_does_not_hold_there_by_rounding(strict, rates, error):
    """The value rises through a level and falls through it later, whatever the root rounds to."""
    nodes = np.linspace(0.0, 20.0, 41)
    rise = lambda t: t * np.exp(1.0 - t)  # noqa: E731
    for level in np.linspace(0.05, 0.9, 12):
        rules = (
            Crossing("above", "", "", v - level, strict=strict),
            Crossing("down", "", "", level - v, strict=not strict, after="above"),
            Crossing("up", "", "", v - level, strict=not strict, after="above"),
        )
        times = locate(path(rules, rise, lambda t: 1.0, nodes, rates, error))
        beyond = lambda t, level=level: rise(t) - level  # noqa: E731
        first, second = brentq(beyond, 0.0, 1.0), brentq(beyond, 1.0, 20.0)
        assert times["above"].time == pytest.approx(first, rel=1e-9)
        assert times["down"].time == pytest.approx(second, rel=1e-9)
        assert times["up"].time == pytest.approx(first, rel=1e-9)


def test_what_holds_beyond_errors_at_an_earlier_event_is_found_there():
    """At 3.02 v is above 1 until 3.03, before the next point of the path."""
    rules = (Crossing("T", "", "", w), Crossing("U", "", "", v - 1, after="T"))
    made = path(rules, lambda t: 4.03 - t, lambda t: t - 3.02, np.arange(0.0, 8.0, 0.5), error=1e-9)
    assert locate(made)["U"] == locate(made)["T"]
