r"""Gradient descent above the stability limit: period two first, then no finite state.

From a slowly moving state the limit :math:`2/\lambda_{max}` predicts where a small deviation stops
dying out. Here the same is observed: the learning rates are bisected at which gradient descent
alternates for good, and at which it leaves the finite numbers.
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
"""First deviation, as a part of the scale of an entry."""
SMALLEST = 1e-3
"""Least scale of an entry, as a part of the largest: one that rests at 0 has none of its own."""
UNEQUAL = (5.0**0.5 - 1.0) / 2.0
"""Entries deviate by unequal parts, so that equal ones part."""
LASTING = 1e-4
"""Alternation that is visible, as a part of the scale."""
KEPT = 0.9
"""A lasting alternation keeps at least this part of its size over the second half of the last
states; one that dies out at 0.2 percent below the limit does not."""
LAST_STATES = 64


@summarized
@dataclass(frozen=True)
class Onsets:
    """Learning rates at which something sets in, from one state.

    Attributes
    ----------
    limit : float
        Predicted: 2 over the largest eigenvalue.
    period_two : float
        Observed: least learning rate at which the deviation alternates for good; infinite if there
        is none, as where the run leaves the finite numbers first: a state that drifts towards a
        smaller limit within the trial does so below its own.
    non_finite : float
        Observed: least learning rate found at which a state is not finite; infinite if there is
        none between half the limit and 100 times the limit.

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
    """Predicted and observed onset of period two, and of non-finite values, from a state.

    Parameters
    ----------
    problem : Problem
    state : float array, shape (n,)
        A slowly moving state, such as one of the flow.
    steps : int
        Steps of each trial, 256 at least. At the first every entry deviates, by about one millionth
        of its size, or of a thousandth of the largest entry where it is smaller than that; of 1
        where all are 0.

    Raises
    ------
    InvalidRequest
        If problem is not one, state does not fit or has no stability limit, or steps is too small.

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
    """The last states of a trial.

    `start`, shape (n,): a small deviation from it is the first state. Returns float array, shape
    (64, n), or None: None if a state was not finite.
    """
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
    """Whether the fastest state goes up and down at every one of the last steps, visibly, for good.

    `start`, shape (n,).
    """
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
    """The size of every entry, not below a part of the largest, or of 1 where all are 0."""
    sizes = np.abs(start)
    return np.maximum(sizes, SMALLEST * (sizes.max(initial=0.0) or 1.0))


def _first(condition: Callable[[float], bool], limit: float, widest: float) -> float:
    """Least learning rate at which a condition holds, from half the limit on; or infinity."""
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
    """Where gradient descent ends from one state, against the learning rate.

    Attributes
    ----------
    system, name : str
        The system, and the part of the state in `values`.
    etas : float array, shape (n,)
    values : float array, shape (n, 64)
        The last values of the state; NaN where a state was not finite.
    onsets : Onsets
    presentation : Presentation
        That of the problem.
    parameters : mapping
        Of the problem.

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
    """Last values of one part of the state for learning rates around the limit and beyond.

    Parameters
    ----------
    problem : Problem
    state : float array, shape (n,)
    name : str
        A scalar part of the state.
    count : int
        Number of learning rates, from 0.7 times the limit to 1.15 times the onset of non-finite
        values, or to three times the limit where there is none.
    steps : int
        Steps of each trial.

    Returns
    -------
    Branches

    Raises
    ------
    InvalidRequest
        If there is no such scalar part, count is none, or as of `onsets`.

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
