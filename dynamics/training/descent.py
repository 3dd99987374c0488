"""Training step by step: gradient descent and other update rules.

The compiled loop of `dynamics.loops.kernels.advance` takes the steps in chunks and returns the
order parameters of every step. After each chunk a `Run` searches for events and compares the
learning rate with the stability limit. Checkpoints of the run are written between chunks. The sizes
of the chunks do not change the results.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.loops import Updates
from dynamics.presentation import Presentation
from dynamics.problem import SMALL, FloatArray, Problem, check_problem, gradient_failure
from dynamics.results import outcome as ends
from dynamics.results.event import Event, Events
from dynamics.results.outcome import SMALLER, Outcome, TrainingWarning
from dynamics.results.trajectory import (
    Trajectory,
    explained,
    first_not_finite,
    undefined,
    with_remarks,
)
from dynamics.training.checkpoint import Checkpoint, request_of
from dynamics.training.events import Detector
from dynamics.training.oscillation import Oscillation
from dynamics.training.progress import bar, interruption
from dynamics.training.rules import ROUNDING, amplified_rounding, described, rule_of, under
from dynamics.training.schedules import Stages, schedule_of, stages_of
from dynamics.training.settings import check_steps, record_schedule, starting_state
from dynamics.training.stability_limit import near_limit, rates_text, smaller_rate
from dynamics.validation import learning_rate
from theory.events import EventRule

FIRST_CHUNK, LARGEST_CHUNK = 4, 1 << 12
"""Number of steps of the first chunk, and maximum number of steps of a chunk."""
SECONDS_PER_CHUNK = 0.2
RECORDS_AT_ONCE = 1 << 18
"""Maximum size (states times entries) of an array of states passed to one call for observables."""
AFTER_SIGNAL = 0.5
"""Maximum time in seconds spent on observables after an interruption; records that then lack their
observables are dropped."""
BETWEEN_CHECKS = 1.25
"""Ratio of the step numbers of two successive checks of the stability limit. The stability limit
varies slowly in the logarithm of time."""
NEVER = 1 << 62
"""Step of the next check of the stability limit when no further check is due."""
RESTING = 1e-8
"""A run whose state no longer changes has converged if no gradient component exceeds this fraction
of the state's entry with the same index."""
LEAST = float(np.finfo(np.float64).tiny)
"""A change of an entry by at most this number counts as rounding, whatever the entry's size."""
LOWER = "a smaller eta, or a schedule that lowers it"
CONTINUE = "start again from its final state for the remaining steps"
RESUME = "the same run with the same checkpoint goes on from there"
TOO_SMALL = (
    "eta={} is too small for a step to move the state, whose gradient is not small; try more"
)
ZIGZAG = (
    "eta={} converges in a zigzag: every step reverses the rate and leaves {:.6g} of it; "
    "a smaller eta converges faster"
)


def descend(
    problem: Problem,
    eta: float | ArrayLike,
    steps: int,
    rule: Any = "gd",
    record: int | str | ArrayLike | None = None,
    initial: ArrayLike | None = None,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    schedule: str | None = None,
    stages: Stages | None = None,
) -> Trajectory:
    """Train step by step, by gradient descent or another update rule.

    Parameters
    ----------
    problem : Problem
    eta : float or sequence of float
        Learning rate, or one for each parameter group, where 0 freezes a group. Time is the largest
        learning rate times the number of steps.
    steps : int
        Number of steps; the run ends earlier if it diverges, oscillates or is interrupted.
    rule : str, UpdateRule or callable
        A name of `theory.update_rules.RULES`, or an argument of `dynamics.rule`. A reduced problem
        trains the scalars that training by this rule closes on.
    record : int, "log", int array or None
        Interval in steps, 400 logarithmically spaced steps, or the steps to record. The first and
        the last state are always recorded. The default is ``"log"``, with fewer records (at least
        64) if 400 states take more than 16 MiB.
    initial : array, optional
        Initial state; default: ``problem.initial_state``.
    checkpoint : path-like, optional
        File with the state of the unfinished run. If the file exists, the run resumes from it and
        ends bitwise like an uninterrupted run. The file is removed when the run has finished.
    schedule : str, optional
        Factor of all learning rates at each step: ``warmup:N``, ``cosine``, ``cosine:N``,
        ``staircase:N:f``, or a formula in ``step`` (from 0) and ``steps``. Time is then the sum of
        the learning rates.
    stages : sequence of (str, int), optional
        Arrays trained in each stage, and number of steps: ``[("A", 2000), ("v", 500)]``; ``"A+v"``
        trains both arrays. A frozen array keeps the memory of its update rule.

    Raises
    ------
    InvalidRequest
        If an argument is invalid, or the checkpoint is damaged or belongs to another run.

    Warns
    -----
    TrainingWarning
        If the reduction stops being exact, the learning rate is near the stability limit, or
        rounding decides the run. The field ``remarks`` of the trajectory has the same texts.

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    >>> dynamics.descend(problem, eta=0.02, steps=1000).outcome.kind
    'reached horizon'
    """
    check_problem(problem)
    chosen, steps = rule_of(problem, rule), check_steps(steps)
    problem = under(problem, chosen, stages)
    rates = learning_rate(eta, problem.layout.group_names)
    at = record_schedule(steps, record, problem.layout.size * (1 + chosen.memory))
    start = starting_state(problem, initial)
    updates = Updates(
        problem.layout.per_entry(rates), chosen,
        None if chosen.plain else problem.multiplicities,
        None if chosen.plain else problem.moving(start),
        schedule_of(schedule, steps), stages_of(stages, problem, steps),
    )  # fmt: skip
    settings = described(chosen, schedule, stages)
    if updates.moves is not None and not updates.moves.all():
        settings["held"] = int((~updates.moves).sum())
    run = Run(problem, rates, updates, start, at)
    run.remarks.extend(amplified_rounding(problem, updates, start))
    return with_remarks(_trained(run, settings, checkpoint), problem)


