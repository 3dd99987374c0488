r"""A run of gradient descent under way, :math:`\theta \leftarrow \theta - \eta g(\theta)`.

The compiled loop is advanced in chunks. Inside a chunk every step is tracked for the events;
between chunks the records are kept and the events sought. Where the chunks are cut changes nothing,
and neither does going on from the `state` of a run in another process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.problem import SMALL, FloatArray, Problem
from dynamics.training.event_detection import Detector, Oscillation
from dynamics.training.stability_limit import stability_limit

SECONDS_PER_CHUNK = 0.2
FIRST_CHUNK = 64
LARGEST_CHUNK = 1 << 12
NEAR_LIMIT = 0.8
BETWEEN_LOOKS = 1.25
"""Factor in the step from one look at the stability limit to the next: it moves with log time."""
NEVER = 1 << 62
"""First look of states too large for one, so that it cuts no chunks."""


class Run:
    """One run in progress.

    Parameters
    ----------
    problem : Problem
    rates : tuple of float
        Learning rate of each parameter group; time is the first times steps.
    start : float array, shape (n,)
    schedule : int array
        Steps to record, ascending.

    Attributes
    ----------
    step : int
        Where the run is.
    now : float array, shape (n,)
        The state there.
    diverged : bool
        The next state is not finite.
    warning : str
        What the user should know meanwhile, once; empty if nothing is new.
    """

    def __init__(
        self,
        problem: Problem,
        rates: tuple[float, ...],
        start: FloatArray,
        schedule: NDArray[np.int64],
    ) -> None:
        self.problem = problem
        self.eta, self.step_time = problem.layout.per_entry(rates), rates[0]
        self.schedule = schedule
        names = problem.order_names
        self.detector = Detector(problem.events, names, problem.parameters, self.step_time)
        self.oscillation = Oscillation(names.index(problem.rates[0]))
        self.step, self.now = 0, start.copy()
        self.diverged, self.warning = False, ""
        self._chunk = FIRST_CHUNK
        self._look = 1 if start.size <= SMALL else NEVER
        self._warned = False
        self._steps: list[NDArray[np.int64]] = []
        self._states: list[FloatArray] = []

    def go(self, steps: int, going_on: Callable[[], bool]) -> None:
        """Advance to the last step, or to where the run diverges, or is to stop between chunks."""
        while self.step < steps and not self.diverged and going_on():
            if self.step == self._look:
                self._warn()
                self._look = max(self._look + 1, int(BETWEEN_LOOKS * self._look))
            self._advance(min(steps, self.step + self._chunk, self._look))

    def _advance(self, last: int) -> None:
        """One chunk, up to ``last`` or to where the next state is not finite."""
        step, problem, before = self.step, self.problem, self.now.copy()
        low, high = np.searchsorted(self.schedule, (step, last))
        due = self.schedule[low:high]
        tracked = np.empty((last - step, len(problem.order_names)))
        records = np.empty((due.size, before.size))
        clock = time.perf_counter()
        reached = problem.advance(self.now, self.eta, step, last, (tracked, due, records))
        taken = time.perf_counter() - clock
        self.diverged = reached < last
        rows = tracked[: reached - step + self.diverged]
        self.watch(step, rows, before)
        done = int(np.searchsorted(due, reached + self.diverged))
        if done:
            self._steps.append(due[:done])
            self._states.append(records[:done])
        self.step = reached
        if taken < SECONDS_PER_CHUNK / 2:
            self._chunk = min(LARGEST_CHUNK, 2 * self._chunk)
        elif taken > 2 * SECONDS_PER_CHUNK:
            self._chunk = max(1, self._chunk // 2)

    def watch(self, first: int, rows: FloatArray, state: FloatArray) -> None:
        """Seek events in the order parameters of consecutive steps, ``state`` being the first's."""
        if len(rows):
            self.detector.feed(first, rows, state)
            self.oscillation.feed(first, rows)

    def _warn(self) -> None:
        """Say once that the learning rate comes near the stability limit, or has passed it."""
        if self._warned:
            return
        limit = stability_limit(self.problem, self.now)
        if self.step_time > NEAR_LIMIT * limit:
            self._warned = True
            near = "period two is near" if self.step_time < limit else "it is passed"
            self.warning = (
                f"eta={self.step_time:g} at step {self.step}, where the stability limit is "
                f"{limit:.4g}: {near}"
            )

    def kept(self) -> tuple[NDArray[np.int64], FloatArray]:
        """Recorded steps so far, and their states, shape (records, n)."""
        none = np.empty(0, dtype=np.int64)
        self._steps = [np.concatenate([none, *self._steps])]
        self._states = [np.concatenate([np.empty((0, self.now.size)), *self._states])]
        return self._steps[0], self._states[0]

    def records(self) -> tuple[NDArray[np.int64], FloatArray]:
        """The same with the present state at the end."""
        steps, states = self.kept()
        if steps.size and steps[-1] == self.step:
            return steps, states
        return np.append(steps, self.step), np.concatenate([states, self.now[None, :]])

    def rows(self, state: FloatArray, first: int, last: int) -> tuple[FloatArray, FloatArray]:
        """Run the steps first..last once more: order parameters at each, and the state at last."""
        state, none = state.copy(), np.array([], dtype=np.int64)
        rows = np.empty((last - first + 1, len(self.problem.order_names)))
        buffers = (rows[:-1], none, np.empty((0, state.size)))
        self.problem.advance(state, self.eta, first, last, buffers)
        rows[-1] = self.problem.order_parameters(state)
        return rows, state

    def state(self) -> dict[str, Any]:
        """All that the run needs to go on, as plain values and arrays, for `restore`."""
        steps, states = self.kept()
        own = ("step", "now", "diverged", "_warned", "_look")
        return {
            "run": {name: getattr(self, name) for name in own},
            "records": [steps, states],
            "detector": self.detector.state(),
            "oscillation": self.oscillation.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from the `state` of a run of the same problem."""
        self.detector.restore(state["detector"])
        self.oscillation.restore(state["oscillation"])
        vars(self).update(state["run"])
        steps, states = state["records"]
        self._steps, self._states = [steps], [states]
