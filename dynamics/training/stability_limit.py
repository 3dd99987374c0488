r"""The largest learning rate at which gradient descent is stable at a state.

Near a slowly moving state the map :math:`\theta \mapsto \theta - \eta g(\theta)` multiplies a
deviation along an eigenvector of :math:`\partial g` with eigenvalue :math:`\lambda` by
:math:`1 - \eta\lambda`. It stays above -1 as long as :math:`\eta < 2/\lambda_{max}`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics.problem import FloatArray, Problem, check_problem
from dynamics.results.trajectory import Trajectory
from dynamics.training.settings import record_schedule

CALM_STEPS, FEWEST_CALM = 20_000, 200
"""Most and fewest steps of the runs at smaller learning rates from which a remedy is computed."""
JUMPS = "where a gradient jumps, every eta may reverse it"


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
    curvature = problem.curvature(state)
    return 2.0 / curvature if curvature > 0 else float("nan" if curvature != curvature else "inf")


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
    problem: Problem, eta: FloatArray, start: FloatArray, steps: int, reversing: bool = False
) -> str:
    """What to do about a learning rate that is too large, in words.

    The learning rate is halved, 20 times at most, until the requested steps, at most 20,000, end
    without a reversal of the first rate from ``start``; the stability limit is the least along that
    run, or that of ``start`` where no run ends so.

    Parameters
    ----------
    problem : Problem
    eta : float array, shape (n,)
        Learning rate of each entry.
    start : float array, shape (n,)
    steps : int
        Of the request.
    reversing : bool
        Whether every step reverses a rate there, which takes a rate above the stability limit, or a
        gradient that jumps.
    """
    step_time = float(eta[0])
    used, column = f"eta={step_time:g}", problem.order_names.index(problem.rates[0])
    calm = min(CALM_STEPS, max(FEWEST_CALM, steps))
    for _ in range(20):
        eta = eta / 2
        state, width = start.copy(), len(problem.order_names)
        # Contiguous: another layout would be compiled anew.
        schedule = record_schedule(calm, "log")[::8].copy()
        rows, records = np.empty((calm, width)), np.empty((schedule.size, state.size))
        done = problem.advance(state, eta, 0, calm, (rows, schedule, records))
        rate = rows[calm // 2 :, column]
        if done == calm and not (np.sign(rate[1:]) * np.sign(rate[:-1]) < 0).any():
            records[-1] = state
            limits = [stability_limit(problem, record) for record in records]
            limit = min((bound for bound in limits if bound > 0), default=np.inf)
            if limit < step_time:
                tried = f"try eta={0.9 * limit:.2g}"
                return f"{used} is above the stability limit {limit:.4g} there; {tried}"
            if reversing:
                return f"the stability limit there, {limit:.4g}, does not explain it: {JUMPS}"
            return f"{used} is too large; try eta={float(eta.max()):.2g}"
    limit, least = float("nan"), float(eta.max())
    with np.errstate(all="ignore"):
        if np.isfinite(problem.gradient(start)).all():
            limit = stability_limit(problem, start)
    if 0.0 < limit < least:
        return f"{used} is above the stability limit {limit:.4g} there; try eta={0.9 * limit:.2g}"
    otherwise = JUMPS if reversing else "start elsewhere, or take fewer steps"
    return f"{used} is too large, and so is {least:.2g}: {otherwise}"
