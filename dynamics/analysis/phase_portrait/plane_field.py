"""Rates of two scalars of a reduced problem as functions of the two, with the others eliminated."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.analysis.phase_portrait.elimination import PlaneFunction
from dynamics.problem import FloatArray

UNSURE = 1e-2
"""Rates are unknown if their estimated error may exceed this part of the plane's median rate."""


class CountedGradient:
    """Counted gradient of a problem; an interruption raises KeyboardInterrupt."""

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
        """Estimated error of each entry of the gradient; None if the problem has no estimate."""
        self.count += 1
        return self._bound(state)


class PlaneField:
    """Rates of two scalars as a function of them, evaluated once at each point."""

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
        """Whole state at a point of the plane."""
        state = np.empty(self._size)
        state[self._axes] = x, y
        for k, function in self._eliminated.items():
            state[k] = function(x, y)
        return state

    def __call__(self, x: float, y: float) -> tuple[float, float]:
        """Rates of both scalars; NaN if the state or its gradient is NaN."""
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
        """Rate of the first (0) or the second (1) scalar at a point."""
        return self(x, y)[number]

    def grid(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Rates at all pairs of x and y, shape (2, y, x).

        Later evaluations return NaN if their error may exceed `UNSURE` times the median of these
        rates.
        """
        rates = np.array([[self(u, v) for u in x] for v in y])
        sizes = np.nanmedian(np.abs(rates), axis=(0, 1)) if np.isfinite(rates).any() else 0.0
        self._limits = UNSURE * np.broadcast_to(sizes, (2,))
        self._rates = {}
        return np.array([[self(u, v) for u in x] for v in y]).transpose(2, 0, 1)
