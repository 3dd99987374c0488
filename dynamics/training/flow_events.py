"""Event times of a gradient flow: roots inside the integration steps of its path.

An event rule holds at the times at which all functions of the rule are positive. Each function of a
rule is evaluated at several points of every integration step and interpolated in between. Steps in
which an interpolant nears 0 without a sign change are bisected until the function's sign is
certain.

The flow is integrated at two tolerances, and events are located on the path with the smaller
tolerance. The error of the located path is its distance from the other path or, if larger, the
tolerance of a few steps. An event rule counts as satisfied only if every function of the rule
exceeds the function's own error. An event time is uncertain by half the interval in which a
function is below the function's error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from dynamics.problem import FloatArray
from dynamics.training.events import AT_REST, Column, Rise, columns
from dynamics.training.flow_path import FlowPath
from theory.events import Crossing, EventRule, ExceedsRunMaximum, RisesAgain

UNRESOLVED = "not decidable: the integration error of its time exceeds the time"
STEPS = 4.0
"""Assumed ratio of the error of a state to the error allowed in one step. If the flow was
integrated only once, the ratio of errors is multiplied by the square root of the number of
steps."""
LOOKS, MOST_LOOKS, IN_GAP = 7, 64, 8
"""A function of an event rule is evaluated at `LOOKS` points of a step, ends included. Bisections
of a step add about `MOST_LOOKS` evaluations at most. An interpolant is computed at `IN_GAP` points
between two evaluations."""
CLOSE, GRID, ROUNDS = 1e-12, 33, 12
"""A root is located with the relative accuracy `CLOSE`, by at most `ROUNDS` successively finer
grids of `GRID` points."""
ROUNDED = float(np.sqrt(np.finfo(np.float64).eps))
"""Relative error, due to rounding, of the time of a minimum."""
ROUNDING = 2.0**-40
"""Relative rounding error of the gradient at the start, where the path has no other error."""
TINY = float(np.finfo(np.float64).tiny)
"""A function value of exactly 0 is replaced by plus or minus this number, and so has a sign."""
NOTHING = np.empty(0)

NODES = -np.cos(np.pi * np.arange(LOOKS) / (LOOKS - 1))
BETWEEN = (NODES[:-1, None] + np.diff(NODES)[:, None] * (np.arange(IN_GAP) + 0.5) / IN_GAP).ravel()
COEFFICIENTS = np.linalg.inv(chebyshev.chebvander(NODES, LOOKS - 1))
ON_GRID = chebyshev.chebvander(BETWEEN, LOOKS - 1) @ COEFFICIENTS
POSITIONS, PLACES = 0.5 + 0.5 * NODES, (0.5 + 0.5 * BETWEEN).reshape(-1, IN_GAP)
"""Positions in a step, from 0 to 1: of the evaluation points, and of the points in each gap between
two evaluation points."""


@dataclass(frozen=True)
class EventTime:
    """Time of an event in a flow and its uncertainty, or the reason why it was not reached."""

    time: float | None
    reason: str = ""
    uncertainty: float = 0.0


def locate_events(
    path: FlowPath, other: FlowPath | None = None, records: FloatArray = NOTHING
) -> dict[str, EventTime]:
    """Locate all events of a path's problem; returns the `EventTime` of each rule by its name.

    The path `other` is the same flow at another tolerance, and may end before `path`. Rules are
    also evaluated at the times `records`.
    """
    searches = [_Search(path, None, records)]
    if other is not None:
        coarse, fine = sorted((path, other), key=lambda each: -each.of_step)
        fine = replace(fine, nodes=fine.nodes[fine.nodes <= coarse.nodes[-1]])
        beyond = searches if path.nodes[-1] > fine.nodes[-1] else []
        searches = [_Search(fine, coarse, records), *beyond]
    times: dict[str, EventTime] = {}
    for rule in path.problem.events:
        earlier = times[rule.after] if rule.after else EventTime(0.0)
        if earlier.time is None:
            times[rule.name] = EventTime(None, f"{rule.after} is not reached")
            continue
        begin, width = earlier.time, earlier.uncertainty
        # A rule on the whole run needs the path that reaches the horizon.
        for search in searches[-1:] if rule.whole_run else searches:
            if begin <= search.end:
                times[rule.name] = search.locate(rule, begin, width)
                if times[rule.name].time is not None:
                    break
                begin, width = search.end, 0.0
        if rule.after and times[rule.name].time == earlier.time:
            times[rule.name] = earlier
    return times


class _Function(NamedTuple):
    """A function of the order parameters; a rule holds where all its functions are positive."""

    value: Column
    counts: bool = False
    """Whether a value of exactly 0 counts as positive."""
    error: float = 0.0
    """Part of the function's error that is not due to the error of the path."""

    def signed(self, rows: FloatArray) -> FloatArray:
        """Values of the function, never 0, and positive where the condition holds."""
        values = self.value(rows)
        return np.where(values == 0, TINY if self.counts else -TINY, values)


