r"""Gradient flow: training in continuous time, where the state changes at minus the gradient.

The problem is stiff: fast scalars relax in a time (eta times steps) of 0.01 to 1, slow scalars in a
time of 1e2 to 1e7. A small state with a compiled gradient is integrated by collocation in
logarithmic time (`dynamics.loops.kernels.collocation`), any other problem by LSODA
(`dynamics.training.lsoda`). Events are located on the path by `dynamics.training.flow_events`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.loops import FULL, STUCK, Integration, in_threads
from dynamics.presentation import Presentation
from dynamics.problem import FloatArray, Problem, check_problem, columns_of, gradient_failure
from dynamics.results import outcome as ends
from dynamics.results.event import Event, Events
from dynamics.results.outcome import SMALLER, Outcome
from dynamics.results.trajectory import (
    Trajectory,
    explained,
    first_not_finite,
    undefined,
    with_remarks,
)
from dynamics.training.flow_events import UNRESOLVED, EventTime, locate_events
from dynamics.training.flow_path import (
    MAX_STEPS,
    NO_STEPS,
    TOO_MANY,
    Allowed,
    FlowPath,
    Polynomials,
    compiled_model,
    tolerance_floor,
)
from dynamics.training.lsoda import by_lsoda
from dynamics.training.progress import Bar, bar, interruption
from dynamics.training.settings import check_flow, record_times, starting_state

MOST_IMPLICIT = 32
"""Maximum number of entries of a state that collocation integrates; larger states use LSODA."""
OF_A_STEP, ENOUGH = 0.1, 1e-9
"""The tolerance of a collocation step is max(OF_A_STEP * rtol, min(rtol, ENOUGH)). Rates near 0,
and the times of their roots, have about 100 times the errors of the states."""
FINE, FINE_BY_LSODA = 1e-12, 1e-10
"""Relative tolerance of a step when a flow is integrated a second time, by collocation and by
LSODA. With a smaller tolerance LSODA would take too many steps when the state is at rest."""
FEWEST_AGAIN, MOST_AGAIN = 500, 8
"""The second integration of a flow has at most max(FEWEST_AGAIN, MOST_AGAIN * steps of the first
integration) steps. An integration that needs more is slowed by rounding errors."""
BEYOND = 1.2
"""End time of a second integration by LSODA, divided by the time of the last event."""
EARLIER = "start elsewhere, or stop at this time"


def flow(
    problem: Problem,
    time: float,
    rtol: float = 1e-8,
    initial: ArrayLike | None = None,
    record: int | ArrayLike | None = None,
    compiled: bool = True,
) -> Trajectory:
    """Integrate the gradient flow.

    Parameters
    ----------
    problem : Problem
    time : float
        Horizon, in units of eta * steps.
    rtol : float
        Relative tolerance of the states. Values above 1e-8 are replaced by 1e-8, so that event
        times have relative errors below 1e-5.
    initial : array, optional
        Initial state; default: ``problem.initial_state``.
    record : int or float array, optional
        Number of logarithmically spaced records (default 300), or their times in any order.
        Duplicates, and times after the end of the run, are dropped.
    compiled : bool
        Whether collocation integrates small states with a compiled gradient; otherwise scipy's
        LSODA integrates every problem.

    Returns
    -------
    Trajectory
        Run without ``steps``; the setting ``integrator`` names the integrator.

    Raises
    ------
    InvalidRequest
        If problem is not a Problem, or time, rtol, initial or record is invalid.

    Warns
    -----
    TrainingWarning
        If the reduction stops being exact; the trajectory has the same text in ``remarks``.

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    >>> run = dynamics.flow(problem, time=1e4)
    >>> round(run.events["T1"].time, 3), run.reasons["event_III"]
    (356.628, 'still decreases when the run ends')
    """
    check_problem(problem)
    time, rtol = check_flow(time, rtol, problem.flows)
    path = integrate_flow(problem, starting_state(problem, initial), time, rtol, compiled)
    return with_remarks(_trajectory(path, time, record), problem)


def flows(
    problems: Iterable[Problem],
    time: float,
    rtol: float = 1e-8,
    record: int | ArrayLike | None = None,
) -> list[Trajectory]:
    """Integrate the flows of several problems in parallel; each result is bitwise that of `flow`.

    Parameters
    ----------
    problems : iterable of Problem
        Problems that numba's threads share.
    time, rtol, record
        Settings of all flows, as for `flow`.

    Raises
    ------
    InvalidRequest
        If an item is not a Problem, or time, rtol or record is invalid.

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> several = [system.ReducedPopulation(system.Parameters(D=8, C=2, q=q)) for q in (0.3, 0.5)]
    >>> [round(run.events["T1"].time, 3) for run in dynamics.flows(several, time=1e4)]
    [141.38, 356.628]
    """
    problems = list(problems)
    for problem in problems:
        check_problem(problem)
        time, rtol = check_flow(time, rtol, problem.flows)
    paths = integrate_flows(problems, [each.initial_state for each in problems], time, rtol)
    runs = [_trajectory(path, time, record) for path in paths]
    return [with_remarks(run, each) for run, each in zip(runs, problems, strict=True)]


def implicit_model(problem: Problem) -> Any:
    """Compiled functions of a problem for collocation, or None if the problem needs LSODA."""
    return compiled_model(problem) if problem.layout.size <= MOST_IMPLICIT else None


def integrate_flow(
    problem: Problem, start: FloatArray, time: float, rtol: float, compiled: bool = True
) -> FlowPath:
    """Integrate a flow from the state `start` to the horizon `time`, without records and events.

    With ``compiled=False`` LSODA integrates every problem.
    """
    path = None
    if compiled:
        with bar(f"flow, {problem.view}") as shown:
            path = _by_collocation(problem, start, time, rtol, shown)
    return path or by_lsoda(problem, start, time, rtol)


def integrate_flows(
    problems: Sequence[Problem], starts: Sequence[FloatArray], time: float, rtol: float
) -> list[FlowPath]:
    """Integrate several flows in parallel; each path is bitwise that of `integrate_flow`."""
    pairs = list(zip(problems, starts, strict=True))
    with interruption():
        paths = in_threads(lambda pair: _by_collocation(pair[0], pair[1], time, rtol), pairs)
        return [
            path or by_lsoda(*pair, time, rtol) for path, pair in zip(paths, pairs, strict=True)
        ]


def _by_collocation(
    problem: Problem, start: FloatArray, time: float, rtol: float, shown: Bar | None = None
) -> FlowPath | None:
    """Integrate a flow by collocation; return None if LSODA must integrate it instead."""
    if (model := implicit_model(problem)) is None:
        return None
    of_step = max(OF_A_STEP * rtol, min(rtol, ENOUGH))
    running = Integration(model, start, (0.0, time), of_step, tolerance_floor(start, rtol))
    kind, failure = _proceed(running, MAX_STEPS, shown), ""
    if kind == ends.STALLED:
        failure = TOO_MANY
    elif running.outcome == STUCK:
        refused = running.control.refused
        if np.isfinite(refused).all():
            # A compiled gradient may overflow although the problem's own gradient is finite.
            if np.isfinite(problem.gradient(refused)).all():
                return None
            failure = gradient_failure(problem, refused)
        kind = ends.PRECISION_LOST if failure else ends.DIVERGED
    return _path(problem, running, start, (rtol, rtol), kind, failure)


def _proceed(running: Integration, most: int, shown: Bar | None = None) -> str:
    """Integrate to the end, for `most` steps or to an interruption; return an `Outcome.kind`."""
    with interruption() as interrupted:
        while True:
            before = running.steps
            running.proceed()
            if shown is not None:
                shown.say(f"time {running.time:.3g} of {running.end:g}")
                shown.update(running.steps - before)
            if running.outcome != FULL:
                return ends.HORIZON
            if running.steps > most:
                return ends.STALLED
            if interrupted.is_set():
                return ends.INTERRUPTED


def _path(
    problem: Problem,
    running: Integration,
    start: FloatArray,
    tolerances: tuple[float, float],
    kind: str,
    failure: str = "",
) -> FlowPath:
    """Make a FlowPath; `tolerances` holds the requested tolerance and that of `Allowed`."""
    rtol, reported = tolerances
    made = Polynomials(running.path(), start, running.data) if running.steps else None
    nodes, at = (made.path.nodes, made) if made else (NO_STEPS, lambda _: start)
    allowed = Allowed(problem, reported, tolerance_floor(start, rtol), float(nodes[-1]))
    return FlowPath(problem, nodes, at, allowed, rtol, running.control.relative, kind, failure)


def _again(path: FlowPath, end: float) -> FlowPath | None:
    """Integrate a flow again at another tolerance, smaller if possible, to estimate its errors."""
    problem, start, at = path.problem, path.at(0.0), path.at
    least = FINE if isinstance(at, Polynomials) else FINE_BY_LSODA
    of_step = least if path.of_step >= 10.0 * least else 10.0 * path.of_step
    floor = tolerance_floor(start, path.rtol)
    most = max(FEWEST_AGAIN, MOST_AGAIN * path.nodes.size)
    if isinstance(at, Polynomials):
        running = Integration(at.model, start, (0.0, end), of_step, floor)
        again = _path(problem, running, start, (path.rtol, of_step), _proceed(running, most))
    else:
        again = by_lsoda(problem, start, end, of_step, floor, most)
    return again if again.nodes[-1] > NO_STEPS[-1] else None


def _observed(problem: Problem, states: FloatArray) -> dict[str, FloatArray]:
    """Observables of all states, computed one by one if the problem takes only single states."""
    if hasattr(problem, "observables_along"):
        return problem.observables_along(states)
    return columns_of([problem.observables(state) for state in states])


def _trajectory(path: FlowPath, time: float, record: int | ArrayLike | None = None) -> Trajectory:
    """Trajectory of an integrated flow: records and events up to the horizon `time`."""
    problem, nodes, kind, failure = path.problem, path.nodes, path.kind, path.failure
    times = record_times(nodes, record, time)
    states = path.states(times)
    located = {} if isinstance(path.at, Polynomials) else locate_events(path, None, times)
    end = _far_enough(path, located)
    again = _again(path, end) if end > 0.0 and kind != ends.INTERRUPTED else None
    if again and again.kind == ends.INTERRUPTED:
        kind = ends.INTERRUPTED
    if again or not located:
        located = locate_events(path, again, times)
    observables = _observed(problem, states)
    end = float(nodes[-1])
    if (broken := first_not_finite(states, observables)) is not None and kind == ends.HORIZON:
        kind, end = ends.DIVERGED, float(times[broken])
        failure = f"risk or state is not finite there; try {SMALLER}, or stop before"
    remedy = failure or (undefined(observables) if kind == ends.HORIZON else EARLIER)
    return Trajectory(
        system=problem.system,
        view=problem.view,
        parameters=asdict(problem.parameters),
        layout=problem.layout,
        settings={
            "time": time,
            "rtol": path.rtol,
            "integrator": "collocation" if isinstance(path.at, Polynomials) else "LSODA",
            **problem.settings,
        },
        steps=np.empty(0, dtype=np.int64),
        time=times,
        states=states,
        observables=observables,
        events=_events(problem, path, located),
        outcome=Outcome(kind, None, end, remedy),
        reasons=explained(
            {name: event.reason for name, event in located.items() if event.time is None},
            problem,
            observables,
        ),
        presentation=getattr(problem, "presentation", None) or Presentation.plain(problem),
    )


def _far_enough(path: FlowPath, located: dict[str, EventTime]) -> float:
    """Time up to which a flow is integrated a second time to estimate errors, or 0 to skip this.

    The second integration by LSODA ends soon after the last event, because steps at rest are
    expensive. For events that are undecided or depend on the whole run, both integrations end at
    the same time.
    """
    end, rules = float(path.nodes[-1]), path.problem.events
    if not rules or end <= np.finfo(np.float64).tiny:
        return 0.0
    if isinstance(path.at, Polynomials):
        return end
    found = {name: event.time for name, event in located.items() if event.time is not None}
    undecided = any(event.reason == UNRESOLVED for event in located.values())
    if undecided or any(rule.whole_run and rule.name in found for rule in rules):
        return end
    return min(end, BEYOND * max(found.values(), default=0.0))


def _events(problem: Problem, path: FlowPath, located: dict[str, EventTime]) -> Events:
    """Events and their states at the located times; events not reached are included as missing."""
    horizon, size = float(path.nodes[-1]), path.at(0.0).size
    whole = {rule.name for rule in problem.events if rule.whole_run}
    events = Events()
    for name, event in located.items():
        if event.time is None:
            events[name] = Event.missing(name, size)
            continue
        seen = horizon if name in whole else None
        events[name] = Event(name, event.time, None, path.at(event.time), seen, event.uncertainty)
    return events
