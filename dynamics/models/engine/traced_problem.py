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
"""The whole Jacobian matrix is computed only for a state with at most this number of entries."""


@cache
def hash_of_file(module: ModuleType) -> str:
    """Short hash of the file of a module, by which a resumed run detects a changed loss."""
    return hashlib.sha256(Path(str(module.__file__)).read_bytes()).hexdigest()[:12]


class TracedProblem(Problem):
    """Base of the problems whose gradient JAX traces from a loss.

    `payload` has the weighted samples and the embedding of the scalars (or None) as JAX arrays. A
    state has the coordinates of the embedding if `reduced`, else every entry. A step uses all
    samples, or the samples selected by `minibatches`; with `rows_of_all`, order parameters always
    use all samples.
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
        """Result of a compiled function as numpy arrays; a `payload` replaces `self.payload`."""
        return evaluated(function, *arguments, self.payload if payload is None else payload)

    def gradient(self, state: ArrayLike) -> FloatArray:
        """Gradient per entry, shape (n,): the change in a descent step, divided by -eta."""
        return self.evaluated(self._functions.compiled_slope, self.layout.flatten(state))

    def order_parameters(self, state: ArrayLike, gradient: FloatArray | None = None) -> FloatArray:
        """Order parameters at a state, in the order of `order_names`."""
        flat = self.layout.flatten(state)
        slope = self.gradient(flat) if gradient is None else gradient
        return self.evaluated(self._functions.compiled_row, flat, slope)

    @property
    def has_jacobian(self) -> bool:
        """Whether a state has at most `MOST_WHOLE` entries, so that `jacobian` is affordable."""
        return self.layout.size <= MOST_WHOLE

    def jacobian(self, state: ArrayLike) -> FloatArray:
        """Jacobian matrix of the gradient, shape (n, n), by automatic differentiation."""
        return self.evaluated(self._functions.compiled_jacobian, self.layout.flatten(state))

    def hessian_product(self, state: ArrayLike, direction: ArrayLike) -> FloatArray:
        """Product of the gradient's Jacobian matrix at a state with a direction, shape (n,)."""
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
        """Indices of the samples of each step, shape (steps, B), padded with -1; None for all."""
        if self.minibatches is None:
            return None
        rows = np.full((last - first, self.minibatches.size), -1, dtype=np.int64)
        for row, members in zip(rows, self.minibatches.members(first, last), strict=True):
            row[: members.size] = members
        return rows
