r"""Gradient flow, :math:`d\theta/d\tau = -g(\theta)`: training in continuous time.

The integrators are in `dynamics.training.integration`; the events are located on the path
(`dynamics.training.flow_events`). Time is the same axis as eta times steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

import numpy as np
from numpy.typing import ArrayLike

from dynamics.presentation import Presentation
from dynamics.problem import FloatArray, Problem, check_problem, columns_of
from dynamics.results import outcome as ends
from dynamics.results.event import Event, Events
from dynamics.results.outcome import SMALLER, Outcome, first_not_finite, undefined
from dynamics.results.trajectory import Trajectory, explained, with_remarks
from dynamics.training.flow_events import EventTime, locate_events
from dynamics.training.flow_path import FlowPath, Polynomials
from dynamics.training.integration import (
    IntegratedFlow,
    integrate_again,
    integrate_flow,
    integrate_flows,
)
from dynamics.training.settings import check_flow, record_times, starting_state

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
    start = starting_state(problem, initial)
    made = integrate_flow(problem, start, time, rtol, compiled)
    return with_remarks(trajectory_of(made, time, record), problem)


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
    starts = [starting_state(problem, None) for problem in problems]
    made = integrate_flows(problems, starts, time, rtol)
    runs = [trajectory_of(each, time, record) for each in made]
    return [with_remarks(run, each) for run, each in zip(runs, problems, strict=True)]


def _observed(problem: Problem, states: FloatArray) -> dict[str, FloatArray]:
    """Observables of every state; a problem of a caller's own may know them of one at a time."""
    if hasattr(problem, "observables_along"):
        return problem.observables_along(states)
    return columns_of([problem.observables(state) for state in states])


def trajectory_of(
    made: IntegratedFlow, time: float, record: int | ArrayLike | None = None
) -> Trajectory:
    """The records and events of a flow that has been integrated.

    Parameters
    ----------
    made : IntegratedFlow
    time : float
        Horizon of the request.
    record : int, float array or None
        As for `flow`.
    """
    path, kind, failure = made.path, made.kind, made.failure
    problem, nodes = path.problem, path.nodes
    times = record_times(nodes, record, time)
    states = path.states(times)
    located = {} if isinstance(path.at, Polynomials) else locate_events(path, None, times)
    end = _far_enough(path, located)
    again = integrate_again(path, end) if end > 0.0 and kind != ends.INTERRUPTED else None
    if again and again.kind == ends.INTERRUPTED:
        kind = ends.INTERRUPTED
    if again or not located:
        located = locate_events(path, again.path if again else None, times)
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
        presentation=Presentation.of(problem),
    )


def _far_enough(path: FlowPath, located: dict[str, EventTime]) -> float:
    """The time to which a path is compared with one at another tolerance; 0 where to none.

    Of LSODA, whose steps at rest are dear, to the last event that the path alone has.
    """
    end, rules = float(path.nodes[-1]), path.problem.events
    if not rules or end <= np.finfo(np.float64).tiny:
        return 0.0
    if isinstance(path.at, Polynomials):
        return end
    found = {name: event.time for name, event in located.items() if event.time is not None}
    if any(rule.whole_run and rule.name in found for rule in rules):
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
