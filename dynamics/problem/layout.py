"""Parts of a flat state: their names, shapes and parameter groups."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.validation import InvalidRequest, refuse

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """Names, shapes and parameter groups of the parts of a flat state.

    A scalar part has the shape ``()``; the parts of one group share a learning rate. `every_group`
    lists all groups in the order of their learning rates. The tuple `every_group` may be empty if
    the groups of the parts have the order of the learning rates and no group is without parts.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    groups: tuple[str, ...]
    every_group: tuple[str, ...] = field(default=(), compare=False)

    @property
    def group_names(self) -> tuple[str, ...]:
        """Parameter groups, each once, in the order of their learning rates."""
        return self.every_group or tuple(dict.fromkeys(self.groups))

    @cached_property
    def size(self) -> int:
        """Number of entries of the flat state."""
        return sum(prod(shape) for shape in self.shapes)

    @property
    def scalars(self) -> list[str]:
        """Names of the scalar parts, whose shape is ``()``."""
        return [n for n, shape in zip(self.names, self.shapes, strict=True) if shape == ()]

    def slice_of(self, name: str) -> slice:
        """Slice of a part in the flat state."""
        k = self.names.index(name)
        first = sum(prod(shape) for shape in self.shapes[:k])
        return slice(first, first + prod(self.shapes[k]))

    def part(self, states: FloatArray, name: str) -> FloatArray:
        """Part of a flat state (n,) or of several (records, n), in the shape of the part."""
        shape = self.shapes[self.names.index(name)]
        return states[..., self.slice_of(name)].reshape(states.shape[:-1] + shape)

    def flatten(self, state: ArrayLike | tuple[Any, ...]) -> FloatArray:
        """Flat copy of a state, given flat or as a sequence of its parts.

        Raises InvalidRequest if the number of entries differs from that of the layout.
        """
        try:
            if isinstance(state, np.ndarray):
                if state.dtype.kind == "c":
                    raise TypeError
                flat = state.astype(np.float64).reshape(-1)
            else:
                parts = state if isinstance(state, (tuple, list)) else (state,)
                each = [np.asarray(part, dtype=np.float64).ravel() for part in parts]
                flat = np.concatenate(each or [np.empty(0)])
        except (TypeError, ValueError):
            allowed = f"{self.size} numbers ({self._expected})"
            refuse("state", state, "does not consist of numbers", allowed, "problem.initial_state")
        if flat.size != self.size:
            has = f"a state has {self.size} entries ({self._expected})"
            raise InvalidRequest(f"{has}, not {flat.size}")
        return flat

    @property
    def _expected(self) -> str:
        """Text with the parts of a state and their shapes, for messages."""
        return ", ".join(f"{n} {s}" for n, s in zip(self.names, self.shapes, strict=True))

    def per_entry(self, per_group: tuple[float, ...]) -> FloatArray:
        """One value per parameter group, repeated for every entry of the group."""
        values = dict(zip(self.group_names, per_group, strict=True))
        sizes = [prod(shape) for shape in self.shapes]
        return np.repeat(np.array([values[group] for group in self.groups]), sizes)