class _Search:
    """Search for events on `path`; the distance between `path` and `other` estimates the error."""

    def __init__(self, path: FlowPath, other: FlowPath | None, records: FloatArray) -> None:
        self.path, self.other, self.end = path, other, float(path.nodes[-1])
        self.records = records[records <= self.end]
        self.times = path.inside(np.arange(path.nodes.size - 1), POSITIONS)
        self.times[:, 0], self.times[:, -1] = path.nodes[:-1], path.nodes[1:]
        rows = path.order_rows(np.append(self.times[:, :-1].ravel(), self.end))
        ends = rows[LOOKS - 1 :: LOOKS - 1, None]
        self.rows = np.append(rows[:-1].reshape(*self.times[:, :-1].shape, -1), ends, axis=1)
        # A dict instead of `functools.cache`, which would keep the path alive in a cycle.
        self._changes: dict[float, FloatArray] = {}

    def locate(self, rule: EventRule, begin: float, width: float) -> EventTime:
        """Event of a rule after the time `begin`, which has the uncertainty `width`."""
        with np.errstate(all="ignore"):
            if isinstance(rule, ExceedsRunMaximum):
                return self._exceeds(rule, begin, width)
            if isinstance(rule, RisesAgain):
                return self._rise(rule, begin)
            assert isinstance(rule, Crossing)
            functions = [_Function(self._column(rule.expression), not rule.strict)]
            if not (rule.guard.is_Number and rule.guard.is_positive):
                functions.append(_Function(self._column(rule.guard), not rule.guard_strict))
            return self._first(functions, begin, width, rule.resolution)

    def _column(self, expression: Any) -> Column:
        return columns(expression, self.path.problem.order_names, self.path.problem.parameters)

    def changes(self, time: float) -> FloatArray:
        """Changes of the order parameters at a time by errors of the path, one in each row."""
        if time not in self._changes:
            self._changes[time] = self._changes_at(time)
        return self._changes[time]

    def _changes_at(self, time: float) -> FloatArray:
        path, other, problem = self.path, self.other, self.path.problem
        step = max(int(path.nodes.searchsorted(time)) - 1, 0)
        # The start is exact, so the path's errors grow from 0 during the first step.
        times = self.times[step] * (time / path.nodes[1] if step == 0 else 1.0)
        rows, now = path.order_rows(times), np.array([time])
        state, slope = (each[0] for each in path.along(now))
        if other is not None:
            several, apart = STEPS, other.order_rows(times) - rows
        else:  # errors of all earlier steps may shift the path in time
            several = STEPS * float(np.sqrt(step + 1))
            apart = path.order_rows(times * max(0.0, 1.0 - several * path.of_step)) - rows
        error = several * path.error(state)
        of_slope = error / (times[-1] - times[0]) if time > 0.0 else ROUNDING * np.abs(slope)
        error = error if time > 0.0 else 0.0 * error
        known = getattr(problem, "gradient_error", lambda _: None)(state)
        of_slope = of_slope + (0.0 if known is None else known)
        # A row of `signs` has a sign for each entry's error; two entries differ in some row.
        digits = np.arange(state.size)[:, None] >> np.arange((state.size - 1).bit_length() + 1)
        signs = np.where(digits.T & 1, -1.0, 1.0)
        moved = [
            problem.order_parameters(state + sign * error, slope + sign * of_slope)
            for sign in (*signs, *-signs)
        ]
        return np.vstack([apart, -apart, np.array(moved) - path.order_rows(now)])

    def _error(self, function: _Function, rows: FloatArray, time: float) -> FloatArray:
        """Error of a function at each row of order parameters, by errors of the path at a time."""
        moved = rows[:, None, :] + self.changes(time)
        values = function.value(moved.reshape(-1, rows.shape[1])).reshape(len(rows), -1)
        return np.abs(values - function.value(rows)[:, None]).max(axis=1) + function.error

    def _looks(self, functions: list[_Function], begin: float) -> tuple[FloatArray, FloatArray]:
        """Evaluation times of `functions` from `begin` on, and order parameters at these times."""
        closer = [times for each in functions for times in self._closer(each, begin)]
        more = np.concatenate([np.array([begin]), self.records, *closer])
        times = np.append(self.times[:, 1:].ravel(), more)
        rows = self.rows[:, 1:].reshape(-1, self.rows.shape[2])
        rows = np.append(rows, self.path.order_rows(more), axis=0)
        once, order = np.unique(times, return_index=True)
        later = once >= begin
        return once[later], rows[order[later]]

    def _closer(self, function: _Function, begin: float) -> list[FloatArray]:
        """Additional evaluation times of a function in steps where its interpolant nears 0."""
        steps, count, names = self.rows.shape
        values = function.value(self.rows.reshape(-1, names)).reshape(steps, count)
        near = _near(values)[0].any(axis=1) & (self.path.nodes[1:] > begin)
        found: list[FloatArray] = []
        for step in np.flatnonzero(near):
            error = self._error(function, self.rows[step], self.times[step, -1])
            if (np.abs(values[step]) <= error).all():  # every value is below its error
                continue
            parts, done = [(0.0, 1.0)], 0
            while parts and done < MOST_LOOKS:
                low, width = parts.pop(0)
                times = self.path.inside(np.array([step]), low + width * POSITIONS)[0]
                inner = function.value(self.path.order_rows(times))
                gaps, places = (each[0] for each in _near(inner[None]))
                if not gaps.any():
                    continue
                at = self.path.inside(np.array([step]), low + width * places[gaps])[0]
                there = function.value(self.path.order_rows(at))
                found += [times, at]
                done += times.size + at.size
                if not ((there > 0) != (inner[:-1][gaps] > 0)).all():
                    parts += [(low, 0.5 * width), (low + 0.5 * width, 0.5 * width)]
        return found

    def _first(
        self, functions: list[_Function], begin: float, width: float, resolution: float = 0.0
    ) -> EventTime:
        """First time after `begin` with all functions positive; `begin` has the error `width`."""
        after = min(begin + max(width, 4.0 * CLOSE * begin), self.end)
        times, rows = self._looks(functions, after)
        holds = np.min([each.signed(rows) for each in functions], axis=0) > 0
        sizes = np.abs(functions[0].value(rows))
        least = resolution * np.fmax.accumulate(sizes)
        k = next(self._sure(functions, times, rows, holds, least), None)
        if k is None:
            undecided = max(least[-1], self._error(functions[0], rows[-1:], self.end)[0])
            if least[-1] > 0 and (holds.any() or sizes[-1] <= undecided):
                return EventTime(None, AT_REST)
            doubt = holds.any() or (self.other and self._held_by_record(functions, after))
            return EventTime(None, UNRESOLVED if doubt else f"not reached by time {self.end:.6g}")
        below = np.flatnonzero(~holds[:k])
        if not below.size:
            return EventTime(begin, "", width)
        low, high = (float(time) for time in times[below[-1] : below[-1] + 2])
        value = lambda t: np.min([f.signed(self.path.order_rows(t)) for f in functions], axis=0)  # noqa: E731
        before, time = rising(value, low, high)
        row = self.path.order_rows(np.array([before]))
        turning = [f for f in functions if f.signed(row)[0] <= self._error(f, row, before)[0]]
        error = max(self._half_width(each, time) for each in turning or functions)
        if low == 0.0 and error >= time:  # within the error, the event is at time 0
            exact = functions[0].value(self.path.order_rows(np.zeros(1)))[0] == 0.0
            return EventTime(0.0, "", 0.0 if exact else float(times[k]))
        return _resolved(EventTime(time, "", error))

    def _held_by_record(self, functions: list[_Function], after: float) -> bool:
        """Whether all functions are positive at some record of the path `other` from `after` on."""
        assert self.other is not None
        rows = self.other.order_rows(self.records[self.records >= after])
        return bool((np.min([each.signed(rows) for each in functions], axis=0) > 0).any())

    def _sure(
        self, functions: list[_Function], times: FloatArray, rows: FloatArray,
        holds: NDArray[np.bool_], least: FloatArray,
    ) -> Any:  # fmt: skip
        """Yield indices of `times` at which all functions are positive and exceed their errors."""
        held = np.flatnonzero(holds)
        ends = np.maximum(self.path.nodes.searchsorted(times[held]), 1)
        alone = (ends == 1) & (times[held] > 0)  # the error grows during the first step
        keys = np.where(alone, times[held], self.path.nodes[ends])
        keys[times[held] == 0] = 0.0
        for key in np.unique(keys):
            part = held[keys == key]
            sure = np.ones(part.size, dtype=bool)
            for number, each in enumerate(functions):
                size, error = np.abs(each.value(rows[part])), self._error(each, rows[part], key)
                sure &= size >= error
                if number == 0:
                    at_once = (size == 0) & (error == 0)
                    sure &= (least[part] == 0) | at_once | (size > least[part])
            yield from part[sure]

    def _half_width(self, function: _Function, time: float, flat: bool = False) -> float:
        """Distance from a root or minimum at `time` beyond which the function exceeds its error."""
        at = lambda times: function.value(self.path.order_rows(times))  # noqa: E731
        row = self.path.order_rows(np.array([time]))
        error, least = self._error(function, row, time)[0], function.value(row)[0] if flat else 0.0

        def beyond(far: FloatArray) -> FloatArray:
            left, right = at(np.maximum(time - far, 0.0)), at(np.minimum(time + far, self.end))
            rises = np.where(time + far > self.end, np.inf, right - least)
            return np.fmin(rises, left - least if flat else -left) - error

        far = CLOSE * time * np.exp2(np.arange(40, dtype=np.float64))
        far = np.append(far[far < time], time)
        # A distance counts only if the next one also exceeds the error: rounding may fake one.
        known = beyond(far) >= 0
        known[:-1] &= known[1:]
        if not known.any():
            return float("inf")
        k = int(np.argmax(known))
        return rising(beyond, far[k - 1], far[k], 1e-6)[1] if k else float(far[0])

    def _exceeds(self, rule: ExceedsRunMaximum, begin: float, width: float) -> EventTime:
        quantity, bound = self._column(rule.quantity), self._column(rule.bound)
        times, rows = self._looks([], 0.0)
        k = int(np.nanargmax(bound(rows)))
        top = lowest(lambda t: -bound(self.path.order_rows(t)), times, k)
        row = self.path.order_rows(np.array([top]))
        level = max(float(bound(rows)[k]), float(bound(row)[0]))
        error = float(self._error(_Function(bound), row, top)[0])
        above = _Function(partial(_above, quantity, level), False, error)
        found = self._first([above], begin, width)
        if found.time is None and found.reason != UNRESOLVED:
            return EventTime(None, f"never above {level:.6g} in a run to time {self.end:.6g}")
        return found

    def _rise(self, rule: RisesAgain, begin: float) -> EventTime:
        """Time of the minimum before a lasting rise; if rates are known, a root of the rate."""
        from sympy import Symbol

        quantity = self._column(rule.quantity)
        first = float(quantity(self.path.order_rows(np.array([begin])))[0])
        levels = [first, first + rule.relative * abs(first)]
        both = [_Function(partial(_above, quantity, level)) for level in levels]
        times, rows = self._looks(both, begin)
        rise = Rise(rule.relative)
        rise.feed(0, quantity(rows), (0, NOTHING))
        if not rise.lasts:
            return EventTime(None, rise.reason(rule.after))
        k = rise.least_step
        if (name := f"d_{rule.quantity}") in self.path.problem.rates:
            rate = _Function(self._column(Symbol(name, real=True)))
            low, high = float(times[k - 1]), float(times[min(k + 1, times.size - 1)])
            signs = rate.signed(self.path.order_rows(np.array([low, high])))
            if signs[0] < 0 < signs[1]:
                root = rising(lambda t: rate.signed(self.path.order_rows(t)), low, high)[1]
                return _resolved(EventTime(root, "", self._half_width(rate, root)))
        time = lowest(lambda t: quantity(self.path.order_rows(t)), times, k)
        error = self._half_width(_Function(quantity), time, flat=True)
        return _resolved(EventTime(time, "", error + ROUNDED * time))