def _trained(
    run: Run, settings: Mapping[str, Any], file: str | os.PathLike[str] | Checkpoint | None
) -> Trajectory:
    """Take all steps of a run, and write checkpoints of the run to `file`."""
    problem, store = run.problem, None if file is None else Checkpoint.at(file)
    request: dict[str, Any] = {}
    if store:
        how = {"eta": list(run.rates), "steps": run.steps, **settings}
        request = request_of(problem, run.start, run.schedule, **how)
        run.restore(store.read(request))
    for remark in run.remarks:  # also remarks made before the run was resumed
        warnings.warn(remark, TrainingWarning, stacklevel=3)
    with interruption() as interrupted, bar(problem.view, run.steps, run.step) as progress:
        while run.step < run.steps and not run.diverged and not interrupted.is_set():
            if remark := run.advance():
                progress.clear()
                warnings.warn(remark, TrainingWarning, stacklevel=3)
            progress.update(run.step - progress.n)
            if store and store.due():
                store.write(request, run.state())
        progress.close()
        records, before = run.records(interrupted), run.state()
        outcome = run.end(records, RESUME if store else CONTINUE, interrupted)
        complete = outcome.kind != ends.INTERRUPTED
        if store and run.step and not complete:
            store.write(request, before)
        trajectory = _trajectory(run, records, outcome, settings)
    if store and complete and not store.keep:
        store.discard()
    return trajectory


class Records(NamedTuple):
    """Recorded steps, states and observables of a run."""

    steps: NDArray[np.int64]
    states: FloatArray
    """States followed by the memory of the update rule, shape (records, n)."""
    observables: Mapping[str, FloatArray]
    complete: bool
    """Whether the run has finished and all its records are present."""


