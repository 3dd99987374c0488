r"""The loop of gradient descent, :math:`\theta \leftarrow \theta - \eta g(\theta)`.

The steps themselves are made by the compiled loop of `dynamics.loops.kernels.advance`, in chunks.
In a chunk every step is tracked for the events; between chunks `Run` keeps the records, looks for
the events of all steps since the last look and, where the state is small, compares the learning
rate with the stability limit. What is done around a run, from the request to its `Trajectory`, is
`dynamics.training.gradient_descent`.
"""

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynamics.problem import SMALL, FloatArray, Problem
from dynamics.training.events import Detector
from dynamics.training.oscillation import Oscillation
from dynamics.training.stability_limit import AT_LIMIT, limit_of_rates, rates_text

SECONDS_PER_CHUNK = 0.2
FIRST_CHUNK = 4
LARGEST_CHUNK = 1 << 12
BETWEEN_LOOKS = 1 << 8
"""Steps from which on events are looked for: fewer cost more looks, more cost longer repetitions
of the steps from the first of them to an event."""
NEAR_LIMIT = 0.8
"""Part of the stability limit from which a learning rate is warned of."""
BETWEEN_CHECKS = 1.25
"""Factor in the step from one check of the stability limit to the next: it moves with log time."""
ROUNDING = 64 * float(np.finfo(np.float64).eps)
"""Change of a state, relative to its largest entry, that may be rounding alone."""
LEAST = float(np.finfo(np.float64).tiny)
"""Change of an entry that is rounding, however small the state."""
RESTING = 1e-8
"""Greatest change of an entry in a unit of time, as a part of it, of a state at rest: a step that
changes nothing may as well be too small."""
NEVER = 1 << 62
"""First check of states too large for one, so that it cuts no chunks."""


class Pass(NamedTuple):
    """What a run knows of a state by one gradient there.

    Attributes
    ----------
    step : int
    order_parameters : float array
    moves : bool
        Whether the next step changes the state, or leaves what is finite; of mini-batches a step
        on all samples.
    by_rounding : bool
        Whether it changes no entry by more than some roundings of the largest.
    at_rest : bool
        Whether it changes nothing, and not because the learning rate is too small: the gradient is
        small too.
    """

    step: int
    order_parameters: FloatArray
    moves: bool
    by_rounding: bool
    at_rest: bool


class Chunk(NamedTuple):
    """Steps that the loop makes at once.

    Attributes
    ----------
    span : (first, end)
        Steps of the loop.
    last : int
        Step of the run after them: ``end``, or the one before, whose pass is made with them.
    before : float array, shape (n,)
        The state at the first.
    buffers : (tracked, record_steps, records)
        What the loop fills.
    """

    span: tuple[int, int]
    last: int
    before: FloatArray
    buffers: tuple[FloatArray, NDArray[np.int64], FloatArray]


