"""Detection of the events of gradient descent, at every step and in one pass.

A `Detector` receives the order parameters of consecutive steps in chunks. The detected events
depend neither on the sizes of the chunks nor on the recorded steps. For gradient flows
`dynamics.training.flow_events` locates events by the same rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.problem import FloatArray
from theory.events import Crossing, EventRule, ExceedsRunMaximum, RisesAgain

Column = Callable[[FloatArray], FloatArray]
Chunks = Iterable[tuple[int, FloatArray, FloatArray]]
"""Chunks of a run: first step, order parameters at all steps and first state of each chunk."""
STILL_OPEN = "not decidable to this time"
"""Reason given for a missing `RisesAgain` event whose quantity still rises when the run ends."""
TOO_LATE = "not decided: {} is known only at the end, and the run was not repeated"
AT_REST = "not decidable: the state comes to rest, and the sign of its rate is then rounding"


@dataclass
class Detection:
    """First step at which a rule holds, or the reason why the rule holds at no step."""

    step: int | None = None
    reason: str = ""
    origin: tuple[int, FloatArray] | None = None
    """A step at or before the event, and the state from which the event's state is recomputed."""


@dataclass
class Rise:
    """Search for a rise of a quantity after its fall, for `theory.events.RisesAgain`."""

    relative: float
    """Fraction of the quantity's first value by which a rise must exceed the first value."""
    first: float = np.nan
    """Value of the quantity at the start of the search."""
    last: float = np.nan
    """Value of the quantity at the most recent step."""
    least: float = np.inf
    """Minimum of the quantity until the quantity exceeds the level that `relative` requires."""
    least_step: int = -1
    """Step at which the quantity had its minimum `least`."""
    origin: tuple[int, FloatArray] | None = None
    """A step before the quantity's minimum, and the state at that step."""
    beyond: bool = False
    """Whether the quantity fell and then exceeded the level that `relative` requires."""
    largest: float = 0.0
    """Largest rise of the quantity above its minimum so far, relative to the minimum."""
    falling: bool = False
    """Whether the quantity fell in the most recent step."""

    def feed(self, step: int, values: FloatArray, origin: tuple[int, FloatArray]) -> None:
        """Process the quantity's values from `step` on; `origin` is as in `Detection`."""
        if not values.size:
            return
        if np.isnan(self.first):
            self.first = self.last = float(values[0])
        with np.errstate(all="ignore"):
            self.falling = bool(np.append(self.last, values)[-2] > values[-1])
            self.last = float(values[-1])
            if self.beyond:
                return
            fallen = np.minimum.accumulate(np.append(self.least, values))[:-1] < self.first
            above = fallen & (values > self.first + self.relative * abs(self.first))
            self.beyond = bool(above.any())
            before = values[: int(np.argmax(above))] if self.beyond else values
            if before.size and before.min() < self.least:
                k = int(np.argmin(before))
                self.least, self.least_step, self.origin = float(before[k]), step + k, origin
                self.largest = 0.0
                before = before[k:]
            if before.size and self.least != 0:
                rise = float(before.max()) - self.least
                self.largest = max(self.largest, rise / abs(self.least))

    @property
    def lasts(self) -> bool:
        """Whether the quantity rose above the required level and ends above its first value."""
        return self.beyond and self.last > self.first

    def reason(self, begin: str | None) -> str:
        """Reason why the quantity does not rise again after the event `begin` or the start."""
        since = begin or "the start"
        share = f"{self.last / self.first:.3g} of its value at {since}" if self.first else "0"
        if self.beyond:
            return f"rises, and falls again, to {share}"
        if not self.least < self.first:
            return f"does not fall below its value at {since}"
        if self.last > self.least and not self.falling:
            return f"still rises when the run ends, to {share}: {STILL_OPEN}"
        blip = f" after a rise by {self.largest:.2g} of its least value" if self.largest else ""
        return f"still decreases when the run ends{blip}"


