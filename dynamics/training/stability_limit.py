r"""The largest learning rate at which gradient descent is stable at a state.

Near a slowly moving state the map :math:`\theta \mapsto \theta - \eta g(\theta)` multiplies a
deviation along an eigenvector of :math:`\partial g` with eigenvalue :math:`\lambda` by
:math:`1 - \eta\lambda`. It stays above -1 as long as :math:`\eta < 2/\lambda_{max}`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics.problem import FloatArray, Problem
from dynamics.results.trajectory import Trajectory


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
