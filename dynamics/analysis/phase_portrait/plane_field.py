"""Rates of two scalars of a reduced problem in their plane, with other scalars eliminated."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.analysis.phase_portrait.elimination import PlaneFunction
from dynamics.problem import FloatArray

UNSURE = 1e-2
"""A rate counts as unknown if its estimated error exceeds this fraction of the median rate."""


class CountedGradient:
    """Gradient that counts its evaluations, and raises KeyboardInterrupt when interrupted."""

    def __init__(self, problem: Any, interrupted: threading.Event) -> None:
        self.view, self.layout, self._interrupted = problem.view, problem.layout, interrupted
        self._gradient, self.count = problem.gradient, 0
        self._bound = getattr(problem, "gradient_error", lambda state: None)

    def gradient(self, state: ArrayLike) -> FloatArray:
        """Gradient of the problem."""
        if self._interrupted.is_set():
            raise KeyboardInterrupt
        self.count += 1
        return self._gradient(state)

    def gradient_error(self, state: ArrayLike) -> FloatArray | None:
        """Estimated error of each entry of the gradient, or None if the problem has no estimate."""
        self.count += 1
        return self._bound(state)


class PlaneField:
    """Rates of the two scalars of a plane at a point, evaluated once at each point."""

    def __init__(
        self,
        problem: CountedGradient,
        plane: tuple[str, str],
        eliminated: Mapping[str, PlaneFunction],
    ) -> None:
        names = problem.layout.names
        self._problem, self._size = problem, problem.layout.size
        self._axes = [names.index(name) for name in plane]
        self._eliminated = {names.index(name): f for name, f in eliminated.items()}
        self._rates: dict[tuple[float, float], tuple[float, float]] = {}
        self._limits: FloatArray | None = None

    def state(self, x: float, y: float) -> FloatArray:
        """Whole state of the problem at the point (x, y) of the plane."""
        state = np.empty(self._size)
        state[self._axes] = x, y
        for k, function in self._eliminated.items():
            state[k] = function(x, y)
        return state

    def __call__(self, x: float, y: float) -> tuple[float, float]:
        """Rates of both scalars at the point (x, y), or NaN if the state or its gradient is NaN."""
        if (x, y) not in self._rates:
            state = self.state(x, y)
            gradient = np.full(2, np.nan)
            if np.isfinite(state).all():
                gradient = self._problem.gradient(state)[self._axes]
                limits = self._limits
                bound = None if limits is None else self._problem.gradient_error(state)
                if limits is not None and bound is not None:
                    gradient = np.where(bound[self._axes] > limits, np.nan, gradient)
            self._rates[x, y] = -float(gradient[0]), -float(gradient[1])
        return self._rates[x, y]

    def rate(self, number: int, x: float, y: float) -> float:
        """Rate of the first (0) or the second (1) scalar at the point (x, y)."""
        return self(x, y)[number]

    def grid(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Rates of both scalars at all pairs of x and y, shape (2, y, x).

        After this call, rates whose error may exceed `UNSURE` times the median rate are NaN.
        """
        rates = np.array([[self(u, v) for u in x] for v in y])
        sizes = np.nanmedian(np.abs(rates), axis=(0, 1)) if np.isfinite(rates).any() else 0.0
        self._limits = UNSURE * np.broadcast_to(sizes, (2,))
        self._rates = {}
        return np.array([[self(u, v) for u in x] for v in y]).transpose(2, 0, 1)
