"""Events of a flow: against another integrator with its own roots, and on paths made up for it."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import sympy
from scipy.integrate import solve_ivp
from scipy.optimize import brentq, minimize_scalar

import dynamics
from dynamics.training import flow
from dynamics.training.flow_events import STEPS
from dynamics.training.flow_events import locate_events as locate
from dynamics.training.flow_path import FlowPath
from theory.events import Crossing, ExceedsRunMaximum, RisesAgain, event_rules

VIT = str(Path(dynamics.__file__).parent / "models" / "shallow_vit.py")
FLOWS = {
    "positional_attention": 10, "masked_image_modeling": 8, VIT: 6,
    "deep_linear": 4, "single_location": 4, "topic_model": 4, "linear_icl": 4,
}  # fmt: skip
QUICK, STIFF = ("positional_attention", "single_location"), tuple(FLOWS)[:2]
v, w = sympy.symbols("v w", real=True)


def path(rules, first, second, nodes, rates=(), error=0.0):
    """A path whose state is the time, with two functions of it as order parameters."""
    values = lambda t: np.array([first(t), second(t)])  # noqa: E731
    problem = SimpleNamespace(
        events=rules, order_names=("v", "w"), rates=rates, parameters=None,
        order_parameters=lambda state, slope=None: values(state[0]),
        gradient=lambda state: -np.ones(1), curvature=lambda state: 1.0,
    )  # fmt: skip
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


class Located:
    """Events by their rules, by SciPy at 1e-12: states between steps are integrated to."""

    def __init__(self, problem, horizon, method):
        self.problem, self.options = problem, {"method": method, "rtol": 1e-12, "atol": 1e-15}
        solved = solve_ivp(self.rate, (0.0, horizon), problem.initial_state, **self.options)
        assert solved.status == 0
        self.times, self.states = solved.t, solved.y.T
        self.rows = np.array([self.seen(state) for state in self.states])
        self.letters = [sympy.Symbol(name, real=True) for name in problem.order_names]

    def seen(self, state):
        return self.problem.order_parameters(state, self.problem.gradient(state))

    def rate(self, _, state):
        return -self.problem.gradient(state)

    def at(self, time):
        k = int(np.searchsorted(self.times, time, side="right")) - 1
        if time == self.times[k]:
            return self.rows[k]
        span = (self.times[k], time)
        return self.seen(solve_ivp(self.rate, span, self.states[k], **self.options).y[:, -1])

    def root(self, function, low, high):
        return brentq(lambda t: function(self.at(t)), low, high, xtol=1e-14 * high, rtol=1e-14)

    def first(self, function, begin=0.0, counts=False):
        """The first time from begin on at which a function is positive, or 0 where that counts."""
        if begin is None:
            return None
        value = function(self.at(begin))
        holds = np.array([function(row) for row in self.rows]) > 0
        after = np.searchsorted(self.times, begin, side="right")
        if value > 0 or (value == 0 and (counts or holds[after])):
            return begin
        later = after + np.flatnonzero(holds[after:])
        if not later.size:
            return None
        k = later[0]
        return self.root(function, max(begin, self.times[k - 1]), self.times[k])

    def function(self, expression):
        others = sorted(expression.free_symbols - set(self.letters), key=str)
        values = [float(getattr(self.problem.parameters, str(each))) for each in others]
        made = sympy.lambdify([*self.letters, *others], expression, "numpy")
        return lambda row: float(made(*row, *values))

    def locate(self, rule, begin):
        if isinstance(rule, ExceedsRunMaximum):
            bound = self.function(rule.bound)
            values = np.array([bound(row) for row in self.rows])
            k, level = int(values.argmax()), values.max()
            if 0 < k < values.size - 1:
                span = self.times[k - 1], self.times[k + 1]
                how = {"method": "bounded", "options": {"xatol": 1e-10 * span[1]}}
                top = minimize_scalar(lambda t: -bound(self.at(t)), bounds=span, **how)
                level = max(level, -top.fun)
            quantity = self.function(rule.quantity)
            return self.first(lambda row: quantity(row) - level, begin, False)
        if isinstance(rule, RisesAgain):
            quantity = self.function(rule.quantity)
            values, first = np.array([quantity(row) for row in self.rows]), quantity(self.at(begin))
            after = int(np.searchsorted(self.times, begin, side="right"))
            fallen = np.minimum.accumulate(values[after:]) < first
            above = np.flatnonzero(fallen & (values[after:] > first + rule.relative * abs(first)))
            if not above.size or values[-1] <= first:
                return None
            k = after + int(values[after : after + above[0]].argmin())
            rate = self.function(sympy.Symbol(f"d_{rule.quantity}", real=True))
            k += rate(self.rows[k]) <= 0
            return self.root(rate, self.times[k - 1], self.times[k])
        value, guard = self.function(rule.expression), self.function(rule.guard)
        return self.first(lambda row: min(value(row), guard(row)), begin, not rule.strict)

    def events(self):
        times = {}
        for rule in self.problem.events:
            begin = times[rule.after] if rule.after else 0.0
            times[rule.name] = None if begin is None else self.locate(rule, begin)
        return times


def drawn(name, random):
    """Constants and the horizon."""
    whole, one = lambda low, high: int(random.integers(low, high + 1)), random.uniform
    if name == "positional_attention":
        C, sets = whole(2, 4), whole(2, 4)
        return {
            "D": C * sets, "C": C, "q": one(0.1, 0.9), "p": 2 * whole(1, 2) + 1,
            "nu": 10 ** one(-4, -1), "beta": one(0.2, 3),
            "random_sets": "mixed" if one(0, 1) < 0.5 else "any",
        }, 10 ** one(3, 5)  # fmt: skip
    if name == "masked_image_modeling":
        C_local, C_global = whole(2, 3), whole(3, 9)
        P = C_global + C_local * whole(1, 3)
        return {
            "P": P, "C_global": C_global, "C_local": C_local, "masked": whole(2, P // 2)
        }, 10 ** one(2.5, 4)  # fmt: skip
    if name == "deep_linear":
        return {
            "D": whole(2, 4), "layers": whole(2, 4), "a0": 10 ** one(-4, -1), "s1": one(1, 5),
            "ratio": one(0.3, 0.9),
        }, 10 ** one(1.5, 2.5)  # fmt: skip
    if name == VIT:  # to before neurons stay at their kinks, where there is no flow
        return {
            "M": whole(3, 4), "m": 8, "xi": one(0.3, 0.8), "seed_0": whole(0, 99), "hinge": False,
            "n_star": whole(10, 14), "n_confusion": whole(4, 8), "others": whole(4, 10),
        }, one(0.1, 0.3)  # fmt: skip
    if name == "topic_model":
        return {
            "T": whole(3, 5), "v": whole(1, 3), "chosen": 2, "masked": one(0.1, 0.5),
            "left": one(0.05, 0.4), "random": one(0.05, 0.4), "decay": 10 ** one(-4, -2),
        }, 10 ** one(3, 4.5)  # fmt: skip
    if name == "linear_icl":
        return {
            "D": whole(2, 6), "N": whole(5, 40), "w0": 10 ** one(-4, -1), "ratio": one(0.5, 2),
            "least": one(0.5, 2), "slope": one(0, 1),
        }, 10 ** one(1.5, 2.5)  # fmt: skip
    return {"L": whole(2, 4)}, 10 ** one(1.5, 3)


@pytest.mark.parametrize(
    ("name", "flows"),
    [
        *((name, 2) for name in QUICK),
        *(pytest.param(*each, marks=pytest.mark.long) for each in FLOWS.items()),
    ],
    ids=lambda value: Path(str(value)).stem,
)
def test_no_event_of_a_flow_is_outside_of_its_stated_error(name, flows, monkeypatch):
    monkeypatch.setattr(flow, "MAX_STEPS", 2000)
    system = dynamics.load_system(name)
    random, outside, reaching = np.random.default_rng(4067), [], 0
    while reaching < flows:
        settings, horizon = drawn(name, random)
        problem = system.ReducedPopulation(system.Parameters(**settings))
        if name == VIT:
            shown = problem.observables(problem.initial_state)["relevant"]
            text = {"moved": f"abs(relevant - {shown}) >= 1/10000", "fit": "error <= 0"}
            problem.events = event_rules(text, problem.order_names)
        run = dynamics.flow(problem, horizon)
        if run.outcome.kind == "stalled":  # neurons stay at their kinks
            continue
        exact = Located(problem, horizon, "Radau" if name in STIFF else "DOP853").events()
        reaching += any(event.time > 0 for event in run.events.values())
        for event in run.events.values():
            time = exact[event.name]
            if event:
                wrong = time is None or abs(event.time - time) > event.uncertainty
                wrong |= event.uncertainty > 1e-4 * event.time
            else:
                wrong = event.reason.startswith(("not reached", "never")) and time is not None
            if wrong:
                outside.append((settings, event, time))
    assert outside == []
