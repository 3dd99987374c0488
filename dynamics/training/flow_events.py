"""Locating the events of a gradient flow: roots inside the steps of its path.

Every step is looked at, at its ends and at points between, and each function of a rule is
interpolated through these looks. Where the interpolant comes near 0 between two looks of the same
sign, it is looked at there too, and the step is halved until that was predicted. A rule holds where
its functions are beyond their errors; its time is the last change of sign before. The stated error
of that time is the half width of the interval around it in which the function is smaller than its
error.

The error of an order parameter is what the tolerance allows in a few steps, and a part of what the
path at another tolerance differs: errors are in proportion to tolerances. Rates are derivatives of
the polynomials of the path, where it has any, else gradients at its states.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynamics.problem import SMALL, FloatArray, IntArray, Problem
from dynamics.training.events import AT_REST, Column, Rise, columns
from dynamics.training.flow_path import FlowPath, Polynomials, order_rows
from dynamics.training.roots import (
    PREDICTED,
    ROOT_STEP,
    interpolation,
    least,
    root_between,
    suspicion,
)
from theory.events import Crossing, EventRule, ExceedsRunMaximum, RisesAgain

UNRESOLVED = "not decidable: the errors of the integration change its time by more than itself"
LOOKS, FEW_LOOKS, MOST_LOOKS = 7, 3, 64
"""First looks at a step, its ends included: of a path whose rates cost no gradients, and of others;
and looks for one function in all."""
WALK = 4.0
"""Error of a state over that of one step; times the root of the number of steps where there is no
other path."""
LATER = 1.2
"""Time of the next look that may be beyond its error, over that of one that is not, where errors
cost gradients."""
DERIVATIVE = 20.0
"""Error of the derivative of a polynomial by the width of its step, over what the step may err."""
PART = 10.0
"""Error of a path over what a looser one differs, by their tolerances."""
NARROW = 1e-5
"""Part of a time over which a slope is taken."""
ALMOST = 0.9
"""Part of its error beyond which a value ends an interval."""
FEW = 4
"""Moves of many entries for an estimate of their sum."""
SHORTLY, SMALLEST = 1e-6, 1e-8
"""Part of the first step within which a value moves as its rate at the start says, and part of that
rate that decides nothing."""
TINY = float(np.finfo(np.float64).tiny)
"""Stands for a value of 0, with a sign."""
ROUNDED = float(np.sqrt(np.finfo(np.float64).eps))
"""Part of its time by which rounding moves a minimum."""
NOTHING = np.empty(0)


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

    Parameters
    ----------
    path : FlowPath
    other : FlowPath, optional
        The same flow at another tolerance, perhaps not as far: the tighter one has the events, and
        the looser one tells its error.
    records : float array
        Times at which the path is looked at in any case.
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
    """The search for events on one path, whose error another one may tell."""

    def __init__(self, path: FlowPath, coarse: FlowPath | None, records: FloatArray) -> None:
        self.path, self.coarse, self.end = path, coarse, float(path.nodes[-1])
        self.records = records[records <= self.end]
        # No `cache` of methods: a path would wait for the collector of cycles.
        self._rows: dict[bool, tuple[FloatArray, FloatArray]] = {}
        self._errors: dict[tuple[float, bool], FloatArray] = {}

    def locate(self, rule: EventRule, begin: float, width: float) -> EventTime:
        """The event of a rule from a time on that is known within a width."""
        names = {symbol.name for each in rule.expressions for symbol in each.free_symbols}
        rates = not names.isdisjoint(self.path.problem.rates)
        with np.errstate(all="ignore"):
            if isinstance(rule, ExceedsRunMaximum):
                return self._exceeds(rule, rates, begin, width)
            if isinstance(rule, RisesAgain):
                return self._rise(rule, rates, begin)
            assert isinstance(rule, Crossing)
            functions = [_Function(self._column(rule.expression), not rule.strict)]
            if not (rule.guard.is_Number and rule.guard.is_positive):
                functions.append(_Function(self._column(rule.guard), not rule.guard_strict))
            return self._first(functions, rates, begin, width, rule.resolution)

    def _column(self, expression: Any) -> Column:
        return columns(expression, self.path.problem.order_names, self.path.problem.parameters)

    def _cheap(self, rates: bool) -> bool:
        """Whether looks cost no gradients."""
        return isinstance(self.path.at, Polynomials) or not rates

    def _row(self, time: float, rates: bool) -> FloatArray:
        return self.path.order_rows(np.array([time], dtype=np.float64), rates)

    def rows(self, rates: bool) -> tuple[FloatArray, FloatArray]:
        """Times of the first looks at every step, shape (steps, looks), and order parameters."""
        if rates in self._rows:
            return self._rows[rates]
        nodes, looks = self.path.nodes, LOOKS if self._cheap(rates) else FEW_LOOKS
        times = self.path.inside(np.arange(nodes.size - 1), interpolation(looks).looks)
        times[:, 0], times[:, -1] = nodes[:-1], nodes[1:]
        once = self.path.order_rows(np.append(times[:, :-1].ravel(), self.end), rates)
        rows = once[:-1].reshape(*times[:, :-1].shape, once.shape[1])
        ends = np.concatenate([rows[1:, 0], once[-1:]])
        self._rows[rates] = times, np.concatenate([rows, ends[:, None]], axis=1)
        return self._rows[rates]

    def _error(self, time: float, rates: bool) -> FloatArray:
        """Error of every order parameter at a time, from that of the path."""
        path, problem = self.path, self.path.problem
        step = max(int(path.nodes.searchsorted(time)) - 1, 0)
        state, derived = path.at(time), isinstance(path.at, Polynomials) and self.coarse is not None
        counted = WALK * (1.0 if self.coarse else float(np.sqrt(step + 1)))
        moved = state + _moves(counted * path.error(state))
        if rates and derived:  # which gradients at states with errors are not
            slope = problem.gradient(state)
            rows = np.array([problem.order_parameters(each, slope) for each in moved])
            error = DERIVATIVE * path.error(state) / (path.nodes[step + 1] - path.nodes[step])
            few = _rate_changes(problem, state, error)
        else:
            rows, few = order_rows(problem, moved, rates), np.zeros(1)
        few = few + _changes(rows, state.size)
        if rates and (known := _gradient_error(problem, state)) is not None:
            few = few + _rate_changes(problem, state, known)
        if self.coarse is None:
            return few
        times = self.rows(rates)[0][step] if self._cheap(rates) else np.array([time])
        apart = path.order_rows(times, rates) - self.coarse.order_rows(times, rates)
        part = min(1.0, PART * path.of_step / self.coarse.of_step)
        return few + part * np.abs(apart).max(axis=0)

    def _noise(self, function: _Function, rows: FloatArray, time: float, rates: bool) -> FloatArray:
        """Error of a function at rows, from the errors at a time; 0 at the start."""
        if time <= 0.0:
            return np.zeros(len(rows))
        if (key := (float(time), rates)) not in self._errors:
            self._errors[key] = self._error(*key)
        error = self._errors[key]
        moved = rows[:, None, :] + np.vstack([0.0 * error, np.diag(error)])
        values = function.value(moved.reshape(-1, error.size)).reshape(len(rows), -1)
        return np.abs(values[:, 1:] - values[:, :1]).sum(axis=1) + function.error

    def _looks(self, functions: list[_Function], rates: bool, begin: float) -> Any:
        """Times from begin on at which functions are looked at, and their order parameters."""
        times, rows = self.rows(rates)
        parts = [(times[:, 1:].ravel(), rows[:, 1:].reshape(-1, rows.shape[2]))]
        for more in (np.array([begin]), self.records if self._cheap(rates) else NOTHING):
            parts += [(more, self.path.order_rows(more, rates))] if more.size else []
        for function in functions:
            parts += self._closer(function, rates, begin)
        all_times, all_rows = (np.concatenate(each) for each in zip(*parts, strict=True))
        joined, order = np.unique(all_times, return_index=True)
        return joined[joined >= begin], all_rows[order[joined >= begin]]

    def _closer(
        self, function: _Function, rates: bool, begin: float
    ) -> list[tuple[FloatArray, FloatArray]]:
        """More looks, in steps where an interpolant comes near 0 or tells too little."""
        times, rows = self.rows(rates)
        each, done = 2 * times.shape[1] - 1, np.full(len(times), times.shape[1])
        steps = np.flatnonzero(self.path.nodes[1:] > begin)
        low, width = np.zeros(steps.size), np.ones(steps.size)
        flat = rows[steps].reshape(-1, rows.shape[2])
        values = function.value(flat).reshape(steps.size, times.shape[1])
        near, place, guess, rough = suspicion(values)
        for k in np.flatnonzero(near):  # what is all error has nothing to look at
            noise = self._noise(function, rows[steps[k]], times[steps[k], -1], rates)
            near[k] = (np.abs(values[k]) > noise).any()
        found = []
        while near.any():
            steps, low, width = steps[near], low[near], width[near]
            more = self.path.inside(steps, (low + width * place[near])[:, None]).ravel()
            found.append((more, self.path.order_rows(more, rates)))
            there = function.value(found[-1][1])
            halved = rough[near] | (np.abs(there - guess[near]) > PREDICTED * np.abs(there))
            steps, low, width = steps[halved], low[halved], width[halved]
            rank = np.arange(steps.size) - np.searchsorted(steps, steps)
            able = done[steps] + each * (rank + 1) <= MOST_LOOKS
            np.add.at(done, steps[able], each)
            steps, low, width = (np.repeat(x[able], 2) for x in (steps, low, 0.5 * width))
            if not steps.size:
                break
            low[1::2] += width[1::2]
            positions = low[:, None] + width[:, None] * interpolation(times.shape[1]).looks
            inner = self.path.inside(steps, positions).ravel()
            found.append((inner, self.path.order_rows(inner, rates)))
            near, place, guess, rough = suspicion(
                function.value(found[-1][1]).reshape(positions.shape)
            )
        return found

    def _first(
        self, functions: list[_Function], rates: bool, begin: float, width: float,
        resolution: float = 0.0,
    ) -> EventTime:  # fmt: skip
        """The first time from begin on, which is known within a width, at which all hold."""
        if begin == 0.0 and not rates and self._grows(functions):
            return EventTime(0.0)
        after = min(begin + max(width, 4.0 * ROOT_STEP * begin), self.end)
        times, rows = self._looks(functions, rates, after)
        holds = np.min([each.signed(rows) for each in functions], axis=0) > 0
        sizes = np.abs(functions[0].value(rows))
        least = resolution * np.fmax.accumulate(sizes)

        def sure(part: IntArray) -> NDArray[np.bool_]:
            """Whether functions are beyond their errors at looks at one step."""
            end = self.path.nodes[self.path.nodes.searchsorted(times[part[-1]])]
            noise = [self._noise(each, rows[part], end, rates) for each in functions]
            pairs = zip(functions, noise, strict=True)
            decided = np.all([np.abs(f.value(rows[part])) >= error for f, error in pairs], axis=0)
            if not resolution:
                return decided
            at_once = (sizes[part] == 0) & (noise[0] == 0) & (least[part] > 0)
            return decided & ((sizes[part] > least[part]) | at_once)

        held = np.flatnonzero(holds)
        ends = np.searchsorted(self.path.nodes, times[held])
        parts = np.split(held, np.flatnonzero(np.diff(ends)) + 1) if held.size else []
        k = self._first_sure(parts, times, sure)
        if k is None:
            last = np.array([times.size - 1])
            rests = resolution and least[-1] > 0 and (held.size or not sure(last)[0])
            doubt = held.size or (self.coarse and self._held_by_record(functions, rates, after))
            reason = f"not reached by time {self.end:.6g}"
            return EventTime(None, AT_REST if rests else UNRESOLVED if doubt else reason)
        below = np.flatnonzero(~holds[:k])
        if not below.size:
            return EventTime(begin, "", width)
        condition = lambda t: float(min(f.signed(self._row(t, rates))[0] for f in functions))  # noqa: E731
        low, high = root_between(condition, *times[below[-1] : below[-1] + 2].tolist())
        turning = [each for each in functions if each.signed(self._row(low, rates))[0] < 0]
        error = max(self._half_width(each, high, rates) for each in turning or functions)
        if self.coarse is None:  # errors of long before have moved the time as they moved states
            steps = float(np.sqrt(self.path.nodes.searchsorted(high)))
            error += WALK * steps * self.path.of_step * high
        if error < high:
            return EventTime(high, "", error)
        if begin == 0.0 and times[k] <= self.path.nodes[1]:
            # It soon holds beyond its error, in a step that amplifies none.
            exact = functions[0].value(self._row(0.0, rates))[0] == 0.0
            return EventTime(0.0, "", 0.0 if exact else float(times[k]))
        return EventTime(None, UNRESOLVED)

    def _first_sure(
        self, parts: list[IntArray], times: FloatArray, sure: Callable[[IntArray], Any]
    ) -> int | None:
        """The first look that is sure, of those at one step after the other."""
        waits = 0.0
        for part in parts:
            if times[part[-1]] < waits:
                continue
            if (known := sure(part)).any():
                return int(part[np.argmax(known)])
            if not isinstance(self.path.at, Polynomials):  # where errors cost gradients
                waits = LATER * times[part[-1]]
        return None

    def _held_by_record(self, functions: list[_Function], rates: bool, after: float) -> bool:
        """Whether all hold at a record of the looser path."""
        later = self.records[self.records >= after]
        if not later.size or not self._cheap(rates) or self.coarse is None:
            return False
        rows = self.coarse.order_rows(later, rates)
        return bool((np.min([each.signed(rows) for each in functions], axis=0) > 0).any())

    def _grows(self, functions: list[_Function]) -> bool:
        """Whether the first function is 0 at the start and grows, by the exact rate there."""
        function, path = functions[0], self.path
        if function.value(self._row(0.0, False))[0] != 0.0:
            return False
        start = path.states(np.zeros(1))[0]
        slope, time = path.problem.gradient(start), SHORTLY * float(path.nodes[1])
        error = SMALLEST * np.abs(slope)
        if (known := _gradient_error(path.problem, start)) is not None:
            error = error + known
        rows = order_rows(path.problem, start - time * slope + _moves(time * error), False)
        values = function.value(rows)
        change = _changes(values[:, None], start.size)[0]
        return values[0] > change and all(each.signed(rows[:1])[0] > 0 for each in functions)

    def _half_width(
        self, function: _Function, time: float, rates: bool, rises: bool = True
    ) -> float:
        """How far from a root a function that rises, or has its minimum there, exceeds its error.

        Infinite where it does not do so down to the start.
        """
        at = lambda t: float(function.value(self._row(t, rates))[0])  # noqa: E731
        noise = float(self._noise(function, self._row(time, rates), time, rates)[0])
        near = NARROW * time
        right, left = at(min(time + near, self.end)), at(time - near)
        growth = (right - left) / (2 * near) if rises else (right + left) / (2 * near**2)
        width = (noise / growth) ** (1.0 if rises else 0.5) if growth > 0 else 0.0
        width, sign = max(width, ROOT_STEP * time), -1.0 if rises else 1.0
        while width < time:
            # At a second place too: a value that rounds may be beyond its error by chance.
            if all(
                sign * at(max(time - far, 0.0)) >= ALMOST * noise
                and (time + far > self.end or at(time + far) >= ALMOST * noise)
                for far in (width, 1.5 * width)
            ):
                return width
            width *= 1.5
        return np.inf

    def _exceeds(
        self, rule: ExceedsRunMaximum, rates: bool, begin: float, width: float
    ) -> EventTime:
        quantity, bound = self._column(rule.quantity), self._column(rule.bound)
        times, rows = self._looks([], rates, 0.0)
        k = int(np.nanargmax(bound(rows)))
        top, level = float(times[k]), float(bound(rows)[k])
        if 0 < k < times.size - 1:
            value = lambda t: -float(bound(self._row(t, rates))[0])  # noqa: E731
            top = least(value, times[k - 1], times[k + 1])
            level = max(level, -value(top))
        error = float(self._noise(_Function(bound), self._row(top, rates), top, rates)[0])
        above = _Function(partial(_above, quantity, level), False, error)
        found = self._first([above], rates, begin, width)
        if found.time is None and found.reason != UNRESOLVED:
            return EventTime(None, f"never above {level:.6g} in a run to time {self.end:.6g}")
        return found

    def _rise(self, rule: RisesAgain, rates: bool, begin: float) -> EventTime:
        """The minimum before a lasting rise: the root of the quantity's own rate if it has one."""
        from sympy import Symbol

        quantity, name = self._column(rule.quantity), f"d_{rule.quantity}"
        first = float(quantity(self._row(begin, rates))[0])
        levels = [first, first + rule.relative * abs(first)]
        low_and_high = [_Function(partial(_above, quantity, level)) for level in levels]
        times, rows = self._looks(low_and_high, rates, begin)
        rise = Rise(rule.relative)
        rise.feed(0, quantity(rows), (0, NOTHING))
        if not rise.lasts:
            return EventTime(None, rise.reason(rule.after))
        k = rise.least_step
        low, high = float(times[k - 1]), float(times[min(k + 1, times.size - 1)])
        if name in self.path.problem.rates:
            rate = _Function(self._column(Symbol(name, real=True)))
            sign = lambda t: float(rate.signed(self._row(t, True))[0])  # noqa: E731
            if sign(low) < 0 < sign(high):
                _, root = root_between(sign, low, high)
                return _resolved(EventTime(root, "", self._half_width(rate, root, True)))
        lowest = least(lambda t: float(quantity(self._row(t, rates))[0]), low, high)
        depth = float(quantity(self._row(lowest, rates))[0])
        above = _Function(partial(_above, quantity, depth))
        error = self._half_width(above, lowest, rates, rises=False)
        return _resolved(EventTime(lowest, "", error + ROUNDED * lowest))


