r"""Onset of period two and of non-finite states in gradient descent above the stability limit.

The stability limit at a slowly moving state predicts the learning rate at which small deviations
stop decaying. Bisection finds the lowest learning rate with a lasting alternation, and the lowest
learning rate with a state that is not finite.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.loops import Updates
from dynamics.presentation import Presentation
from dynamics.problem import FloatArray, Problem, check_problem
from dynamics.training.stability_limit import stability_limit
from dynamics.validation import InvalidRequest, integer, known_word
from theory.summary import summarized

STEPS = 4000
PRECISION = 1e-3
WIDEST = 100.0
KICK = 1e-6
"""Initial deviation of an entry from the given state, relative to the scale of the entry."""
SMALLEST = 1e-3
"""Minimum scale of an entry, relative to the largest entry; entries near 0 have this scale."""
UNEQUAL = (5.0**0.5 - 1.0) / 2.0
"""Entry k is perturbed by `KICK` times its scale times 1 - (k `UNEQUAL` mod 1) / 2. Since `UNEQUAL`
is irrational, this factor differs between all entries, so entries that start equal separate."""
LASTING = 1e-4
"""An entry's alternation is visible if its amplitude exceeds this fraction of its scale."""
KEPT = 0.9
"""An alternation lasts if its amplitude in the second half of the last states exceeds this fraction
of its amplitude in the first half. At 0.2 percent below the stability limit the amplitude already
falls below this fraction."""
LAST_STATES = 64


@summarized
@dataclass(frozen=True)
class Onsets:
    """Predicted and observed critical learning rates at one state.

    Attributes
    ----------
    limit : float
        Predicted onset of period two: 2 over the largest eigenvalue of the Hessian.
    period_two : float
        Observed least learning rate with a lasting alternation, or infinity if a state stops being
        finite first. It is below `limit` if the state drifts to a smaller limit during the trial.
    non_finite : float
        Observed least learning rate with a state that is not finite, or infinity if none is found
        between half the limit and 100 times the limit.

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    >>> late = dynamics.flow(problem, time=1e4).final_state
    >>> result = dynamics.onsets(problem, late)
    >>> 1.0 < result.period_two / result.limit < 1.05
    True
    """

    limit: float
    period_two: float
    non_finite: float


def onsets(problem: Problem, state: ArrayLike, steps: int = STEPS) -> Onsets:
    """Find the learning rates of the onset of period two and of non-finite values at a state.

    Parameters
    ----------
    problem : Problem
    state : float array, shape (n,)
        A slowly moving state, such as a late state of the flow. Each trial perturbs every entry by
        about 1e-6 of its size, at least 1e-9 of the largest entry.
    steps : int
        Steps of each trial, at least 256.

    Raises
    ------
    InvalidRequest
        If the state does not fit the problem or has no stability limit, or steps is too small.

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> problem = system.ReducedPopulation(system.Parameters(D=4, C=2))
    >>> late = dynamics.flow(problem, time=1000.0).final_state
    >>> result = dynamics.onsets(problem, late, steps=256)
    >>> result.limit == dynamics.stability_limit(problem, late)
    True
    """
    limit = stability_limit(problem, state)
    start = problem.layout.flatten(state)
    if not np.isfinite(limit):
        raise InvalidRequest("state has no stability limit: its curvature is not positive")
    steps = integer("steps", steps, at_least=4 * LAST_STATES)
    burst = _first(lambda eta: late_states(problem, start, eta, steps) is None, limit, WIDEST)
    period_two = _first(lambda eta: alternates(problem, start, eta, steps), limit, 4.0)
    return Onsets(limit, period_two, burst)


def late_states(problem: Problem, start: FloatArray, eta: float, steps: int) -> FloatArray | None:
    """Last 64 states of descent from a perturbed `start`, shape (64, n), or None if not finite."""
    parts = 1.0 - (np.arange(start.size) * UNEQUAL) % 1.0 / 2.0
    state = start + KICK * parts * np.where(start < 0, -1.0, 1.0) * _scales(start)
    due = np.arange(max(0, steps - LAST_STATES), steps)
    rows, records = np.empty((steps, len(problem.order_names))), np.empty((due.size, state.size))
    with np.errstate(all="ignore"):
        reached = problem.advance(
            state, Updates(np.full(state.size, eta)), 0, steps, (rows, due, records)
        )
    return records if reached == steps else None


