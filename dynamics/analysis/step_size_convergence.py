r"""Gradient descent at several learning rates laid over the gradient flow.

On the shared axis :math:`\tau = \eta \times` steps, gradient descent tends to the flow as eta tends
to 0, with a distance of order eta: the measured order says whether both are right.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynamics.problem import Problem
from dynamics.results.comparison import Overlay
from dynamics.results.trajectory import Trajectory
from dynamics.training.flow import flow
from dynamics.training.gradient_descent import descend
from dynamics.training.progress import interruption
from dynamics.training.settings import record_schedule
from dynamics.validation import real, refuse


def overlay(
    problem: Problem,
    time: float,
    etas: Sequence[float],
    rtol: float = 1e-8,
    initial: ArrayLike | None = None,
) -> Overlay:
    """Run the flow, and gradient descent at every learning rate, from the same start.

    Parameters
    ----------
    problem : Problem
    time : float
        Horizon; gradient descent takes the whole number of steps that comes nearest.
    etas : sequence of float
    rtol : float
        Of the flow.
    initial : array, optional
        Where to start; the problem's own start by default.

    Raises
    ------
    InvalidRequest
        If a learning rate is not positive or larger than the horizon, or time or rtol is not valid.
    """
    time = real("time", time, above=0.0)
    rates = check_rates(etas, time)
    with interruption():
        steps = [max(1, round(time / eta)) for eta in rates]
        schedules = [record_schedule(count, "log") for count in steps]
        runs = tuple(
            descend(problem, eta, count, schedule, initial)
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
    """Learning rates, largest first.

    Raises
    ------
    InvalidRequest
        If there is none, or one is not positive or longer than the horizon.
    """
    if not np.size(etas):
        refuse("eta", [], "is empty", "one or more learning rates", 1e-2)
    many = list(etas) if np.ndim(etas) else [etas]
    found = {real("eta", eta, above=0.0, at_most=time) for eta in many}
    return sorted(found, reverse=True)


def _distance(smooth: Trajectory, run: Trajectory, name: str) -> float:
    """Largest distance over the records that both have."""
    place = np.searchsorted(smooth.time, run.time)
    kept = place < smooth.time.size
    return float(np.abs(smooth[name][place[kept]] - run[name][kept]).max())
