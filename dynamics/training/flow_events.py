"""Locating the events of a gradient flow: roots inside the steps of its path.

Every step is looked at, at its ends and at points between, and each function of a rule is
interpolated through its values there. Where the interpolant comes near 0 between two looks of the
same sign, the function is looked at there too, and the step is halved until that is settled.

The flow has been integrated at two tolerances. Events are located on the finer path, and its error
is what the other differs from it, and what a few of its own steps may err. A rule holds where its
functions are beyond the changes that these errors make in them. The stated error of a time is the
half width of the interval around it in which the function is smaller than its error.
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

UNRESOLVED = "not decidable: the errors of the integration change its time by more than itself"
STEPS = 4.0
"""Errors of single steps that add up; times the root of their number where there is one path."""
LOOKS, MOST_LOOKS, IN_GAP = 7, 64, 8
"""Looks at a step, its ends included; looks at one for a function, about; and points between two
looks at which an interpolant is computed."""
CLOSE, GRID, ROUNDS = 1e-12, 33, 12
"""Part of a time within which its root is found, by so many points at once, so many times."""
ROUNDED = float(np.sqrt(np.finfo(np.float64).eps))
"""Part of its time by which rounding moves a minimum."""
ROUNDING = 2.0**-40
"""Part of a gradient that is rounding at the start, where the path has no other error."""
TINY = float(np.finfo(np.float64).tiny)
"""Stands for a value of 0, with a sign."""
NOTHING = np.empty(0)

NODES = -np.cos(np.pi * np.arange(LOOKS) / (LOOKS - 1))
BETWEEN = (NODES[:-1, None] + np.diff(NODES)[:, None] * (np.arange(IN_GAP) + 0.5) / IN_GAP).ravel()
COEFFICIENTS = np.linalg.inv(chebyshev.chebvander(NODES, LOOKS - 1))
ON_GRID = chebyshev.chebvander(BETWEEN, LOOKS - 1) @ COEFFICIENTS
POSITIONS, PLACES = 0.5 + 0.5 * NODES, (0.5 + 0.5 * BETWEEN).reshape(-1, IN_GAP)
"""Positions of the looks in a step, and of the points in each gap between them."""


@dataclass(frozen=True)
class EventTime:
    """Time of an event in a flow, or why there is none, and what errors may change in it."""

    time: float | None
    reason: str = ""
    uncertainty: float = 0.0


def locate_events(
    path: FlowPath, other: FlowPath | None = None, records: FloatArray = NOTHING
) -> dict[str, EventTime]:
    """Every event of the problem on a path: name of the rule -> `EventTime`.

    `other`: the same flow at another tolerance, perhaps not as far; `records`: times at which the
    path is looked at in any case.
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
        # A rule on the whole run is decided on a path to its end.
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
    """A function of rows, whether 0 counts as positive, and what is added to its error."""

    value: Column
    counts: bool = False
    error: float = 0.0

    def signed(self, rows: FloatArray) -> FloatArray:
        """Its values, positive where it holds, else negative; never 0."""
        values = self.value(rows)
        return np.where(values == 0, TINY if self.counts else -TINY, values)