class Run:
    """A run in progress: present state, records and detected events.

    The argument `rates` holds the learning rate of each parameter group; `updates` holds the update
    rule with these learning rates. The attribute ``now`` is the present state followed by the
    memory of the rule, and ``diverged`` tells whether the next state is not finite. The list
    ``remarks`` holds all warnings so far, including warnings before the run was resumed.
    """

    def __init__(
        self,
        problem: Problem,
        rates: tuple[float, ...],
        updates: Updates,
        start: FloatArray,
        schedule: NDArray[np.int64],
    ) -> None:
        self.problem, self.rates, self.schedule = problem, rates, schedule
        self.updates, self.steps, self.step_time = updates, int(schedule[-1]), max(rates)
        self.size, names = start.size, problem.order_names
        self.detector = Detector(problem.events, names, problem.parameters, self.step_time)
        self.oscillation = Oscillation(names.index(problem.rates[0]))
        self.start, self.step, self.diverged = updates.begun(start), 0, False
        self.now = self.start.copy()
        self.remarks: list[str] = []
        self._check = 1 if start.size <= SMALL and updates.alike else NEVER
        self._chunk = FIRST_CHUNK
        # Uninitialized: the operating system assigns memory pages only when they are written.
        self._states = np.empty((schedule.size, self.now.size))

    def advance(self) -> str:
        """Take a chunk of steps; return a remark when eta first nears the stability limit."""
        remark = ""
        if self.step == self._check:
            self._check = max(self._check + 1, int(BETWEEN_CHECKS * self._check))
            if remark := near_limit(self.problem, self.rates, self.now, self.step):
                self._check = NEVER
                self.remarks.append(remark)
        first, before, clock = self.step, self.now.copy(), time.perf_counter()
        last = min(self.steps, first + self._chunk, self._check)
        low, high = np.searchsorted(self.schedule, (first, last))
        rows = np.empty((last - first, len(self.problem.order_names)))
        buffers = rows, self.schedule[low:high], self._states[low:high]
        self.step = self.problem.advance(self.now, self.updates, first, last, buffers)
        self.diverged = self.step < last
        self._look(first, rows[: self.step - first + self.diverged], before)
        self._chunk = _next_chunk(last - first, time.perf_counter() - clock)
        return remark

    def _look(self, first: int, rows: FloatArray, state: FloatArray) -> None:
        """Search the order parameters `rows` of consecutive steps, from `first` on, for events."""
        self.detector.feed(first, rows, state)
        self.oscillation.feed(first, rows)

    def _recorded(self) -> int:
        """Number of records taken so far."""
        return int(np.searchsorted(self.schedule, self.step + self.diverged))

    def records(self, interrupted: threading.Event) -> Records:
        """Records taken so far; after an interruption the last records may be dropped."""
        count = self._recorded()
        steps, states = self.schedule[:count], self._states[:count]
        if not (count and steps[-1] == self.step):
            steps, states = np.append(steps, self.step), self._states[: count + 1]
            states[-1] = self.now
        together, begun = max(1, RECORDS_AT_ONCE // self.now.size), time.monotonic()
        if interrupted.is_set():  # short calls, to check `AFTER_SIGNAL` between them
            together = min(together, self._chunk)
        parts, done = [], 0
        while done < steps.size:
            if done and interrupted.is_set() and time.monotonic() - begun > AFTER_SIGNAL:
                break
            part = states[done : done + together, : self.size]
            parts.append(self.problem.observables_along(np.ascontiguousarray(part)))
            done = min(done + together, steps.size)
        observables = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        complete = done == steps.size and (self.step == self.steps or self.diverged)
        return Records(steps[:done], states[:done], observables, complete)

    def end(self, records: Records, remedy: str, interrupted: threading.Event) -> Outcome:
        """Outcome of the run, after applying the event rules that need the whole run.

        If the run was interrupted, the outcome contains the text `remedy`. The run cannot be
        continued after this call.
        """
        after = self.now if self.diverged else self._after()
        outcome = self._outcome(after, records, remedy, interrupted)
        fate = outcome.kind if outcome.kind == ends.OSCILLATING else ""
        if self.diverged and outcome.kind != ends.PRECISION_LOST:
            fate = f"diverged at step {self.step}"
        self.detector.step_time = self.time(self.step) / max(1, self.step)
        decided = self.detector.finish(self.step, fate, lambda: self._again(interrupted))
        if interrupted.is_set() and not decided and outcome.kind != ends.INTERRUPTED:
            return Outcome(ends.INTERRUPTED, self.step, self.time(self.step), remedy)
        return outcome

    def time(self, step: int) -> float:
        """Time of a step: the sum of the learning rates of the steps before it."""
        return float(self.updates.time(np.array([step]))[0])

    def _after(self) -> FloatArray:
        """Detect the events of the present step; return the next state, NaN if not finite."""
        rows, after, step = np.empty((1, len(self.problem.order_names))), self.now.copy(), self.step
        buffers = rows, self.schedule[:0], self._states[:0]
        reached = self.problem.advance(after, self.updates, step, step + 1, buffers)
        self._look(step, rows, self.now)
        return after if reached > step else np.full_like(after, np.nan)

    def _outcome(
        self, after: FloatArray, records: Records, remedy: str, interrupted: threading.Event
    ) -> Outcome:
        """Outcome of a run whose next state is `after`."""
        problem = self.problem
        now, after = self.now[: self.size], after[: self.size]
        plain = self.updates.alike

        def ended(kind: str, remedy: str = "", step: int = self.step) -> Outcome:
            return Outcome(kind, step, self.time(step), remedy)

        def used() -> str:
            return rates_text(self.rates, self.step_time)

        def proceed() -> bool:
            return not interrupted.is_set()

        if not records.complete:
            return ended(ends.INTERRUPTED, remedy, int(records.steps[-1]))
        if self.diverged:
            if failure := gradient_failure(problem, now):
                return ended(ends.PRECISION_LOST, failure)
            start, remedy = self.start[: self.size], LOWER
            if plain:
                remedy = smaller_rate(problem, self.rates, start, self.steps, proceed=proceed)
            return ended(ends.DIVERGED, remedy)
        found, change = ended(ends.HORIZON), np.abs(after - now)
        moved_by_rounding = change.max(initial=0) <= ROUNDING * np.abs(now).max(initial=0) + LEAST
        if self.oscillation.lasting(self.step) and not moved_by_rounding:
            decay, began = self.oscillation.decay(self.step), self.oscillation.began
            if decay is None:
                remedy = LOWER
                if plain:
                    remedy = smaller_rate(problem, self.rates, now, self.steps, True, proceed)
                return ended(ends.OSCILLATING, remedy, began)
            found = ended(ends.HORIZON, ZIGZAG.format(used(), decay))
        elif (after == now).all():
            slope = problem.gradient(now)
            if (np.abs(slope) <= RESTING * np.abs(now) + LEAST).all():
                found = ended(ends.CONVERGED)
            elif plain and (now - self.updates.eta * slope == now).all():  # gradient on all samples
                found = ended(ends.HORIZON, TOO_SMALL.format(used()))
        broken = first_not_finite(records.states[:, : self.size], records.observables)
        if broken is not None:
            step = int(records.steps[broken])
            rate = f"a smaller eta than {self.step_time:g}, or " if step else ""
            text = f"risk or state is not finite there; try {rate}{SMALLER}"
            return ended(ends.DIVERGED, text, step)
        return replace(found, remedy=undefined(records.observables) or found.remedy)

    def replay(self, state: FloatArray, first: int, last: int) -> tuple[FloatArray, FloatArray]:
        """Repeat the steps `first` to `last`; return order parameters and the state at `last`."""
        rows = np.empty((last - first + 1, len(self.problem.order_names)))
        record, state = np.empty((1, state.size)), state.copy()
        buffers = rows, np.array([last]), record
        self.problem.advance(state, self.updates, first, last + 1, buffers)
        return rows, record[0]

    def _again(self, interrupted: threading.Event) -> Iterator[tuple[int, FloatArray, FloatArray]]:
        """Repeat the run; yield the first step, order parameters and state of every chunk."""
        first, state, chunk = 0, self.start, FIRST_CHUNK
        with bar(f"{self.problem.view}, events", self.step) as progress:
            while not interrupted.is_set():
                last, clock = min(first + chunk, self.step), time.perf_counter()
                rows, after = self.replay(state, first, last)
                if last == self.step:
                    yield first, rows, state
                    return
                chunk = _next_chunk(chunk, time.perf_counter() - clock)
                yield first, rows[:-1], state
                progress.update(last - first)
                first, state = last, after

    def event(self, rule: EventRule, records: Records) -> Event:
        """Event of a rule; its state is recomputed from the last state stored before the event."""
        detected = self.detector.detections[rule.name]
        step = detected.step
        if step is None:
            return Event.missing(rule.name, self.size)
        k = int(np.searchsorted(records.steps, step, side="right")) - 1
        before, state = int(records.steps[k]), records.states[k]
        if detected.origin and detected.origin[0] > before:
            before, state = detected.origin
        state = self.replay(state, before, step)[1][: self.size]
        horizon = self.time(self.step) if rule.whole_run else None
        return Event(rule.name, self.time(step), step, state, horizon)

    def state(self) -> dict[str, Any]:
        """Plain values and arrays from which `restore` resumes the run."""
        own = ("step", "now", "diverged", "remarks", "_check")
        return {
            "run": {name: getattr(self, name) for name in own},
            "records": self._states[: self._recorded()],
            "detector": self.detector.state(),
            "oscillation": self.oscillation.state(),
        }

    def restore(self, state: dict[str, Any] | None) -> None:
        """Resume from a `state` of the same run; if `state` is None, nothing changes."""
        if state is None:
            return
        vars(self).update(state["run"])
        self.detector.restore(state["detector"])
        self.oscillation.restore(state["oscillation"])
        self._states[: len(state["records"])] = state["records"]


def _next_chunk(steps: int, seconds: float) -> int:
    """Number of steps of the next chunk, from the last chunk's number of steps and duration."""
    if seconds > 2 * SECONDS_PER_CHUNK:
        return max(1, steps // 2)
    return min(LARGEST_CHUNK, 4 * steps) if seconds < SECONDS_PER_CHUNK / 2 else steps


def _trajectory(
    run: Run, records: Records, outcome: Outcome, settings: Mapping[str, Any]
) -> Trajectory:
    problem, rates = run.problem, run.rates
    return Trajectory(
        system=problem.system,
        view=problem.view,
        parameters=asdict(problem.parameters),
        layout=problem.layout,
        settings={
            "eta": rates[0] if len(set(rates)) == 1 else list(rates),
            "steps": run.steps,
            **settings,
            **problem.settings,
        },
        steps=records.steps,
        time=run.updates.time(records.steps),
        states=np.ascontiguousarray(records.states[:, : run.size]),
        observables=records.observables,
        events=Events({rule.name: run.event(rule, records) for rule in problem.events}),
        outcome=outcome,
        reasons=explained(
            {n: d.reason for n, d in run.detector.detections.items() if d.step is None},
            problem,
            records.observables,
        ),
        presentation=getattr(problem, "presentation", None) or Presentation.plain(problem),
        remarks=tuple(run.remarks),
    )
