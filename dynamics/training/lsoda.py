"""Integration of any flow by scipy's LSODA, with tolerances that follow the entries' sizes.

The tolerance of every entry is relative to the entry's present size, because entries start small
and may fall far before they grow. An entry has an absolute tolerance if both the entry and its rate
are at rounding level. Entries with an absolute tolerance do not limit the step size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics.loops.kernels.collocation_equations import LEAST
from dynamics.problem import FloatArray, Problem, gradient_failure
from dynamics.results import outcome as ends
from dynamics.training.flow_path import (
    MAX_STEPS,
    NO_STEPS,
    OF_FLOOR,
    TOO_MANY,
    Allowed,
    FlowPath,
    tolerance_floor,
)
from dynamics.training.progress import bar, interruption

FEWEST_STEPS = 64
"""Minimum number of steps of a flow. In longer steps LSODA could miss a change of the state."""
FALL = 0.1
"""LSODA restarts if an entry falls below this fraction of the size that set its tolerance."""
CREDIT, COST = 160, 20
"""LSODA starts with `CREDIT` credits, gains one credit a step up to `CREDIT`, and pays `COST`
credits for a restart. With fewer than `COST` credits the tolerances stop following the entries.
"""
ROUNDED = 1e-12
"""A rate may be rounding if it is at most this fraction of the largest rate of all entries."""
BETWEEN_PROBES = 8
"""Number of LSODA steps between two checks for small entries."""


class _Lsoda:
    """scipy's LSODA from time 0, restarted with smaller tolerances when entries become small."""

    def __init__(
        self, problem: Problem, start: FloatArray, end: float, rtol: float, floor: FloatArray
    ) -> None:
        self.problem, self.end, self.rtol, self._floor = problem, end, rtol, floor
        # Finite states without a finite gradient that LSODA tried during the last step.
        self.refused: list[FloatArray] = []
        self._slope = self._last = -problem.gradient(start)
        self._tolerance, self._followed = floor.copy(), np.ones(start.size, dtype=bool)
        self._credit = CREDIT
        size, speed = np.abs(start), np.abs(self._slope)
        moving = (size > 0) & (speed > 0)
        scale = min((size[moving] / speed[moving]).min(initial=end), end)
        size = np.where(size > 0, size, scale * speed)
        # An entry that starts at 0, with a rounding-level rate, may stay 0: keep its tolerance.
        known = (start != 0) | (speed > ROUNDED * speed.max(initial=0.0))
        self._set_tolerance(self._may_follow(start, size, scale) & known, size)
        self._begin(0.0, start)

    def _too_small(self, size: FloatArray) -> Any:
        """Mask of entries that fell below `FALL` times the size for which the tolerance was set."""
        fallen = OF_FLOOR * self.rtol * size < FALL * self._tolerance
        return fallen & (self._tolerance > LEAST) & self._followed

    def _may_follow(self, state: FloatArray, size: FloatArray, time: float) -> Any:
        """Mask of entries that became too small, except those at rounding level now or earlier."""
        fallen, below = self._too_small(size), self._tolerance < self._floor
        if not (fallen | below).any():
            return fallen
        rounding = Allowed(self.problem, self.rtol, self._floor, time).rounding(state, size)
        self._followed &= ~(rounding & below)
        return fallen & ~rounding & self._followed

    def _set_tolerance(self, fallen: Any, size: FloatArray) -> bool:
        """Adapt absolute tolerances to the entries' sizes; return False if none must change."""
        below = self._tolerance < self._floor
        if not (fallen.any() or (below & ~self._followed).any()):
            return False
        sized = np.maximum(OF_FLOOR * self.rtol * size, LEAST)
        followed = np.where(fallen | below, np.minimum(sized, self._floor), self._tolerance)
        self._tolerance = np.where(self._followed, followed, self._floor)
        return True

    def _begin(self, time: float, state: FloatArray) -> None:
        from scipy.integrate import LSODA

        self._wait = 0
        self._solver = LSODA(
            self._rate,
            time,
            state.copy(),
            self.end,
            max_step=self.end / FEWEST_STEPS,
            rtol=self.rtol,
            atol=self._tolerance,
            jac=self._jacobian if self.problem.has_jacobian else None,
        )

    def _rate(self, _: float, state: FloatArray) -> FloatArray:
        slope = self.problem.gradient(state)
        if np.isfinite(state).all() and not np.isfinite(slope).all():
            self.refused.append(state.copy())
        self._last = -slope
        return -slope

    def _jacobian(self, _: float, state: FloatArray) -> FloatArray:
        return -self.problem.jacobian(state)

    @property
    def status(self) -> str:
        """Status of the integration: ``running``, ``finished`` or ``failed``."""
        return str(self._solver.status)

    @property
    def t(self) -> float:
        """Present time of the integration."""
        return float(self._solver.t)

    @property
    def y(self) -> FloatArray:
        """Present state of the integration."""
        return self._solver.y

    def step(self) -> Any:
        """Take a step; return its dense output, or None if the step failed."""
        self.refused.clear()
        before = self.t, self.y.copy()
        self._solver.step()
        stuck = self.status == "failed" or self.t <= before[0]
        if stuck and (self._tolerance < self._floor).any():
            self._followed[:] = False
            self._set_tolerance(self._followed, np.abs(self.y))
            self._begin(*before)
            self._solver.step()
        if self.status == "failed" or not np.isfinite(self.y).all():
            return None
        piece = self._solver.dense_output()
        self._wait -= 1
        self._credit = min(CREDIT, self._credit + 1)
        if self.status == "running" and self._wait <= 0:
            self._follow(self.t, self.y)
        self._slope = self._last
        return piece

    def _follow(self, time: float, state: FloatArray) -> None:
        """Restart LSODA with smaller tolerances if entries became small."""
        width, slope = self._solver.step_size, self._last
        if not width:
            return
        with np.errstate(all="ignore"):
            bend = np.abs(slope - self._slope) / width
            size = np.fmax(np.abs(state), slope**2 / bend)
        fallen = self._may_follow(state, size, width)
        self._wait = BETWEEN_PROBES
        self._followed &= self._credit >= COST
        if self._set_tolerance(fallen & self._followed, size):
            self._credit -= COST
            self._begin(time, state)


def by_lsoda(
    problem: Problem,
    start: FloatArray,
    time: float,
    rtol: float,
    floor: FloatArray | None = None,
    most: int | None = None,
) -> FlowPath:
    """Integrate the flow of any problem by LSODA, stepping from Python.

    The absolute tolerance `floor` of each entry, shape (n,), defaults to `tolerance_floor`. At most
    `most` steps are taken, by default `MAX_STEPS`.
    """
    from scipy.integrate import OdeSolution

    floor = tolerance_floor(start, rtol) if floor is None else floor
    solver = _Lsoda(problem, start, time, rtol, floor)
    nodes: list[float] = [0.0]
    pieces: list[Any] = []
    kind, failure = ends.HORIZON, ""
    with interruption() as interrupted, bar(f"flow, {problem.view}") as shown:
        while solver.status == "running":
            piece = solver.step()
            stuck = solver.t <= nodes[-1]  # the step is smaller than the spacing of floats
            if stuck or solver.status == "failed" or not np.isfinite(solver.y).all():
                failure = gradient_failure(problem, solver.refused[0]) if solver.refused else ""
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
    steps = np.array(nodes) if pieces else NO_STEPS
    at: Any = OdeSolution(nodes, pieces) if pieces else lambda _: start
    allowed = Allowed(problem, rtol, floor, float(steps[-1]))
    return FlowPath(problem, steps, at, allowed, rtol, rtol, kind, failure)
