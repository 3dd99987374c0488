"""Errors of a flow, and what they change in the times of its events.

The uncertainty of a time is the sum of what two errors may change in it: that of the gradient,
where it has a bound, and that of the state at the event. The latter is an estimate: what the
tolerance allows in one step counts four times the root of the number of steps, as in a random
walk. A long test holds it against a tighter tolerance: no event of 60 random problems is farther
from there than half of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dynamics.problem import SMALL, FloatArray, Problem
from dynamics.training.event_detection import Column
from dynamics.training.flow_path import FlowPath, order_rows

ACCUMULATED = 10.0
"""Error of a state over what the tolerance allows in one step."""
FEW = 4
"""Moves of many entries for an estimate of their sum."""
WALK = 4.0
"""Error of a state over that of one step times the root of the number of steps."""
ROOT_STEP = 1e-12
"""Of a time, within which its root is found: values that round do not tell it more closely, and
with smaller steps the search would halve its interval fifty times instead."""
NEAR = 1e-3
"""Part of a time within which its root mostly lies beside a first guess."""
NARROW = 1e-5
"""Part of a time over which the slope of a value is taken."""


@dataclass(frozen=True)
class EventTime:
    """Time of an event.

    Attributes
    ----------
    time : float or None
    reason : str
        Why there is none.
    uncertainty : float
        What errors of gradient and path may change in it.
    of_path : float or None
        The part of the path; None where that is all.
    """

    time: float | None
    reason: str = ""
    uncertainty: float = 0.0
    of_path: float | None = None

    @property
    def resolved(self) -> bool:
        """Whether the errors of the integration change the time by less than itself."""
        return self.is_within(1.0)

    def is_within(self, part: float) -> bool:
        """Whether the errors of the integration change the time by less than a part of it."""
        error = self.uncertainty if self.of_path is None else self.of_path
        return self.time is not None and error < part * self.time


def path_noise(path: FlowPath, value: Column, time: float, steps: float = ACCUMULATED) -> float:
    """What so many times the error of one step may change in a value; the start has none.

    Parameters
    ----------
    path : FlowPath
    value : callable
        Rows of order parameters -> value.
    time : float
    steps : float
        How many times.
    """
    return float(path_noises(path, value, np.array([time]), steps)[0])


def path_noises(
    path: FlowPath, value: Column, times: FloatArray, steps: float = ACCUMULATED
) -> FloatArray:
    """`path_noise` at many times, shape (T,).

    Parameters
    ----------
    path : FlowPath
    value : callable
        Rows of order parameters -> value.
    times : float array, shape (T,)
    steps : float
        How many times the error of one step.
    """
    states = path.states(times)
    moved = states[:, None, :] + [_moves(steps * path.error(state)) for state in states]
    rows = order_rows(path.problem, moved.reshape(-1, states.shape[1]), rates=True)
    changes = _sum_of_changes(value(rows).reshape(moved.shape[:2]).T, states.shape[1])
    return np.where(times == 0.0, 0.0, changes)


def accumulated_walk(path: FlowPath, time: float) -> float:
    """Error of a state over that of one step, with the number of steps up to a time.

    Parameters
    ----------
    path : FlowPath
    time : float
    """
    return WALK * float(np.sqrt(np.searchsorted(path.nodes, time)))


def state_noise(problem: Problem, value: Column, state: FloatArray, error: FloatArray) -> float:
    """What an error of the state may change in a value.

    Parameters
    ----------
    problem : Problem
    value : callable
        Rows of order parameters -> value.
    state, error : float arrays, shape (n,)
    """
    rows = lambda moves: value(order_rows(problem, state + moves, rates=True))  # noqa: E731
    return float(total_change(rows, error))


def total_change(function: Callable[[FloatArray], FloatArray], error: FloatArray) -> FloatArray:
    """What an error may change in a function of moves: the sum over the entries.

    Of many entries, whose sum costs a gradient each, the largest over a few moves of all of them.

    Parameters
    ----------
    function : callable
        Moves, shape (moves, n), -> values, shape (moves, ...).
    error : float array, shape (n,)
    """
    return _sum_of_changes(function(_moves(error)), error.size)


def _moves(error: FloatArray) -> FloatArray:
    """None, and the moves by which an error is tried out, shape (moves, n)."""
    moves = np.diag(error)
    if error.size > SMALL:
        moves = error * np.random.default_rng(0).choice([-1.0, 1.0], size=(FEW, error.size))
    return np.array([0.0 * error, *moves])


def _sum_of_changes(values: FloatArray, size: int) -> FloatArray:
    """What `_moves` of so many entries change in values, shape (moves, ...)."""
    changes: FloatArray = np.abs(values[1:] - values[0])
    return changes.sum(axis=0) if size <= SMALL else changes.max(axis=0)


def gradient_noise(
    problem: Problem, value: Column, at: tuple[FloatArray, FloatArray], error: FloatArray
) -> float:
    """What an error of the gradient may change in a value at a state and a gradient.

    Parameters
    ----------
    problem : Problem
    value : callable
        Rows of order parameters -> value.
    at : (float array, float array), shape (n,) each
        State and gradient.
    error : float array, shape (n,)
    """
    state, slope = at
    moves = [0.0 * error, *np.diag(error)]
    rows = np.array([problem.order_parameters(state, slope + move) for move in moves])
    values = value(rows)
    return float(np.abs(values[1:] - values[0]).sum())


def known_gradient_error(problem: Problem, state: FloatArray) -> FloatArray | None:
    """A bound on the error of the gradient, shape (n,); None of a problem that knows none.

    Parameters
    ----------
    problem : Problem
    state : float array, shape (n,)
    """
    gradient_error = getattr(problem, "gradient_error", None)
    return None if gradient_error is None else gradient_error(state)


def bound_noise(problem: Problem, value: Column, state: FloatArray) -> float:
    """What the known error of the gradient may change in a value.

    Parameters
    ----------
    problem : Problem
    value : callable
        Rows of order parameters -> value.
    state : float array, shape (n,)
    """
    if (bound := known_gradient_error(problem, state)) is None:
        return 0.0
    return gradient_noise(problem, value, (state, problem.gradient(state)), bound)


def time_width(path: FlowPath, value: Column, root: float, rates: bool = False) -> float:
    """What the error of the integrated state may change in a time that is a root on the path.

    Parameters
    ----------
    path : FlowPath
    value : callable
        Rows of order parameters -> value.
    root : float
    rates : bool
        Whether the value depends on rates.
    """
    low, high = (1 - NARROW) * root, min((1 + NARROW) * root, float(path.nodes[-1]))
    change = [float(value(path.order(t, rates))[0]) for t in (low, high)]
    slope = (change[1] - change[0]) / max(high - low, 1e-300)
    return root_change(path_noise(path, value, root, accumulated_walk(path, root)), slope)


def root_change(error: float, slope: float) -> float:
    """The change of a root whose value has an error; infinite where the value does not rise.

    Parameters
    ----------
    error : float
        Of the value.
    slope : float
        Of the value, by the time.
    """
    return error / slope if slope > 0 else np.inf if error else 0.0


def root_between(
    function: Callable[[float], float], low: float, high: float, guess: float | None = None
) -> float:
    """The time at which a function becomes positive, between one where it is not and one more.

    Parameters
    ----------
    function : callable
        Time -> value.
    low, high : float
        Times.
    guess : float or None
        A time that is mostly near; where it is, the function is computed half as often.
    """
    from scipy.optimize import brentq

    if low == high or function(low) > 0:
        return low
    if guess is not None:
        near = max(low, (1.0 - NEAR) * guess), min(high, (1.0 + NEAR) * guess)
        if near[0] < near[1] and function(near[0]) <= 0 < function(near[1]):
            low, high = near
    smallest = ROOT_STEP * max(high, 1e-300)
    return float(brentq(function, low, high, xtol=1e-3 * smallest, rtol=ROOT_STEP))
