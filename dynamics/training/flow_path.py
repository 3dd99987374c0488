"""An integrated flow: times of its steps, states at any time, and the error allowed in a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics import loops
from dynamics.loops.kernels.collocation_equations import NOISY, SHAKE, SMOOTH
from dynamics.problem import FloatArray, IntArray, Problem
from dynamics.results.outcome import HORIZON

MAX_STEPS = 200_000
TOO_MANY = (
    f"{MAX_STEPS:,} steps of the integrator do not reach the horizon, perhaps because the "
    "gradient jumps; try gradient descent, or a flow that stops before"
)
NO_STEPS = np.array([0.0, np.finfo(np.float64).tiny])
"""Times of the steps of a path whose first step failed."""
OF_FLOOR = 1e-3
"""Absolute tolerance of an entry, divided by the product of rtol and the entry's initial size."""


def tolerance_floor(start: FloatArray, rtol: float) -> FloatArray:
    """Absolute tolerance of every entry, shape (n,), used for entries at rounding level."""
    return OF_FLOOR * rtol * np.maximum(np.abs(start), 1e-2)


@dataclass(frozen=True)
class Allowed:
    """Allowed error of each entry in one integration step."""

    problem: Problem
    rtol: float
    floor: FloatArray
    """Absolute tolerance of each entry, added if the entry and its rate are at rounding level."""
    time: float
    """Time interval for which the change of an entry is estimated from its rate."""

    def __call__(self, state: FloatArray) -> FloatArray:
        """Allowed error of each entry, shape (n,)."""
        size = np.abs(state)
        return self.rtol * size + np.where(self.rounding(state, size), self.floor, 0.0)

    def rounding(self, state: FloatArray, size: FloatArray) -> Any:
        """Mask of entries whose rates are at rounding level, as in the compiled `find_floor`."""
        small = self.rtol * size < self.floor
        if not small.any():
            return small
        slope = self.problem.gradient(state)
        change = np.minimum(self.time * np.abs(slope), max(1.0, size.max()))
        turn = np.cos(np.arange(state.size))
        move = SHAKE * (state * turn - np.sign(slope) * change)
        sides = self.problem.gradient(state + move) + self.problem.gradient(state - move)
        rate = np.maximum(size / self.time, np.abs(slope))
        noise = NOISY * np.abs(sides - 2.0 * slope)
        return small & ~(noise < np.maximum(self.rtol, SMOOTH) * rate)


@dataclass(frozen=True)
class Polynomials:
    """States of a path whose steps are polynomials, and the derivatives of the states."""

    path: loops.Path
    """Output of the compiled integrator."""
    start: FloatArray
    """Exact initial state, shape (n,)."""
    model: Any
    """Data of the compiled functions of the problem."""

    def __call__(self, time: float) -> FloatArray:
        """State at a time, shape (n,)."""
        return self.along(np.array([time], dtype=np.float64))[0]

    def along(self, times: FloatArray) -> FloatArray:
        """States at times, shape (T, n)."""
        states = loops.along(self.path, times)[0]
        states[times <= self.path.nodes[0]] = self.start
        return states

    def order_rows(self, times: FloatArray, count: int) -> FloatArray:
        """Order parameters at the given times, shape (T, count)."""
        return loops.order_along(self.model, self.path, times, count)


@dataclass(frozen=True)
class FlowPath:
    """An integrated flow."""

    problem: Problem
    nodes: FloatArray
    """Times of the accepted steps, ascending."""
    at: Callable[[float], FloatArray]
    """Function that maps a time to the state at this time."""
    error: Callable[[FloatArray], FloatArray]
    """Function that maps a state to the allowed error of each entry in one step."""
    rtol: float = 0.0
    """Relative tolerance of the path."""
    of_step: float = 0.0
    """Relative tolerance of one step; collocation may use a smaller tolerance than `rtol`."""
    kind: str = HORIZON
    """Kind of the outcome of the integration."""
    failure: str = ""
    """Reason why the integration failed, empty if unknown."""

    def states(self, times: FloatArray) -> FloatArray:
        """States at the given times, shape (T, n)."""
        if isinstance(self.at, Polynomials):
            return self.at.along(times)
        if hasattr(self.at, "interpolants"):
            along: Any = self.at
            return np.asarray(along(times).T)
        return np.array([self.at(time) for time in times])

    def inside(self, steps: IntArray, positions: FloatArray) -> FloatArray:
        """Times at relative positions (0 to 1) in the given steps, shape (steps, positions)."""
        low, high = self.nodes[steps][:, None], self.nodes[steps + 1][:, None]
        times = low + (high - low) * positions
        if isinstance(self.at, Polynomials):  # positions are in logarithmic time
            scales = self.at.path.scales[steps][:, None]
            times = low + scales * np.expm1(positions * np.log1p((high - low) / scales))
        return np.clip(times, low, high)

    def along(self, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        """States and their negative time derivatives at the given times, each of shape (T, n).

        For a path without time derivatives, the gradients of the problem are returned instead.
        During fast relaxation a gradient magnifies the error of the state, but the derivative of
        the path does not.
        """
        states = self.states(times)
        if isinstance(self.at, Polynomials):
            slopes = -loops.along(self.at.path, times)[1]
        elif hasattr(self.at, "interpolants"):
            slopes = _slopes(self.at, times)
        else:
            slopes = np.array([self.problem.gradient(state) for state in states])
        for k in np.flatnonzero(times <= self.nodes[0]):  # the start is exact
            slopes[k] = self.problem.gradient(states[k])
        return states, slopes

    def order_rows(self, times: FloatArray) -> FloatArray:
        """Order parameters at times, shape (T, order parameters); `along` gives the rates."""
        rows = np.full((times.size, len(self.problem.order_names)), np.nan)
        if isinstance(self.at, Polynomials):
            rows = self.at.order_rows(times, rows.shape[1])
        # At the start, and where compiled functions overflow, the problem's own functions are used.
        other = np.flatnonzero((times <= self.nodes[0]) | ~np.isfinite(rows).all(axis=1))
        if other.size:
            both = zip(*self.along(times[other]), strict=True)
            rows[other] = [self.problem.order_parameters(*each) for each in both]
        return rows


PART = 1e-3
"""Step of a finite difference in time, relative to the integration step."""
STENCIL = np.array([-2.0, -1.0, 1.0, 2.0])
WEIGHTS = np.array([1.0, -8.0, 8.0, -1.0]) / 12.0


def _slopes(solution: Any, times: FloatArray) -> FloatArray:
    """Minus the derivative of a scipy `OdeSolution`, by finite differences inside the steps."""
    last = len(solution.interpolants) - 1
    steps = np.clip(np.searchsorted(solution.ts, times) - 1, 0, last)
    order = np.argsort(steps, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(steps[order])) + 1)
    slopes = np.empty((times.size, solution(times[:1]).shape[0]))
    for part in parts:
        piece = solution.interpolants[steps[part[0]]]
        width = PART * (piece.t - piece.t_old)
        values = piece((times[part, None] + width * STENCIL).ravel())
        slopes[part] = -(values.reshape(-1, part.size, STENCIL.size) @ WEIGHTS).T / width
    return slopes


def compiled_model(problem: Problem) -> Any:
    """Compiled functions of a problem, or None if a subclass overrides the gradient in Python."""
    model = getattr(problem, "loop_data", None)
    kinds = type(problem).__mro__
    made = next((k for k, kind in enumerate(kinds) if "loop_data" in vars(kind)), len(kinds))
    changed = any({"gradient", "order_parameters"} & vars(kind).keys() for kind in kinds[:made])
    return None if changed else model
