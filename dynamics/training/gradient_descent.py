r"""Gradient descent as a map, :math:`\theta \leftarrow \theta - \eta g(\theta)`.

The run is advanced in chunks (`iterate`), settled at the end (`settle`), and what happens between
the chunks is decided here: interruption, checkpoint, progress. None of it changes the result.
"""

from __future__ import annotations

import logging
import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.problem import FloatArray, Problem
from dynamics.results.trajectory import Trajectory
from dynamics.training import progress
from dynamics.training.checkpoint import Checkpoint, request_of
from dynamics.training.finish import observed, settled
from dynamics.training.interruption import interruption
from dynamics.training.run import Run
from dynamics.training.schedule import check_memory, check_steps, record_schedule
from dynamics.validation import learning_rate, refuse

__all__ = [
    "check_settings",
    "check_steps",
    "descend",
    "interruption",
    "record_schedule",
    "starting_state",
]

CONTINUE = "start again from its final state for the remaining steps"
RESUME = "the same run with the same checkpoint goes on from there"
LOG = logging.getLogger(__name__)


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
        Learning rate, or one for each parameter group (v and A); time is the first times steps.
    steps : int
        Number of steps.
    record : int, "log", int array or None
        Every so many steps; at logarithmically spaced steps (the default); or at these steps. The
        first and the last state are always recorded.
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
        If eta, steps or record is not valid, the records do not fit in memory, or the checkpoint is
        of another run or damaged.
    """
    rates = learning_rate(eta, problem.layout.group_names)
    steps = check_steps(steps)
    schedule = record_schedule(steps, record)
    check_memory(schedule, problem.layout.size, record)
    start = starting_state(problem, initial)
    run = Run(problem, rates, start, schedule)
    store, request = None, {}
    if checkpoint is not None:
        store = Checkpoint.at(checkpoint)
        request = request_of(problem, start, schedule, eta=list(rates), steps=steps)
        earlier = store.read(request)
        if earlier is not None:
            run.restore(earlier)

    def save() -> None:
        if store is not None and run.step:
            store.write(request, run.state())

    with interruption() as interrupted, progress.bar(problem.view, steps, run.step) as bar:

        def going_on() -> bool:
            bar.update(run.step - bar.n)
            if run.warning:
                bar.clear()
                LOG.warning(run.warning)
                run.warning = ""
            if store is not None and store.due():
                save()
            return not interrupted.is_set()

        run.go(steps, going_on)
        going_on()
        bar.close()
        if interrupted.is_set():
            save()
        stopped = interrupted.is_set() and run.step < steps and not run.diverged
        records = observed(run, interrupted)
        if records[0][-1] < run.step:
            stopped = True
            save()
        advice = CONTINUE if store is None else RESUME
        result = settled(run, records, steps, rates, advice if stopped else "")
    if store is not None and not (stopped or store.keep):
        store.discard()
    return result


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


def check_settings(eta: Any, steps: Any, record: Any) -> None:
    """Refuse settings that `descend` would refuse, before anything is compiled."""
    learning_rate(eta, None)
    record_schedule(check_steps(steps), record)