def _above(quantity: Column, level: float, rows: FloatArray) -> FloatArray:
    return quantity(rows) - level


def _resolved(event: EventTime) -> EventTime:
    """An event, or none where errors do not tell its time from 0."""
    known = event.time is None or event.uncertainty < event.time
    return event if known else EventTime(None, UNRESOLVED)


def _gradient_error(problem: Problem, state: FloatArray) -> FloatArray | None:
    """Estimated error of the gradient, shape (n,); None of a problem without an estimate."""
    known = getattr(problem, "gradient_error", None)
    return None if known is None else known(state)


def _moves(error: FloatArray) -> FloatArray:
    """None, and the moves by which an error is tried out; of many entries a few of all."""
    moves = np.diag(error)
    if error.size > SMALL:
        moves = error * np.random.default_rng(0).choice([-1.0, 1.0], size=(FEW, error.size))
    return np.vstack([0.0 * error, moves])


def _rate_changes(problem: Problem, state: FloatArray, error: FloatArray) -> FloatArray:
    """Errors of order parameters at a state, from an error of the rate."""
    slopes = problem.gradient(state) + _moves(error)
    rows = np.array([problem.order_parameters(state, slope) for slope in slopes])
    return _changes(rows, state.size)


def _changes(rows: FloatArray, size: int) -> FloatArray:
    """Changes of rows by `_moves` of a state of some size: the sum, or the largest of a few."""
    changes = np.abs(rows[1:] - rows[0])
    return changes.sum(axis=0) if size <= SMALL else changes.max(axis=0)
