"""Errors that steps of a flow may make, and LSODA, whose tolerances follow the sizes of entries.

Every entry is integrated to a part of its own size, however small it is: training starts where
states are small, and an entry may fall far before it grows. An entry that is rounding together with
its rate has an absolute tolerance, so that no steps are spent on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics.loops.kernels.collocation_equations import LEAST, NOISY, SHAKE, SMOOTH
from dynamics.problem import FloatArray, Problem

OF_FLOOR = 1e-3
"""Absolute tolerance over the relative one times the size of an entry."""
FALL = 0.1
"""Size of an entry over the one that its tolerance was made for, at which LSODA starts again."""
CREDIT, COST = 160, 20
"""Steps of LSODA that pay for restarts in advance, and those that pay for one. Where they do not,
entries are followed no more."""
ROUNDED = 1e-12
"""Rate over the largest one, below which it may be rounding."""
BETWEEN_PROBES, CLEAN = 8, 3
"""Steps of LSODA between two looks at small entries, and looks in succession at which an entry that
is followed was no rounding: one alone may show none by chance."""


def tolerance_floor(start: FloatArray, rtol: float) -> FloatArray:
    """The absolute tolerance of every entry, where it is rounding.

    Parameters
    ----------
    start : float array, shape (n,)
    rtol : float
    """
    return OF_FLOOR * rtol * np.maximum(np.abs(start), 1e-2)


@dataclass(frozen=True)
class Allowed:
    """What a step of a flow may err at a state, by entry.

    Attributes
    ----------
    problem : Problem
    rtol : float
    floor : float array, shape (n,)
        Added where an entry is rounding together with its rate.
    time : float
        Time over which a state changes, at most.
    looks : int
        Number of the look: others try other moves.
    """

    problem: Problem
    rtol: float
    floor: FloatArray
    time: float
    looks: int = 0

    def __call__(self, state: FloatArray) -> FloatArray:
        """Allowed error of each entry, shape (n,)."""
        size = np.abs(state)
        return self.rtol * size + np.where(self.rounding(state, size), self.floor, 0.0)

    def rounding(self, state: FloatArray, size: FloatArray) -> Any:
        """Which entries are rounding with their rates, as `find_floor` of the compiled loop."""
        small = self.rtol * size < self.floor
        if not small.any():
            return small
        slope = self.problem.gradient(state)
        change = np.minimum(self.time * np.abs(slope), max(1.0, size.max()))
        turn = np.cos(np.arange(state.size) + 1e3 * self.looks)
        move = SHAKE * (state * turn - np.sign(slope) * change)
        sides = self.problem.gradient(state + move) + self.problem.gradient(state - move)
        rate = np.maximum(size / self.time, np.abs(slope))
        noise = NOISY * np.abs(sides - 2.0 * slope)
        return small & ~(noise < np.maximum(self.rtol, SMOOTH) * rate)


class Lsoda:
    """LSODA of scipy on a flow; it starts again where an entry falls below its tolerance.

    Parameters
    ----------
    problem : Problem
    start : float array, shape (n,)
    span : (float, float)
        First and last time.
    rtol : float
    floor : float array, shape (n,)
        Absolute tolerance of entries that are rounding.
    fewest : int
        Steps in the span, at least.
    jacobian : bool
        Whether the problem computes the Jacobian; else LSODA takes differences.

    Attributes
    ----------
    refused : list of float array
        States of the last step that have no gradient.
    """

    def __init__(
        self,
        problem: Problem,
        start: FloatArray,
        span: tuple[float, float],
        rtol: float,
        floor: FloatArray,
        fewest: int = 1,
        jacobian: bool = False,
    ) -> None:
        self.problem, self.end, self.rtol, self._looks = problem, span[1], rtol, 0
        self.refused: list[FloatArray] = []
        self._max_step, self._floor = (span[1] - span[0]) / fewest, floor
        self._own_jacobian = jacobian
        self._slope = self._last = -problem.gradient(start)
        self._tolerance, self._followed = floor.copy(), np.ones(start.size, dtype=bool)
        self._wait, self._clean = 0, np.zeros(start.size, dtype=np.int64)
        self._credit = CREDIT
        size, speed = np.abs(start), np.abs(self._slope)
        moving = (size > 0) & (speed > 0)
        scale = min((size[moving] / speed[moving]).min(initial=self.end), span[1] - span[0])
        size = np.where(size > 0, size, scale * speed)
        looks = [self._may_follow(start, size, scale) for _ in range(CLEAN)]
        # An entry that is 0 with a rate at rounding level may be 0 by symmetry.
        looks.append((start != 0) | (speed > ROUNDED * speed.max(initial=0.0)))
        self._set_tolerance(np.logical_and.reduce(looks), size)
        self._begin(span[0], start)

    def _too_small(self, size: FloatArray) -> Any:
        """Entries whose size is below that for which their tolerance was made."""
        fallen = OF_FLOOR * self.rtol * size < FALL * self._tolerance
        return fallen & (self._tolerance > LEAST) & self._followed

    def _may_follow(self, state: FloatArray, size: FloatArray, time: float) -> Any:
        """Entries that have fallen and are no rounding; rounding ones are followed no more."""
        fallen, below = self._too_small(size), self._tolerance < self._floor
        if not (fallen | below).any():
            return fallen
        self._looks += 1
        allowed = Allowed(self.problem, self.rtol, self._floor, time, self._looks)
        rounding = allowed.rounding(state, size)
        self._followed &= ~(rounding & below)
        return fallen & ~rounding & self._followed

    def _set_tolerance(self, fallen: Any, size: FloatArray) -> bool:
        """Give entries the tolerance of their size, or of rounding; whether one has changed."""
        below = self._tolerance < self._floor
        if not (fallen.any() or (below & ~self._followed).any()):
            return False
        sized = np.maximum(OF_FLOOR * self.rtol * size, LEAST)
        followed = np.where(fallen | below, np.minimum(sized, self._floor), self._tolerance)
        self._tolerance = np.where(self._followed, followed, self._floor)
        return True

    def _begin(self, time: float, state: FloatArray) -> None:
        from scipy.integrate import LSODA

        self._wait, self._clean = 0, np.zeros(state.size, dtype=np.int64)
        self._solver = LSODA(
            self._rate,
            time,
            state.copy(),
            self.end,
            max_step=self._max_step,
            rtol=self.rtol,
            atol=self._tolerance,
            jac=self._jacobian if self._own_jacobian else None,
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
        """``running``, ``finished`` or ``failed``."""
        return str(self._solver.status)

    @property
    def t(self) -> float:
        """Time that is reached."""
        return float(self._solver.t)

    @property
    def y(self) -> FloatArray:
        """State there."""
        return self._solver.y

    def step(self) -> Any:
        """Take a step; its dense output, or None where it failed."""
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
        """Start again where entries have fallen; one that crosses 0 has the size of its turn."""
        width, slope = self._solver.step_size, self._last
        if not width:
            return
        with np.errstate(all="ignore"):
            bend = np.abs(slope - self._slope) / width
            size = np.fmax(np.abs(state), slope**2 / bend)
        fallen = self._may_follow(state, size, width)
        self._clean = np.where(fallen, self._clean + 1, 0)
        self._wait = 0 if fallen.any() else BETWEEN_PROBES
        self._followed &= self._credit >= COST
        if self._set_tolerance((self._clean >= CLEAN) & self._followed, size):
            self._credit -= COST
            self._begin(time, state)
