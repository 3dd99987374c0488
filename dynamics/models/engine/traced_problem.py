"""Problem with a gradient traced by JAX from the loss of one sample."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.loops import Updates
from dynamics.models.engine.functions import Columns, Embedding, functions_of
from dynamics.models.engine.program import Data, Program, evaluated
from dynamics.problem import FloatArray, Layout, Problem
from dynamics.training.minibatches import MiniBatches

MOST_WHOLE = 256
"""Most entries of a state with a full Jacobian matrix."""


@cache
def hash_of_file(module: ModuleType) -> str:
    """Short hash of a module's file; a resumed run compares it to detect a changed loss."""
    return hashlib.sha256(Path(str(module.__file__)).read_bytes()).hexdigest()[:12]


class TracedProblem(Problem):
    """Base of the problems on JAX arrays.

    `program`: loss and observables of a sample; `payload`: samples with their weights, in the dtype
    of the sums, and the embedding of the scalars (or None), both `on_device`; `layout`: layout of
    the state: coordinates of the embedding if `reduced`, else every entry; `columns`: order
    parameters; `reduced`: bool; `minibatches`: samples of each step, default all. `rows_of_all`:
    whether order parameters use all samples if a step uses a mini-batch.
    """

    rows_of_all = False

    def __init__(
        self,
        program: Program,
        payload: tuple[Data, Embedding | None],
        layout: Layout,
        columns: Columns,
        reduced: bool = False,
        minibatches: MiniBatches | None = None,
    ) -> None:
        self.layout = layout
        self.payload: tuple[Data, Any] = payload
        self.minibatches = minibatches
        self.autonomous = minibatches is None
        self._functions = functions_of(
            program, reduced, columns, layout.size, not self.autonomous, self.rows_of_all
        )

    def evaluated(self, function: Any, *arguments: Any, payload: Any = None) -> Any:
        """Result of a compiled function at a payload, by default the problem's, as numpy arrays."""
        return evaluated(function, *arguments, self.payload if payload is None else payload)

    def gradient(self, state: ArrayLike) -> FloatArray:
        """Gradient per entry, shape (n,): the direction subtracted by a step, divided by eta.

        The derivative by a scalar is divided by the number of its entries.
        """
        return self.evaluated(self._functions.compiled_slope, self.layout.flatten(state))

    def order_parameters(self, state: ArrayLike, gradient: FloatArray | None = None) -> FloatArray:
        """Order parameters at a state, in the order of `order_names`; see `Problem`."""
        flat = self.layout.flatten(state)
        slope = self.gradient(flat) if gradient is None else gradient
        return self.evaluated(self._functions.compiled_row, flat, slope)

    @property
    def has_jacobian(self) -> bool:
        """Whether the Jacobian is a full matrix, by automatic differentiation."""
        return self.layout.size <= MOST_WHOLE

    def jacobian(self, state: ArrayLike) -> FloatArray:
        """Derivative of the gradient by the state, shape (n, n), by automatic differentiation."""
        return self.evaluated(self._functions.compiled_jacobian, self.layout.flatten(state))

    def hessian_product(self, state: ArrayLike, direction: ArrayLike) -> FloatArray:
        """Product of the gradient's Jacobian at a state with a direction, shape (n,).

        `state`, `direction`, shape (n,).
        """
        flat, along = self.layout.flatten(state), self.layout.flatten(direction)
        return self.evaluated(self._functions.compiled_product, flat, along)

    def risk(self, state: ArrayLike) -> float:
        """Risk at a state."""
        return self.observables(state)["risk"]

    def observed(self, states: FloatArray, payload: Any = None) -> dict[str, Any]:
        """Risk, observables and, for a full problem, scalars at states, shape (records, n)."""
        return self._functions.observed(states, self.payload if payload is None else payload)

    def advance(
        self, state: FloatArray, updates: Updates, first: int, last: int, buffers: tuple[Any, ...]
    ) -> int:
        """Take steps first, ..., last - 1 in place; see `dynamics.loops.kernels.advance`."""
        batches = self._batches(first, last)
        loop = self._functions.loop
        return loop.advance(state, updates, (first, last), buffers, self.payload, batches)

    def _batches(self, first: int, last: int) -> NDArray[np.int64] | None:
        """Samples of each step, shape (steps, B), padded with -1; None for all samples."""
        if self.minibatches is None:
            return None
        rows = np.full((last - first, self.minibatches.size), -1, dtype=np.int64)
        for row, members in zip(rows, self.minibatches.members(first, last), strict=True):
            row[: members.size] = members
        return rows
