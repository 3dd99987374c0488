"""Problems whose gradient is compiled from a generated file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.codegen import loops
from dynamics.problem.interface import Problem
from dynamics.problem.layout import FloatArray, Layout
from dynamics.problem.numerical_jacobian import central_differences

if TYPE_CHECKING:
    from dynamics.codegen.addresses import AddressedModel


class CompiledProblem(Problem):
    """A problem whose gradient, order parameters and summary are in one generated file.

    Parameters
    ----------
    module : dynamics.codegen.CompiledModule
        With ``gradient``, ``order_parameters``, ``summary``, and ``hessian`` if there is one.
    data : tuple or NamedTuple
        What its functions need beside the state.
    layout : Layout
        Parts of the state.
    """

    autonomous = True

    def __init__(self, module: Any, data: Any, layout: Layout) -> None:
        self.module = module
        self.layout = layout
        self._data = data

    @property
    def source(self) -> str:
        """Text of the generated file."""
        return self.module.source

    @property
    def identity(self) -> Mapping[str, Any]:
        """What decides its gradients beside the parameters: settings, and the generated file."""
        code = hashlib.sha256(self.source.encode()).hexdigest()[:12]
        return {**self.settings, "code": code}

    def gradient(self, state: ArrayLike) -> FloatArray:
        """What one step of gradient descent subtracts, divided by eta.

        Parameters
        ----------
        state : float array, shape (n,), or a sequence of its parts

        Returns
        -------
        float array, shape (n,)
        """
        return loops.gradient(self.addressed, self.layout.flatten(state))

    @cached_property
    def addressed(self) -> AddressedModel:
        """Its compiled functions, for the compiled loops."""
        return self.module.addressed(self._data)

    def order_parameters(self, state: ArrayLike, gradient: FloatArray | None = None) -> FloatArray:
        """Order parameters at a state, in the order of `order_names`.

        Parameters
        ----------
        state : float array, shape (n,)
        gradient : float array, shape (n,), optional
            The gradient there, computed if it is not given.
        """
        flat = self.layout.flatten(state)
        fresh = gradient is None or self.reads_pass
        slope = self.gradient(flat) if fresh else np.ascontiguousarray(gradient, dtype=np.float64)
        return loops.order_parameters(self.addressed, flat, slope, len(self.order_names))

    @property
    def has_jacobian(self) -> bool:
        """Whether the generated file has an analytic Jacobian of the gradient."""
        return hasattr(self.module.functions, "hessian")

    def jacobian(self, state: ArrayLike) -> FloatArray:
        """Derivative of the gradient by the state, shape (n, n).

        On a reduced problem row i is the i-th row of the Hessian of the risk divided by the number
        of entries that share state i. From the generated file where it has it, else from central
        differences.
        """
        flat = self.layout.flatten(state)
        if not self.has_jacobian:
            return central_differences(self.gradient, flat)
        return loops.hessian(self.addressed, flat)

    def risk(self, state: ArrayLike) -> float:
        """Risk at a state."""
        return float(self._summary(self.layout.flatten(state))[0])

    def _summary(self, state: FloatArray) -> FloatArray:
        if self.reads_pass:
            self.gradient(state)
        return loops.summary(self.addressed, state)

    def advance(
        self, state: FloatArray, eta: FloatArray, first: int, last: int, buffers: tuple[Any, ...]
    ) -> int:
        """Steps first, ..., last - 1 in place; see `dynamics.codegen.kernels.advance`.

        Parameters
        ----------
        state, eta : float arrays, shape (n,)
        first, last : int
        buffers : (tracked, record_steps, records)
        """
        return loops.advance(self.addressed, state, eta, (first, last), self.autonomous, buffers)
