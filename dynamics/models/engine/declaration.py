"""Declared reductions: a recursion of scalars that the author of a model file derived.

The functions `reduced`, `sizes` and `configurations` of the file define a second model, whose
entries are the scalars and whose samples are the configurations. A step of descent on a scalar
divides the derivative of the risk by the number of entries that share the scalar. If the samples of
the law can be listed, the declared gradient is compared with the gradient of every entry. For a law
too long to list, gradients are compared at the default size, named in the closure.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from sympy import Basic

from dynamics.cache import jax
from dynamics.cache.kept import kept
from dynamics.models.engine.closing import ClosedModel
from dynamics.models.engine.functions import class_embedding
from dynamics.models.engine.program import evaluated
from dynamics.models.engine.realization import Realization
from dynamics.models.engine.reduced_risk import ReducedRisk, reduced_risk
from dynamics.models.engine.tracing import refusals
from dynamics.problem import FloatArray
from dynamics.validation import InvalidRequest
from theory.closure import DECLARED, Closure
from theory.closure.linear import LinearSpace
from theory.closure.partition import EntryClasses
from theory.closure.regime import PLAIN, Regime
from theory.law import ModelError
from theory.model import Model, check_name
from theory.program import NoProgram

MAX_LISTED = 200_000
"""If a law has more samples than this, gradients are compared at the default size only."""
SCALES = (0.03, 0.1, 0.3, 1.0, 1.0)
"""Gradients are compared at one random state per factor: each entry w of the start is displaced
with the standard deviation (1 + abs(w)) times the factor."""
SAME = 1e-10
"""Maximum error of a declared gradient component, relative to the sum of its absolute terms."""
UNUSED = (
    "risk", "sample", "fixed", "names", "sizes", "reduced", "configurations",
    "reduced_observables", "reduced_observe", "symmetry", "held_at",
)  # fmt: skip
"""Functions of a model file that do not belong to the model of the declared scalars."""
SPOKEN = {
    "law": "configurations", "loss": "reduced",
    "observables": "reduced_observables", "observe": "reduced_observe",
}  # fmt: skip
"""Function of the model of the scalars -> function of the model file in its place."""


class Declaration:
    """Declared reduction of a model.

    `entries` returns the model of every trained entry at given constants.
    """

    def __init__(self, model: Model, entries: Callable[[Mapping[str, Any]], ClosedModel]) -> None:
        self.model, self._entries = model, entries
        self._held: dict[str, float] = {}
        self._models: dict[Any, Model] = {}

    def _model(self, groups: Mapping[str, str]) -> Model:
        """Model with the scalars as entries and the configurations as samples."""
        given = self.model

        def start(**constants: Any) -> dict[str, Any]:
            arrays = given.call("start", constants=constants)
            # Constants may be symbols; the positions of scalars depend on integer constants alone.
            plain = {
                n: given.constants[n] if isinstance(v, Basic) else v for n, v in constants.items()
            }
            return {
                name: np.asarray(arrays[array])[place] for name, array, place in self._places(plain)
            }

        used = [given.arguments.get(role, {}) for role in ("start", "names", "sizes")]
        parameters = {name: p for arguments in used for name, p in arguments.items()}
        nothing: dict[str, Any] = dict.fromkeys(UNUSED)
        return replace(
            given,
            start=self._with_defaults(start, parameters.values()),
            law=self._with_defaults(given.configurations),
            loss=self._with_defaults(given.reduced),
            observables=self._with_defaults(given.reduced_observables),
            observe=self._with_defaults(given.reduced_observe),
            events=self._with_defaults(given.events) if callable(given.events) else given.events,
            groups=groups, axes={}, **nothing,
        )  # fmt: skip

    def _with_defaults(self, function: Any, parameters: Any = None) -> Any:
        """Copy of a function with the model's constants as defaults of its parameters."""
        if function is None:
            return None
        constants = self.model.constants

        def called(*arguments: Any, **named: Any) -> Any:
            return function(*arguments, **named)

        if parameters is None:
            parameters = inspect.signature(function).parameters.values()
        own = [p.replace(default=constants.get(p.name, p.default)) for p in parameters]
        called.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
        return called

    def _places(self, constants: Mapping[str, Any]) -> list[tuple[str, str, tuple[int, ...]]]:
        """Name, array and position of the entry of each scalar, in the order of the entries."""
        made = self.model
        arrays, sizes = made.starting_arrays(constants), made.table("sizes", constants)
        table = made.table("names", constants)
        if unknown := sorted(set(sizes) - set(table)):
            raise ModelError(f"sizes: {unknown[0]!r} is missing in names, so its entry is unknown")
        places = []
        for name in sizes:
            check_name("sizes", name, constants)
            array, *place = table[name] if isinstance(table[name], (tuple, list)) else [table[name]]
            try:
                shape = arrays[array].shape
                number = int(np.arange(arrays[array].size).reshape(shape)[tuple(place)])
            except (KeyError, IndexError, TypeError):
                raise ModelError(f"names: {name} = {table[name]!r} is not an entry") from None
            places.append((list(arrays).index(array), int(number), name, array, tuple(place)))
        return [(name, array, place) for _, _, name, array, place in sorted(places)]

    def at(
        self, constants: Mapping[str, Any], regime: Regime = PLAIN
    ) -> tuple[Realization, Closure]:
        """Model of the declared scalars, and its closure, after a check of the gradient.

        If the law of the full model can be listed, the declared sizes must also agree with the
        classes of equal entries under the update rules of `regime`. Raises InvalidRequest, naming
        scalar and state, if the declared gradient differs from the gradient of every entry.
        """
        with refusals():
            made = self.scalars(constants)
            listed = self.can_be_listed(constants)
            if listed:
                self._hold(constants)
            else:
                self._hold_at_defaults(made)
            if listed and (regime.decay or not regime.signs):
                self._check_classes(self._entries(constants), made, constants, regime)
            return made, self._closure(made, constants)

    def closure(self, constants: Mapping[str, Any], regime: Regime = PLAIN) -> Closure:
        """Closure computed from every entry if the law can be listed, else the declared closure."""
        with refusals():
            if not self.can_be_listed(constants):
                return self.at(constants, regime)[1]
            found = self._entries(constants).closure_under(regime)
            return replace(found, remarks=(*found.remarks, self._hold(constants)))

    def can_be_listed(self, constants: Mapping[str, Any]) -> bool:
        """Whether the law of the entries has at most `MAX_LISTED` samples at given constants."""

        def listed() -> bool:
            model = self.model
            try:
                with model.blamed("law"):
                    pairs = iter(model.call("law", constants=constants))
                    return sum(1 for _ in islice(pairs, MAX_LISTED + 1)) <= MAX_LISTED
            except MemoryError:
                return False

        return bool(self._kept("listed", constants, listed))

    def _kept(self, what: str, constants: Mapping[str, Any], find: Callable[[], Any]) -> Any:
        """Result of `find`, stored in the disk cache for this model file and these constants."""
        path = self.model.path
        if path is None or not path.exists():
            return find()
        of_file = path.read_bytes(), self.model.imported
        return kept((what, of_file, sorted(constants.items())), find)

    def scalars(self, constants: Mapping[str, Any]) -> Realization:
        """Realized model whose entries are the declared scalars."""
        given = self.model.groups
        places = self._places(constants) if given else ()
        groups = {name: given[array] for name, array, _ in places if array in given}
        key = tuple(groups.items())
        if key not in self._models:  # cached, so that JAX traces the model once
            self._models[key] = self._model(groups)
        with _spoken():
            return Realization(self._models[key], constants)

    def _sizes(self, made: Realization, constants: Mapping[str, Any]) -> tuple[int, ...]:
        """Number of entries of each scalar."""
        table = self.model.table("sizes", constants)
        for name, size in table.items():
            if isinstance(size, bool) or size != int(size) or size < 1:
                raise ModelError(f"sizes: {name} has {size!r} entries; expected a positive integer")
        return tuple(int(table[name]) for name in made.arrays)

    def classes(self, made: Realization, constants: Mapping[str, Any]) -> EntryClasses:
        """Classes of entries: one for each declared scalar, with its declared number of entries."""
        count, sizes = made.flat_start.size, self._sizes(made, constants)
        return EntryClasses(np.arange(count), np.ones(count), made.flat_start, declared=sizes)

    def _closure(self, made: Realization, constants: Mapping[str, Any]) -> Closure:
        """Closure of a declared reduction; the scope names the sizes at which it was checked."""
        assert made.law is not None
        self._hold_at_defaults(made)
        held = ", ".join(f"{size} ({off:.0e})" for size, off in self._held.items())
        scope = "not compared with the entries: the law at the default size cannot be listed"
        if held:
            scope = f"compared with every entry at {held}, relative to the terms of the gradient"
        classes = self.classes(made, constants)
        return Closure(
            classes, LinearSpace(np.eye(classes.count)), None, (), tuple(made.arrays), 0.0,
            DECLARED, scope, (f"{made.law.size} configurations replace the law",), made.shapes,
        )  # fmt: skip

    def _hold_at_defaults(self, made: Realization) -> None:
        """Compare gradients at the default size, with the requested real constants if possible."""
        model = self.model
        usual = {**model.constants, **(model.held_at or {})}
        for constants in ({**usual, **made.reals}, usual):
            try:
                if self.can_be_listed(constants):
                    self._hold(constants)
                    return
            except InvalidRequest:  # requested real constants outside the limits
                if constants is usual:
                    raise

    def _hold(self, constants: Mapping[str, Any]) -> str:
        """Compare the declared gradient with that of every entry; return the error as a remark."""
        reals = {n for n, value in constants.items() if isinstance(value, float)}
        where = " ".join(f"{n}={v}" for n, v in constants.items() if n not in reals)
        where = where or self.model.name
        off, entries = self._kept("held", constants, lambda: self._departure(constants, where))
        self._held[where] = off
        return (
            f"the declared recursion equals that of all {entries} entries at {where} up to "
            f"{off:.0e} of the terms of each component at {len(SCALES)} states"
        )

    def _departure(self, constants: Mapping[str, Any], where: str) -> tuple[float, int]:
        """Largest relative error of the declared gradient, and the number of trained entries."""
        made = self._entries(constants)
        inner, classes = self.scalars(constants), made.closure.classes
        entries = self._check_classes(made, inner, constants)
        states, slopes = _looked_at(made)
        named = np.array(list(entries.values()))
        risk = self._risk(inner, constants)
        off = risk.departures(states[:, named], slopes[:, named], inner.data)
        if off.max(initial=0.0) > SAME:
            state, k = np.unravel_index(int(np.argmax(off)), off.shape)
            name, at = list(entries)[k], dict(zip(entries, states[state, named], strict=True))
            shown = ", ".join(f"{n}={v:.4g}" for n, v in list(at.items())[:6])
            raise ModelError(
                f"reduced does not reproduce the gradient of every entry at {where}: d_{name} has "
                f"the error {off[state, k]:.1e}, relative to the sum of its absolute terms, at "
                f"{shown}{', ...' if len(at) > 6 else ''}"
            )
        for state in states:
            whole, own = _reported(made, state), _reported(inner, state[named])
            for name in whole.keys() & own.keys():
                if not np.isclose(own[name], whole[name], rtol=SAME, atol=SAME, equal_nan=True):
                    raise ModelError(
                        f"{name} is {own[name]:.6g} in the declaration and {whole[name]:.6g} for "
                        f"every entry, at {where} near the start"
                    )
        return float(off.max(initial=0.0)), int(classes.labels.size)

    def _risk(self, inner: Realization, constants: Mapping[str, Any]) -> ReducedRisk:
        """Risk as a function of the declared scalars, as a program."""
        embedding = class_embedding(self.classes(inner, constants))
        try:
            return reduced_risk(inner.program, inner.data, embedding, tuple(inner.arrays))
        except NoProgram as error:
            raise ModelError(f"reduced: {error}") from None

    def _check_classes(
        self,
        made: ClosedModel,
        inner: Realization,
        constants: Mapping[str, Any],
        regime: Regime = PLAIN,
    ) -> dict[str, int]:
        """Named entry of each scalar; raise ModelError if sizes differ from the closure."""
        classes, sizes = made.closure_under(regime).classes, self._sizes(inner, constants)
        places = self._places(constants)
        entries = {name: made.entry_number(array, *place) for name, array, place in places}
        total = np.zeros(classes.count, dtype=int)
        for entry, size in zip(entries.values(), sizes, strict=True):
            if (label := int(classes.labels[entry])) >= 0:
                total[label] += size
        for label, (declared, size) in enumerate(zip(total, classes.sizes, strict=True)):
            first = made.entry_name(int(classes.first[label]))
            if not declared:
                raise ModelError(
                    f"sizes: no scalar covers {first} and the entries equal to it, {size} in all"
                )
            if declared != size:
                names = [n for n, entry in entries.items() if classes.labels[entry] == label]
                verb = "covers" if len(names) == 1 else "cover"
                raise ModelError(
                    f"sizes: {' and '.join(names)} {verb} {declared} entries, but {size} stay "
                    f"equal to {first}"
                )
        return entries


