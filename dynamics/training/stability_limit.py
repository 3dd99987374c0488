r"""The largest learning rate at which gradient descent is stable at a state.

Near a slowly moving state a step with learning rate :math:`\eta` multiplies a deviation along an
eigenvector of the gradient's Jacobian, with eigenvalue :math:`\lambda`, by :math:`1 - \eta\lambda`.
Deviations along an eigenvector grow if :math:`\eta` exceeds :math:`2 / \lambda`.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from dynamics.loops import Updates
from dynamics.problem import FloatArray, Problem, check_problem
from dynamics.results.trajectory import Trajectory
from dynamics.training.settings import record_schedule

CALM_STEPS, FEWEST_CALM = 20_000, 200
"""Maximum and minimum number of steps of a trial run at a smaller learning rate."""
BRIEF = 0.05
"""If a chunk of a trial run takes less than this time in seconds, the next chunk is longer."""
SEARCH_SECONDS = 10.0
"""Maximum time in seconds of the search for a smaller stable learning rate."""
NEAR_LIMIT = 0.8
"""A run carries a remark if its learning rate exceeds this fraction of the stability limit."""
AT_LIMIT = 1e-6
"""Maximum relative difference of a learning rate that counts as equal to the stability limit."""
JUMPS = "where a gradient jumps, every eta may reverse it"
FOR_EVER = "a zigzag that neither grows nor shrinks"


def stability_limit(problem: Problem, state: ArrayLike) -> float:
    """Largest stable learning rate, 2 / (largest eigenvalue of the Jacobian of the gradient).

    The limit is infinite if no eigenvalue is positive, and NaN if the gradient is not finite.

    Parameters
    ----------
    problem : Problem
    state : float array, shape (n,)

    Raises
    ------
    InvalidRequest
        If problem is not a Problem, or state is not one of its states.

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
    """Stability limit of the largest learning rate if the ratios of all `rates` are kept."""
    if len(set(rates)) <= 1:
        return stability_limit(problem, state)
    return _limit(problem.curvature(state, problem.layout.per_entry(rates) / max(rates)))


def rates_text(rates: tuple[float, ...], largest: float, digits: int = 6) -> str:
    """Text of rates scaled to the `largest`: one number, or one for each parameter group."""
    if len(set(rates)) <= 1:
        return f"{largest:.{digits}g}"
    return f"({', '.join(f'{largest * (rate / max(rates)):.{digits}g}' for rate in rates)})"


def near_limit(problem: Problem, rates: tuple[float, ...], state: FloatArray, step: int) -> str:
    """Remark if `rates` of parameter groups are near or above the stability limit, else ""."""
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
    """Stability limit at every record of a run of the same problem, shape (records,)."""
    return np.array([stability_limit(problem, state) for state in run.states])


def smaller_rate(
    problem: Problem,
    rates: tuple[float, ...],
    start: FloatArray,
    steps: int,
    reversing: bool = False,
    proceed: Callable[[], bool] = lambda: True,
) -> str:
    """Remedy for learning rates that are too large, as text.

    All `rates` are halved, at most 20 times, until a trial run from `start` is *calm*: in its
    second half the rate of change of the first scalar keeps its sign. A trial run has `steps`
    steps, but at least `FEWEST_CALM` and at most `CALM_STEPS`. The text states the minimum
    stability limit along the calm run, or the limit at `start` if no run is calm. After
    `SEARCH_SECONDS` the text states the result so far.

    The flag `reversing` tells whether the run oscillates with period two. The search calls
    `proceed` before every chunk of steps and every computed limit, and ends if `proceed` returns
    False.
    """
    largest, ends = max(rates), time.perf_counter() + SEARCH_SECONDS
    used, rate = f"eta={rates_text(rates, largest)}", largest

    def going() -> bool:
        return proceed() and time.perf_counter() < ends

    def above(limit: float, best: float) -> str:
        bound, tried = rates_text(rates, limit, 4), rates_text(rates, best, 2)
        return f"{used} is above the stability limit {bound} there; try eta={tried}"

    calm, states = min(CALM_STEPS, max(FEWEST_CALM, steps)), None
    for _ in range(20):
        rate /= 2
        states = _calm_states(problem, start, rates, rate, calm, going)
        if states is not None or not going():
            break
    limits = [] if states is None else [
        limit_of_rates(problem, rates, state) for state in states[::-1] if going()
    ]  # fmt: skip
    if not proceed():
        return f"{used} is too large"
    if states is not None:
        limit, whole = min((b for b in limits if b > 0), default=np.inf), len(limits) == len(states)
        if reversing and abs(limit / largest - 1) < AT_LIMIT:
            bound, tried = rates_text(rates, limit, 4), rates_text(rates, 0.9 * limit, 2)
            return f"{used} is at the stability limit {bound} there: {FOR_EVER}; try eta={tried}"
        if limit < largest:  # after an early stop, `limits` lacks some states
            return above(limit, 0.9 * limit if whole else min(0.9 * limit, rate))
        if reversing and whole:
            bound = rates_text(rates, limit, 4)
            return f"the stability limit there, {bound}, does not explain it: {JUMPS}"
        return f"{used} is too large; try eta={rates_text(rates, rate, 2)}"
    if not going():
        return f"{used} is too large; no rate down to {rates_text(rates, rate)} was found calm"
    limit = float("nan")
    with np.errstate(all="ignore"):
        if np.isfinite(problem.gradient(start)).all():
            limit = limit_of_rates(problem, rates, start)
    if 0.0 < limit < rate:
        return above(limit, 0.9 * limit)
    otherwise = JUMPS if reversing else "start elsewhere, or take fewer steps"
    return f"{used} is too large, and so is {rates_text(rates, rate, 2)}: {otherwise}"


def _calm_states(
    problem: Problem, start: FloatArray, rates: tuple[float, ...], rate: float, steps: int,
    going: Callable[[], bool],
) -> FloatArray | None:  # fmt: skip
    """States of a trial run at a learning rate, or None if it is not calm."""
    updates, state = Updates(problem.layout.per_entry(rates) * (rate / max(rates))), start.copy()
    # A contiguous copy, because numba would compile another array layout anew.
    schedule = record_schedule(steps, "log")[::8].copy()
    rows, records = (
        np.empty((steps, len(problem.order_names))),
        np.empty((schedule.size, state.size)),
    )
    done, chunk = 0, 1
    while done < steps and going():
        first, last = done, min(steps, done + chunk)
        low, high = np.searchsorted(schedule, (first, last))
        buffers = rows[first:last], schedule[low:high], records[low:high]
        begun = time.perf_counter()
        done = problem.advance(state, updates, first, last, buffers)
        if time.perf_counter() - begun < BRIEF:
            chunk *= 4
        if done < last:
            return None
    records[-1] = state
    turns = rows[steps // 2 :, problem.order_names.index(problem.rates[0])]
    reverses = bool((np.sign(turns[1:]) * np.sign(turns[:-1]) < 0).any())
    return None if done < steps or reverses else records
