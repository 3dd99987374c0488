"""Expectation of a risk over a law of data: the interface that all problems use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics import loops
from dynamics.loops import Updates

FloatArray = NDArray[np.float64]


class Expectation:
    """Expectation of a risk over a law of data; several threads may share one instance.

    `settings` are stored with every run. `data` holds the read-only arguments that kernels take
    besides the state, and its type selects the compiled loops. `data` is None if the gradient is
    not compiled.
    """

    name: str
    settings: Mapping[str, Any]
    data: Any = None
    has_hessian = True

    @property
    def source(self) -> str:
        """Source text of the functions that compute the gradient."""
        return loops.source(type(self.data))

    def value(self, state: FloatArray) -> float:
        """Risk at a state."""
        return float(loops.summary(self.data, state)[0])

    def gradient(self, state: FloatArray) -> FloatArray:
        """Gradient at a state, shape (n,)."""
        return loops.gradient(self.data, state)

    def hessian(self, state: FloatArray) -> FloatArray:
        """Jacobian of the gradient at a state, shape (n, n)."""
        return loops.hessian(self.data, state)

    def order_parameters(self, state: FloatArray, slope: FloatArray, count: int) -> FloatArray:
        """Order parameters, shape (count,), at a state whose gradient is `slope`."""
        return loops.order_parameters(self.data, state, slope, count)

    def advance(
        self, state: FloatArray, updates: Updates, first: int, last: int, buffers: tuple[Any, ...]
    ) -> int:
        """Take training steps first, ..., last - 1 on `state`; see `dynamics.loops.kernels`."""
        return loops.advance(self.data, state, updates, (first, last), True, buffers)

    def error_estimate(self, state: FloatArray) -> dict[str, FloatArray]:
        """Gradient and risk as ``value``, shape (n + 1,), and the ``estimate`` of their errors.

        The estimate is NaN if errors are not estimated. Some expectations return ``gross``, the sum
        of the absolute terms of each value. A sampled expectation returns a ``standard_error``.
        """
        value = np.append(self.gradient(state), self.value(state))
        return {"value": value, "estimate": np.full(value.size, np.nan)}

    def observe(self, states: FloatArray) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Gradients, shape (records, n); risk and relative gradient error of each record."""
        known = [self.error_estimate(state) for state in states]
        values = np.array([each["value"] for each in known]).reshape(len(states), -1)
        errors = np.array([relative_error(e["estimate"], e["gross"]) for e in known])
        return values[:, :-1], {"risk": values[:, -1], "error_estimate": errors}

    def failure(self, state: FloatArray) -> str:
        """Reason why the gradient cannot be computed at a state, or "" if it can."""
        return ""


FLOOR = 1e-290
"""Lower limit of error estimates; an estimate below twice this value counts as underflow."""


def relative_error(error: FloatArray, gross: FloatArray) -> float:
    """Largest error of a gradient component (all but the last) over its sum of absolute terms."""
    with np.errstate(all="ignore"):
        known = np.where(error[:-1] > 2 * FLOOR, error[:-1] / gross[:-1], 0.0)
    return float(known.max())
