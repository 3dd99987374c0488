r"""Adam on any problem, full batch: Kingma and Ba (2015), algorithm 1.

.. math::
   m_t = \beta_1 m_{t-1} + (1 - \beta_1) g_t, \qquad
   s_t = \beta_2 s_{t-1} + (1 - \beta_2) g_t^2, \qquad
   \theta_t = \theta_{t-1} - \eta\,
   \frac{m_t / (1 - \beta_1^t)}{\sqrt{s_t / (1 - \beta_2^t)} + \epsilon}

Here :math:`g_t` is ``problem.gradient``. Every entry moves by about eta a step however small its
gradient is, so Adam finds structure for which gradient descent has no time; it does not keep a
symmetric state symmetric to rounding, and no event of the paper is defined along it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.problem import FloatArray, Problem
from dynamics.results import outcome as ends
from dynamics.results.outcome import Outcome
from dynamics.results.presentation import Presentation
from dynamics.results.trajectory import Trajectory, series
from dynamics.training.gradient_descent import (
    CONTINUE,
    check_steps,
    interruption,
    record_schedule,
    starting_state,
)
from dynamics.validation import learning_rate

NO_EVENTS = "events are defined along gradient descent and its flow, not along Adam"


@dataclass(frozen=True)
class Averages:
    """How Adam averages; the defaults are those of its paper.

    Attributes
    ----------
    beta1, beta2 : float
        What a step keeps of the mean of the gradients, and of the mean of their squares.
    epsilon : float
        Added to the root of the mean square.
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8


def adam(
    problem: Problem,
    eta: float | ArrayLike,
    steps: int,
    record: int | str | ArrayLike | None = None,
    initial: ArrayLike | None = None,
    averages: Averages | None = None,
) -> Trajectory:
    """Train with Adam.

    Parameters
    ----------
    problem : Problem
    eta : float or sequence of float
        Learning rate, or one for each parameter group; time is the first times steps.
    steps : int
        Number of steps.
    record : int, "log", int array or None
        As in `dynamics.descend`.
    initial : array, optional
        Where to start; the problem's own start by default.
    averages : Averages, optional

    Returns
    -------
    Trajectory
        With observables at the recorded steps and an outcome. A run whose next state, or mean
        square, is not finite ends as diverged at its last finite state.

    Raises
    ------
    InvalidRequest
        If eta, steps or record is not valid.
    """
    rates = learning_rate(eta, problem.layout.group_names)
    steps = check_steps(steps)
    schedule = record_schedule(steps, record)
    chosen = averages or Averages()
    with interruption() as interrupted:
        walk = _Walk(problem, problem.layout.per_entry(rates), chosen)
        state, due = starting_state(problem, initial), iter(schedule.tolist())
        recorded, states, following, step, kind = [], [], next(due), 0, ends.HORIZON
        while True:
            if step == following:
                recorded.append(step)
                states.append(state)
                following = next(due, -1)
            if step == steps:
                break
            if interrupted.is_set():
                kind = ends.INTERRUPTED
                break
            proposal = walk.step(state)
            if proposal is None:
                kind = ends.DIVERGED
                break
            if step + 1 == steps and np.array_equal(proposal, state):
                kind = ends.CONVERGED
            state, step = proposal, step + 1
    if recorded[-1] != step:
        recorded.append(step)
        states.append(state)
    with np.errstate(all="ignore"):  # the last finite state of a run that diverged may be huge
        observables = series([problem.observables(taken) for taken in states])
    return Trajectory(
        system=problem.system,
        view=problem.view,
        parameters=asdict(problem.parameters),
        layout=problem.layout,
        settings={
            "optimizer": "adam",
            "eta": rates[0] if len(set(rates)) == 1 else list(rates),
            "steps": steps,
            **asdict(chosen),
            **problem.settings,
        },
        steps=np.array(recorded, dtype=np.int64),
        time=rates[0] * np.array(recorded, dtype=np.float64),
        states=np.array(states),
        observables=observables,
        events={rule.name: None for rule in problem.events},
        outcome=_outcome(kind, step, rates[0]),
        reasons={rule.name: NO_EVENTS for rule in problem.events},
        presentation=Presentation.of(problem),
    )


class _Walk:
    """The means of the gradients and of their squares, which belong to one run."""

    def __init__(self, problem: Problem, rates: FloatArray, averages: Averages) -> None:
        self.problem, self.rates, self.averages = problem, rates, averages
        self.first, self.second = np.zeros_like(rates), np.zeros_like(rates)
        self.taken = 0

    def step(self, state: NDArray[np.float64]) -> FloatArray | None:
        """The next state; None where it is not finite.

        The mean square is looked at too: where it is infinite the update is 0, and a run that has
        diverged would look like one that stands still.
        """
        averages = self.averages
        beta1, beta2 = averages.beta1, averages.beta2
        self.taken += 1
        with np.errstate(all="ignore"):
            gradient = self.problem.gradient(state)
            self.first = beta1 * self.first + (1 - beta1) * gradient
            self.second = beta2 * self.second + (1 - beta2) * gradient**2
            mean = self.first / (1 - beta1**self.taken)
            root = np.sqrt(self.second / (1 - beta2**self.taken))
            proposal = state - self.rates * mean / (root + averages.epsilon)
        return proposal if np.isfinite(proposal).all() and np.isfinite(root).all() else None


def _outcome(kind: str, step: int, eta: float) -> Outcome:
    remedies = {
        ends.DIVERGED: f"eta={eta:g} is too large; try eta={eta / 4:.2g}",
        ends.INTERRUPTED: CONTINUE,
    }
    return Outcome(kind, step, step * eta, remedies.get(kind, ""))
