r"""Gradient descent as a map, :math:`\theta \leftarrow \theta - \eta g(\theta)`.

`descend` checks the request, drives a `Run` (`dynamics.training.descent_run`, which has the loop)
and makes a `Trajectory` of it. Between the chunks of steps of the run it handles interruption,
checkpoint and progress; where the chunks are cut changes nothing, and neither does going on from
the `Run.state` of a run in another process.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.presentation import Presentation
from dynamics.problem import FloatArray, Problem, check_problem, gradient_failure
from dynamics.results import outcome as ends
from dynamics.results.event import Event, Events
from dynamics.results.outcome import SMALLER, Outcome, TrainingWarning, first_not_finite, undefined
from dynamics.results.trajectory import Trajectory, explained, with_remarks
from dynamics.training.checkpoint import Checkpoint, request_of
from dynamics.training.descent_run import Run
from dynamics.training.progress import bar, interruption
from dynamics.training.settings import (
    DefaultRecords,
    check_memory,
    check_steps,
    record_schedule,
    starting_state,
)
from dynamics.training.stability_limit import rates_text, smaller_rate
from dynamics.validation import learning_rate
from theory.events import EventRule

SHARE = 0.01
"""Of the gradients of a run, for its costly observables where no records are asked for."""
SECONDS_AFTER_SIGNAL, PASSES = 0.5, 10
"""Seconds for the observables of an interrupted run, and steps that those of a record take, about:
where steps are slow its later records are left to the checkpoint."""
TOGETHER = 1 << 18
"""Numbers of the states whose observables are computed between two looks for an interruption."""
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
    record: int | str | ArrayLike | None = None,
    initial: ArrayLike | None = None,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
) -> Trajectory:
    """Run gradient descent.

    Parameters
    ----------
    problem : Problem
    eta : float or sequence of float
        Learning rate, or one for each parameter group (v and A), where 0 keeps a group at rest;
        time is the largest times steps.
    steps : int
        Number of steps.
    record : int, "log", int array or None
        Every so many steps; at 400 logarithmically spaced steps (the default, fewer where 400
        states are more than 16 MiB, but at least 64); or at these steps. The first and the last
        state are always recorded. What needs a pass over fresh samples, as the test error does, is
        computed at every record that is asked for; by default at as many, spaced evenly among them,
        as `SHARE` of the steps pay for, the last one included, and is NaN at the others.
    initial : array, optional
        Where to start; the problem's own start by default.
    checkpoint : path-like, optional
        A file that holds the state of the run while it is under way, written every few seconds and
        at an interruption. If it exists, the run goes on from there, to bitwise the same end. It is
        removed when the run has finished.

    Returns
    -------
    Trajectory
        Its outcome says whether the run went well; a run that diverges, oscillates or is
        interrupted (Ctrl-C, SIGTERM) is returned up to there.

    Raises
    ------
    InvalidRequest
        If problem is none, eta, steps, record or initial is not valid, the records do not fit in
        memory, or the checkpoint is of another run or damaged.

    Warns
    -----
    TrainingWarning
        Where a reduction does not hold to the end of the run, and where a learning rate is near
        the stability limit or beyond it; also in its ``remarks``.

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    >>> run = dynamics.descend(problem, eta=0.02, steps=1000)
    >>> run.outcome.kind, run.states.shape[1], int(run.steps[-1])
    ('reached horizon', 3, 1000)
    """
    run = finished(begun(problem, eta, steps, record, initial), checkpoint)
    return with_remarks(run, problem)


def begun(
    problem: Problem,
    eta: float | ArrayLike,
    steps: int,
    record: int | str | ArrayLike | None = None,
    initial: ArrayLike | None = None,
) -> Run:
    """A run at its start, after the checks of a request.

    Parameters
    ----------
    problem, eta, steps, record, initial
        As of `descend`.

    Raises
    ------
    InvalidRequest
        As `descend`.
    """
    check_problem(problem)
    rates = learning_rate(eta, problem.layout.group_names)
    asked = DefaultRecords.of(problem.layout.size) if record is None else record
    schedule = record_schedule(check_steps(steps), asked)
    check_memory(schedule, problem.layout.size, asked)
    start = starting_state(problem, initial)
    return Run(problem, rates, start, schedule, frugal=isinstance(asked, DefaultRecords))


def finished(run: Run, checkpoint: str | os.PathLike[str] | Checkpoint | None = None) -> Trajectory:
    """Run to the end from where a run is; what is known of it.

    Parameters
    ----------
    run : Run
    checkpoint : path-like, optional
        As of `descend`.
    """
    problem, steps, rates = run.problem, int(run.schedule[-1]), list(run.rates)
    store = None if checkpoint is None else Checkpoint.at(checkpoint)
    request = {}
    if store:
        request = request_of(problem, run.start, run.schedule, eta=rates, steps=steps)
    if store and (earlier := store.read(request)) is not None:
        run.restore(earlier)

    def save() -> None:
        if store and run.step:
            store.write(request, run.state())

    with interruption() as interrupted:
        records, stopped = _drive(run, steps, save, due=store.due if store else lambda: False)
        remedy = (RESUME if store else CONTINUE) if stopped else ""
        ended = _finish(run, int(records.steps[-1]), remedy, steps, interrupted)
        outcome = _checked(ended, run, records)
    if store and not (stopped or store.keep):
        store.discard()
    return _trajectory(run, steps, records, outcome)


def _drive(
    run: Run, steps: int, save: Callable[[], None], due: Callable[[], bool]
) -> tuple[_Records, bool]:
    """Run to the last step, with progress and checkpoints; the records, and whether it was stopped.

    ``save`` writes a checkpoint, and ``due`` says whether it is time to.
    """
    with interruption() as interrupted, bar(run.problem.view, steps, run.step) as progress:

        def proceed() -> bool:
            progress.update(run.step - progress.n)
            if run.warning:
                progress.clear()
                warnings.warn(run.warning, TrainingWarning, stacklevel=6)
                run.warning = ""
            if due():
                save()
            return not interrupted.is_set()

        try:
            run.go(steps, proceed)
        except KeyboardInterrupt:  # while something was compiled
            save()
            raise
        proceed()
        progress.close()
        if interrupted.is_set():
            save()
        stopped = interrupted.is_set() and run.step < steps and not run.diverged
        records = _records(run, interrupted)
        if records.steps[-1] < run.step:
            stopped = True
            save()
    return records, stopped


class _Records(NamedTuple):
    """Recorded steps, their states, shape (records, n), and observables."""

    steps: NDArray[np.int64]
    states: FloatArray
    observables: Mapping[str, FloatArray]


def _records(run: Run, interrupted: threading.Event) -> _Records:
    """The records of a run; an interruption leaves those whose observables are computed."""
    steps, states = run.records()
    if interrupted.is_set() and run.pace:
        most = max(1, int(SECONDS_AFTER_SIGNAL / (PASSES * run.pace)))
        steps, states = steps[:most], states[:most]
    costly = _paid_for(run, steps.size)
    already = interrupted.is_set()
    columns: dict[str, FloatArray] = {}
    done, together = 0, max(1, TOGETHER // run.now.size)
    while done < steps.size:
        part = slice(done, done + together)
        found = run.problem.observables_of_records(states[part], costly[part])
        for name, values in found.items():
            if name not in columns:
                columns[name] = np.full(steps.size, np.nan)
            columns[name][part] = values
        done = min(done + together, steps.size)
        if interrupted.is_set() and not already:
            break
    return _Records(steps[:done], states[:done], {n: each[:done] for n, each in columns.items()})


def _paid_for(run: Run, records: int) -> NDArray[np.bool_]:
    """At which records costly observables are computed, the last always among them."""
    cost = run.problem.costly_passes
    if not run.frugal or not cost:
        return np.ones(records, dtype=bool)
    number = min(records, max(1, int(SHARE * run.step / cost)))
    paid = np.zeros(records, dtype=bool)
    paid[-1] = True
    if number > 1:
        paid[np.rint(np.linspace(0, records - 1, number)).astype(np.int64)] = True
    return paid


def _trajectory(run: Run, steps: int, records: _Records, outcome: Outcome) -> Trajectory:
    problem, rates = run.problem, run.rates
    return Trajectory(
        system=problem.system,
        view=problem.view,
        parameters=asdict(problem.parameters),
        layout=problem.layout,
        settings={
            "eta": rates[0] if len(set(rates)) == 1 else list(rates),
            "steps": steps,
            **problem.settings,
        },
        steps=records.steps,
        time=np.asarray(records.steps * run.step_time, dtype=np.float64),
        states=records.states,
        observables=records.observables,
        events=Events({rule.name: _event(run, rule, records) for rule in problem.events}),
        outcome=outcome,
        reasons=explained(
            {n: d.reason for n, d in run.detector.detections.items() if d.step is None},
            problem,
            records.observables,
        ),
        presentation=Presentation.of(problem),
        remarks=tuple(run.remarks),
    )


def _finish(
    run: Run,
    recorded: int,
    stopped: str,
    steps: int,
    interrupted: threading.Event,
) -> Outcome:
    """The outcome; the rules that need the whole run are applied, and the run cannot go on.

    Parameters
    ----------
    run : Run
    recorded : int
        Last recorded step.
    stopped : str
        What to do about an interruption; empty if there was none.
    steps : int
        Steps of the request.
    interrupted : threading.Event
        Ends the search for a smaller learning rate.
    """
    if not run.diverged:
        run.track(run.step, run.last_pass().order_parameters[None, :], run.now)
    run.look_for_events()
    outcome = _outcome(run, steps, stopped, lambda: not interrupted.is_set())
    fate = ends.OSCILLATING if outcome.kind == ends.OSCILLATING else ""
    if outcome.kind == ends.DIVERGED:
        fate = f"diverged at step {run.step}"
    run.detector.finish(run.step, fate, lambda s, a, b: run.replay(s, a, b)[0], lambda: _again(run))
    if recorded < run.step:
        return Outcome(ends.INTERRUPTED, recorded, recorded * run.step_time, stopped)
    return outcome


def _again(run: Run) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """All steps of a run once more, up to an interruption."""
    with interruption() as interrupted, bar(f"{run.problem.view}, events", run.step) as progress:
        for first, rows, state in run.again(lambda: not interrupted.is_set()):
            yield first, rows, state
            progress.update(len(rows))


def _checked(outcome: Outcome, run: Run, records: _Records) -> Outcome:
    """The outcome; diverged where the run went to its end with a risk that is not finite."""
    broken = first_not_finite(records.states, records.observables)
    if outcome.failed or outcome.kind == ends.INTERRUPTED:
        return outcome
    if broken is None:
        remark = undefined(records.observables)
        return replace(outcome, remedy=remark) if remark else outcome
    step = int(records.steps[broken])
    remedy = SMALLER if step == 0 else f"a smaller eta than {run.step_time:g}, or {SMALLER}"
    text = f"risk or state is not finite there; try {remedy}"
    return Outcome(ends.DIVERGED, step, step * run.step_time, text)


def _event(run: Run, rule: EventRule, records: _Records) -> Event:
    """The event with its state, computed again from the last stored state before it."""
    detected = run.detector.detections[rule.name]
    step = detected.step
    if step is None:
        return Event.missing(rule.name, run.now.size)
    k = int(np.searchsorted(records.steps, step, side="right")) - 1
    begin, state = int(records.steps[k]), records.states[k]
    if detected.origin is not None and detected.origin[0] > begin:
        begin, state = detected.origin
    horizon = run.step * run.step_time if rule.whole_run else None
    return Event(rule.name, step * run.step_time, step, run.replay(state, begin, step)[1], horizon)


def _outcome(run: Run, steps: int, stopped: str, proceed: Callable[[], bool]) -> Outcome:
    problem, reached, now = run.problem, run.step, run.step * run.step_time
    if run.diverged:
        if failure := gradient_failure(problem, run.now):
            return Outcome(ends.PRECISION_LOST, reached, now, failure)
        return Outcome(
            ends.DIVERGED,
            reached,
            now,
            smaller_rate(problem, run.rates, run.start, steps, proceed=proceed),
        )
    if stopped and reached < steps:
        return Outcome(ends.INTERRUPTED, reached, now, stopped)
    lasting = run.oscillation.lasting(reached) and not run.last_pass().by_rounding
    if lasting and (decay := run.oscillation.decay(reached)) is not None:
        used = rates_text(run.rates, run.step_time)
        return Outcome(ends.HORIZON, reached, now, ZIGZAG.format(used, decay))
    if lasting:
        began = run.oscillation.began
        remedy = smaller_rate(problem, run.rates, run.now, steps, True, proceed)
        return Outcome(ends.OSCILLATING, began, began * run.step_time, remedy)
    last = run.last_pass()
    still = not (last.moves or last.at_rest)
    kind = ends.CONVERGED if last.at_rest else ends.HORIZON
    remark = TOO_SMALL.format(rates_text(run.rates, run.step_time)) if still else ""
    return Outcome(kind, reached, now, remark)
