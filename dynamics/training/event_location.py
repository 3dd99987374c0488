"""Finding the events of a gradient flow: roots inside the integrator's steps, not on a grid.

The path is given as nodes (accepted steps) and a dense output between them. A rule that speaks of
rates is evaluated from the gradient at the interpolated state, whose error the fast direction
magnifies; the stretch before such an event is therefore integrated again, at a tolerance that is
small against what changes in one relaxation time, and the root taken there.

The uncertainty of a time is the sum of what two errors may change in it: that of the gradient,
where it has a bound, and that of the state at the event. The latter is an estimate: what the
integrator allows in one step counts four times the root of the number of steps, as in a random
walk. Of 400 events of random problems none was farther from those of an integration at a tolerance
of 1e-12 than a quarter of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynamics.problem import SMALL, FloatArray, Problem
from dynamics.training.event_detection import AT_REST, Column, Rise, columns
from dynamics.training.flow_path import FlowPath, Polynomials, order_rows
from dynamics.training.integration import stretch
from theory.events import Crossing, ExceedsRunMaximum, RisesAgain

UNRESOLVED = "not decidable: the errors of the integration change its time by more than itself"
INTERIOR = (1 / 3, 2 / 3)
TIGHT, TIGHTER = 1e-12, 3e-13
"""Relative tolerances of a stretch that is integrated again, by LSODA and by extrapolation."""
DERIVATIVE = 50.0
"""Error of the derivative of a polynomial by the width of its step, over that of its values."""
OF_CHANGE = 1e-7
"""The same, over what changes in one relaxation time; extrapolation needs no more."""
RELAXATIONS, MARGIN = 40.0, 5.0
"""Relaxation times before an event from which a stretch is integrated again, at most; how many of
them the errors of all steps before it are given beyond that of one."""
ACCUMULATED = 10.0
"""Error of a state over what the integrator allows in one step."""
FEW = 4
"""Moves of many entries for an estimate of their sum; steps in which no error is amplified."""
WALK = 4.0
"""Error of a state over that of one step times the root of the number of steps."""
NEGLIGIBLE = 1e-6
"""Part of the largest entry of a state below which the others need no relative precision."""
NARROW = 1e-5
"""Part of a time over which the slope of a value is taken."""


@dataclass(frozen=True)
class EventTime:
    """Time of an event, or None and why; its uncertainty, and the part that the path has in it."""

    time: float | None
    reason: str = ""
    uncertainty: float = 0.0
    of_path: float | None = None
    """None where all of the uncertainty is of the path."""

    @property
    def resolved(self) -> bool:
        """Whether the errors of the integration change the time by less than itself."""
        error = self.uncertainty if self.of_path is None else self.of_path
        return self.time is not None and error < self.time


NOWHERE = EventTime(None, UNRESOLVED)


def locate_events(path: FlowPath) -> dict[str, EventTime]:
    """Every event of the problem on a path.

    Parameters
    ----------
    path : FlowPath

    Returns
    -------
    dict
        Name of the rule -> `EventTime`.
    """
    times: dict[str, EventTime] = {}
    for rule in path.problem.events:
        begin = 0.0
        if rule.after is not None:
            earlier = times[rule.after].time
            if earlier is None:
                times[rule.name] = EventTime(None, f"{rule.after} is not reached")
                continue
            begin = earlier
        if isinstance(rule, Crossing):
            times[rule.name] = _crossing(path, rule, begin)
        elif isinstance(rule, ExceedsRunMaximum):
            times[rule.name] = _separated(_exceeds(path, rule, begin))
        elif isinstance(rule, RisesAgain):
            times[rule.name] = _separated(_rise(path, rule, begin))
        if rule.after is not None and times[rule.name].time == begin:
            times[rule.name] = times[rule.after]
    return times


def _separated(event: EventTime) -> EventTime:
    """An event, or none where errors do not tell its time from 0."""
    return event if event.time is None or event.resolved else NOWHERE


def _column(path: FlowPath, expression: Any) -> Column:
    return columns(expression, path.problem.order_names, path.problem.parameters)


def _uses_rates(path: FlowPath, rule: Crossing) -> bool:
    return any(symbol.name in path.problem.rates for symbol in rule.expression.free_symbols)


def _scan(path: FlowPath, begin: float, interior: tuple[float, ...] = INTERIOR) -> FloatArray:
    """Times at which a condition is looked at: the nodes and points between, from begin on."""
    inside = np.array([0.0, *interior])
    steps = np.diff(path.nodes)
    times = (path.nodes[:-1, None] + steps[:, None] * inside[None, :]).ravel()
    times = np.append(times, path.nodes[-1])
    return np.concatenate([[begin], times[times > begin]])


def _condition(path: FlowPath, rule: Crossing) -> Column:
    """A rule as one function of rows: positive where the rule holds, else negative; never 0.

    What is 0 counts for a value that need not be positive, and against one that must be. So a root
    is where the rule begins to hold, also where the guard decides, or the value rests at 0.
    """
    value, guard = _column(path, rule.expression), _column(path, rule.guard)
    return lambda rows: np.minimum(_signed(value(rows), not rule.strict), _signed(guard(rows)))


def _signed(values: FloatArray, counts: bool = False) -> FloatArray:
    tiny = np.finfo(np.float64).tiny
    return np.where(values == 0, tiny if counts else -tiny, values)


def _crossing(path: FlowPath, rule: Crossing, begin: float) -> EventTime:
    rates = _uses_rates(path, rule)
    value, condition = _column(path, rule.expression), _condition(path, rule)
    before, largest, at_rest = begin, 0.0, False
    # A rate costs a gradient at every point, so rates are looked at on the nodes alone.
    for time, now, holds in _looks(path, begin, rule, (value, condition)):
        at_rest = False
        if rule.resolution:
            largest = max(largest, abs(now))
            # A rate of exactly 0 counts only where the error of the path cannot have made it so.
            noise = _path_noise(path, value, time)
            at_rest = now != 0 and abs(now) <= rule.resolution * largest
            at_rest = at_rest or (noise > 0 and abs(now) <= noise)
            if at_rest or largest == 0:
                continue
        if holds:
            if time == begin:
                return EventTime(float(time))
            root = _root(lambda t: float(condition(path.order(t, rates))[0]), before, time)
            if rates:
                event = _polish(path, condition, root)
            else:
                event = EventTime(root, "", _width(path, condition, root))
            if event.resolved:
                return event
            return NOWHERE if begin > 0 else _at_once(path, value, condition, rates)
        before = time
    reason = AT_REST if at_rest else f"not reached by time {path.nodes[-1]:.6g}"
    return EventTime(None, reason)


def _looks(
    path: FlowPath, begin: float, rule: Crossing, functions: tuple[Column, Column]
) -> Iterator[tuple[float, float, bool]]:
    """Points of the path from begin on: time, value, and whether the rule holds there."""
    value, condition = functions
    rates = _uses_rates(path, rule)
    for times, rows in path.looks(_scan(path, begin, () if rates else INTERIOR), rates):
        yield from zip(
            times.tolist(), value(rows).tolist(), (condition(rows) > 0).tolist(), strict=True
        )


def _at_once(path: FlowPath, value: Column, condition: Column, rates: bool) -> EventTime:
    """An event that errors do not tell from the start: at 0 if the rule soon holds beyond them.

    Soon: within the first steps, which amplify no error. Later a rule may hold by errors alone, as
    near a saddle that the exact path does not leave. Where the start, which has no error, lies on
    the boundary itself, 0 is exact.
    """
    begins = value(path.order(0.0, rates))[0] == 0.0
    times = _scan(path, 0.0)[1:]
    for time in times[times <= path.nodes[: FEW + 1][-1]]:
        row = path.order(time, rates)
        if abs(value(row)[0]) > _path_noise(path, value, time, _walk(path, time)):
            holds = condition(row)[0] > 0
            return EventTime(0.0, "", 0.0 if begins else time) if holds else NOWHERE
    return NOWHERE


def _path_noise(path: FlowPath, value: Column, time: float, steps: float = ACCUMULATED) -> float:
    """What so many times the error of one step may change in a value; the start has none."""
    if time == 0.0:
        return 0.0
    state = path.at(time)
    return _noise(path.problem, value, state, steps * path.error(state))


def _walk(path: FlowPath, time: float) -> float:
    """Error of a state over that of one step, with the number of steps up to a time."""
    return WALK * float(np.sqrt(np.searchsorted(path.nodes, time)))


def _noise(problem: Problem, value: Column, state: FloatArray, error: FloatArray) -> float:
    """What an error of the state may change in a value: the sum over the entries.

    Of many entries, whose sum costs a gradient each, the largest over a few moves of all of them.
    """
    if state.size <= SMALL:
        moves = np.diag(error)
    else:
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(FEW, state.size))
        moves = error * signs
    values = value(order_rows(problem, state + np.array([0.0 * error, *moves]), rates=True))
    changes = np.abs(values[1:] - values[0])
    return float(changes.sum() if state.size <= SMALL else changes.max())


def _width(path: FlowPath, value: Column, root: float, rates: bool = False) -> float:
    """What the error of the integrated state may change in a time that is a root on the path."""
    low, high = (1 - NARROW) * root, min((1 + NARROW) * root, float(path.nodes[-1]))
    change = [float(value(path.order(t, rates))[0]) for t in (low, high)]
    slope = (change[1] - change[0]) / max(high - low, 1e-300)
    return _over(_path_noise(path, value, root, _walk(path, root)), slope)


def _over(error: float, slope: float) -> float:
    """The change of a root whose value has an error; infinite where the value does not rise."""
    return error / slope if slope > 0 else np.inf if error else 0.0


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """The time at which a function becomes positive, between one where it is not and one more."""
    from scipy.optimize import brentq

    if low == high or function(low) > 0:
        return low
    return float(brentq(function, low, high, xtol=1e-15 * max(high, 1e-300), rtol=1e-14))


def _polish(path: FlowPath, value: Column, guess: float) -> EventTime:
    """The root on a stretch that ends at it, integrated again at a smaller tolerance.

    A rate that has decayed to the error of the gradient leaves its event uncertain: by the change
    that this error and that of the state make in the value, over the slope of the value.
    """
    problem, compiled = path.problem, isinstance(path.at, Polynomials)
    near = path.at(guess)
    relaxation = 1.0 / max(problem.curvature(near), 1e-300)
    size = np.abs(near)
    # Below this an entry may be rounding, which an integrator that has to resolve it stalls on.
    tight = TIGHTER if compiled else TIGHT
    least = tight * np.maximum(size, NEGLIGIBLE * size.max(initial=1e-12))
    if compiled:
        change = np.abs(problem.gradient(near)) * min(relaxation, guess)
        least = np.maximum(OF_CHANGE * change, least)
    begin = max(0.0, guess - _relaxations(path, near, least) * relaxation)
    if compiled or begin > 0.5 * guess:
        begin = float(path.nodes[np.searchsorted(path.nodes, begin, side="right") - 1])
    else:
        begin = 0.0
    ends = [guess + 0.2 * (guess - begin)]
    if compiled:
        # The errors of the path may bring an event forward: the rule may hold only later.
        ends = [max(ends[0], guess + ahead * relaxation) for ahead in (MARGIN, RELAXATIONS)]
    for end in ends:
        part = stretch(path, (begin, end), (tight, least))
        if part is None:
            return EventTime(guess, "", _width(path, value, guess, rates=True))
        part = replace(part, derivatives=_smoother(part, guess, relaxation))
        if (event := _root_of(part, value, guess, relaxation)) is not None:
            time, whole, own = event
            carried = _walk(path, begin) * path.rtol * time  # by the state at the beginning
            return EventTime(time, "", whole + carried, own + carried)
    # By the errors of the path alone, where the stretch was made in the same way.
    return EventTime(guess, "", np.inf if compiled else _width(path, value, guess, rates=True))


def _root_of(
    part: FlowPath, value: Column, guess: float, relaxation: float
) -> tuple[float, float, float] | None:
    """The root of a value nearest to a guess, on a stretch; its uncertainty, and that of the path.

    None where the value does not rise through 0.
    """
    problem, times = part.problem, part.nodes

    def at(time: float) -> float:
        return float(value(part.order(time, rates=True))[0])

    # Outward from the guess, to the nearest step in which the sign changes from below.
    middle = int(np.searchsorted(times, guess))
    for k in sorted(range(1, len(times)), key=lambda k: abs(k - middle)):
        if not at(times[k - 1]) < 0 <= at(times[k]):
            continue
        root = _root(at, times[k - 1], times[k])
        width = min(0.5 * relaxation, root - times[0], times[-1] - root)
        slope = (at(root + width) - at(root - width)) / (2.0 * width) if width > 0 else np.inf
        if isinstance(part.at, Polynomials) and not part.derivatives and slope > 0:
            # Between the ends of a step states err more than at its end: one that ends here.
            floor = part.error(np.zeros_like(part.at(root)))
            last = stretch(part, (float(times[k - 1]), root), (part.rtol, floor))
            row = None if last is None else order_rows(problem, last.at(root)[None, :], rates=True)
            root -= 0.0 if row is None else float(value(row)[0]) / slope
        error = WALK * _rate_noise(part, value, root)
        shift = _shift(problem, value, part.at(root))
        return root, _over(error + shift, slope), _over(error, slope)
    return None


def _smoother(path: FlowPath, time: float, relaxation: float) -> bool:
    """Whether derivatives of a path err less at a time than gradients at its states.

    A gradient magnifies the error of the state by one over the relaxation time, a derivative of a
    polynomial by `DERIVATIVE` over the width of its step.
    """
    if not isinstance(path.at, Polynomials) or path.problem.reads_pass:
        return False
    return path.at.width(time) > DERIVATIVE * relaxation


def _rate_noise(path: FlowPath, value: Column, time: float) -> float:
    """What the error of one step may change in a value that depends on rates."""
    state = path.at(time)
    error = path.error(state)
    if not path.derivatives:
        return _noise(path.problem, value, state, error)
    assert isinstance(path.at, Polynomials)
    slope, of_rate = -path.at.rate(time), DERIVATIVE * error / path.at.width(time)
    return _slope_noise(path.problem, value, (state, slope), of_rate)


def _relaxations(path: FlowPath, state: FloatArray, allowed: FloatArray) -> float:
    """Relaxation times in which the error of the path decays below what is allowed, and more."""
    if not isinstance(path.at, Polynomials):
        return RELAXATIONS
    decay = np.log(max(1.0, float((path.error(state) / allowed).max())))
    return min(RELAXATIONS, decay + MARGIN)


def _shift(problem: Problem, value: Column, state: FloatArray) -> float:
    """What the known error of the gradient may change in a value."""
    gradient_bound = getattr(problem, "gradient_bound", None)
    if gradient_bound is None or (bound := gradient_bound(state)) is None:
        return 0.0
    return _slope_noise(problem, value, (state, problem.gradient(state)), bound)


def _slope_noise(
    problem: Problem, value: Column, at: tuple[FloatArray, FloatArray], error: FloatArray
) -> float:
    """What an error of the gradient may change in a value at a state and a gradient."""
    state, slope = at
    moves = [0.0 * error, *np.diag(error)]
    rows = np.array([problem.order_parameters(state, slope + move) for move in moves])
    values = value(rows)
    return float(np.abs(values[1:] - values[0]).sum())


def _exceeds(path: FlowPath, rule: ExceedsRunMaximum, begin: float) -> EventTime:
    quantity, bound = _column(path, rule.quantity), _column(path, rule.bound)
    times = _scan(path, 0.0)
    rows = path.orders(times, rates=False)
    level = _maximum(path, bound, times, bound(rows))
    later = np.flatnonzero((times >= begin) & (quantity(rows) > level))
    if not later.size:
        return EventTime(None, f"never above {level:.6g} in a run to time {times[-1]:.6g}")
    first = int(later[0])
    low = max(begin, times[first - 1]) if first else begin
    above: Column = lambda rows: _signed(quantity(rows) - level)  # noqa: E731
    root = _root(lambda t: float(above(path.order(t, rates=False))[0]), low, times[first])
    return EventTime(root, "", _width(path, above, root))


def _maximum(path: FlowPath, bound: Column, times: FloatArray, values: FloatArray) -> float:
    """Maximum over the run, refined between the points beside the largest."""
    k = int(np.argmax(values))
    low, high = times[max(0, k - 1)], times[min(k + 1, times.size - 1)]
    if k in (0, times.size - 1) or low == high:
        return float(values[k])

    def at(time: float) -> float:
        return float(bound(path.order(time, rates=False))[0])

    return max(float(values[k]), at(_least(lambda t: -at(t), low, high)))


def _rise(path: FlowPath, rule: RisesAgain, begin: float) -> EventTime:
    """The minimum before a lasting rise: the root of the quantity's own rate, where that is one."""
    from sympy import Symbol

    quantity = _column(path, rule.quantity)
    times = _scan(path, begin)
    values = quantity(path.orders(times, rates=False))
    rise = Rise(rule.relative)
    rise.feed(0, values, (0, path.at(begin)))
    if not rise.lasts:
        return EventTime(None, rise.reason(rule.after))
    k = rise.least_step
    low, high = float(times[k - 1]), float(times[min(k + 1, times.size - 1)])

    def at(time: float) -> float:
        return float(quantity(path.order(time, rates=False))[0])

    lowest, rate = _least(at, low, high), f"d_{rule.quantity}"
    if rate in path.problem.rates:
        return _polish(path, columns(Symbol(rate), path.problem.order_names, None), lowest)
    # A parabola through the three points rises by the error of the quantity within this time.
    height, squares = (
        at(low) + at(high) - 2 * at(lowest),
        (lowest - low) ** 2 + (high - lowest) ** 2,
    )
    rounding = np.sqrt(np.finfo(np.float64).eps) * lowest
    noise = _path_noise(path, quantity, lowest, _walk(path, lowest))
    error = _over(noise, height / squares)
    return EventTime(lowest, "", float(np.sqrt(error) + rounding))


def _least(function: Callable[[float], float], low: float, high: float) -> float:
    from scipy.optimize import minimize_scalar

    options = {"xatol": 1e-9 * high}
    found = minimize_scalar(function, bounds=(low, high), method="bounded", options=options)
    return float(found.x)
