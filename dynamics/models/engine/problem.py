"""The problems of a model: on the scalars that training closes on, and on every trained entry."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dynamics.models.engine.definition import Definition
from dynamics.models.engine.functions import (
    WATCHED,
    Columns,
    class_embedding,
    linear_embedding,
)
from dynamics.models.engine.program import Data
from dynamics.models.engine.realization import DEFAULT_GROUP, Realization
from dynamics.models.engine.traced_problem import TracedProblem
from dynamics.models.engine.tracing import refusals
from dynamics.problem import FloatArray, Layout, record_of
from dynamics.training.minibatches import MiniBatches
from dynamics.validation import InvalidRequest, known_word
from theory.closure import Closure
from theory.events import EventRule, event_rules

MOST_NAMED = 256
"""Scalars that have names of their own; more are parts of their arrays."""
LINEAR_FROM = 8
"""Scalars from which a linear space of at most half as many directions is used instead."""
COORDINATES = ("auto", "classes", "linear")

Realized = tuple[Realization, Closure]


class ModelProblem(TracedProblem):
    """Base of the problems of a model: names, order parameters, compiled functions.

    Parameters
    ----------
    parameters : Parameters
    realization : Realization
    closure : Closure
    data : Data
        Of the gradient.
    reduced : bool
        Whether a state are coordinates of the closed space, or every entry.
    coordinates : str
        One of `COORDINATES`.
    minibatches : MiniBatches, optional
        Samples of each step; all of them by default.

    Raises
    ------
    InvalidRequest
        If nothing moves.
    """

    definition: ClassVar[Definition]
    flows = True

    def __init__(
        self,
        parameters: Any,
        realization: Realization,
        closure: Closure,
        data: Data,
        reduced: bool,
        coordinates: str,
        minibatches: MiniBatches | None = None,
    ) -> None:
        self.parameters, self.realization, self.closure = parameters, realization, closure
        if closure.scalars == 0:
            raise InvalidRequest(
                f"nothing moves: the gradient of {self.system} vanishes at its start; "
                "give it another"
            )
        self.coordinates = _coordinates(closure, coordinates)
        linear = self.coordinates == "linear"
        classes, space = closure.classes, closure.space
        embedding = linear_embedding(classes, space) if linear else class_embedding(classes)
        directions = tuple(f"z_{k + 1}" for k in range(closure.free))
        self.scalars = directions if linear else closure.names
        frozen, first = self._names_beside(linear)
        self._entries = frozen | first
        self.events = self._rules()
        names = (*first, *realization.observable_names)
        self.presentation = self.definition.presentation(
            self.scalars, names, tuple(frozen), self.events, realization.shapes
        )
        self.columns = self._columns_of_rules()
        self.order_names = tuple(map(self._column_name, self.columns))
        self.rates = tuple(name for name in self.order_names if name.startswith("d_"))
        layout = self._reduced_layout() if reduced else self._full_layout()
        program = realization.program
        super().__init__(program, data, embedding, layout, self.columns, reduced, minibatches)
        self.settings: Mapping[str, Any] = {"closure": closure.document()}

    def __reduce__(self) -> tuple[Any, ...]:
        return self.definition.pickled(type(self).__name__, self._arguments, self._options)

    @classmethod
    def realized(cls, parameters: Any, draws: tuple[Any, Any]) -> Realized:
        """The model at some parameters, and what training closes on.

        Parameters
        ----------
        parameters : Parameters
        draws : (samples, seed)
            Of a law that can only be sampled.
        """
        realization = cls.definition.realization(parameters, *draws)
        return realization, realization.closure

    @property
    def identity(self) -> Mapping[str, Any]:
        """Settings that decide the gradients, beside the parameters."""
        labels = np.ascontiguousarray(self.closure.classes.labels)
        classes = hashlib.sha256(labels.tobytes()).hexdigest()[:12]
        own = {name: entry for name, entry in self.settings.items() if name != "closure"}
        return {**own, "classes": classes, "model": dict(self.definition.digests)}

    def _names_beside(self, linear: bool) -> tuple[dict[str, int], dict[str, int]]:
        """Frozen entries by their names; in a linear space the firsts of (few) classes too."""
        classes, named = self.closure.classes, self.realization.named_entries()
        frozen = {name: entry for name, entry in named.items() if classes.labels[entry] < 0}
        few = self.closure.scalars <= MOST_NAMED
        every = zip(self.closure.names, map(int, classes.first), strict=True) if linear else ()
        return frozen, {name: entry for name, entry in every if few or name in named}

    def _rules(self) -> tuple[EventRule, ...]:
        realization = self.realization
        moving = [*self.scalars, *self._entries, *realization.observable_names]
        names = [*moving, *(f"d_{name}" for name in moving), "risk", *realization.constants]
        equal = realization.equal_names(self.closure.classes)
        with refusals():
            table = realization.model.table("events", realization.constants)
            return event_rules(table, names, equal)

    def _columns_of_rules(self) -> Columns:
        """The order parameters that the rules use, the rate of a scalar among them."""
        used = {
            symbol.name
            for rule in self.events
            for expression in rule.expressions
            for symbol in expression.free_symbols
        }
        numbers, names = range(len(self.scalars)), self.realization.observable_names
        columns: list[tuple[str, Any]] = []
        columns += [(kind, k) for k in numbers for kind in ("state", "rate")]
        entries = [(entry, name) for name, entry in self._entries.items()]
        columns += [(kind, entry) for entry in entries for kind in ("entry", "entry_rate")]
        columns += [(kind, name) for name in names for kind in ("observable", "observable_rate")]
        columns += [("risk", "")]
        columns = [column for column in columns if self._column_name(column) in used]
        return (*WATCHED, *(column for column in columns if column not in WATCHED))

    def _column_name(self, column: tuple[str, Any]) -> str:
        """Name of an order parameter; see `functions.Columns`."""
        kind, key = column
        name = str(key)
        if kind in ("state", "rate"):
            name = self.scalars[key]
        elif kind in ("entry", "entry_rate"):
            name = key[1]
        elif kind == "risk":
            name = "risk"
        return f"d_{name}" if kind.endswith("rate") else name

    def _group(self, array: str) -> str:
        return self.realization.group_of_arrays()[array]

    def _reduced_layout(self) -> Layout:
        count = len(self.scalars)
        if self.coordinates == "linear":
            return Layout(self.scalars, ((),) * count, (DEFAULT_GROUP,) * count)
        arrays = self._arrays_of_scalars()
        # Of the whole model: what never moves has no scalar, and may be the first of its group.
        every = tuple(dict.fromkeys(self.realization.group_of_arrays().values()))
        if count <= MOST_NAMED:
            return Layout(self.scalars, ((),) * count, tuple(map(self._group, arrays)), every)
        names = tuple(dict.fromkeys(arrays))
        sizes = tuple((arrays.count(name),) for name in names)
        return Layout(names, sizes, tuple(map(self._group, names)), every)

    def _full_layout(self) -> Layout:
        shapes = self.realization.shapes
        return Layout(tuple(shapes), tuple(shapes.values()), tuple(map(self._group, shapes)))

    def _arrays_of_scalars(self) -> list[str]:
        """The array of the first entry of each class."""
        first = self.closure.classes.first
        return [self.realization.entry_position(int(entry))[0] for entry in first]

    def observables(self, state: ArrayLike) -> dict[str, float]:
        """Risk, and what the model observes, at a state."""
        return record_of(self.observables_along(self.layout.flatten(state)[None, :]), 0)

    def observables_along(self, states: FloatArray) -> dict[str, FloatArray]:
        """`observables` of states, shape (records, n), in one compiled call."""
        values = self.observed(states)
        columns = {"risk": values["risk"]} | values["observables"]
        if "scalars" in values:
            if len(self.scalars) <= MOST_NAMED:
                columns |= dict(zip(self.scalars, values["scalars"].T, strict=True))
            columns["outside"] = values["outside"]
        full = "scalars" in values
        columns |= {n: self._entry_along(states, k, full) for n, k in self._entries.items()}
        return {name: np.array(column, dtype=np.float64) for name, column in columns.items()}

    def _entry_along(self, states: FloatArray, entry: int, full: bool) -> FloatArray:
        """One of `_entries` at states, shape (records,), of every entry or of coordinates."""
        if full:
            return states[:, entry]
        if self.closure.classes.labels[entry] < 0:
            return np.full(len(states), self.closure.classes.start[entry])
        return np.asarray(self.embedding.offset[entry] + states @ self.embedding.matrix[entry])

    def _draws(self, seed: Any) -> dict[str, Any]:
        """Number and seed of the draws, where the law can only be sampled."""
        law = self.realization.law
        if not self.realization.only_sampled or law is None:
            return {}
        return {"samples": law.size, "seed": int(seed)}


def _coordinates(closure: Closure, name: str) -> str:
    """Coordinates by their name, ``auto`` decided by the closure."""
    known_word("coordinates", name, COORDINATES)
    if name == "auto":
        many = closure.scalars > LINEAR_FROM and 2 * closure.free <= closure.scalars
        return "linear" if many else "classes"
    return name
