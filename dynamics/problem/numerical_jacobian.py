"""Jacobian of a gradient from differences, and its largest eigenvalue by power iteration."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynamics.problem.layout import FloatArray

SMALL = 8
"""Maximum number of entries for a Jacobian from differences; above it, power iteration is used."""


def central_differences(
    gradient: Callable[[FloatArray], FloatArray], state: FloatArray
) -> FloatArray:
    """Jacobian of a gradient at a state by central differences, shape (n, n)."""
    columns = []
    for k, width in enumerate(1e-4 * np.maximum(np.abs(state), 1e-2)):
        step = np.zeros_like(state)
        step[k] = width
        columns.append((gradient(state + step) - gradient(state - step)) / (2 * width))
    return np.array(columns).T


def largest_eigenvalue(gradient: Callable[[FloatArray], FloatArray], state: FloatArray) -> float:
    """Most positive of the real eigenvalues of a gradient's Jacobian, or NaN if not finite."""
    eigenvalue = _power_iteration(gradient, state)
    if eigenvalue < 0:  # this is the least eigenvalue; subtracted, it leaves all >= 0
        eigenvalue += _power_iteration(gradient, state, eigenvalue)
    return eigenvalue


def _power_iteration(
    gradient: Callable[[FloatArray], FloatArray], state: FloatArray, shift: float = 0.0
) -> float:
    """Eigenvalue of largest absolute value of a Jacobian minus a shift, to a relative 1e-6."""
    width = 1e-5 * max(1e-3, float(np.linalg.norm(state)))
    direction, eigenvalue = gradient(state), 0.0
    if not np.isfinite(direction).all():
        return float("nan")
    if not direction.any():
        direction = np.ones_like(state)
    for _ in range(100):
        direction = direction / np.linalg.norm(direction)
        change = gradient(state + width * direction) - gradient(state - width * direction)
        image = change / (2 * width) - shift * direction
        if not np.isfinite(image).all():
            return float("nan")
        before, eigenvalue = eigenvalue, float(direction @ image)
        if abs(eigenvalue - before) <= 1e-6 * abs(eigenvalue) or not image.any():
            break
        direction = image
    return eigenvalue
