"""Fast expectations: risks at sizes at which no configuration can be listed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.codegen import loops
from dynamics.codegen.addresses import AddressedModel

FloatArray = NDArray[np.float64]


class Expectation(ABC):
    """The expectation of a risk over its law, as compiled functions that several threads may call.

    Attributes
    ----------
    name : str
    module : dynamics.codegen.CompiledModule
        With ``gradient``, ``hessian``, ``order_parameters`` and ``summary``.
    data : NamedTuple
        What these need beside the state; they write none of it.
    """

    name: str
    module: Any
    data: Any

    @property
    def addressed(self) -> AddressedModel:
        """The functions that the loops call."""
        model: AddressedModel = self.module.addressed(self.data)
        return model

    def value(self, state: ArrayLike) -> float:
        """Risk at a state."""
        return float(loops.summary(self.addressed, _floats(state))[0])

    def gradient(self, state: ArrayLike) -> FloatArray:
        """Gradient at a state, shape (n,)."""
        return loops.gradient(self.addressed, _floats(state))

    def hessian(self, state: ArrayLike) -> FloatArray:
        """Jacobian of the gradient at a state, shape (n, n)."""
        return loops.hessian(self.addressed, _floats(state))

    @abstractmethod
    def error_estimate(self, state: ArrayLike) -> tuple[float, float]:
        """Estimated errors of the gradient, its largest component, and of the risk."""


def _floats(state: ArrayLike) -> FloatArray:
    return np.ascontiguousarray(state, dtype=np.float64)