class _Search:
    """The search for events on one path, whose error another one tells."""

    def __init__(self, path: FlowPath, other: FlowPath | None, records: FloatArray) -> None:
        self.path, self.other, self.end = path, other, float(path.nodes[-1])
        self.records = records[records <= self.end]
        self.times = path.inside(np.arange(path.nodes.size - 1), POSITIONS)
        self.times[:, 0], self.times[:, -1] = path.nodes[:-1], path.nodes[1:]
        rows = path.order_rows(np.append(self.times[:, :-1].ravel(), self.end))
        ends = rows[LOOKS - 1 :: LOOKS - 1, None]
        self.rows = np.append(rows[:-1].reshape(*self.times[:, :-1].shape, -1), ends, axis=1)
        # No `cache` of a method: a path would wait for the collector of cycles.
        self._changes: dict[float, FloatArray] = {}

    def locate(self, rule: EventRule, begin: float, width: float) -> EventTime:
        """The event of a rule from a time on that is known within a width."""
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
        """Changes of order parameters at a time by errors of the path, shape (changes, names)."""
        if time not in self._changes:
            self._changes[time] = self._changes_at(time)
        return self._changes[time]

    def _changes_at(self, time: float) -> FloatArray:
        path, other, problem = self.path, self.other, self.path.problem
        step = max(int(path.nodes.searchsorted(time)) - 1, 0)
        # The start is exact: in the first step errors grow from 0.
        times = self.times[step] * (time / path.nodes[1] if step == 0 else 1.0)
        rows, now = path.order_rows(times), np.array([time])
        state, slope = (each[0] for each in path.along(now))
        if other is not None:
            several, apart = STEPS, other.order_rows(times) - rows
        else:  # it may be late by the errors of all steps before
            several = STEPS * float(np.sqrt(step + 1))
            apart = path.order_rows(times * max(0.0, 1.0 - several * path.of_step)) - rows
        error = several * path.error(state)
        of_slope = error / (times[-1] - times[0]) if time > 0.0 else ROUNDING * np.abs(slope)
        error = error if time > 0.0 else 0.0 * error
        known = getattr(problem, "gradient_error", lambda _: None)(state)
        of_slope = of_slope + (0.0 if known is None else known)
        # Signs by the binary digits of the number of an entry: no two entries are alike in all.
        digits = np.arange(state.size)[:, None] >> np.arange((state.size - 1).bit_length() + 1)
        signs = np.where(digits.T & 1, -1.0, 1.0)
        moved = [
            problem.order_parameters(state + sign * error, slope + sign * of_slope)
            for sign in (*signs, *-signs)
        ]
        return np.vstack([apart, -apart, np.array(moved) - path.order_rows(now)])

    def _error(self, function: _Function, rows: FloatArray, time: float) -> FloatArray:
        """Error of a function at rows, from the errors of the path at a time."""
        moved = rows[:, None, :] + self.changes(time)
        values = function.value(moved.reshape(-1, rows.shape[1])).reshape(len(rows), -1)
        return np.abs(values - function.value(rows)[:, None]).max(axis=1) + function.error

    def _looks(self, functions: list[_Function], begin: float) -> tuple[FloatArray, FloatArray]:
        """Times from begin on at which functions are looked at, and order parameters there."""
        closer = [times for each in functions for times in self._closer(each, begin)]
        more = np.concatenate([np.array([begin]), self.records, *closer])
        times = np.append(self.times[:, 1:].ravel(), more)
        rows = self.rows[:, 1:].reshape(-1, self.rows.shape[2])
        rows = np.append(rows, self.path.order_rows(more), axis=0)
        once, order = np.unique(times, return_index=True)
        later = once >= begin
        return once[later], rows[order[later]]

    def _closer(self, function: _Function, begin: float) -> list[FloatArray]:
        """Times of more looks, in steps where an interpolant comes near 0."""
        steps, count, names = self.rows.shape
        values = function.value(self.rows.reshape(-1, names)).reshape(steps, count)
        near = _near(values)[0].any(axis=1) & (self.path.nodes[1:] > begin)
        found: list[FloatArray] = []
        for step in np.flatnonzero(near):
            error = self._error(function, self.rows[step], self.times[step, -1])
            if (np.abs(values[step]) <= error).all():  # what is all error has nothing to look at
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
        """The first time from begin on, which is known within a width, at which all hold."""
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
        if low == 0.0 and error >= time:  # it soon holds beyond its error
            exact = functions[0].value(self.path.order_rows(np.zeros(1)))[0] == 0.0
            return EventTime(0.0, "", 0.0 if exact else float(times[k]))
        return _resolved(EventTime(time, "", error))

    def _held_by_record(self, functions: list[_Function], after: float) -> bool:
        """Whether all hold at a record of the other path."""
        assert self.other is not None
        rows = self.other.order_rows(self.records[self.records >= after])
        return bool((np.min([each.signed(rows) for each in functions], axis=0) > 0).any())

    def _sure(
        self, functions: list[_Function], times: FloatArray, rows: FloatArray,
        holds: NDArray[np.bool_], least: FloatArray,
    ) -> Any:  # fmt: skip
        """The looks at which all hold, and are beyond their errors, one after the other."""
        held = np.flatnonzero(holds)
        ends = np.maximum(self.path.nodes.searchsorted(times[held]), 1)
        alone = (ends == 1) & (times[held] > 0)  # the error in the first step grows from 0
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
        """How far from its root, or its minimum, a function that rises from it exceeds its error.

        Infinite where it does not do so down to the start.
        """
        at = lambda times: function.value(self.path.order_rows(times))  # noqa: E731
        row = self.path.order_rows(np.array([time]))
        error, least = self._error(function, row, time)[0], function.value(row)[0] if flat else 0.0

        def beyond(far: FloatArray) -> FloatArray:
            left, right = at(np.maximum(time - far, 0.0)), at(np.minimum(time + far, self.end))
            rises = np.where(time + far > self.end, np.inf, right - least)
            return np.fmin(rises, left - least if flat else -left) - error

        far = CLOSE * time * np.exp2(np.arange(40, dtype=np.float64))
        far = np.append(far[far < time], time)
        # At two places: a value that rounds may be beyond its error by chance.
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
        """The minimum before a lasting rise: the root of the quantity's rate if it has one."""
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
    """Of values at the looks of parts, by gap: whether the interpolant may change its sign there.

    Only gaps between looks of the same sign count; and the place where that is nearest.
    """
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
    """Places next to each other between which a function becomes positive, on a finer grid each.

    `function`: places, shape (P,) -> values; not positive at ``low``, positive at ``high``; `part`:
    part of its place within which it is found.
    """
    for _ in range(ROUNDS):
        if high - low <= part * high:
            break
        grid = np.linspace(low, high, GRID)
        k = int(np.argmax(np.append(function(grid[1:-1]) > 0, True)))
        low, high = float(grid[k]), float(grid[k + 1])
    return low, high


def lowest(function: Callable[[FloatArray], FloatArray], times: FloatArray, k: int) -> float:
    """The time at which a function is least, next to the k-th of some times.

    `function`: times, shape (T,) -> values.
    """
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
    """An event, or none where errors do not tell its time from 0."""
    known = event.time is None or event.uncertainty < event.time
    return event if known else EventTime(None, UNRESOLVED)