def _near(values: FloatArray) -> tuple[NDArray[np.bool_], FloatArray]:
    """Mask of gaps in which the interpolant may cross 0 twice, and its place nearest 0 in each."""
    between = (values @ ON_GRID.T).reshape(len(values), LOOKS - 1, IN_GAP)
    tail = np.abs(values @ COEFFICIENTS[LOOKS // 2 + 1 :].T).sum(axis=1)
    holds = values > 0
    same = holds[:, 1:] == holds[:, :-1]
    turned = np.where(holds[:, :-1, None], -between, between)
    best = np.argmax(turned, axis=2)
    size = np.take_along_axis(turned, best[:, :, None], axis=2)[:, :, 0]
    return same & (size + tail[:, None] > 0), PLACES[np.arange(LOOKS - 1), best]


def rising(
    function: Callable[[FloatArray], FloatArray], low: float, high: float, part: float = CLOSE
) -> tuple[float, float]:
    """Bracket an argument at which a function becomes positive, by successively finer grids.

    The function maps arguments, shape (P,), to values. The value at `high` must be positive, and
    the value at `low` zero or negative. The bracket has the relative width `part`.
    """
    for _ in range(ROUNDS):
        if high - low <= part * high:
            break
        grid = np.linspace(low, high, GRID)
        k = int(np.argmax(np.append(function(grid[1:-1]) > 0, True)))
        low, high = float(grid[k]), float(grid[k + 1])
    return low, high


def lowest(function: Callable[[FloatArray], FloatArray], times: FloatArray, k: int) -> float:
    """Time near ``times[k]`` at which a function of times, shape (T,), has its minimum."""
    grid = times[[max(k - 1, 0), k, min(k + 1, times.size - 1)]]
    for _ in range(ROUNDS):
        grid = np.linspace(grid[0], grid[-1], GRID)
        k = int(np.argmin(function(grid)))
        grid = grid[max(k - 1, 0) : k + 2]
        if grid[-1] - grid[0] <= ROUNDED * grid[-1]:
            break
    return float(grid[len(grid) // 2])


def _above(quantity: Column, level: float, rows: FloatArray) -> FloatArray:
    return quantity(rows) - level


def _resolved(event: EventTime) -> EventTime:
    """Return the event, or an undecided event unless the uncertainty is smaller than the time."""
    known = event.time is None or event.uncertainty < event.time
    return event if known else EventTime(None, UNRESOLVED)
