"""Problems whose gradient is compiled from a generated file."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.codegen import loops
from dynamics.problem.interface import Problem
from dynamics.problem.layout import FloatArray, Layout
from dynamics.problem.numerical_jacobian import central_differences

if TYPE_CHECKING:
    from dynamics.codegen.addresses import AddressedModel


class ThreadData(threading.local):
    """Data of compiled functions in each thread, with memory of its own to work in.

    Parameters
    ----------
    module : dynamics.codegen.CompiledModule
    data : tuple or NamedTuple
    scratch : collection of str
        Fields of the data that functions write into.

    Attributes
    ----------
    data : tuple or NamedTuple
        Those of the thread.
    addressed : AddressedModel
        The compiled functions on them.
    """

    def __init__(self, module: Any, data: Any, scratch: Collection[str]) -> None:
        made: dict[int, NDArray[Any]] = {}
        own = {name: _empty(getattr(data, name), made) for name in scratch}
        self.data = data._replace(**own) if own else data
        self.addressed: AddressedModel = module.addressed(self.data)


def _empty(value: Any, made: dict[int, NDArray[Any]]) -> Any:
    """A tree of named tuples with arrays of NaN, or of 0; views of one array are of one again."""
    if isinstance(value, tuple):
        return type(value)(*(_empty(part, made) for part in value))
    fill = np.nan if value.dtype.kind in "fc" else 0
    array = made.setdefault(value.ctypes.data, np.full(value.shape, fill, value.dtype))
    return array.reshape(value.shape)


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

    Attributes
    ----------
    scratch : collection of str
        Fields of the data that the functions write into; each thread has its own.
    """

    autonomous = True
    scratch: Collection[str] = ()

    def __init__(self, module: Any, data: Any, layout: Layout) -> None:
        self.module = module
        self.layout = layout
        self._data = data

    @property
    def _data(self) -> Any:
        """Data of the compiled functions in this thread."""
        return self._own.data

    @_data.setter
    def _data(self, data: Any) -> None:
        self._own = ThreadData(self.module, data, self.scratch)

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

    @property
    def addressed(self) -> AddressedModel:
        """Its compiled functions, for the compiled loops of this thread."""
        return self._own.addressed

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