def alternates(problem: Problem, start: FloatArray, eta: float, steps: int = STEPS) -> bool:
    """Whether descent from near `start` ends in a visible, lasting alternation of an entry."""
    states = late_states(problem, start, eta, steps)
    if states is None:
        return False
    change = np.diff(states, axis=0)
    fastest = int(np.argmax(np.abs(change).max(axis=0)))
    moves = change[:, fastest]
    sizes, scale = np.abs(moves), max(np.abs(states[:, fastest]).max(), _scales(start)[fastest])
    earlier, later = np.array_split(sizes, 2)
    lasts = later.max() > KEPT * earlier.max() and sizes.min() > LASTING * scale
    return bool((moves[1:] * moves[:-1] < 0).all() and lasts)


def _scales(start: FloatArray) -> FloatArray:
    """Scale of every entry: its size, but at least `SMALLEST` times the largest size (or 1)."""
    sizes = np.abs(start)
    return np.maximum(sizes, SMALLEST * (sizes.max(initial=0.0) or 1.0))


def _first(condition: Callable[[float], bool], limit: float, widest: float) -> float:
    """Lowest eta of [0.5, `widest`] times the stability limit that meets a condition, or inf."""
    grid = limit * np.geomspace(0.5, widest, 120)
    first = next((k for k, eta in enumerate(grid) if condition(eta)), None)
    if not first:
        return float("inf") if first is None else float(grid[0])
    low, high = float(grid[first - 1]), float(grid[first])
    while high > low * (1.0 + PRECISION):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if condition(middle) else (middle, high)
    return high


@summarized
@dataclass(frozen=True)
class Branches:
    """Bifurcation diagram: last values of a scalar of gradient descent against the learning rate.

    Attributes
    ----------
    system, name : str
        Name of the system, and name of the scalar in `values`.
    etas : float array, shape (n,)
        Learning rates, ascending.
    values : float array, shape (n, 64)
        Last values of the scalar at each learning rate, or NaN if a state was not finite.
    onsets : Onsets
        Critical learning rates at the initial state.
    presentation, parameters
        Presentation and parameters of the problem.

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    >>> late = dynamics.flow(problem, time=1e4).final_state
    >>> branches = dynamics.branches(problem, late, "alpha", count=3, steps=256)
    >>> branches.name, branches.etas.shape, branches.onsets.period_two > branches.onsets.limit
    ('alpha', (3,), True)
    """

    system: str
    name: str
    etas: FloatArray
    values: FloatArray
    onsets: Onsets
    presentation: Presentation
    parameters: Mapping[str, Any] = field(default_factory=dict)


def branches(
    problem: Problem, state: ArrayLike, name: str, count: int = 240, steps: int = STEPS
) -> Branches:
    """Bifurcation diagram of one scalar, for learning rates around and above the stability limit.

    Parameters
    ----------
    problem : Problem
    state : float array, shape (n,)
        Initial state of all trials.
    name : str
        Name of a scalar of the state.
    count : int
        Number of learning rates, from 0.7 times the limit to 1.15 times the onset of non-finite
        values (to 3 times the limit if no onset is found).
    steps : int
        Steps of each trial.

    Raises
    ------
    InvalidRequest
        If name is not a scalar of the state, count is invalid, or `onsets` refuses the request.

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> problem = system.ReducedPopulation(system.Parameters(D=4, C=2))
    >>> late = dynamics.flow(problem, time=1000.0).final_state
    >>> dynamics.branches(problem, late, "alpha", count=4, steps=256).values.shape
    (4, 64)
    """
    check_problem(problem)
    count = integer("count", count, at_least=1)
    known_word("name", name, problem.layout.scalars, "is not a scalar of the state")
    start, result = problem.layout.flatten(state), onsets(problem, state, steps)
    last = max(1.2 * result.limit, min(1.15 * result.non_finite, 3.0 * result.limit))
    etas = np.linspace(0.7 * result.limit, last, count)
    index, values = problem.layout.slice_of(name).start, np.full((count, LAST_STATES), np.nan)
    for k, eta in enumerate(etas):
        states = late_states(problem, start, float(eta), steps)
        if states is not None:
            values[k] = states[:, index]
    parameters, presentation = asdict(problem.parameters), Presentation.of(problem)
    return Branches(problem.system, name, etas, values, result, presentation, parameters)
