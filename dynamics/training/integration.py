r"""Integrating a gradient flow: by compiled collocation, or by LSODA of scipy.

alpha relaxes in a time of order 0.01 to 1 while gamma and rho move over 1e2 to 1e7, so the problem
is stiff. Where the gradient is compiled and the state small, it is integrated by collocation in
logarithmic time (`dynamics.loops.kernels.collocation`), with no Python between the steps; else
LSODA integrates, with the problem's own Jacobian where it has one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics.loops import integration as running_flows
from dynamics.problem import FloatArray, Problem, gradient_failure
from dynamics.results import outcome as ends
from dynamics.training.flow_path import FlowPath, Polynomials, compiled_model
from dynamics.training.progress import bar, interruption
from dynamics.training.tolerances import Allowed, Lsoda, tolerance_floor

MAX_STEPS = 200_000
FINE, FINE_BY_LSODA, MOST_AGAIN = 1e-12, 1e-10, 8
"""What a step may err relative to the state on a path near rounding, by collocation and by LSODA,
which takes endless steps at rest where it may err less; and its steps over those of the path, at
most: where they do not reach its end, rounding allows nothing closer."""
FEWEST_AGAIN = 500
"""The same of a short path."""
TOO_MANY = (
    f"{MAX_STEPS:,} steps of the integrator do not reach the horizon, as where the gradient jumps; "
    "try gradient descent, or a flow that stops before"
)
FEWEST_STEPS = 64
"""Of LSODA: at rest its steps grow over what passes by meanwhile, and no error shows it."""
MOST_IMPLICIT = 32
"""Entries of the largest state whose linear systems the compiled integrator solves."""
OF_A_STEP, ENOUGH = 0.1, 1e-9
"""What a step of collocation may err relative to the state: over the relative tolerance, and what
is small enough in any case (at 1e-8, the loosest of a flow, they are the same). A rate that is near
0, and the time at which it is 0, err some hundred times as much as the states."""


@dataclass(frozen=True)
class IntegratedFlow:
    """A flow as far as it was integrated.

    Attributes
    ----------
    path : FlowPath
    kind : str
        How it ended, of `dynamics.results.outcome`.
    failure : str
        Why the problem could not go on; empty if it is not known.
    """

    path: FlowPath
    kind: str
    failure: str


def implicit_model(problem: Problem) -> Any:
    """The compiled functions with which collocation integrates the flow; None where it does not.

    Parameters
    ----------
    problem : Problem
    """
    return compiled_model(problem) if problem.layout.size <= MOST_IMPLICIT else None


def integrate_flow(
    problem: Problem, start: FloatArray, time: float, rtol: float, compiled: bool = True
) -> IntegratedFlow:
    """The flow from a start to a horizon.

    Parameters
    ----------
    problem : Problem
    start : float array, shape (n,)
    time : float
        Horizon.
    rtol : float
        Relative tolerance.
    compiled : bool
        Whether collocation is used where it can be; else LSODA.
    """
    model = implicit_model(problem) if compiled else None
    if model is None:
        return by_lsoda(problem, start, time, rtol)
    running = _integration(model, start, time, rtol)
    with interruption() as interrupted, bar(f"flow, {problem.view}") as shown:
        while running.outcome == running_flows.FULL:
            before = running.steps
            running.proceed()
            shown.say(f"time {running.time:.3g} of {time:g}")
            shown.update(running.steps - before)
            if interrupted.is_set() or running.steps > MAX_STEPS:
                break
    return _ended(problem, start, running, rtol) or by_lsoda(problem, start, time, rtol)


def integrate_flows(
    problems: Sequence[Problem], starts: Sequence[FloatArray], time: float, rtol: float
) -> list[IntegratedFlow]:
    """The flows of several problems, in as many threads as numba has; each as it is alone.

    Parameters
    ----------
    problems : sequence of Problem
    starts : sequence of float array
    time, rtol : float
    """
    running: dict[int, running_flows.Integration] = {}
    for k, problem in enumerate(problems):
        model = implicit_model(problem)
        if model is not None:
            running[k] = _integration(model, starts[k], time, rtol)
    with interruption() as interrupted:
        running_flows.proceed_together(list(running.values()), MAX_STEPS, interrupted)
    return [
        (k in running and _ended(problem, start, running[k], rtol))
        or integrate_flow(problem, start, time, rtol, compiled=k not in running)
        for k, (problem, start) in enumerate(zip(problems, starts, strict=True))
    ]


def _integration(
    model: Any, start: FloatArray, time: float, rtol: float
) -> running_flows.Integration:
    floor = tolerance_floor(start, rtol)
    return running_flows.Integration(model, start, (0.0, time), _of_step(rtol), floor)


def _of_step(rtol: float) -> float:
    """What a step of collocation may err relative to the state."""
    return max(OF_A_STEP * rtol, min(rtol, ENOUGH))


def _ended(
    problem: Problem, start: FloatArray, running: running_flows.Integration, rtol: float
) -> IntegratedFlow | None:
    """What has been integrated; None where the compiled gradient alone could not go on."""
    kind, failure = ends.HORIZON, ""
    if running.outcome == running_flows.FULL and running.steps > MAX_STEPS:
        kind, failure = ends.STALLED, TOO_MANY
    elif running.outcome == running_flows.FULL:
        kind = ends.INTERRUPTED
    elif running.outcome == running_flows.STUCK:
        refused = running.control.refused
        if np.isfinite(refused).all():
            # A compiled gradient may overflow where that of the problem does not.
            if np.isfinite(problem.gradient(refused)).all():
                return None
            failure = gradient_failure(problem, refused)
        kind = ends.PRECISION_LOST if failure else ends.DIVERGED
    if not running.steps:
        return IntegratedFlow(_nothing(problem, start, rtol), kind, failure)
    at = Polynomials(running.path(), start, running.data)
    return IntegratedFlow(_path(problem, at.path.nodes, at, start, rtol), kind, failure)


def _path(
    problem: Problem,
    nodes: FloatArray,
    at: Callable[[float], FloatArray],
    start: FloatArray,
    rtol: float,
    floor: FloatArray | None = None,
) -> FlowPath:
    floor = tolerance_floor(start, rtol) if floor is None else floor
    allowed = Allowed(problem, rtol, floor, float(nodes[-1]))
    of_step = _of_step(rtol) if isinstance(at, Polynomials) else rtol
    return FlowPath(problem, nodes, at, allowed, rtol, of_step)


def _nothing(problem: Problem, start: FloatArray, rtol: float) -> FlowPath:
    """A path that could not begin."""
    nodes = np.array([0.0, np.finfo(float).tiny])
    return _path(problem, nodes, lambda _: start, start, rtol)


def by_lsoda(
    problem: Problem,
    start: FloatArray,
    time: float,
    rtol: float,
    floor: FloatArray | None = None,
    most: int | None = None,
) -> IntegratedFlow:
    """The flow by LSODA of scipy: of any problem, a step at a time from Python.

    Parameters
    ----------
    problem : Problem
    start : float array, shape (n,)
    time, rtol : float
    floor : float array, shape (n,), optional
        What a step may err in any case; that of the relative tolerance by default.
    most : int, optional
        Steps at most; `MAX_STEPS` by default.
    """
    from scipy.integrate import OdeSolution

    floor = tolerance_floor(start, rtol) if floor is None else floor
    span = 0.0, time
    solver = Lsoda(problem, start, span, rtol, floor, FEWEST_STEPS, problem.has_jacobian)
    refused = solver.refused
    nodes: list[float] = [0.0]
    pieces: list[Any] = []
    kind, failure = ends.HORIZON, ""
    with interruption() as interrupted, bar(f"flow, {problem.view}") as shown:
        while solver.status == "running":
            piece = solver.step()
            stuck = solver.t <= nodes[-1]  # the step is below the spacing of numbers there
            if stuck or solver.status == "failed" or not np.isfinite(solver.y).all():
                failure = gradient_failure(problem, refused[0]) if refused else ""
                kind = ends.PRECISION_LOST if failure else ends.DIVERGED
                break
            if len(nodes) > (most or MAX_STEPS):
                kind, failure = ends.STALLED, TOO_MANY
                break
            if interrupted.is_set():
                kind = ends.INTERRUPTED
                break
            nodes.append(solver.t)
            pieces.append(piece)
            shown.say(f"time {solver.t:.3g} of {time:g}")
            shown.update()
    if not pieces:
        return IntegratedFlow(_nothing(problem, start, rtol), kind, failure)
    path = _path(problem, np.array(nodes), OdeSolution(nodes, pieces), start, rtol, floor)
    return IntegratedFlow(path, kind, failure)


def integrate_again(path: FlowPath, end: float) -> IntegratedFlow | None:
    """The flow at another tolerance as far as that goes; None where it goes nowhere.

    Near rounding, or looser where the path itself is near.

    Parameters
    ----------
    path : FlowPath
    end : float
        Time that is far enough.
    """
    problem, start = path.problem, path.at(0.0)
    least = FINE if isinstance(path.at, Polynomials) else FINE_BY_LSODA
    of_step = least if path.of_step > 10.0 * least else 100.0 * path.of_step
    floor = tolerance_floor(start, path.rtol)
    most = max(FEWEST_AGAIN, MOST_AGAIN * path.nodes.size)
    if not isinstance(path.at, Polynomials):
        made = by_lsoda(problem, start, end, of_step, floor, most)
        return made if made.path.nodes[-1] > np.finfo(np.float64).tiny else None
    running = running_flows.Integration(path.at.model, start, (0.0, end), of_step, floor)
    with interruption() as interrupted:
        running.proceed()  # an interrupted path has its first steps
        running_flows.proceed_together([running], most, interrupted)
        kind = ends.INTERRUPTED if interrupted.is_set() else ends.HORIZON
    if not running.steps:
        return None
    at = Polynomials(running.path(), start, running.data)
    allowed = Allowed(problem, of_step, floor, end)
    again = FlowPath(problem, at.path.nodes, at, allowed, path.rtol, of_step)
    return IntegratedFlow(again, kind, "")
