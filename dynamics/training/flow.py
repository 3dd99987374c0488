r"""Gradient flow, :math:`d\theta/d\tau = -g(\theta)`: training in continuous time.

alpha relaxes in a time of order 0.01 to 1 while gamma and rho move over 1e2 to 1e7, so the problem
is stiff. Where the gradient is compiled and the state small, it is integrated by collocation in
logarithmic time (`dynamics.loops.kernels.collocation`), with no Python between the steps; else by
LSODA (`dynamics.training.lsoda`). The events are located on the path
(`dynamics.training.flow_events`). Time is the same axis as eta times steps.
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
"""Entries of the largest state whose linear systems collocation solves."""
OF_A_STEP, ENOUGH = 0.1, 1e-9
"""What a step of collocation may err relative to the state: over the relative tolerance, and what
is small enough in any case (at 1e-8, the loosest of a flow, they are the same). A rate that is near
0, and the time at which it is 0, err some hundred times as much as the states."""
FINE, FINE_BY_LSODA = 1e-12, 1e-10
"""What a step of the second path may err, by collocation and by LSODA, which takes endless steps at
rest where it may err less."""
FEWEST_AGAIN, MOST_AGAIN = 500, 8
"""Steps of the second path: at most as many as the first, or so many times those of the first.
Where they do not reach its end, rounding allows nothing closer."""
BEYOND = 1.2
"""Time to which LSODA integrates again, over that of the last event."""
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
        Relative tolerance of the states; nothing looser than 1e-8 is used, so that event times are
        right to 1e-5.
    initial : array, optional
        Where to start; the problem's own start by default.
    record : int or float array, optional
        Number of logarithmically spaced records (default 300), or the times themselves, in any
        order, of which each is recorded once; those that a run does not reach are left out.
    compiled : bool
        Whether the compiled integrator is used where the gradient is compiled and the state small;
        else LSODA of scipy.

    Returns
    -------
    Trajectory
        ``steps`` is empty; the events are located by root finding inside the steps. Its setting
        ``integrator`` says which it was.

    Raises
    ------
    InvalidRequest
        If problem is none, or time, rtol, initial or record is not valid.

    Warns
    -----
    TrainingWarning
        Where a reduction does not hold to the end of the run; also in its ``remarks``.

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    >>> run = dynamics.flow(problem, time=1e4)
    >>> round(run.events["T1"].time, 3), run.reasons["event_III"]
    (356.628, 'falls to the horizon')
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
    """Integrate the gradient flows of several problems, in as many threads as numba has.

    Parameters
    ----------
    problems : iterable of Problem
    time, rtol, record
        As for `flow`.

    Returns
    -------
    list of Trajectory
        Each bitwise what `flow` returns.

    Raises
    ------
    InvalidRequest
        If one of the problems is none, or time, rtol or record is not valid.

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
    """Data of the compiled functions with which collocation integrates; None where it does not."""
    return compiled_model(problem) if problem.layout.size <= MOST_IMPLICIT else None


def integrate_flow(
    problem: Problem, start: FloatArray, time: float, rtol: float, compiled: bool = True
) -> FlowPath:
    """The flow from a start to a horizon, without records and events.

    `start`, shape (n,); `time`: horizon; `rtol`: relative tolerance; `compiled`: whether
    collocation is used where it can be; else LSODA.
    """
    path = None
    if compiled:
        with bar(f"flow, {problem.view}") as shown:
            path = _by_collocation(problem, start, time, rtol, shown)
    return path or by_lsoda(problem, start, time, rtol)


def integrate_flows(
    problems: Sequence[Problem], starts: Sequence[FloatArray], time: float, rtol: float
) -> list[FlowPath]:
    """The flows of several problems, in as many threads as numba has; each as it is alone."""
    pairs = list(zip(problems, starts, strict=True))
    with interruption():
        paths = in_threads(lambda pair: _by_collocation(pair[0], pair[1], time, rtol), pairs)
        return [
            path or by_lsoda(*pair, time, rtol) for path, pair in zip(paths, pairs, strict=True)
        ]


def _by_collocation(
    problem: Problem, start: FloatArray, time: float, rtol: float, shown: Bar | None = None
) -> FlowPath | None:
    """The flow by collocation; None where the compiled gradient cannot go on, or there is none."""
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
            # A compiled gradient may overflow where that of the problem does not.
            if np.isfinite(problem.gradient(refused)).all():
                return None
            failure = gradient_failure(problem, refused)
        kind = ends.PRECISION_LOST if failure else ends.DIVERGED
    return _path(problem, running, start, (rtol, rtol), kind, failure)


def _proceed(running: Integration, most: int, shown: Bar | None = None) -> str:
    """Integrate to the end, for some steps, or up to an interruption; return how it ended."""
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
    """Result of a collocation; it has the requested and the reported tolerance."""
    rtol, reported = tolerances
    made = Polynomials(running.path(), start, running.data) if running.steps else None
    nodes, at = (made.path.nodes, made) if made else (NO_STEPS, lambda _: start)
    allowed = Allowed(problem, reported, tolerance_floor(start, rtol), float(nodes[-1]))
    return FlowPath(problem, nodes, at, allowed, rtol, running.control.relative, kind, failure)


def _again(path: FlowPath, end: float) -> FlowPath | None:
    """The flow to some time near rounding, or looser where the path itself is near rounding.

    It goes as far as it can; None where that is nowhere.
    """
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
    """Observables of every state; a problem of a caller's own may know them of one at a time."""
    if hasattr(problem, "observables_along"):
        return problem.observables_along(states)
    return columns_of([problem.observables(state) for state in states])


def _trajectory(path: FlowPath, time: float, record: int | ArrayLike | None = None) -> Trajectory:
    """The records and events of a flow to a horizon."""
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
    """The time to which a path is compared with one at another tolerance; 0 where to none.

    Of LSODA, whose steps at rest are dear, to the last event that the path alone has, unless it
    leaves one undecided.
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
    """The located events with their states; those that are not reached too."""
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
