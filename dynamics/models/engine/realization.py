"""A model at one set of constants: its arrays, its law, the names of its entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.cache import jax
from dynamics.models.engine.program import (
    Data,
    Program,
    data_of,
    evaluated,
    on_device,
    program_of,
)
from dynamics.models.engine.tracing import refusals
from dynamics.training.progress import bar
from dynamics.validation import InvalidRequest, learning_rate
from theory.closure import PROVED, Closure
from theory.closure.linear import LinearSpace
from theory.closure.orbits import Generator, generators_of
from theory.closure.partition import EntryClasses, SampleClasses
from theory.law import FloatArray, Law, ModelError, select_samples
from theory.model import Model, check_name

DEFAULT_GROUP = "entries"
FAR = 1e8
"""A run counts as diverged if an entry exceeds this multiple of max(1, largest initial entry)."""
LEAVES = 1e-9
"""A closure fails if a gradient separates equal entries by more than this number, relative to the
largest component of the gradient."""
OF_SPACE = 1e-6
"""A closure fails if a gradient leaves the linear space by more than this number, relative to the
largest component of the gradient."""
SHOWN_EVERY = 1000
"""Number of samples of a law between two updates of the progress bar."""


def _watched(samples: Iterable[Any]) -> Iterator[Any]:
    """Yield the samples of a law, with a progress bar."""
    with bar("law", unit="samples") as shown:
        for number, sample in enumerate(samples, 1):
            yield sample
            if number % SHOWN_EVERY == 0:
                shown.update(SHOWN_EVERY)


class Realization:
    """A model at one set of constants.

    `samples` and `seed` set the draws of a law that can only be sampled. `observable_names`
    includes observables on the held-out law; `reductions` caches a `Reduction` for each closure and
    kind of coordinates. Raises InvalidRequest if a function of the model fails.
    """

    def __init__(
        self, model: Model, constants: Mapping[str, Any], samples: int = 0, seed: int = 0
    ) -> None:
        self.model, self.constants, self.seed = model, dict(constants), seed
        self.reals = {name: x for name, x in constants.items() if isinstance(x, float)}
        statics = tuple((name, x) for name, x in constants.items() if name not in self.reals)
        with refusals():
            self.arrays = model.starting_arrays(constants)
            fixed = model.fixed_arrays(constants)
            twice = set(fixed) & set(self.arrays)
            if twice:
                raise ModelError(f"{min(twice)!r} is in start and in fixed")
            self.law = self._law(samples, seed)
            self.held_out: Law | None = None
            if model.held_out is not None and self.law is not None:
                self.held_out = model.held_out_law(constants, self.law)
        self.shapes = {name: array.shape for name, array in self.arrays.items()}
        self.flat_start = np.concatenate([array.ravel() for array in self.arrays.values()])
        self.program: Program = program_of(model, statics, tuple(self.shapes.items()))
        self.data = on_device(data_of(self.law, fixed, self.reals, self.held_out))
        self.observable_names = self.program.check(self.data)
        self.reductions: dict[Any, Any] = {}

    def _law(self, samples: int, seed: int) -> Law | None:
        if self.model.risk is not None:
            return None
        if self.model.law is not None:
            return self.model.enumerated_law(self.constants, _watched)
        return self.model.draw_samples(self.constants, samples, seed)

    @property
    def only_sampled(self) -> bool:
        """Whether the law can only be sampled."""
        return self.law is not None and self.model.law is None

    @cached_property
    def generators(self) -> list[Generator]:
        """Generators of the symmetry stated by the model; empty if it states none."""
        if self.model.symmetry is None:
            return []
        with refusals():
            stated = self.model.call("symmetry", constants=self.constants)
            with self.model.blamed("symmetry"):
                return generators_of(stated, self.model.axes, self.shapes)

    def group_of_arrays(self) -> dict[str, str]:
        """Trained array -> its parameter group."""
        return {name: self.model.groups.get(name, DEFAULT_GROUP) for name in self.shapes}

    def rates(self, eta: Any = None) -> tuple[float, ...]:
        """One learning rate, or one per parameter group; by default the rates of the model."""
        given = learning_rate(self.model.eta if eta is None else eta, None)
        groups = tuple(dict.fromkeys(self.group_of_arrays().values()))
        return given if len(given) == 1 else learning_rate(given, groups)

    def entry_name(self, entry: int) -> str:
        """Array and position of an entry of the flat state as text: ``A[0, 3]``."""
        array, position = self.entry_position(entry)
        return f"{array}[{', '.join(map(str, position))}]" if position else array

    def scalar_names(self, classes: EntryClasses) -> tuple[str, ...]:
        """Name of each scalar, given by the model or made from the first entry of the class.

        Raises ModelError if a constant, an observable or another scalar has the same name.
        """
        positions = [self.entry_position(int(entry)) for entry in classes.first]
        names = ["_".join([array, *map(str, position)]) for array, position in positions]
        others = dict.fromkeys((*self.constants, *self.observable_names))
        for name, label in reversed(self._named_classes(classes).items()):
            check_name("names", name, others)
            if label >= 0:
                names[label] = name
        self._check_signs(classes, names)
        for name in names:
            if name in others:
                raise ModelError(
                    f"{name!r} names a scalar and a constant or observable; rename one of them"
                )
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ModelError(f"names: {twice!r} names two scalars; rename one of them")
        return tuple(names)

    def _check_signs(self, classes: EntryClasses, names: Sequence[str]) -> None:
        """Raise ModelError if a named entry stays equal to minus the first entry of its class."""
        entries = self.named_entries()
        for name, first in zip(names, classes.first, strict=True):
            entry = entries.get(name, first)
            if classes.signs[entry] * classes.signs[first] < 0:
                raise ModelError(
                    f"names: {name} names {self.entry_name(entry)}, which stays equal to minus "
                    f"{self.entry_name(int(first))}; name {self.entry_name(int(first))} instead"
                )

    def unused_names(self, classes: EntryClasses) -> tuple[str, ...]:
        """Remarks on names of entries that never move or stay equal to an entry named earlier."""
        equal = self.equal_names(classes)
        remarks: list[str] = []
        for name, label in self._named_classes(classes).items():
            if label < 0:
                remarks.append(f"names: {name} never moves, and is not a scalar")
            elif name in equal:
                other = equal[name].replace("-", "minus ")
                remarks.append(f"names: {name} stays equal to {other}, whose name is used")
        return tuple(remarks)

    def equal_names(self, classes: EntryClasses) -> dict[str, str]:
        """Name of an entry that equals an earlier named entry -> the earlier name, with sign."""
        first: dict[int, tuple[str, float]] = {}
        equal: dict[str, str] = {}
        for name, entry in self.named_entries().items():
            label, sign = int(classes.labels[entry]), float(classes.signs[entry])
            used, sign_of_used = first.setdefault(label, (name, sign))
            if label >= 0 and used != name:
                equal[name] = ("-" if sign != sign_of_used else "") + used
        return equal

    def _named_classes(self, classes: EntryClasses) -> dict[str, int]:
        """Name given by the model -> class of the named entry."""
        return {n: int(classes.labels[entry]) for n, entry in self.named_entries().items()}

    def named_entries(self) -> dict[str, int]:
        """Name given by the model -> number of the named entry in the flat state."""
        entries: dict[str, int] = {}
        for name, entry in self.model.table("names", self.constants).items():
            array, *position = entry if isinstance(entry, (tuple, list)) and entry else (entry,)
            if not isinstance(array, str):
                raise ModelError(f"names: {name} = {entry!r} is not an entry such as ('A', 0, 1)")
            entries[name] = self.entry_number(array, *position)
        return entries

    @cached_property
    def _numbers(self) -> dict[str, NDArray[np.int64]]:
        """Name of an array -> numbers of its entries in the flat state, in the array's shape."""
        sizes = [array.size for array in self.arrays.values()]
        parts = np.split(np.arange(self.flat_start.size), np.cumsum(sizes)[:-1])
        return {
            name: part.reshape(self.shapes[name])
            for name, part in zip(self.arrays, parts, strict=True)
        }

    def entry_position(self, entry: int) -> tuple[str, tuple[int, ...]]:
        """Array and position of an entry of the flat state."""
        for name, numbers in self._numbers.items():
            if entry <= numbers.flat[-1]:
                position = np.unravel_index(entry - numbers.flat[0], numbers.shape)
                return name, tuple(int(k) for k in position)
        raise IndexError(entry)

    def entry_number(self, array: str, *position: int) -> int:
        """Number of an entry in the flat state, from its array and position.

        Raises InvalidRequest if the array or the position does not exist.
        """
        if array not in self._numbers:
            raise InvalidRequest(f"names: no trained array is named {array!r}")
        numbers = self._numbers[array]
        whole = all(isinstance(k, (int, np.integer)) and not isinstance(k, bool) for k in position)
        try:
            if not whole or len(position) != numbers.ndim:
                raise IndexError
            return int(numbers[position])
        except IndexError:
            shape = numbers.shape
            raise InvalidRequest(
                f"names: {array} has shape {shape}; entry {position} does not exist"
            ) from None

    def representatives(self, groups: SampleClasses | None) -> Data:
        """Data with one sample and the total weight of each class; all data if `groups` is None."""
        if groups is None or self.law is None:
            return self.data
        samples = select_samples(self.law.samples, groups.first)
        weights = groups.summed(self.law.weights)
        return on_device(self.data._replace(weights=weights, samples=samples))

    @cached_property
    def open_closure(self) -> Closure:
        """Closure in which every entry is a scalar, for a start without symmetry."""
        size = self.program.size
        classes = EntryClasses(np.arange(size), np.ones(size), self.flat_start)
        groups = None if self.law is None else SampleClasses(np.arange(self.law.size))
        return Closure(
            classes, LinearSpace(np.eye(size)), groups, (), self.scalar_names(classes), 0.0,
            PROVED, "", ("nothing moves at the start without noise",), self.shapes,
        )  # fmt: skip

    def first_leaving(
        self, closure: Closure, states: FloatArray, linear: bool = False
    ) -> tuple[int, str] | None:
        """Index of the first state with a gradient outside the closed space, and a message.

        Returns None for a proved closure, or if all gradients are inside. With `linear`, gradients
        must lie in the linear space too. `states`, shape (states, n), has every trained entry.
        """
        if closure.grade == PROVED and (closure.space.proved or not linear):
            return None
        classes = closure.classes
        largest = 0.0
        for number, state in enumerate(states):
            if np.abs(state).max() > FAR * max(1.0, float(np.abs(self.flat_start).max())):
                return None
            slope = evaluated(self.program.compiled_descent, state, self.data)[1]
            size = float(np.abs(slope).max(initial=0.0))
            if not np.isfinite(size):
                return None
            off, largest = np.abs(classes.residual(slope)), max(largest, size)
            if off.max() > LEAVES * largest:
                entry = self.entry_name(int(np.argmax(off)))
                return number, f"the gradient of {entry} differs from that of its class"
            if linear:
                roots = np.sqrt(classes.sizes)
                basis = np.linalg.qr(closure.space.basis * roots[:, None])[0]
                moved = classes.project(slope) * roots
                if np.abs(moved - basis @ (basis.T @ moved)).max() > OF_SPACE * largest:
                    return number, "the gradient leaves the linear space"
        return None

    def numbers_of_a_sample(self) -> int:
        """Approximate count of numbers in memory for the loss of one sample."""
        if self.law is None:
            return 64 * self.program.size
        with jax.enable_x64(True):
            return max(1, self.program.numbers_of_a_sample(self.data))
