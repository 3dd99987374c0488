r"""The largest learning rate at which gradient descent is stable at a state.

Near a slowly moving state the map :math:`\theta \mapsto \theta - \eta g(\theta)` multiplies a
deviation along an eigenvector of :math:`\partial g` with eigenvalue :math:`\lambda` by
:math:`1 - \eta\lambda`. It stays above -1 as long as :math:`\eta < 2/\lambda_{max}`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.problem import SMALL, FloatArray, Problem, check_problem
from dynamics.results.trajectory import Trajectory
from dynamics.training.settings import record_schedule

CALM_STEPS, FEWEST_CALM = 20_000, 200
"""Most and fewest steps of the runs at smaller learning rates from which a remedy is computed."""
BRIEF = 0.05
"""Seconds of a chunk of steps up to which the next one is longer."""
GRADIENTS_OVER_STEPS = 4
"""Gradients that a search for a remedy may take, over the steps of the request."""
SEARCH_SECONDS = 5.0
"""Seconds that it may take however few these are."""
POWER_ITERATION = 200
"""Gradients of a power iteration, about."""
NEAR_LIMIT = 0.8
"""Part of the stability limit from which a learning rate is warned of."""
AT_LIMIT = 1e-6
"""Relative distance from the stability limit below which a learning rate is at it."""
JUMPS = "where a gradient jumps, every eta may reverse it"
FOR_EVER = "a zigzag that neither grows nor shrinks"


def stability_limit(problem: Problem, state: ArrayLike) -> float:
    """2 / (largest eigenvalue of the Jacobian of the gradient).

    Parameters
    ----------
    problem : Problem
    state : float array, shape (n,)

    Returns
    -------
    float
        A learning rate; infinite where the curvature is nowhere positive, NaN where the gradient
        is not finite.

    Raises
    ------
    InvalidRequest
        If problem is none, or state is no state of it.

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    >>> dynamics.stability_limit(problem, problem.initial_state)
    inf
    >>> late = dynamics.flow(problem, time=1e4).final_state
    >>> round(dynamics.stability_limit(problem, late), 4)
    0.0263
    """
    check_problem(problem)
    return _limit(problem.curvature(state))


def _limit(curvature: float) -> float:
    return 2.0 / curvature if curvature > 0 else float("nan" if curvature != curvature else "inf")


def limit_of_rates(problem: Problem, rates: tuple[float, ...], state: FloatArray) -> float:
    """The largest rate of those that have the ratios of these and are just stable at a state.

    Parameters
    ----------
    problem : Problem
    rates : tuple of float
        Learning rate of each parameter group.
    state : float array, shape (n,)
    """
    if len(set(rates)) <= 1:
        return stability_limit(problem, state)
    return _limit(problem.curvature(state, problem.layout.per_entry(rates) / max(rates)))


def rates_text(rates: tuple[float, ...], largest: float, digits: int = 6) -> str:
    """Learning rates as a request has them, of these ratios: one number, or one for each group.

    Parameters
    ----------
    rates : tuple of float
        Learning rate of each parameter group.
    largest : float
        The largest of them.
    digits : int
    """
    if len(set(rates)) <= 1:
        return f"{largest:.{digits}g}"
    return f"({', '.join(f'{largest * (rate / max(rates)):.{digits}g}' for rate in rates)})"


def near_limit(problem: Problem, rates: tuple[float, ...], state: FloatArray, step: int) -> str:
    """A remark on learning rates near the stability limit or beyond it; empty for others.

    Parameters
    ----------
    problem : Problem
    rates : tuple of float
        Learning rate of each parameter group.
    state : float array, shape (n,)
    step : int
        Of the state.
    """
    limit, largest = limit_of_rates(problem, rates, state), max(rates)
    if not largest > NEAR_LIMIT * limit:
        return ""
    beyond = largest / limit - 1
    near = "period two is near" if beyond < 0 else "it is passed"
    return (
        f"eta={rates_text(rates, largest)} at step {step}, where the stability limit is "
        f"{rates_text(rates, limit, 4)}: {'it is reached' if abs(beyond) < AT_LIMIT else near}"
    )


def limits_along(problem: Problem, run: Trajectory) -> FloatArray:
    """Stability limit at every record of a run.

    Parameters
    ----------
    problem : Problem
    run : Trajectory
        Of the same problem.

    Returns
    -------
    float array, shape (records,)
    """
    return np.array([stability_limit(problem, state) for state in run.states])


def smaller_rate(
    problem: Problem,
    rates: tuple[float, ...],
    start: FloatArray,
    steps: int,
    reversing: bool = False,
    proceed: Callable[[], bool] = lambda: True,
) -> str:
    """What to do about a learning rate that is too large, in words; of several, about all.

    It is halved, 20 times at most, until as many steps as are requested, `FEWEST_CALM` to
    `CALM_STEPS`, from ``start`` have no reversal of the first rate in their second half; the
    stability limit is the least along that run, or that of ``start`` where no run ends so. After
    `GRADIENTS_OVER_STEPS` times as many gradients as the request has steps, and `SEARCH_SECONDS`,
    the words are of what is known.

    Parameters
    ----------
    problem : Problem
    rates : tuple of float
        Learning rate of each parameter group.
    start : float array, shape (n,)
    steps : int
        Of the request.
    reversing : bool
        Whether every step reverses a rate there, which takes a rate above the stability limit, or a
        gradient that jumps.
    proceed : callable
        Whether to go on, asked before every chunk of steps and before every limit: at an
        interruption the words have no numbers but the learning rate.
    """
    eta, least = problem.layout.per_entry(rates), max(rates)
    used, column = f"eta={rates_text(rates, least)}", problem.order_names.index(problem.rates[0])
    calm, done = min(CALM_STEPS, max(FEWEST_CALM, steps)), 0
    budget = _Budget(GRADIENTS_OVER_STEPS * steps, proceed)
    for _ in range(20):
        eta, least = eta / 2, least / 2
        state, width = start.copy(), len(problem.order_names)
        # Contiguous: another layout would be compiled anew.
        schedule = record_schedule(calm, "log")[::8].copy()
        rows, records = np.empty((calm, width)), np.empty((schedule.size, state.size))
        done = _advanced(problem, state, eta, (rows, schedule, records), budget)
        if budget.exhausted or not proceed():
            break
        rate = rows[calm // 2 :, column]
        if done == calm and not (np.sign(rate[1:]) * np.sign(rate[:-1]) < 0).any():
            records[-1] = state
            limits = _limits(problem, rates, records, budget)
            if not proceed():
                break
            limit = min((bound for bound in limits if bound > 0), default=np.inf)
            bound = rates_text(rates, limit, 4)
            if reversing and abs(limit / max(rates) - 1) < AT_LIMIT:
                tried = f"try eta={rates_text(rates, 0.9 * limit, 2)}"
                return f"{used} is at the stability limit {bound} there: {FOR_EVER}; {tried}"
            if limit < max(rates):  # not of all states: what has gone well is the safer one
                best = min(0.9 * limit, least) if budget.exhausted else 0.9 * limit
                tried = f"try eta={rates_text(rates, best, 2)}"
                return f"{used} is above the stability limit {bound} there; {tried}"
            if reversing and not budget.exhausted:
                return f"the stability limit there, {bound}, does not explain it: {JUMPS}"
            return f"{used} is too large; try eta={rates_text(rates, least, 2)}"
    if not proceed():
        return f"{used} is too large"
    if budget.exhausted:
        return (
            f"{used} is too large; the search for a smaller one ended after {budget.spent:,} "
            f"gradients, {done:,} of {calm:,} steps into a run at {rates_text(rates, least)}: "
            f"try that or less"
        )
    limit = float("nan")
    with np.errstate(all="ignore"):
        if np.isfinite(problem.gradient(start)).all():
            limit = limit_of_rates(problem, rates, start)
    if 0.0 < limit < least:
        tried = f"try eta={rates_text(rates, 0.9 * limit, 2)}"
        return f"{used} is above the stability limit {rates_text(rates, limit, 4)} there; {tried}"
    otherwise = JUMPS if reversing else "start elsewhere, or take fewer steps"
    return f"{used} is too large, and so is {rates_text(rates, least, 2)}: {otherwise}"


class _Budget:
    """Gradients that a search may take: a number, and more where they take no time."""

    def __init__(self, most: int, proceed: Callable[[], bool]) -> None:
        self.most, self.proceed = most, proceed
        self.spent, self.begun, self.exhausted = 0, time.perf_counter(), False

    def allows(self, gradients: int) -> bool:
        """Whether to go on with as many more; they take the time of those before."""
        if not self.proceed():
            return False
        total, taken = self.spent + gradients, time.perf_counter() - self.begun
        seconds = taken * total / self.spent if self.spent else 0.0
        self.exhausted = total > self.most and seconds > SEARCH_SECONDS
        return not self.exhausted


def _limits(
    problem: Problem, rates: tuple[float, ...], states: FloatArray, budget: _Budget
) -> list[float]:
    """Stability limits at states, from the last to the first, as many as there is a budget for."""
    entries, limits = problem.layout.size, list[float]()
    small = entries <= SMALL or problem.has_jacobian
    for state in states[::-1]:
        if not budget.allows(cost := 2 * entries if small else POWER_ITERATION):
            break
        limits.append(limit_of_rates(problem, rates, state))
        budget.spent += cost
    return limits


def _advanced(
    problem: Problem,
    state: FloatArray,
    eta: FloatArray,
    buffers: tuple[Any, ...],
    budget: _Budget,
) -> int:
    """Steps of a run from 0 that were taken, of as many as rows: chunk by chunk, while to go on."""
    rows, schedule, records = buffers
    done, chunk = 0, 1
    while done < len(rows):
        last = min(len(rows), done + chunk)
        if not budget.allows(last - done):
            break
        low, high = np.searchsorted(schedule, (done, last))
        part = rows[done:last], schedule[low:high], records[low:high]
        begun = time.perf_counter()
        reached = problem.advance(state, eta, done, last, part)
        if time.perf_counter() - begun < BRIEF:
            chunk *= 4
        budget.spent += reached - done
        done = reached
        if reached < last:
            break
    return done
