"""Finding the events of a run of gradient descent, at every step and in one pass.

A `Detector` is fed the order parameters of consecutive steps, chunk by chunk; what it detects
does not depend on where the chunks are cut, nor on what is recorded. The events of a flow are
located by the same rules, in `dynamics.training.flow_events`.
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
Replay = Callable[[FloatArray, int, int], FloatArray]
Chunks = Iterable[tuple[int, FloatArray, FloatArray]]
"""First step, order parameters of consecutive steps, and the state at the first, as of `feed`."""
MAX_STRETCHES = 64
STILL_OPEN = "not decidable to this time"
"""What is said of a rise that the horizon cuts off."""
TOO_LATE = "not decided: {} is known only at the end, and the steps were not run once more"
AT_REST = "comes to rest: from some time on the sign of the rate is rounding, and decides nothing"


@dataclass
class Detection:
    """First step that satisfies a rule, or why there is none.

    ``origin`` is a step at or before it, with its state, from which the step can be run again.
    """

    step: int | None = None
    reason: str = ""
    origin: tuple[int, FloatArray] | None = None


@dataclass
class Stretch:
    """Consecutive steps, and enough of them to find a step again by running them once more.

    Attributes
    ----------
    first : int
    state : float array, shape (n,)
        At the first step.
    top : float
        Largest value of a quantity.
    values : float array or None
        That quantity at every step, where it is still known: nothing is run again then.
    """

    first: int
    state: FloatArray
    top: float
    values: FloatArray | None = None


@dataclass
class Rise:
    """A quantity that falls and may rise again; see `theory.events.RisesAgain`.

    Attributes
    ----------
    relative : float
        Part of the first value by which it must be exceeded.
    first, last : float
        First and last value.
    least, least_step, origin
        Least value up to the first one above the level, its step, and a step at or before it with
        its state.
    beyond : bool
        Whether the level was exceeded after a fall.
    largest : float
        Largest rise above the least value so far, in parts of it.
    falling : bool
        Whether the last step fell.
    """

    relative: float
    first: float = np.nan
    last: float = np.nan
    least: float = np.inf
    least_step: int = -1
    origin: tuple[int, FloatArray] | None = None
    beyond: bool = False
    largest: float = 0.0
    falling: bool = False

    def feed(self, step: int, values: FloatArray, origin: tuple[int, FloatArray]) -> None:
        """Values of the steps ``step``, ``step`` + 1, ...; ``origin`` is as in `Detection`."""
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
        """Whether it rose far enough after a fall, and is above the first value at the end."""
        return self.beyond and self.last > self.first

    def reason(self, begin: str | None) -> str:
        """Why it does not rise again, from the event ``begin`` on, or from the start."""
        since = begin or "the start"
        share = f"{self.last / self.first:.3g} of its value at {since}" if self.first else "0"
        if self.beyond:
            return f"rises, and falls again, to {share}"
        if not self.least < self.first:
            return f"does not fall below its value at {since}"
        if self.last > self.least and not self.falling:
            return f"rises at the horizon, to {share}: {STILL_OPEN}"
        blip = f" after a rise by {self.largest:.2g} of its least value" if self.largest else ""
        return f"falls to the horizon{blip}"


@dataclass
class Detector:
    """Looks for every event of a problem.

    Parameters
    ----------
    rules : tuple of EventRule
        In an order in which ``after`` refers to earlier ones.
    names : tuple of str
        Order parameters, the columns of what is fed.
    parameters : object
        Supplies the values of other symbols (D).
    step_time : float
        Time of one step, eta.
    """

    rules: tuple[EventRule, ...]
    names: tuple[str, ...]
    parameters: Any
    step_time: float
    detections: dict[str, Detection] = field(init=False)

    def __post_init__(self) -> None:
        self.detections = {rule.name: Detection() for rule in self.rules}
        self._bounds: dict[str, float] = {}
        self._stretches: dict[str, list[Stretch]] = {}
        self._rises: dict[str, Rise] = {}
        self._rates: dict[str, tuple[float, float]] = {}
        self._columns: dict[tuple[str, str], Column] = {}

    def feed(self, first: int, rows: FloatArray, state: FloatArray) -> None:
        """Order parameters at steps first, first + 1, ...

        Parameters
        ----------
        first : int
            Step of the first row.
        rows : float array, shape (steps, order parameters)
        state : float array, shape (n,)
            State at step ``first``; the steps can be run again from it.
        """
        for rule in self.rules:
            detection = self.detections[rule.name]
            crossed = self._crossed(rule, rows) if isinstance(rule, Crossing) else None
            begin = first
            if rule.after is not None:
                earlier = self.detections[rule.after].step
                if earlier is None or earlier >= first + len(rows):
                    continue
                begin = max(first, earlier)
            part = rows[begin - first :]
            if crossed is not None and detection.step is None:
                hits = np.flatnonzero(crossed[begin - first :])
                detection.step = begin + int(hits[0]) if hits.size else None
            elif isinstance(rule, RisesAgain):
                rise = self._rises.setdefault(rule.name, Rise(rule.relative))
                rise.feed(begin, self.column(rule, "quantity")(part), (first, state))
            elif isinstance(rule, ExceedsRunMaximum):
                values = np.full(len(rows), -np.inf)
                values[begin - first :] = self.column(rule, "quantity")(part)
                stretches = self._stretches.setdefault(rule.name, [])
                stretches.append(Stretch(first, state, float(values.max(initial=-np.inf)), values))
                if len(stretches) > MAX_STRETCHES:
                    pairs = zip(stretches[::2], [*stretches[1::2], None], strict=False)
                    stretches[:] = [
                        Stretch(a.first, a.state, max(a.top, b.top if b else -np.inf))
                        for a, b in pairs
                    ]
            if detection.step is not None and detection.origin is None and detection.step >= first:
                detection.origin = (first, state)
        for rule in self.rules:
            if isinstance(rule, ExceedsRunMaximum):
                bound = self.column(rule, "bound")(rows).max(initial=-np.inf)
                before = self._bounds.get(rule.name, -np.inf)
                self._bounds[rule.name] = max(before, float(bound))

    def finish(
        self, last: int, fate: str, replay: Replay, again: Callable[[], Chunks] | None = None
    ) -> None:
        """Apply the rules that look at the whole run, and say why the others have no step.

        Parameters
        ----------
        last : int
            Last step that was fed.
        fate : str
            What else decides that nothing rises again: ``"oscillating"``; empty if nothing does.
        replay : callable
            (state, first, last) -> order parameters of the steps first..last, run once more.
        again : callable, optional
            The whole run once more, in chunks, for rules that are sought after one that looks at
            the whole run; without it, or where it ends early, these are not decided.
        """
        late: dict[str, str] = {}  # rule -> that of the whole run which it awaits, or is
        undecided: list[EventRule] = []
        for rule in self.rules:
            detection = self.detections[rule.name]
            if rule.after is not None and rule.after in late:
                since = late[rule.name] = late[rule.after]
                reached = self.detections[since].step is not None
                unreached = f"{rule.after} is not reached"
                detection.reason = TOO_LATE.format(since) if reached else unreached
                undecided += [rule] if reached else []
                continue
            if rule.whole_run:
                late[rule.name] = rule.name
            if isinstance(rule, ExceedsRunMaximum):
                self._find_exceeding(rule, detection, last, replay)
            rise = self._rises.get(rule.name)
            if rise is not None and rise.lasts and not fate:
                detection.step, detection.origin = rise.least_step, rise.origin
            if detection.step is None and not detection.reason:
                if rule.after is not None and self.detections[rule.after].step is None:
                    detection.reason = f"{rule.after} is not reached"
                elif isinstance(rule, RisesAgain):
                    detection.reason = fate or self._rises[rule.name].reason(rule.after)
                elif isinstance(rule, Crossing) and self._at_rest(rule):
                    detection.reason = AT_REST
                else:
                    detection.reason = f"not reached by time {last * self.step_time:.6g}"

        if undecided and again is not None:
            # By a detector that knows what they await from the first step on.
            later = Detector(tuple(undecided), self.names, self.parameters, self.step_time)
            later.detections = self.detections | later.detections
            fed = -1
            for first, rows, state in again():
                later.feed(first, rows, state)
                fed = first + len(rows) - 1
            if fed == last:
                later.finish(last, fate, replay, again)
                found = {rule.name: later.detections[rule.name] for rule in undecided}
                self.detections.update(found)

    def _find_exceeding(
        self, rule: ExceedsRunMaximum, detection: Detection, last: int, replay: Replay
    ) -> None:
        stretches, top = self._stretches.get(rule.name, []), self._bounds.get(rule.name, -np.inf)
        begin = self.detections[rule.after].step if rule.after else 0
        for k, stretch in enumerate(stretches):
            if stretch.top > top:
                values = stretch.values
                if values is None:
                    stop = stretches[k + 1].first - 1 if k + 1 < len(stretches) else last
                    rows = replay(stretch.state, stretch.first, stop)
                    values = self.column(rule, "quantity")(rows)
                    values[: max(0, (begin or 0) - stretch.first)] = -np.inf
                detection.step = stretch.first + int(np.argmax(values > top))
                detection.origin = (stretch.first, stretch.state)
                return
        if stretches:
            horizon = last * self.step_time
            detection.reason = f"never above {top:.6g} in a run to time {horizon:.6g}"

    def _crossed(self, rule: Crossing, rows: FloatArray) -> NDArray[np.bool_]:
        with np.errstate(all="ignore"):
            value = self.column(rule, "expression")(rows)
            above = value > 0 if rule.strict else value >= 0
            if rule.resolution and value.size:
                largest, last = self._rates.get(rule.name, (0.0, 0.0))
                sizes = np.fmax.accumulate(np.fmax(np.abs(value), largest))
                moving = _last_nonzero(value, last)
                # A rate of exactly 0 counts where it stopped at once, not where it has decayed.
                at_once = (value == 0) & (np.abs(moving) > rule.resolution * sizes)
                above &= at_once | (value > rule.resolution * sizes)
                self._rates[rule.name] = (float(sizes[-1]), float(moving[-1]))
            guard = self.column(rule, "guard")(rows)
            return above & (guard > 0 if rule.guard_strict else guard >= 0)

    def _at_rest(self, rule: Crossing) -> bool:
        largest, last = self._rates.get(rule.name, (0.0, 1.0))
        return abs(last) <= rule.resolution * largest

    def state(self) -> dict[str, Any]:
        """Everything detected so far, as plain values and arrays, for `restore`."""
        stretches = {
            name: [(s.first, s.state, s.top) for s in part]
            for name, part in self._stretches.items()
        }
        return {
            "detections": {name: astuple(detection) for name, detection in self.detections.items()},
            "bounds": self._bounds,
            "stretches": stretches,
            "rises": {name: dict(vars(rise)) for name, rise in self._rises.items()},
            "rates": self._rates,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a `state`."""
        for name, (step, reason, origin) in state["detections"].items():
            self.detections[name] = Detection(step, reason, origin and (origin[0], origin[1]))
        self._bounds = dict(state["bounds"])
        self._rises = {name: Rise(**fields) for name, fields in state["rises"].items()}
        self._stretches = {
            name: [Stretch(*s) for s in part] for name, part in state["stretches"].items()
        }
        self._rates = {name: tuple(rate) for name, rate in state["rates"].items()}

    def column(self, rule: EventRule, attribute: str) -> Column:
        """A rule's expression as a function of rows of order parameters."""
        key = (rule.name, attribute)
        if key not in self._columns:
            self._columns[key] = columns(getattr(rule, attribute), self.names, self.parameters)
        return self._columns[key]


