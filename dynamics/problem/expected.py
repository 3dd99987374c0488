"""Problems whose gradient is that of an expectation of the risk over its law."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.expectations import Expectation
from dynamics.problem.interface import Problem
from dynamics.problem.layout import FloatArray


class ExpectedProblem(Problem):
    """A problem that takes gradient, order parameters and risk from an `Expectation`.

    Attributes
    ----------
    expectation : Expectation
        Of the risk, with gradients as steps subtract them.
    """

    expectation: Expectation
    autonomous = True

    @property
    def source(self) -> str:
        """Text that the gradients are computed from."""
        return self.expectation.source

    @property
    def identity(self) -> Mapping[str, Any]:
        """Settings, and a hash of the source of the gradients."""
        code = hashlib.sha256(self.source.encode()).hexdigest()[:12]
        return {**self.settings, "code": code}

    @property
    def loop_data(self) -> Any:
        """Those of the expectation; see `Problem`."""
        return self.expectation.data

    def gradient(self, state: ArrayLike) -> FloatArray:
        """Gradient per entry, which one step subtracts times eta.

        Parameters
        ----------
        state : float array, shape (n,), or a sequence of its parts

        Returns
        -------
        float array, shape (n,)
        """
        return self.expectation.gradient(self.layout.flatten(state))

    def order_parameters(self, state: ArrayLike, gradient: FloatArray | None = None) -> FloatArray:
        """Order parameters at a state, in the order of `order_names`.

        Parameters
        ----------
        state : float array, shape (n,)
        gradient : float array, shape (n,), optional
            The gradient there, computed if it is not given.
        """
        flat = self.layout.flatten(state)
        slope = self.gradient(flat) if gradient is None else np.ascontiguousarray(gradient, float)
        return self.expectation.order_parameters(flat, slope, len(self.order_names))

    @property
    def has_jacobian(self) -> bool:
        """Whether the expectation has the Hessian."""
        return self.expectation.has_hessian

    def jacobian(self, state: ArrayLike) -> FloatArray:
        """Derivative of the gradient by the state, shape (n, n).

        On a reduced problem row i is that of the Hessian of the risk over the number of entries
        that share state i. From central differences where the expectation has none.
        """
        if not self.has_jacobian:
            return super().jacobian(state)
        return self.expectation.hessian(self.layout.flatten(state))

    def risk(self, state: ArrayLike) -> float:
        """Risk at a state."""
        return self.expectation.value(self.layout.flatten(state))

    def advance(
        self, state: FloatArray, eta: FloatArray, first: int, last: int, buffers: tuple[Any, ...]
    ) -> int:
        """Steps first, ..., last - 1 in place; see `dynamics.loops.kernels.advance`.

        Parameters
        ----------
        state, eta : float arrays, shape (n,)
        first, last : int
        buffers : (tracked, record_steps, records)
        """
        return self.expectation.advance(state, eta, first, last, buffers)

    def gradient_failure(self, state: ArrayLike) -> str:
        """Why there is no gradient at a state; empty where there is one."""
        return self.expectation.failure(self.layout.flatten(state))
