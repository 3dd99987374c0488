r"""Gradient flow, :math:`d\theta/d\tau = -g(\theta)`: training in continuous time.

alpha relaxes in a time of order 0.01 to 1 while gamma and rho move over 1e2 to 1e7, so the problem
is stiff and gradient descent needs millions of steps. LSODA of scipy, with the problem's own
Jacobian where it has one, needs some thousand gradients. Time is the same axis as eta times steps.
"""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
from numpy.typing import ArrayLike

from dynamics.problem import FloatArray, Problem, certificate_failure, check_problem
from dynamics.results import outcome as ends
from dynamics.results.event import Event, Events
from dynamics.results.outcome import SMALLER, Outcome, first_not_finite, undefined
from dynamics.results.presentation import Presentation
from dynamics.results.trajectory import Trajectory, explained, series
from dynamics.training.event_location import EventTime, FlowPath, locate_events
from dynamics.training.progress import bar, interruption
from dynamics.training.settings import check_flow, record_times, starting_state

MAX_STEPS = 200_000
EARLIER = "start elsewhere, or stop at this time"


def flow(
    problem: Problem,
    time: float,
    rtol: float = 1e-8,
    initial: ArrayLike | None = None,
    record: int | ArrayLike | None = None,
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
        Number of logarithmically spaced records (default 300), or the times themselves; those that
        a run does not reach are left out.

    Returns
    -------
    Trajectory
        ``steps`` is empty; the events are located by root finding inside the steps.

    Raises
    ------
    InvalidRequest
        If problem is none, or time, rtol, initial or record is not valid.

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
    path, kind, failure = _integrate(problem, start, time, rtol)
    nodes, at = path.nodes, path.at
    times = record_times(nodes, record, time)
    states = np.array([at(t) for t in times])
    located = locate_events(path)
    observables = [problem.observables(state) for state in states]
    end = float(nodes[-1])
    if (broken := first_not_finite(states, observables)) is not None and kind == ends.HORIZON:
        kind, end = ends.DIVERGED, float(times[broken])
        failure = f"risk or state is not finite there; try {SMALLER}, or stop before"
    remedy = failure or (undefined(observables[-1]) if kind == ends.HORIZON else EARLIER)
    return Trajectory(
        system=problem.system,
        view=problem.view,
        parameters=asdict(problem.parameters),
        layout=problem.layout,
        settings={"time": time, "rtol": rtol, **problem.settings},
        steps=np.empty(0, dtype=np.int64),
        time=times,
        states=states,
        observables=series(observables),
        events=_events(problem, path, located),
        outcome=Outcome(kind, None, end, remedy),
        reasons=explained(
            {name: event.reason for name, event in located.items() if event.time is None},
            problem,
            observables,
        ),
        presentation=Presentation.of(problem),
    )


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


def _floor(start: FloatArray, rtol: float) -> FloatArray:
    """The absolute tolerance of every entry."""
    return 1e-3 * rtol * np.maximum(np.abs(start), 1e-2)


def _integrate(
    problem: Problem, start: FloatArray, time: float, rtol: float
) -> tuple[FlowPath, str, str]:
    """The path, how it ended, and why the problem could not go on."""
    from scipy.integrate import LSODA, OdeSolution

    refused: list[FloatArray] = []  # states of the step under way that have no gradient

    def rate(_: float, state: FloatArray) -> FloatArray:
        slope = problem.gradient(state)
        if np.isfinite(state).all() and not np.isfinite(slope).all():
            refused.append(state.copy())
        return -slope

    def jacobian(_: float, state: FloatArray) -> FloatArray:
        return -problem.jacobian(state)

    solver = LSODA(
        rate,
        0.0,
        start,
        time,
        rtol=rtol,
        atol=_floor(start, rtol),
        jac=jacobian if problem.has_jacobian else None,
    )
    nodes, pieces, kind, failure = [0.0], [], ends.HORIZON, ""
    with interruption() as interrupted, bar(f"flow, {problem.view}") as shown:
        while solver.status == "running":
            solver.step()
            stuck = solver.t <= nodes[-1]  # the step is below the spacing of numbers there
            if stuck or solver.status == "failed" or not np.isfinite(solver.y).all():
                failure = certificate_failure(problem, refused[0]) if refused else ""
                kind = ends.CERTIFICATE_LOST if failure else ends.DIVERGED
                break
            if interrupted.is_set() or len(nodes) > MAX_STEPS:
                kind = ends.INTERRUPTED
                break
            refused.clear()
            nodes.append(solver.t)
            pieces.append(solver.dense_output())
            shown.set_postfix_str(f"time {solver.t:.3g} of {time:g}", refresh=False)
            shown.update()
    if not pieces:
        nodes, pieces = [0.0, np.finfo(float).tiny], [lambda t: start]
    allowed = lambda state: rtol * np.abs(state) + _floor(start, rtol)  # noqa: E731
    path = FlowPath(problem, np.array(nodes), OdeSolution(nodes, pieces), allowed, rtol)
    return path, kind, failure
