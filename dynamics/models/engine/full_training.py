"""The full training problem as a closure sees it: gradients and signatures, with rounding errors.

The rounding error of a number is its difference to a run in single precision on inputs, weights and
data that are each moved by a rounding error of that precision, scaled to double precision.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics.models.engine.program import Data, evaluated
from dynamics.models.engine.tracing import jax
from theory.closure.partition import Signature
from theory.color_refinement import by_appearance
from theory.law import FloatArray

if TYPE_CHECKING:
    from dynamics.models.engine.realization import Realization

PERTURBATIONS = 20240
"""Seed of the perturbations."""
SINGLE = 2.0**-23
TWIN = 2.0**-29
"""From the error of a run in single precision, with perturbed data, to that in double precision."""
JUMP = 0.01 * TWIN
"""Part of the largest gradient so far from which an error is no rounding: at rest each is one."""
OVERFLOWN = 1e-12
"""Part of the largest value that stands for its error, where single precision cannot hold it."""


class FullTraining:
    """The full problem as a closure sees it; see `theory.closure.partition.Training`."""

    def __init__(self, made: Realization, data: Data) -> None:
        self.start = made.flat_start
        names = list(made.arrays)
        sizes = [prod(shape) for shape in made.shapes.values()]
        self.arrays = np.repeat(np.arange(len(names)), sizes)
        groups = np.array([made.model.groups.get(name, "") for name in names])
        self.groups = np.repeat(by_appearance(groups)[0], sizes)
        self._program, self._data = made.program, data
        self._generator = np.random.default_rng(PERTURBATIONS)
        self._twin: Any = np.float32
        self._largest = 0.0

    def gradient(self, state: FloatArray) -> FloatArray:
        """Gradient at a state, shape (n,)."""
        return self.risk_and_gradient(state)[1]

    def risk_and_gradient(self, state: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Risk and gradient at a state, of one program, shapes () and (n,)."""
        return evaluated(self._program.compiled_descent, state, self._data)

    def probe(self, state: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient, and the rounding error of each entry."""
        gradient, function = self.gradient(state), self._program.compiled_descent
        error = _error(gradient, self._in_single_precision(function, state)[1])
        if np.isfinite(gradient).all():
            self._largest = max(self._largest, float(np.abs(gradient).max(initial=0.0)))
        if error.max(initial=0.0) > JUMP * self._largest:
            # A model that asks whether a label is 1 has another answer for a label that was moved.
            rough = self._in_single_precision(function, state, moved=False)[1]
            error = np.minimum(error, _error(gradient, rough))
        return gradient, error

    def signatures(self, state: FloatArray, direction: FloatArray) -> list[Signature]:
        """Numbers of each sample that equal samples share, with their rounding errors."""
        numbers = self._program.compiled_signatures
        rows = evaluated(numbers, state, direction, self._data)
        rough = self._in_single_precision(numbers, state, direction)
        return [(row, _error(row, other)) for row, other in zip(rows, rough, strict=True)]

    @np.errstate(over="ignore")
    def _in_single_precision(
        self, function: Any, state: FloatArray, *others: Any, moved: bool = True
    ) -> Any:
        """Result of a compiled function at data and a state moved by a rounding error."""
        data = perturbed(self._data, self._generator, SINGLE if moved else 0.0)
        noise = 1 + SINGLE * self._generator.standard_normal(state.size)
        arguments = (*(part.astype(np.float32) for part in (state * noise, *others)), data)
        # Arrays that the model's functions close over cannot be traced again in single precision,
        # nor whole numbers from 2^31: then only the numbers are rounded to it.
        if any(leaf.dtype == np.int64 for leaf in jax.tree.leaves(data)):
            self._twin = np.float64
        if self._twin is np.float32:
            try:
                with jax.enable_x64(False):
                    return jax.tree.map(_widened, jax.tree.map(np.asarray, function(*arguments)))
            except (TypeError, ValueError, OverflowError):
                self._twin = np.float64
        return evaluated(function, *jax.tree.map(_widened, arguments))


def _error(values: FloatArray, rough: FloatArray) -> FloatArray:
    """Rounding errors of values from a run in single precision, which may have overflowed."""
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.abs(values - rough) * TWIN
        largest = np.abs(values, where=np.isfinite(values), out=np.zeros_like(values))
    return np.where(np.isfinite(errors), errors, OVERFLOWN * largest.max(initial=0.0))


def _widened(part: NDArray[Any]) -> NDArray[Any]:
    """Numbers of single precision as those of double precision."""
    return part.astype({"f": np.float64, "i": np.int64}.get(part.dtype.kind, part.dtype))


def perturbed(data: Data, generator: np.random.Generator, size: float = SINGLE) -> Data:
    """Data in single precision, each number moved by a rounding error of that.

    Whole numbers from 2^31 stay as they are.

    Parameters
    ----------
    data : Data
    generator : numpy Generator
        Draws the errors.
    size : float
        Of the errors.
    """

    def moved(part: Any) -> Any:
        values = np.asarray(part)
        if values.dtype.kind in "iu":
            narrow = values.astype(np.int32)
            return narrow if (narrow == values).all() else values.astype(np.int64)
        if values.dtype.kind != "f":
            return values
        noise = 1 + size * generator.standard_normal(values.shape)
        return (values * noise).astype(np.float32)

    return jax.tree.map(moved, data)