@dataclass
class Detector:
    """Detector of all events of a problem in the order parameters of consecutive steps."""

    rules: tuple[EventRule, ...]
    """Event rules; a rule comes before every rule that names it in ``after``."""
    names: tuple[str, ...]
    """Names of the order parameters, one for each column of the rows."""
    parameters: Any
    """Object whose attributes are the values of the constants in the rules, such as D."""
    step_time: float
    """Time of one step, the learning rate eta."""
    detections: dict[str, Detection] = field(init=False)

    def __post_init__(self) -> None:
        self.detections = {rule.name: Detection() for rule in self.rules}
        # The largest quantity and the largest bound so far, for each `ExceedsRunMaximum` rule.
        # In a repeated run, the bound's maximum over the whole run is known from the start.
        maxima = [rule.name for rule in self.rules if isinstance(rule, ExceedsRunMaximum)]
        self._tops = dict.fromkeys(maxima, (-np.inf, -np.inf))
        self._once_more = False
        self._rises: dict[str, Rise] = {}
        self._rates: dict[str, tuple[float, float]] = {}
        self._columns: dict[tuple[str, str], Column] = {}

    def feed(self, first: int, rows: FloatArray, state: FloatArray) -> None:
        """Process the order parameters `rows` of consecutive steps, from the step `first` on.

        The `state`, shape (n,), is the state at the step `first`.
        """
        for rule in self.rules:
            detection = self.detections[rule.name]
            holds = self._holds(rule, rows)
            begin = first
            if rule.after is not None:
                earlier = self.detections[rule.after].step
                if earlier is None or earlier >= first + len(rows):
                    continue
                begin = max(first, earlier)
            if isinstance(rule, RisesAgain):
                rise = self._rises.setdefault(rule.name, Rise(rule.relative))
                values = self.column(rule, "quantity")(rows[begin - first :])
                rise.feed(begin, values, (first, state))
            elif holds is None:
                values = self.column(rule, "quantity")(rows[begin - first :])
                top, level = self._tops[rule.name]
                self._tops[rule.name] = float(np.fmax.reduce(values, initial=top)), level
            elif detection.step is None and holds[begin - first :].any():
                detection.step = begin + int(np.argmax(holds[begin - first :]))
                detection.origin = (first, state)

    def finish(self, last: int, fate: str, again: Callable[[], Chunks] | None = None) -> bool:
        """Apply the rules that need the whole run, and give a reason for every event not reached.

        If the text `fate` (such as ``"oscillating"``) is not empty, no `RisesAgain` event is
        reached, and `fate` is the reason. The function `again` repeats the run in chunks, for rules
        that can be decided only after the end of the run. Returns False if a rule needs `again`,
        but `again` is missing or stops early.
        """
        horizon = f"time {last * self.step_time:.6g}"
        waiting: list[EventRule] = []
        late: set[str] = set()  # rules decided only at the end of the run
        for rule in self.rules:
            detection = self.detections[rule.name]
            if detection.step is not None:
                continue
            if rule.after in late:
                waiting.append(rule)
                late.add(rule.name)
            elif rule.after is not None and self.detections[rule.after].step is None:
                detection.reason = f"{rule.after} is not reached"
            elif isinstance(rule, RisesAgain):
                rise = self._rises[rule.name]
                if rise.lasts and not fate:
                    detection.step, detection.origin = rise.least_step, rise.origin
                    late.add(rule.name)
                else:
                    detection.reason = fate or rise.reason(rule.after)
            elif isinstance(rule, ExceedsRunMaximum):
                top, level = self._tops[rule.name]
                detection.reason = f"never above {level:.6g} in a run to {horizon}"
                if top > level:
                    waiting.append(rule)
                    late.add(rule.name)
            elif isinstance(rule, Crossing):
                rests = self._at_rest(rule)
                detection.reason = AT_REST if rests else f"not reached by {horizon}"
        return self._find(waiting, last, fate, again) if waiting else True

    def _find(
        self, rules: list[EventRule], last: int, fate: str, again: Callable[[], Chunks] | None
    ) -> bool:
        """Repeat the run to find the events of `rules`; return whether all rules are decided."""
        later = Detector(tuple(rules), self.names, self.parameters, self.step_time)
        later.detections = self.detections | later.detections
        later._tops = {name: (-np.inf, level) for name, (_, level) in self._tops.items()}
        later._once_more = True
        fed, decided = -1, True
        for first, rows, state in again() if again is not None else ():
            later.feed(first, rows, state)
            fed = first + len(rows) - 1
            if all(later.detections[rule.name].step is not None for rule in rules):
                break
        if fed == last:
            decided = later.finish(last, fate, again)
        for rule in rules:
            found = later.detections[rule.name]
            if found.step is None and not found.reason:
                found.reason, decided = TOO_LATE.format(rule.after or "the maximum"), False
            self.detections[rule.name] = found
        return decided

    def _holds(self, rule: EventRule, rows: FloatArray) -> NDArray[np.bool_] | None:
        """Mask of the rows that satisfy a rule, or None if only the run's end decides the rule."""
        if isinstance(rule, Crossing):
            return self._crossed(rule, rows)
        if isinstance(rule, ExceedsRunMaximum):
            top, level = self._tops[rule.name]
            if self._once_more:
                return self.column(rule, "quantity")(rows) > level
            bounds = self.column(rule, "bound")(rows)
            self._tops[rule.name] = top, float(np.fmax.reduce(bounds, initial=level))
        return None

    def _crossed(self, rule: Crossing, rows: FloatArray) -> NDArray[np.bool_]:
        with np.errstate(all="ignore"):
            value = self.column(rule, "expression")(rows)
            above = value > 0 if rule.strict else value >= 0
            if rule.resolution and value.size:
                largest, last = self._rates.get(rule.name, (0.0, 0.0))
                sizes = np.fmax.accumulate(np.fmax(np.abs(value), largest))
                moving = _last_nonzero(value, last)
                # At a rate of exactly 0 it holds only if the last nonzero rate exceeded rounding.
                at_once = (value == 0) & (np.abs(moving) > rule.resolution * sizes)
                above &= at_once | (value > rule.resolution * sizes)
                self._rates[rule.name] = (float(sizes[-1]), float(moving[-1]))
            guard = self.column(rule, "guard")(rows)
            return above & (guard > 0 if rule.guard_strict else guard >= 0)

    def _at_rest(self, rule: Crossing) -> bool:
        largest, last = self._rates.get(rule.name, (0.0, 1.0))
        return abs(last) <= rule.resolution * largest

    def state(self) -> dict[str, Any]:
        """Plain values and arrays of everything detected so far, for `restore`."""
        return {
            "detections": {name: astuple(detection) for name, detection in self.detections.items()},
            "tops": dict(self._tops),
            "rises": {name: dict(vars(rise)) for name, rise in self._rises.items()},
            "rates": dict(self._rates),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the detections from the values that `state` returned."""
        for name, (step, reason, origin) in state["detections"].items():
            self.detections[name] = Detection(step, reason, origin and (origin[0], origin[1]))
        self._tops = {name: tuple(top) for name, top in state["tops"].items()}
        self._rises = {name: Rise(**fields) for name, fields in state["rises"].items()}
        self._rates = {name: tuple(rate) for name, rate in state["rates"].items()}

    def column(self, rule: EventRule, attribute: str) -> Column:
        """Compile an expression of a rule to a function of rows of order parameters."""
        key = (rule.name, attribute)
        if key not in self._columns:
            self._columns[key] = columns(getattr(rule, attribute), self.names, self.parameters)
        return self._columns[key]


def _last_nonzero(values: FloatArray, last: float) -> FloatArray:
    """Last nonzero value up to each position, or ``last`` before the first nonzero value."""
    positions = np.where(values != 0, np.arange(1, values.size + 1), 0)
    return np.append(last, values)[np.maximum.accumulate(positions)]


def columns(expression: Any, names: tuple[str, ...], parameters: Any) -> Column:
    """Compile an expression to a function of rows whose columns are the order parameters `names`.

    The attributes of `parameters` are the values of the constants in the expression.
    """
    function, letters = _compiled(expression, names)
    others = [float(getattr(parameters, letter)) for letter in letters]

    def evaluate(rows: FloatArray) -> FloatArray:
        values = np.asarray(function(*rows.T, *others), dtype=np.float64)
        return values if values.shape == (len(rows),) else np.full(len(rows), values)

    return evaluate


@lru_cache(maxsize=256)
def _compiled(expression: Any, names: tuple[str, ...]) -> tuple[Callable[..., Any], list[str]]:
    """Compiled function of the order parameters `names` and of constants; the constants' names."""
    import sympy

    symbols = {s.name: s for s in expression.free_symbols}
    letters = sorted(symbols.keys() - set(names))
    arguments = [symbols.get(name, sympy.Dummy(name)) for name in (*names, *letters)]
    return sympy.lambdify(arguments, expression, "numpy"), letters
