"""What a finished run of gradient descent amounts to: outcome and remedy, events, trajectory."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from dynamics.problem import FloatArray, certificate_failure
from dynamics.results import outcome as ends
from dynamics.results.outcome import Outcome
from dynamics.results.presentation import Presentation
from dynamics.results.trajectory import Event, Trajectory, series
from dynamics.training.run import Run
from dynamics.training.schedule import record_schedule
from dynamics.training.stability_limit import stability_limit
from theory.events import EventRule

CALM_STEPS = 20_000
FEWEST_CALM = 200

Records = tuple[NDArray[np.int64], FloatArray, list[Mapping[str, float]]]
"""Steps, states, observables."""


def observed(run: Run, interrupted: threading.Event) -> Records:
    """The records with their observables; an interruption meanwhile leaves those that have them."""
    steps, states = run.records()
    already = interrupted.is_set()
    gathered: list[Mapping[str, float]] = []
    for state in states:
        gathered.append(run.problem.observables(state))
        if interrupted.is_set() and not already:
            break
    return steps[: len(gathered)], states[: len(gathered)], gathered


def settled(
    run: Run, records: Records, steps: int, rates: tuple[float, ...], stopped: str
) -> Trajectory:
    """Settle events and outcome, and gather everything; the run cannot go on after that.

    Parameters
    ----------
    run : Run
    records : Records
        Of `observed`.
    steps : int
        Steps that were asked for.
    rates : tuple of float
        Learning rates.
    stopped : str
        What to do about an interruption; empty if there was none.
    """
    recorded, states, gathered = records
    problem, reached = run.problem, run.step
    if not run.diverged:
        run.watch(reached, problem.order_parameters(run.now)[None, :], run.now)
    result = _outcome(run, steps, states[0], stopped)
    fate = ends.OSCILLATING if result.kind == ends.OSCILLATING else "falls to the horizon"
    if result.kind == ends.DIVERGED:
        fate = f"diverged at step {reached}"
    if recorded[-1] < reached:
        last = int(recorded[-1])
        result = Outcome(ends.INTERRUPTED, last, last * run.step_time, stopped)
    run.detector.finish(reached, fate, lambda s, a, b: run.rows(s, a, b)[0])
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
        steps=recorded,
        time=np.asarray(recorded * run.step_time, dtype=np.float64),
        states=states,
        observables=series(gathered),
        events={rule.name: _event(run, rule, recorded, states) for rule in problem.events},
        outcome=result,
        reasons={n: f.reason for n, f in run.detector.found.items() if f.step is None},
        presentation=Presentation.of(problem),
    )


def _event(
    run: Run, rule: EventRule, recorded: NDArray[np.int64], states: FloatArray
) -> Event | None:
    """The event with its state, run once more from the last known state before it."""
    found = run.detector.found[rule.name]
    if found.step is None:
        return None
    k = int(np.searchsorted(recorded, found.step, side="right")) - 1
    begin, state = int(recorded[k]), states[k]
    if found.origin is not None and found.origin[0] > begin:
        begin, state = found.origin
    step, state = found.step, run.rows(state, begin, found.step)[1]
    seen = run.step * run.step_time if rule.whole_run else None
    return Event(rule.name, step * run.step_time, step, state, seen)


def _outcome(run: Run, steps: int, start: FloatArray, stopped: str) -> Outcome:
    reached, now = run.step, run.step * run.step_time
    if run.diverged:
        if failure := certificate_failure(run.problem, run.now):
            return Outcome(ends.CERTIFICATE_LOST, reached, now, failure)
        return Outcome(ends.DIVERGED, reached, now, _remedy(run, start, steps))
    if stopped and reached < steps:
        return Outcome(ends.INTERRUPTED, reached, now, stopped)
    if run.oscillation.lasting(reached):
        began = run.oscillation.began
        remedy = _remedy(run, run.now, steps)
        return Outcome(ends.OSCILLATING, began, began * run.step_time, remedy)
    moved = run.now - run.eta * run.problem.gradient(run.now) != run.now
    return Outcome(ends.HORIZON if moved.any() else ends.CONVERGED, reached, now)


def _remedy(run: Run, start: FloatArray, steps: int) -> str:
    """The learning rate used, the stability limit on a calmer run, what to try.

    The learning rate is halved until the steps that were asked for, at most 20,000, end
    without a reversal from ``start``; the limit is the least along that run.
    """
    eta, used = run.eta, f"eta={run.step_time:g}"
    calm = min(CALM_STEPS, max(FEWEST_CALM, steps))
    problem = run.problem
    for _ in range(20):
        eta = eta / 2
        state, width = start.copy(), len(problem.order_names)
        # Contiguous: another layout would be compiled anew.
        schedule = record_schedule(calm, "log")[::8].copy()
        rows, records = np.empty((calm, width)), np.empty((schedule.size, state.size))
        done = problem.advance(state, eta, 0, calm, (rows, schedule, records))
        rate = rows[calm // 2 :, run.oscillation.column]
        if done == calm and not (np.sign(rate[1:]) * np.sign(rate[:-1]) < 0).any():
            records[-1] = state
            limits = [stability_limit(problem, record) for record in records]
            limit = min((bound for bound in limits if bound > 0), default=np.inf)
            if limit < run.step_time:
                tried = f"try eta={0.9 * limit:.2g}"
                return f"{used} is above the stability limit {limit:.4g} there; {tried}"
            break
    return f"{used} is too large; try eta={float(eta.max()):.2g}"