def _reported(made: Realization, state: FloatArray) -> dict[str, float]:
    """Risk and observables of a model at a state, by name."""
    with jax.enable_x64(True):
        values = {"risk": made.program.risk(state, made.data)}
        values |= made.program.observables(state, made.data)
    return {name: float(value) for name, value in values.items()}


def states_near(start: FloatArray) -> FloatArray:
    """Draw random states about a start, shape (states, n), for comparisons of gradients."""
    draws = np.random.default_rng(0).standard_normal((len(SCALES), start.size))
    return np.asarray(start + np.reshape(SCALES, (-1, 1)) * (1.0 + np.abs(start)) * draws)


def _looked_at(made: ClosedModel) -> tuple[FloatArray, FloatArray]:
    """Random states near the start with equal entries in each class, and the gradients there."""
    classes = made.closure.classes
    states = classes.lift(states_near(classes.start[classes.first]))
    slopes = [evaluated(made.program.compiled_descent, state, made.data)[1] for state in states]
    return states, np.array(slopes)


@contextmanager
def _spoken() -> Iterator[None]:
    """Replace function names in errors of the model of the scalars by names in the model file."""
    try:
        yield
    except (ModelError, InvalidRequest) as error:
        words = re.sub(
            r"\b(loss|law|observables|observe)\b", lambda m: SPOKEN[m[0]], str(error), count=1
        )
        raise type(error)(words) from error
