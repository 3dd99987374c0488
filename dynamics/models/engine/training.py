"""The full problem as a closure sees it: gradients and what each sample says, with their errors.

A rounding error is the difference to a run in single precision on inputs, weights and data that are
each moved by a rounding error of that precision, scaled to double precision.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics.models.engine.program import Data
from theory.closure.linear import group_numbers
from theory.closure.samples import Signature

if TYPE_CHECKING:
    from dynamics.models.engine.realization import Realization

FloatArray = NDArray[np.float64]

PERTURBATIONS = 20240
"""Seed of the perturbations."""
SINGLE = 2.0**-23
TWIN = 2.0**-29
"""From the error of a run in single precision, with perturbed data, to that in double precision."""


class FullTraining:
    """The full problem as a closure sees it; see `theory.closure.partition.Training`."""

    def __init__(self, made: Realization, data: Data) -> None:
        self.start = made.flat_start
        names = list(made.arrays)
        sizes = [prod(shape) for shape in made.shapes.values()]
        self.arrays = np.repeat(np.arange(len(names)), sizes)
        groups = group_numbers([made.model.groups.get(name, "") for name in names])
        self.groups = np.repeat(groups, sizes)
        self._program, self._data = made.program, data
        self._generator = np.random.default_rng(PERTURBATIONS)

    def gradient(self, state: FloatArray) -> FloatArray:
        """Gradient at a state, shape (n,)."""
        import jax

        with jax.enable_x64(True):
            return np.asarray(self._program.compiled_gradient(state, self._data))

    def probe(self, state: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient, and the rounding error of each entry."""
        import jax

        gradient = self.gradient(state)
        data = perturbed(self._data, self._generator)
        noise = 1 + SINGLE * self._generator.standard_normal(state.size)
        with jax.enable_x64(False):
            twin = np.asarray(
                self._program.compiled_gradient((state * noise).astype(np.float32), data)
            )
        return gradient, np.abs(gradient - twin.astype(np.float64)) * TWIN

    def signatures(self, state: FloatArray, direction: FloatArray) -> list[Signature]:
        """Numbers of each sample that equal samples share, with their rounding errors."""
        import jax

        with jax.enable_x64(True):
            rows = np.asarray(self._program.compiled_signatures(state, direction, self._data))
        data = perturbed(self._data, self._generator)
        noise = 1 + SINGLE * self._generator.standard_normal(state.size)
        with jax.enable_x64(False):
            twins = np.asarray(
                self._program.compiled_signatures(
                    (state * noise).astype(np.float32), direction.astype(np.float32), data
                )
            ).astype(np.float64)
        return [(row, np.abs(row - twin) * TWIN) for row, twin in zip(rows, twins, strict=True)]


def perturbed(data: Data, generator: np.random.Generator) -> Data:
    """Data in single precision, each number moved by a rounding error of that."""
    import jax

    def moved(part: Any) -> Any:
        values = np.asarray(part)
        if values.dtype.kind != "f":
            return values.astype(np.int32) if values.dtype.kind in "iu" else values
        noise = 1 + SINGLE * generator.standard_normal(values.shape)
        return (values * noise).astype(np.float32)

    return Data(*jax.tree.map(moved, tuple(data)))
