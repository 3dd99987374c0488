"""Expectations of a risk over its law: the one protocol that problems use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics import loops
from dynamics.loops import Updates

FloatArray = NDArray[np.float64]


class Expectation:
    """The expectation of a risk over its law, which several threads may use at once.

    `settings`: how it was made, stored with every run; `data`: what its kernels need beside the
    state, by whose type loops choose them; they write none of it. None where gradients are not
    compiled; `has_hessian`: bool.
    """

    name: str
    settings: Mapping[str, Any]
    data: Any = None
    has_hessian = True

    @property
    def source(self) -> str:
        """Text that its gradients are computed from."""
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
        """Order parameters at a state with its gradient, shape (count,)."""
        return loops.order_parameters(self.data, state, slope, count)

    def advance(
        self, state: FloatArray, updates: Updates, first: int, last: int, buffers: tuple[Any, ...]
    ) -> int:
        """Steps first, ..., last - 1 in place; see `dynamics.loops.kernels.advance`."""
        return loops.advance(self.data, state, updates, (first, last), True, buffers)

    def error_estimate(self, state: FloatArray) -> dict[str, FloatArray]:
        """Return ``value``, gradient and then risk, and the ``estimate`` of its error.

        Shape (n + 1,) each; NaN where errors are not estimated. Where they are known, ``gross`` has
        the sizes of all contributions, and a sampled expectation has a ``standard_error`` in place
        of the estimate.
        """
        value = np.append(self.gradient(state), self.value(state))
        return {"value": value, "estimate": np.full(value.size, np.nan)}

    def observe(self, states: FloatArray) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Return gradients at states, shape (records, n), and what else is known there, by name.

        That is the risk, and the largest error of a component of the gradient in its gross.
        """
        known = [self.error_estimate(state) for state in states]
        values = np.array([each["value"] for each in known]).reshape(len(states), -1)
        errors = np.array([relative_error(e["estimate"], e["gross"]) for e in known])
        return values[:, :-1], {"risk": values[:, -1], "error_estimate": errors}

    def failure(self, state: FloatArray) -> str:
        """Reason why a state has no gradient; empty where it has one."""
        return ""


FLOOR = 1e-290
"""Errors of this size are those of underflow, of which nothing is known."""


def relative_error(error: FloatArray, gross: FloatArray) -> float:
    """Largest error of a component of the gradient in its gross; 0 where both underflow.

    `error`, `gross`, shape (n + 1,): the last is that of the risk, which does not count.
    """
    with np.errstate(all="ignore"):
        known = np.where(error[:-1] > 2 * FLOOR, error[:-1] / gross[:-1], 0.0)
    return float(known.max())
