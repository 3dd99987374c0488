"""Comparison of runs from one start: learning rates, update rules, or descent and flow.

As eta tends to 0, gradient descent converges to the flow on the common time axis eta * steps, with
an error of order eta. If the measured distance of descent from the flow is of order eta, it
confirms descent and flow. Update rules are compared at equal steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.problem import Problem, check_problem
from dynamics.results.comparison import Overlay
from dynamics.results.trajectory import Trajectory
from dynamics.training.descent import descend
from dynamics.training.flow import flow
from dynamics.training.progress import interruption
from dynamics.training.schedules import Stages
from dynamics.training.settings import MOST_STEPS, check_flow, record_schedule
from dynamics.validation import InvalidRequest, real, refuse


def overlay(
    problem: Problem,
    eta: float | Sequence[float],
    steps: int | None = None,
    rule: Any = "gd",
    record: int | str | ArrayLike | None = None,
    initial: ArrayLike | None = None,
    schedule: str | None = None,
    stages: Stages | None = None,
    time: float | None = None,
    rtol: float = 1e-8,
) -> Overlay:
    """Run several learning rates or update rules from the same start, optionally with the flow.

    Parameters
    ----------
    problem : Problem
    eta : float or sequence of float
        Learning rate of each run: one for all rules, or one for each rule.
    steps : int, optional
        Number of steps of every run.
    rule : str, UpdateRule, callable, or list of these
        Update rule as for `dynamics.descend`: one for all runs, or one for each run.
    record, initial, schedule, stages
        Settings of all runs, as for `dynamics.descend`.
    time : float, optional
        Horizon of a flow, instead of steps. Gradient descent at each eta takes time / eta steps,
        rounded, and is compared with the flow.
    rtol : float
        Relative tolerance of the flow.

    Raises
    ------
    InvalidRequest
        If an argument is invalid, steps and time are both missing, or the numbers of rules and
        learning rates differ.

    Examples
    --------
    Half the learning rate halves the distance from the flow:

    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> problem = system.ReducedPopulation(system.Parameters(D=4, C=2))
    >>> result = dynamics.overlay(problem, [0.02, 0.01, 0.005], time=10.0)
    >>> round(result.orders["gamma"], 1)
    1.0

    Two rules:

    >>> result = dynamics.overlay(problem, [0.02, 0.001], 100, ["gd", "adam"])
    >>> result.labels
    ('gd, eta = 0.02', 'adam, eta = 0.001')
    """
    check_problem(problem)
    if time is not None:
        if rule != "gd" or any(each is not None for each in (steps, record, schedule, stages)):
            raise InvalidRequest(
                "give rule, steps, record, schedule and stages (descent) or time (flow)"
            )
        return _over_flow(problem, eta, time, rtol, initial)
    if steps is None:
        raise InvalidRequest("overlay takes steps, or a time")
    rules, rates = _listed(rule), _listed(eta)
    count = max(len(rules), len(rates))
    if not {len(rules), len(rates)} <= {1, count} or not rates or not rules:
        raise InvalidRequest(
            f"eta has {len(rates)} rates for {len(rules)} rules; give one rate per rule"
        )
    rates = [real("eta", each, above=0.0) for each in rates]
    how: dict[str, Any] = {"record": record, "initial": initial}
    with interruption():
        runs = tuple(
            descend(problem, rate, steps, each, schedule=schedule, stages=stages, **how)
            for rate, each in zip(
                rates * (count // len(rates)), rules * (count // len(rules)), strict=True
            )
        )
    return Overlay(None, runs, {})


def _listed(value: Any) -> list[Any]:
    return list(value) if np.ndim(value) else [value]


def _over_flow(
    problem: Problem, etas: Any, time: float, rtol: float, initial: ArrayLike | None
) -> Overlay:
    """Compare gradient descent at several learning rates with the flow up to `time`."""
    time, rtol = check_flow(time, rtol, problem.flows)
    rates = check_rates(etas, time)
    with interruption():
        steps = [max(1, round(time / eta)) for eta in rates]
        schedules = [record_schedule(count, "log") for count in steps]
        runs = tuple(
            descend(problem, eta, count, record=schedule, initial=initial)
            for eta, count, schedule in zip(rates, steps, schedules, strict=True)
        )
        horizon = max(time, *(float(run.time[-1]) for run in runs))
        own = np.minimum(np.geomspace(1e-6, 1.0, 300) * horizon, horizon)
        moments = np.unique(np.concatenate([own, *(run.time for run in runs)]))
        smooth = flow(problem, horizon, rtol, initial, moments)
    deviations = {}
    for name in problem.state_names:
        distance = [_distance(smooth, run, name) for run in runs]
        deviations[name] = np.array(distance)
    return Overlay(smooth, runs, deviations)


def check_rates(etas: Sequence[float], time: float) -> list[float]:
    """Check the learning rates of runs up to `time` and sort them, largest first.

    Raises InvalidRequest for an empty sequence, or a rate that is not positive, exceeds `time`, or
    needs too many steps.
    """
    if not np.size(etas):
        refuse("eta", [], "is empty", "one or more learning rates", 1e-2)
    many = list(etas) if np.ndim(etas) else [np.asarray(etas).item()]
    bounds = {"above": 0.0, "at_least": time / MOST_STEPS, "at_most": time}
    return sorted({real("eta", eta, **bounds) for eta in many}, reverse=True)


def _distance(smooth: Trajectory, run: Trajectory, name: str) -> float:
    """Largest distance of a state of a run from the flow at the records that both have."""
    index = np.searchsorted(smooth.time, run.time)
    common = index < smooth.time.size
    return float(np.abs(smooth[name][index[common]] - run[name][common]).max())
