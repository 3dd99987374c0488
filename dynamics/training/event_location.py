"""Finding the events of a gradient flow: roots inside the integrator's steps, not on a grid.

The path is given as nodes (accepted steps) and a dense output between them. Rules that speak of
rates have their roots in `rate_events`; what errors of the path change in a time is in
`event_errors`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from dynamics.problem import FloatArray
from dynamics.training.event_detection import AT_REST, Column, Rise, columns
from dynamics.training.event_errors import (
    ROOT_STEP,
    EventTime,
    accumulated_walk,
    known_gradient_error,
    path_noise,
    path_noises,
    root_between,
    root_change,
    state_noise,
    time_width,
)
from dynamics.training.flow_path import FlowPath, Polynomials, order_rows
from dynamics.training.rate_events import rate_event
from theory.events import Crossing, EventRule, ExceedsRunMaximum, RisesAgain

UNRESOLVED = "not decidable: the errors of the integration change its time by more than itself"
INTERIOR = {True: 6, False: 2}
"""Points within a step at which a rule of states is looked at: of `Polynomials`, and of the short
steps of LSODA."""
OF_RATES = {True: 1, False: 0}
"""The same of a rule of rates, each of which costs a gradient."""
TINY = float(np.finfo(np.float64).tiny)
"""Stands for a value of 0, with a sign."""
SHORTLY = 1e-6
"""Part of the first step within which a value moves as its rate at the start says."""
SMALLEST = 1e-8
"""Part of the rates at the start below which a difference of theirs decides nothing."""
OF_ROOT = 4.0 * ROOT_STEP
"""Part of its time by which a root may be off, at least."""
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
        begin, width = 0.0, 0.0
        if rule.after is not None:
            earlier = times[rule.after]
            if earlier.time is None:
                times[rule.name] = EventTime(None, f"{rule.after} is not reached")
                continue
            begin, width = earlier.time, max(earlier.uncertainty, OF_ROOT * earlier.time)
        if isinstance(rule, Crossing):
            times[rule.name] = _crossing(path, rule, begin, width)
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


def _uses_rates(path: FlowPath, rule: EventRule) -> bool:
    """Whether one of the expressions of a rule has a rate, the guard included."""
    return _have(rule.expressions, tuple(path.problem.rates))


@lru_cache(maxsize=256)
def _have(expressions: tuple[Any, ...], names: tuple[str, ...]) -> bool:
    """Whether one of some names is a symbol of one of the expressions."""
    return any(symbol.name in names for each in expressions for symbol in each.free_symbols)


def _scan(path: FlowPath, begin: float, rates: bool = False) -> FloatArray:
    """Times at which a condition is looked at: the nodes and points between, from begin on."""
    points = 1 + (OF_RATES if rates else INTERIOR)[isinstance(path.at, Polynomials)]
    inside = np.arange(points) / points
    steps = np.diff(path.nodes)
    times = (path.nodes[:-1, None] + steps[:, None] * inside[None, :]).ravel()
    times = np.append(times, path.nodes[-1])
    return np.concatenate([[begin], times[times > begin]])


def _condition(path: FlowPath, rule: Crossing) -> Column:
    """A rule as one function of rows: positive where the rule holds, else negative; never 0.

    What is 0 counts for a value that need not be positive, and against one that must be. So a root
    is where the rule begins to hold, also where the guard decides, or the value rests at 0.
    """
    value, counts = _column(path, rule.expression), not rule.strict
    if rule.guard.is_Number and rule.guard.is_positive:
        return lambda rows: _signed(value(rows), counts)
    guard, also = _column(path, rule.guard), not rule.guard_strict
    return lambda rows: np.minimum(_signed(value(rows), counts), _signed(guard(rows), also))


def _signed(values: FloatArray, counts: bool = False) -> FloatArray:
    return np.where(values == 0, TINY if counts else -TINY, values)


def _crossing(path: FlowPath, rule: Crossing, begin: float, width: float) -> EventTime:
    """The first time from begin on, which is known within a width, at which a rule holds."""
    rates = _uses_rates(path, rule)
    value, condition = _column(path, rule.expression), _condition(path, rule)
    before, largest, at_rest, by_noise = begin, 0.0, False, False
    at_begin = False  # it holds at begin, but for all that errors tell
    direction = 0.0 if rates or begin > 0.0 else _direction(path, value, condition)
    if direction > 0.0:
        return EventTime(0.0)
    for time, now, holds, noise in _looks(path, begin, rule, (value, condition)):
        at_rest = False
        if rule.resolution:
            largest = max(largest, abs(now))
            # A rate of exactly 0 counts only where the error of the path cannot have made it so.
            at_rest = now != 0 and abs(now) <= rule.resolution * largest
            at_rest = at_rest or (noise > 0 and abs(now) <= noise)
            if at_rest or largest == 0:
                continue
        if at_begin:
            if time <= begin + width and time < path.nodes[-1]:
                continue
            if holds:
                return EventTime(begin)
            at_begin = False
        if holds and by_noise:
            continue
        by_noise = False
        if holds:
            if time == begin:
                if _beyond_errors(path, condition, begin, width, rates):
                    return EventTime(begin)
                at_begin = True
                continue
            root = root_between(lambda t: float(condition(path.order(t, rates))[0]), before, time)
            if rates:
                event = rate_event(path, condition, root)
            else:
                width = time_width(path, condition, root)
                # Where the guard is a mere yes or no, it hides what errors change in the value.
                event = EventTime(root, "", width or time_width(path, value, root))
            if event.resolved:
                return event
            if direction < 0.0:  # it falls at the start, so that it holds by noise here
                by_noise = True
                continue
            return NOWHERE if begin > 0 else _at_once(path, value, condition, rates)
        before = time
    if at_begin:  # and there the path ends
        return EventTime(begin)
    if by_noise:
        return NOWHERE
    reason = AT_REST if at_rest else f"not reached by time {path.nodes[-1]:.6g}"
    return EventTime(None, reason)


def _beyond_errors(
    path: FlowPath, condition: Column, begin: float, width: float, rates: bool
) -> bool:
    """Whether a rule that holds at begin does so beyond the errors of begin and of the path.

    The time of an earlier event is a root, where rounding decides whether what changes its sign
    there has done so. The start is exact.
    """
    if begin == 0.0:
        return True
    ends = max(0.0, begin - width), min(begin + width, float(path.nodes[-1]))
    if any(condition(path.order(time, rates))[0] < 0 for time in ends):
        return False
    noise = path_noise(path, condition, begin, accumulated_walk(path, begin))
    return bool(condition(path.order(begin, rates))[0] > noise)


def _direction(path: FlowPath, value: Column, condition: Column) -> float:
    """Whether a rule whose value is 0 at the start holds from there on, by the exact rate there.

    Parameters
    ----------
    path : FlowPath
    value, condition : callable
        Rows of order parameters -> value; a positive number where the rule holds.

    Returns
    -------
    float
        1 if it holds, -1 if the value falls; 0 where that is not decided, or the value is not 0.
    """
    if value(path.order(0.0, rates=False))[0] != 0.0:
        return 0.0
    problem, start = path.problem, path.at(0.0)
    slope, time = problem.gradient(start), SHORTLY * float(path.nodes[1])
    if not np.isfinite(slope).all():
        return 0.0
    moved = start - time * slope
    row = order_rows(problem, moved[None, :], rates=False)
    change = float(value(row)[0])
    bound = known_gradient_error(problem, start)
    error = SMALLEST * np.abs(slope) + (0.0 if bound is None else bound)
    if not abs(change) > state_noise(problem, value, moved, time * error):
        return 0.0
    if change < 0.0:
        return -1.0
    return 1.0 if condition(row)[0] > 0.0 else 0.0


def _looks(
    path: FlowPath, begin: float, rule: Crossing, functions: tuple[Column, Column]
) -> Iterator[tuple[float, float, bool, float]]:
    """Points of the path from begin on: time, value, whether the rule holds there, and the noise.

    The noise is what the error of the path may change in the value, where the rule asks for it.
    Where it does not, points at which the rule does not hold are left out if such a one follows.
    """
    value, condition = functions
    rates = _uses_rates(path, rule)
    for times, rows in path.order_blocks(_scan(path, begin, rates), rates):
        noise = path_noises(path, value, times) if rule.resolution else np.zeros(times.size)
        holds = condition(rows) > 0
        kept = holds | np.append(holds[1:], True) | bool(rule.resolution)
        shown = (each[kept].tolist() for each in (times, value(rows), holds, noise))
        yield from zip(*shown, strict=True)


def _at_once(path: FlowPath, value: Column, condition: Column, rates: bool) -> EventTime:
    """An event that errors do not tell from the start: at 0 if the rule soon holds beyond them.

    Soon: within the first step, which amplifies no error. Later a rule may hold by errors alone, as
    near a saddle that the exact path does not leave. Where the start, which has no error, lies on
    the boundary itself, 0 is exact.
    """
    begins = value(path.order(0.0, rates))[0] == 0.0
    times = _scan(path, 0.0)[1:]
    for time in times[times <= path.nodes[1]]:
        row = path.order(time, rates)
        if abs(value(row)[0]) > path_noise(path, value, time, accumulated_walk(path, time)):
            holds = condition(row)[0] > 0
            return EventTime(0.0, "", 0.0 if begins else time) if holds else NOWHERE
    return NOWHERE


def _exceeds(path: FlowPath, rule: ExceedsRunMaximum, begin: float) -> EventTime:
    quantity, bound = _column(path, rule.quantity), _column(path, rule.bound)
    times, rates = _scan(path, 0.0), _uses_rates(path, rule)
    rows = path.order_rows(times, rates)
    level = _maximum(path, bound, times, bound(rows), rates)
    later = np.flatnonzero((times >= begin) & (quantity(rows) > level))
    if not later.size:
        return EventTime(None, f"never above {level:.6g} in a run to time {times[-1]:.6g}")
    first = int(later[0])
    low = max(begin, times[first - 1]) if first else begin
    above: Column = lambda rows: _signed(quantity(rows) - level)  # noqa: E731
    root = root_between(lambda t: float(above(path.order(t, rates))[0]), low, times[first])
    return EventTime(root, "", time_width(path, above, root, rates))


def _maximum(
    path: FlowPath, bound: Column, times: FloatArray, values: FloatArray, rates: bool
) -> float:
    """Maximum over the run, refined between the points beside the largest."""
    k = int(np.argmax(values))
    low, high = times[max(0, k - 1)], times[min(k + 1, times.size - 1)]
    if k in (0, times.size - 1) or low == high:
        return float(values[k])

    def at(time: float) -> float:
        return float(bound(path.order(time, rates))[0])

    return max(float(values[k]), at(_least(lambda t: -at(t), low, high)))


def _rise(path: FlowPath, rule: RisesAgain, begin: float) -> EventTime:
    """The minimum before a lasting rise: the root of the quantity's own rate, where that is one."""
    from sympy import Symbol

    quantity, rates = _column(path, rule.quantity), _uses_rates(path, rule)
    times = _scan(path, begin)
    values = quantity(path.order_rows(times, rates))
    rise = Rise(rule.relative)
    rise.feed(0, values, (0, path.at(begin)))
    if not rise.lasts:
        return EventTime(None, rise.reason(rule.after))
    k = rise.least_step
    low, high = float(times[k - 1]), float(times[min(k + 1, times.size - 1)])

    def at(time: float) -> float:
        return float(quantity(path.order(time, rates))[0])

    lowest, rate = _least(at, low, high), f"d_{rule.quantity}"
    if rate in path.problem.rates:
        return rate_event(path, columns(Symbol(rate), path.problem.order_names, None), lowest)
    # A parabola through the three points rises by the error of the quantity within this time.
    height, squares = (
        at(low) + at(high) - 2 * at(lowest),
        (lowest - low) ** 2 + (high - lowest) ** 2,
    )
    rounding = np.sqrt(np.finfo(np.float64).eps) * lowest
    noise = path_noise(path, quantity, lowest, accumulated_walk(path, lowest))
    error = root_change(noise, height / squares)
    return EventTime(lowest, "", float(np.sqrt(error) + rounding))


def _least(function: Callable[[float], float], low: float, high: float) -> float:
    from scipy.optimize import minimize_scalar

    options = {"xatol": 1e-9 * high}
    found = minimize_scalar(function, bounds=(low, high), method="bounded", options=options)
    return float(found.x)