class Run:
    """One run in progress.

    Parameters
    ----------
    problem : Problem
    rates : tuple of float
        Learning rate of each parameter group; time is the largest times steps.
    start : float array, shape (n,)
    schedule : int array
        Steps to record, ascending.
    frugal : bool
        Whether costly observables are computed at few records.

    Attributes
    ----------
    start : float array, shape (n,)
    step : int
        Where the run is.
    now : float array, shape (n,)
        The state there.
    diverged : bool
        The next state is not finite.
    warning : str
        What the user should be told now; empty if nothing is new.
    remarks : list of str
        Warnings so far, those before the run was resumed included.
    pace : float
        Seconds of a step in the quickest chunk so far; 0 before the first.
    """

    def __init__(
        self,
        problem: Problem,
        rates: tuple[float, ...],
        start: FloatArray,
        schedule: NDArray[np.int64],
        frugal: bool = False,
    ) -> None:
        self.problem, self.frugal = problem, frugal
        self.rates, self.step_time = rates, max(rates)
        self.eta = problem.layout.per_entry(rates)
        self.schedule = schedule
        names = problem.order_names
        self.detector = Detector(problem.events, names, problem.parameters, self.step_time)
        self.oscillation = Oscillation(names.index(problem.rates[0]))
        self.start, self.step, self.now = start.copy(), 0, start.copy()
        self.diverged, self.warning = False, ""
        self.remarks: list[str] = []
        self.pace = 0.0
        # A caller's own problem need not say it.
        self._autonomous = bool(getattr(problem, "autonomous", False))
        self._chunk = FIRST_CHUNK
        self._check = 1 if start.size <= SMALL else NEVER
        self._warned = False
        # With room for one more; a page is taken when written.
        self._states = np.empty((schedule.size + 1, start.size))
        self._recorded = 0
        self._last: Pass | None = None
        # Order parameters since the last look for events, where they begin, and what they took.
        self._tracked: list[FloatArray] = []
        self._origin = (0, self.now)
        self._seconds = 0.0

    def go(self, steps: int, proceed: Callable[[], bool]) -> None:
        """Advance to the last step, or to where the run diverges, or is to stop between chunks."""
        while self.step < steps and not self.diverged and proceed():
            self._advance(self.next_look(steps))

    def next_look(self, steps: int) -> int:
        """Look for what is due between two chunks; the step at which the next one ends."""
        if self._seconds > SECONDS_PER_CHUNK or sum(map(len, self._tracked)) > BETWEEN_LOOKS:
            self.look_for_events()
        if self.step == self._check:
            self._warn()
            self._check = max(self._check + 1, int(BETWEEN_CHECKS * self._check))
        return min(steps, self.step + self._chunk, self._check)

    def _advance(self, last: int) -> None:
        """One chunk, up to ``last`` or to where the next state is not finite."""
        chunk, clock = self.chunk(last), time.perf_counter()
        reached = self.problem.advance(self.now, self.eta, *chunk.span, chunk.buffers)
        self.take(chunk, reached, time.perf_counter() - clock)

    def chunk(self, last: int) -> Chunk:
        """What the loop is given for the steps up to ``last``.

        Where all steps are alike, the pass at the last record is made with the chunk before it:
        apart it costs three passes at D = 16, by threads that have gone to sleep.
        """
        end = last + (self._autonomous and bool(last == self.schedule[-1]))
        low, high = bisect_left(self.schedule, self.step), bisect_left(self.schedule, end)
        tracked = np.empty((end - self.step, len(self.problem.order_names)))
        buffers = (tracked, self.schedule[low:high], self._states[low:high])
        return Chunk((self.step, end), last, self.now.copy(), buffers)

    def take(self, chunk: Chunk, reached: int, seconds: float) -> None:
        """Go on to where the loop came with a chunk, and with the state, in so many seconds."""
        (step, end), last, before, (tracked, _, records) = chunk
        self.diverged = reached < last
        after: FloatArray | None = None
        if end > last and not self.diverged:
            after = self.now if reached == end else np.full(self.now.size, np.nan)
            self.now, reached = records[-1].copy(), last
        rows = tracked[: reached - step + self.diverged]
        self.track(step, rows, before)
        self._seconds += seconds
        self.pace = min(self.pace or np.inf, seconds / max(1, reached - step))
        self._recorded = bisect_left(self.schedule, reached + self.diverged)
        self.step = reached
        if seconds > 2 * SECONDS_PER_CHUNK:
            self._chunk = max(1, (reached - step) // 2)
        elif seconds < SECONDS_PER_CHUNK / 2 and reached - step >= self._chunk:
            self._chunk = min(LARGEST_CHUNK, 4 * self._chunk)
        if after is not None:  # at the end: an interruption there finds all of the chunk in place
            self._last = self._pass_of(last, tracked[-1], after)

    def track(self, first: int, rows: FloatArray, state: FloatArray) -> None:
        """Keep the order parameters of consecutive steps from ``state`` on for the next look."""
        if len(rows):
            if not self._tracked:
                self._origin = (first, state)
            self._tracked.append(rows)

    def look_for_events(self) -> None:
        """Look for events in what was tracked since the last look."""
        if self._tracked:
            first, state = self._origin
            rows = np.concatenate(self._tracked)
            self.detector.feed(first, rows, state)
            self.oscillation.feed(first, rows)
            self._tracked, self._seconds = [], 0.0

    def _warn(self) -> None:
        """Say once that the learning rate comes near the stability limit, or has passed it."""
        if self._warned:
            return
        limit = limit_of_rates(self.problem, self.rates, self.now)
        if self.step_time > NEAR_LIMIT * limit:
            self._warned = True
            beyond = self.step_time / limit - 1
            near = "period two is near" if beyond < 0 else "it is passed"
            self.warning = (
                f"eta={rates_text(self.rates, self.step_time)} at step {self.step}, where the "
                f"stability limit is {rates_text(self.rates, limit, 4)}: "
                f"{'it is reached' if abs(beyond) < AT_LIMIT else near}"
            )
            self.remarks.append(self.warning)

    def recorded(self) -> tuple[NDArray[np.int64], FloatArray]:
        """Recorded steps so far, and their states, shape (records, n)."""
        return self.schedule[: self._recorded], self._states[: self._recorded]

    def records(self) -> tuple[NDArray[np.int64], FloatArray]:
        """The same with the present state at the end."""
        steps, states = self.recorded()
        if steps.size and steps[-1] == self.step:
            return steps, states
        states = self._states[: steps.size + 1]
        states[-1] = self.now
        return np.append(steps, self.step), states

    def last_pass(self) -> Pass:
        """The pass at the state where the run is, made once, when it is asked for."""
        if self._last is None or self._last.step != self.step:
            self._last = self._pass()
        return self._last

    def _pass(self) -> Pass:
        problem, now, step = self.problem, self.now, self.step
        slope = None
        if self._autonomous:  # the loop has all of it on its way, in one pass
            rows, after = np.empty((1, len(problem.order_names))), now.copy()
            buffers = (rows, np.empty(0, dtype=np.int64), np.empty((0, now.size)))
            if problem.advance(after, self.eta, step, step + 1, buffers) == step:
                after[:] = np.nan
            row = rows[0]
        else:
            row, after, slope = self._order_parameters(now)
        return self._pass_of(step, row, after, slope)

    def _pass_of(
        self, step: int, row: FloatArray, after: FloatArray, slope: FloatArray | None = None
    ) -> Pass:
        """The pass at the present state, of what was computed there.

        Parameters
        ----------
        step : int
        row : float array
            Order parameters.
        after : float array, shape (n,)
            The next state.
        slope : float array, shape (n,), optional
            The gradient; computed if it is needed and not given.
        """
        now, problem = self.now, self.problem
        change, size = np.abs(after - now).max(initial=0.0), np.abs(now).max(initial=0.0)
        moves, by_rounding = bool((after != now).any()), bool(change <= ROUNDING * size + LEAST)
        at_rest = not moves and self._is_small(problem.gradient(now) if slope is None else slope)
        return Pass(step, row, moves, by_rounding, at_rest)

    def _is_small(self, slope: FloatArray) -> bool:
        """Whether a gradient changes no entry of the present state in a unit of time, nearly."""
        return bool((np.abs(slope) <= RESTING * np.abs(self.now) + LEAST).all())

    def _order_parameters(self, state: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Order parameters with the rates that learning rates make, next state and gradient."""
        slope = self.problem.gradient(state)
        unit = self.eta.max(initial=0.0)
        rates = slope if (self.eta == unit).all() else slope * (self.eta / unit)
        return self.problem.order_parameters(state, rates), state - self.eta * slope, slope

    def replay(self, state: FloatArray, first: int, last: int) -> tuple[FloatArray, FloatArray]:
        """Run the steps first..last once more: order parameters at each, and the state at last."""
        state, rows = state.copy(), np.empty((last - first + 1, len(self.problem.order_names)))
        if self._autonomous:
            record = np.empty((1, state.size))
            buffers = (rows, np.array([last]), record)
            self.problem.advance(state, self.eta, first, last + 1, buffers)
            return rows, record[0]
        if last > first:
            buffers = (rows[:-1], np.array([], dtype=np.int64), np.empty((0, state.size)))
            self.problem.advance(state, self.eta, first, last, buffers)
        rows[-1] = self._order_parameters(state)[0]
        return rows, state

    def again(self, proceed: Callable[[], bool]) -> Iterator[tuple[int, FloatArray, FloatArray]]:
        """All steps once more while it may proceed: first step, order parameters, state there."""
        first, state, chunk = 0, self.start, FIRST_CHUNK
        while proceed():
            last, clock = min(first + chunk, self.step), time.perf_counter()
            rows, after = self.replay(state, first, last)
            if last == self.step:
                yield first, rows, state
                return
            seconds = time.perf_counter() - clock
            yield first, rows[:-1], state
            chunk = min(LARGEST_CHUNK, 2 * chunk) if seconds < SECONDS_PER_CHUNK else chunk
            first, state = last, after

    def state(self) -> dict[str, Any]:
        """All that the run needs to go on, as plain values and arrays, for `restore`."""
        self.look_for_events()
        own = ("step", "now", "diverged", "remarks", "_warned", "_check")
        return {
            "run": {name: getattr(self, name) for name in own},
            "records": list(self.recorded()),
            "detector": self.detector.state(),
            "oscillation": self.oscillation.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from the `state` of a run of the same problem."""
        self._last, self._tracked, self._seconds = None, [], 0.0
        self.detector.restore(state["detector"])
        self.oscillation.restore(state["oscillation"])
        vars(self).update(state["run"])
        self.warning = "; ".join(self.remarks)  # another process may have told it
        steps, states = state["records"]
        self._recorded = steps.size
        self._states[: steps.size] = states
