r"""Gradient descent as a map, :math:`\theta \leftarrow \theta - \eta g(\theta)`.

The compiled loop is advanced in chunks. Inside a chunk every step is tracked for the events;
between chunks the records are kept, the events sought, an interruption honoured. Where the chunks
are cut changes nothing.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics import outcome as ends
from dynamics.detect import Detector, Oscillation
from dynamics.forms import Forms
from dynamics.outcome import Outcome
from dynamics.problem import SMALL, FloatArray, Problem
from dynamics.stability import stability_limit
from dynamics.trajectory import Event, Trajectory, series
from dynamics.validation import integer, learning_rate, refuse
from theory.events import EventRule

SECONDS_PER_CHUNK = 0.2
LARGEST_CHUNK = 1 << 12
RECORDS = 400
CONTINUE = "start again from its final state for the remaining steps"
CALM_STEPS = 20_000
FEWEST_CALM = 200
NEAR_LIMIT = 0.8
BETWEEN_LOOKS = 1.25
"""Factor in the step from one look at the stability limit to the next: it moves with log time."""
LOG = logging.getLogger(__name__)


def descend(
    problem: Problem,
    eta: float | ArrayLike,
    steps: int,
    record: int | str | ArrayLike | None = None,
    initial: ArrayLike | None = None,
) -> Trajectory:
    """Run gradient descent.

    Parameters
    ----------
    problem : Problem
    eta : float or sequence of float
        Learning rate, or one for each parameter group (v and A); time is the first times steps.
    steps : int
        Number of steps.
    record : int, "log", int array or None
        Every so many steps; at logarithmically spaced steps (the default); or at these steps. The
        first and the last state are always recorded.
    initial : array, optional
        Where to start; the problem's own start by default.

    Returns
    -------
    Trajectory
        Its outcome says whether the run went well; a run that diverges or oscillates is returned
        up to there.

    Raises
    ------
    InvalidRequest
        If eta, steps or record is not valid.
    """
    rates = learning_rate(eta, problem.layout.group_names)
    steps = check_steps(steps)
    schedule = record_schedule(steps, record)
    start = starting_state(problem, initial)
    run = _Run(problem, problem.layout.per_entry(rates), rates[0])
    with interruption() as interrupted:
        reached = run.go(start, steps, schedule, interrupted)
        return run.trajectory(reached, steps, interrupted, rates)


def starting_state(problem: Problem, initial: ArrayLike | None) -> FloatArray:
    """The problem's own start, or the one given, which must be finite.

    Raises
    ------
    InvalidRequest
        If an entry is not finite.
    """
    if initial is None:
        return problem.initial_state
    start = problem.layout.flatten(initial)
    if not np.isfinite(start).all():
        refuse("initial", initial, "is not finite", "a finite state", problem.initial_state)
    return start


def check_steps(steps: object) -> int:
    """A number of steps that can be counted."""
    return integer("steps", steps, at_least=1, at_most=10**12)


def check_settings(eta: Any, steps: Any, record: Any) -> None:
    """Refuse settings that `descend` would refuse, before anything is compiled."""
    learning_rate(eta, None)
    record_schedule(check_steps(steps), record)


def record_schedule(steps: int, record: int | str | ArrayLike | None) -> NDArray[np.int64]:
    """Steps at which the state is recorded, ascending, 0 and ``steps`` among them.

    Raises
    ------
    InvalidRequest
        If ``record`` is neither a positive whole number, nor "log", nor steps within the run.
    """
    if record is None or isinstance(record, str):
        if record not in (None, "log"):
            refuse("record", record, "is unknown", "a whole number or 'log'", "log")
        spaced = np.rint(np.geomspace(1, steps, RECORDS)).astype(np.int64)
    elif np.ndim(record) == 0:
        spaced = np.arange(0, steps, integer("record", record, at_least=1))
    else:
        spaced = np.asarray(record) if np.size(record) else np.empty(0, dtype=np.int64)
        if spaced.ndim != 1 or spaced.dtype.kind not in "iu" or (spaced < 0).any():
            refuse("record", record, "is not a list of steps", f"whole numbers in 0..{steps}", 0)
        if spaced.size and spaced.max() > steps:
            refuse("record", spaced.max(), "is after the last step", f"0..{steps}", steps)
    return np.unique(np.concatenate([[0], spaced, [steps]])).astype(np.int64)


@dataclass
class _Run:
    """One run in progress."""

    problem: Problem
    eta: FloatArray
    step_time: float

    def __post_init__(self) -> None:
        self.forms = Forms(self.problem)
        names = self.problem.order_names
        parameters = self.problem.parameters
        self.detector = Detector(self.problem.events, names, parameters, self.step_time)
        self.oscillation = Oscillation(names.index("d_alpha"))
        self.states: list[FloatArray] = []
        self.steps: list[NDArray[np.int64]] = []
        self.diverged, self.warned = False, False

    def go(
        self,
        start: FloatArray,
        steps: int,
        schedule: NDArray[np.int64],
        interrupted: threading.Event,
    ) -> int:
        """Advance to the last step, or to where the run diverged or was interrupted."""
        state, step, chunk, doubled, look = start.copy(), 0, 64, 1, 1
        width = len(self.problem.order_names)
        while step < steps and not interrupted.is_set():
            if step == doubled:
                self.problem = self.forms.reconsidered(step, state)
                doubled *= 2
            if step == look:
                self._warn(step, state)
                look = max(look + 1, int(BETWEEN_LOOKS * look))
            last = min(steps, step + chunk, doubled, look)
            due = schedule[np.searchsorted(schedule, step) : np.searchsorted(schedule, last)]
            tracked, records = np.empty((last - step, width)), np.empty((due.size, state.size))
            before, clock = state.copy(), time.perf_counter()
            reached = self.problem.advance(state, self.eta, step, last, (tracked, due, records))
            taken = time.perf_counter() - clock
            better = self.problem
            if reached < last:
                better = self.forms.reconsidered(reached, state)
            lost = reached < last and better is self.problem
            rows = tracked[: reached - step + lost]
            self._note(step, rows, before, due[due < reached + lost], records)
            step, self.problem = reached, better
            if lost:
                self.diverged = True
                break
            if reached < last:
                continue
            if taken < SECONDS_PER_CHUNK / 2:
                chunk = min(LARGEST_CHUNK, 2 * chunk)
            elif taken > 2 * SECONDS_PER_CHUNK:
                chunk = max(1, chunk // 2)
        self.final = state
        if not self.steps or self.steps[-1].size == 0 or self._last_recorded() != step:
            self._keep(np.array([step]), state[None, :])
        if not self.diverged:
            row = self.problem.order_parameters(state)[None, :]
            self._note(step, row, state, np.array([], dtype=np.int64), np.empty((0, state.size)))
        return step

    def _last_recorded(self) -> int:
        filled = [part for part in self.steps if part.size]
        return int(filled[-1][-1]) if filled else -1

    def _warn(self, step: int, state: FloatArray) -> None:
        """Say once that the learning rate comes near the stability limit, or has passed it."""
        if self.warned or state.size > SMALL:
            return
        limit = stability_limit(self.problem, state)
        if self.step_time > NEAR_LIMIT * limit:
            self.warned = True
            LOG.warning(
                "eta=%g at step %d, where the stability limit is %.4g: period two is near",
                self.step_time,
                step,
                limit,
            )

    def _note(
        self,
        first: int,
        rows: FloatArray,
        state: FloatArray,
        due: NDArray[np.int64],
        records: FloatArray,
    ) -> None:
        if len(rows):
            self.detector.feed(first, rows, state)
            self.oscillation.feed(first, rows)
        self._keep(due, records[: due.size])

    def _keep(self, steps: NDArray[np.int64], states: FloatArray) -> None:
        self.steps.append(np.asarray(steps, dtype=np.int64))
        self.states.append(states.copy())

    def rows(self, state: FloatArray, first: int, last: int) -> tuple[FloatArray, FloatArray]:
        """Run the steps first..last once more: order parameters at each, and the state at last."""
        state, none = state.copy(), np.array([], dtype=np.int64)
        rows = np.empty((last - first + 1, len(self.problem.order_names)))
        for begin, stop, problem in self.forms.between(first, last):
            buffers = (rows[begin - first : stop - first], none, np.empty((0, state.size)))
            problem.advance(state, self.eta, begin, stop, buffers)
        rows[-1] = self.forms.at(last).order_parameters(state)
        return rows, state

    def trajectory(
        self, reached: int, steps: int, interrupted: threading.Event, rates: tuple[float, ...]
    ) -> Trajectory:
        """Settle events and outcome, and gather everything.

        An interruption while observables are computed keeps the records that have them.
        """
        recorded, states = np.concatenate(self.steps), np.concatenate(self.states)
        result = self._outcome(reached, steps, reached < steps and interrupted.is_set(), states)
        fate = ends.OSCILLATING if result.kind == ends.OSCILLATING else "falls to the horizon"
        if result.kind == ends.DIVERGED:
            fate = f"diverged at step {reached}"
        self.detector.finish(reached, fate, lambda s, a, b: self.rows(s, a, b)[0])
        found = self.detector.found
        horizon = reached * self.step_time
        events = {
            rule.name: self._event(rule, recorded, states, horizon) for rule in self.problem.events
        }
        again = interrupted.is_set()
        gathered = []
        for step, state in zip(recorded, states, strict=True):
            gathered.append(self.forms.at(step).observables(state))
            if interrupted.is_set() and not again:
                recorded, states = recorded[: len(gathered)], states[: len(gathered)]
                last = int(recorded[-1])
                result = Outcome(ends.INTERRUPTED, last, last * self.step_time, CONTINUE)
                break
        return Trajectory(
            system=self.problem.system,
            view=self.problem.view,
            parameters=asdict(self.problem.parameters),
            layout=self.problem.layout,
            settings={
                "eta": rates[0] if len(set(rates)) == 1 else list(rates),
                "steps": steps,
                **self.forms.settings(self.step_time),
            },
            steps=recorded,
            time=np.asarray(recorded * self.step_time, dtype=np.float64),
            states=states,
            observables=series(gathered),
            events=events,
            outcome=result,
            reasons={name: f.reason for name, f in found.items() if f.step is None},
        )

    def _event(
        self, rule: EventRule, recorded: NDArray[np.int64], states: FloatArray, horizon: float
    ) -> Event | None:
        """The event with its state, run once more from the last known state before it."""
        found = self.detector.found[rule.name]
        if found.step is None:
            return None
        k = int(np.searchsorted(recorded, found.step, side="right")) - 1
        begin, state = int(recorded[k]), states[k]
        if found.origin is not None and found.origin[0] > begin:
            begin, state = found.origin
        step, state = found.step, self.rows(state, begin, found.step)[1]
        seen = horizon if rule.whole_run else None
        return Event(rule.name, step * self.step_time, step, state, seen)

    def _outcome(self, reached: int, steps: int, interrupted: bool, states: FloatArray) -> Outcome:
        now = reached * self.step_time
        if self.diverged and self.problem.failure():
            return Outcome(ends.CERTIFICATE_LOST, reached, now, self.problem.failure())
        if self.diverged:
            return Outcome(ends.DIVERGED, reached, now, self._remedy(states[0], steps))
        if interrupted:
            return Outcome(ends.INTERRUPTED, reached, now, CONTINUE)
        if self.oscillation.lasting(reached):
            began = self.oscillation.began
            return Outcome(
                ends.OSCILLATING, began, began * self.step_time, self._remedy(self.final, steps)
            )
        moved = self.final - self.eta * self.problem.gradient(self.final) != self.final
        return Outcome(ends.HORIZON if moved.any() else ends.CONVERGED, reached, now)

    def _remedy(self, start: FloatArray, steps: int) -> str:
        """The learning rate used, the stability limit on a calmer run, what to try.

        The learning rate is halved until the steps that were asked for, at most 20,000, end
        without a reversal from ``start``; the limit is the least along that run.
        """
        eta, used = self.eta, f"eta={self.step_time:g}"
        calm = min(CALM_STEPS, max(FEWEST_CALM, steps))
        for _ in range(20):
            eta = eta / 2
            state, width = start.copy(), len(self.problem.order_names)
            schedule = record_schedule(calm, "log")[::8]
            rows, records = np.empty((calm, width)), np.empty((schedule.size, state.size))
            problem = self.forms.at(0)
            done = problem.advance(state, eta, 0, calm, (rows, schedule, records))
            rate = rows[calm // 2 :, self.oscillation.column]
            if done == calm and not (rate[1:] * rate[:-1] < 0).any():
                records[-1] = state
                limits = [stability_limit(problem, record) for record in records]
                limit = min((bound for bound in limits if bound > 0), default=np.inf)
                if limit < self.step_time:
                    tried = f"try eta={0.9 * limit:.2g}"
                    return f"{used} is above the stability limit {limit:.4g} there; {tried}"
                break
        return f"{used} is too large; try eta={float(eta.max()):.2g}"


_active: list[threading.Event] = []


@contextmanager
def interruption() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets, so that a run ends between chunks with all its records.

    Nested uses share one event: after Ctrl-C nothing inside the outermost one goes on.
    """
    if _active or threading.current_thread() is not threading.main_thread():
        yield _active[0] if _active else threading.Event()
        return
    raised = threading.Event()
    handler: Any = signal.signal(signal.SIGINT, lambda *_: raised.set())
    _active.append(raised)
    try:
        yield raised
    finally:
        _active.clear()
        signal.signal(signal.SIGINT, handler)