def _last_nonzero(values: FloatArray, last: float) -> FloatArray:
    """The last value up to each that is not 0; ``last`` where there is none."""
    positions = np.where(values != 0, np.arange(1, values.size + 1), 0)
    return np.append(last, values)[np.maximum.accumulate(positions)]


def columns(expression: Any, names: tuple[str, ...], parameters: Any) -> Column:
    """Compile an expression of order parameters and parameters to act on rows.

    Parameters
    ----------
    expression : sympy.Expr
    names : tuple of str
        Order parameters, the columns of the rows.
    parameters : object
        Supplies the values of the other symbols as attributes.
    """
    function, letters = _compiled(expression, names)
    others = [float(getattr(parameters, letter)) for letter in letters]

    def evaluate(rows: FloatArray) -> FloatArray:
        values = np.asarray(function(*rows.T, *others), dtype=np.float64)
        return values if values.shape == (len(rows),) else np.full(len(rows), values)

    return evaluate


@lru_cache(maxsize=256)
def _compiled(expression: Any, names: tuple[str, ...]) -> tuple[Callable[..., Any], list[str]]:
    """A function of order parameters, then other symbols; and the names of these."""
    import sympy

    symbols = {s.name: s for s in expression.free_symbols}
    letters = sorted(symbols.keys() - set(names))
    arguments = [symbols.get(name, sympy.Dummy(name)) for name in (*names, *letters)]
    return sympy.lambdify(arguments, expression, "numpy"), letters
