r"""The largest learning rate at which gradient descent is stable at a state.

Near a slowly moving state the map :math:`\theta \mapsto \theta - \eta g(\theta)` multiplies a
deviation along an eigenvector of :math:`\partial g` with eigenvalue :math:`\lambda` by
:math:`1 - \eta\lambda`. It stays above -1 as long as :math:`\eta < 2/\lambda_{max}`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics.problem import Problem

ITERATIONS = 100
RELATIVE = 1e-6


def stability_limit(problem: Problem, state: ArrayLike) -> float:
    """2 / (largest eigenvalue of the Jacobian of the gradient): power iteration on differences.

    Parameters
    ----------
    problem : Problem
    state : float array, shape (n,)

    Returns
    -------
    float
        A learning rate; infinite where the curvature is nowhere positive, NaN where the gradient
        is not finite.
    """
    flat = problem.layout.flatten(state)
    width = 1e-5 * max(1e-3, float(np.linalg.norm(flat)))
    direction = problem.gradient(flat)
    if not np.isfinite(direction).all():
        return float("nan")
    if not direction.any():
        direction = np.ones_like(flat)
    curvature = 0.0
    for _ in range(ITERATIONS):
        direction = direction / np.linalg.norm(direction)
        ahead = problem.gradient(flat + width * direction)
        behind = problem.gradient(flat - width * direction)
        image = (ahead - behind) / (2 * width)
        if not np.isfinite(image).all():
            return float("nan")
        before, curvature = curvature, float(direction @ image)
        if abs(curvature - before) <= RELATIVE * abs(curvature) or not image.any():
            break
        direction = image
    return 2.0 / curvature if curvature > 0 else float("inf")
