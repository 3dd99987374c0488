"""Stated errors of events of flows, against another integrator with roots of its own."""

from pathlib import Path

import numpy as np
import pytest
import sympy
from reference_flow import Reference
from scipy.optimize import minimize_scalar

import dynamics
from dynamics.training import flow
from theory.events import ExceedsRunMaximum, RisesAgain, event_rules

VIT = str(Path(dynamics.__file__).parent / "models" / "shallow_vit.py")
FLOWS = {
    "positional_attention": 10, "masked_image_modeling": 8, VIT: 6,
    "deep_linear": 4, "single_location": 4, "topic_model": 4, "linear_icl": 4,
}  # fmt: skip
STIFF = ("positional_attention", "masked_image_modeling")
QUICK = "positional_attention", "single_location"
SEED = 4067
LONG = pytest.mark.long


class Located(Reference):
    """Events by their rules, on rows of order parameters and their rates."""

    def __init__(self, problem, horizon, method):
        seen = lambda state: problem.order_parameters(state, problem.gradient(state))  # noqa: E731
        super().__init__(problem, horizon, method, seen)
        self.letters = [sympy.Symbol(name, real=True) for name in problem.order_names]

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
                options = {"xatol": 1e-10 * span[1]}
                top = minimize_scalar(
                    lambda t: -bound(self.at(t)), bounds=span, method="bounded", options=options
                )
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
    """Constants and the horizon of a flow."""
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
    [*((name, 2) for name in QUICK), *(pytest.param(*each, marks=LONG) for each in FLOWS.items())],
    ids=lambda value: Path(str(value)).stem,
)
def test_no_event_of_a_flow_is_outside_of_its_stated_error(name, flows, monkeypatch):
    monkeypatch.setattr(flow, "MAX_STEPS", 2000)
    system = dynamics.load_system(name)
    random = np.random.default_rng([SEED, list(FLOWS).index(name)])
    outside, reaching = [], 0
    while reaching < flows:
        settings, horizon = drawn(name, random)
        problem = system.ReducedPopulation(system.Parameters(**settings))
        if name == VIT:
            shown = problem.observables(problem.initial_state)["relevant"]
            text = {"moved": f"abs(relevant - {shown}) >= 1/10000", "fit": "error <= 0"}
            problem.events = event_rules(text, problem.order_names)
        run = dynamics.flow(problem, horizon)
        if run.outcome.kind == "stalled":  # neurons stay at their kinks, where there is no flow
            continue
        exact = Located(problem, horizon, "Radau" if name in STIFF else "DOP853").events()
        reaching += any(event.time > 0 for event in run.events.values())
        for event in run.events.values():
            time = exact[event.name]
            line = (event, time)
            if event and (time is None or abs(event.time - time) > event.uncertainty):
                outside.append((settings, line))
            if event.reason.startswith(("not reached", "never")) and time is not None:
                outside.append((settings, line))
    assert outside == []
