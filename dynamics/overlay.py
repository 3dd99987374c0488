r"""Gradient descent at several learning rates laid over the gradient flow.

On the shared axis :math:`\tau = \eta \times` steps, gradient descent tends to the flow as eta tends
to 0, with a distance of order eta: the measured order says whether both are right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynamics.descend import descend
from dynamics.flow import flow
from dynamics.interruption import interruption
from dynamics.outcome import Outcome
from dynamics.problem import FloatArray, Problem
from dynamics.schedule import record_schedule
from dynamics.trajectory import Trajectory
from dynamics.validation import real, refuse


@dataclass(frozen=True)
class Overlay:
    """A flow and runs of gradient descent to the same time.

    Attributes
    ----------
    flow : Trajectory
        With the times of all runs among its records.
    runs : tuple of Trajectory
        Gradient descent, largest learning rate first.
    deviations : mapping
        State -> largest absolute distance from the flow over the records, for each run.
    """

    flow: Trajectory
    runs: tuple[Trajectory, ...]
    deviations: Mapping[str, FloatArray]

    @property
    def etas(self) -> FloatArray:
        """Learning rate of each run."""
        return np.array([run.settings["eta"] for run in self.runs])

    @property
    def orders(self) -> dict[str, float]:
        """State -> measured power of eta in the distance, over the runs that did not fail.

        NaN where fewer than two are left.
        """
        good = np.array([not run.outcome.failed for run in self.runs])
        found = {}
        for name, distance in self.deviations.items():
            kept = good & (distance > 0)
            enough = np.count_nonzero(kept) > 1
            pair = np.log(self.etas[kept]), np.log(distance[kept])
            found[name] = float(np.polyfit(*pair, 1)[0]) if enough else float("nan")
        return found

    @property
    def outcome(self) -> Outcome:
        """The flow's; a learning rate that is too large is what an overlay shows, no failure."""
        return self.flow.outcome

    @property
    def interrupted(self) -> bool:
        """Whether the flow was."""
        return self.flow.interrupted


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
