"""Problems of a model: on the scalars of its closure, and on every trained entry."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.models.engine.declaration import states_near
from dynamics.models.engine.definition import Definition
from dynamics.models.engine.functions import (
    WATCHED,
    Columns,
    class_embedding,
    linear_embedding,
    slope_of,
)
from dynamics.models.engine.program import Data, evaluated, on_device
from dynamics.models.engine.realization import DEFAULT_GROUP, Realization
from dynamics.models.engine.reduced_risk import CompiledRisk, ReducedRisk, reduced_risk
from dynamics.models.engine.traced_problem import MOST_WHOLE, TracedProblem
from dynamics.models.engine.tracing import refusals
from dynamics.problem import FloatArray, Layout, record_of
from dynamics.training.minibatches import MiniBatches
from dynamics.validation import InvalidRequest, known_word
from theory.closure import PROVED, Closure
from theory.closure.regime import PLAIN, Regime
from theory.events import EventRule, event_rules
from theory.program import NoProgram
from theory.update_rules import UpdateRule

MOST_NAMED = 256
"""Maximum number of scalars with own names in a state; more scalars are grouped by array."""
LINEAR_FROM = 8
"""With more scalars than this, coordinates ``auto`` become ``linear``, if the dimension of the
linear space is at most half the number of scalars."""
COORDINATES = ("auto", "classes", "linear")
INSIDE = 1e-9
"""A start counts as inside the closed space up to this distance, relative to the larger of 1 and
the largest entry of the start."""
SAME = 1e-9
"""Maximum difference between the gradient by a program and the gradient by JAX, relative to the sum
of the absolute terms of a component."""
MAX_VALUES = 2_000_000
"""A reduced risk with more distinct values than this is trained by JAX, not by a program."""

Realized = tuple[Realization, Closure]


class Reduction:
    """Coordinates, events, order parameters and panels that all problems of a model share.

    `coordinates` is one of `COORDINATES`; `events` replaces the event rules of the model.
    `embedding` maps coordinates to every entry, and `scalars` names the coordinates. `entries` has
    the names and numbers of entries reported beside scalars: frozen entries and, in a linear space,
    the first entry of each class. Raises InvalidRequest if the gradient vanishes at the start.
    """

    def __init__(
        self,
        definition: Definition,
        made: Realization,
        closure: Closure,
        coordinates: str,
        events: tuple[EventRule, ...] | None = None,
    ) -> None:
        self.made, self.closure, name = made, closure, definition.name
        if closure.scalars == 0:
            raise InvalidRequest(
                f"nothing moves: the gradient of {name} vanishes at its start; choose another start"
            )
        self.coordinates = _coordinates(closure, coordinates)
        linear = self.coordinates == "linear"
        classes, space = closure.classes, closure.space
        self.embedding: Any = (
            linear_embedding(classes, space) if linear else class_embedding(classes)
        )
        self.on_device = on_device(self.embedding)
        directions = tuple(f"z_{k + 1}" for k in range(closure.free))
        self.scalars = directions if linear else closure.names
        frozen, first = self._names_beside(linear)
        self.entries = frozen | first
        self.events = self._rules() if events is None else events
        names = (*first, *made.observable_names)
        self.presentation = definition.presentation(
            self.scalars, names, tuple(frozen), self.events, made.shapes
        )
        self.columns = self._columns_of_rules()
        self.order_names = tuple(map(self._column_name, self.columns))
        self.settings = {"closure": closure.document()}
        self._name = name

    def _names_beside(self, linear: bool) -> tuple[dict[str, int], dict[str, int]]:
        """Two mappings name -> entry: frozen entries; with `linear`, first entries of classes."""
        classes, named = self.closure.classes, self.made.named_entries()
        frozen = {name: entry for name, entry in named.items() if classes.labels[entry] < 0}
        few = self.closure.scalars <= MOST_NAMED
        every = zip(self.closure.names, map(int, classes.first), strict=True) if linear else ()
        return frozen, {name: entry for name, entry in every if few or name in named}

    def _rules(self) -> tuple[EventRule, ...]:
        made = self.made
        moving = [*self.scalars, *self.entries, *made.observable_names]
        names = [*moving, *(f"d_{name}" for name in moving), "risk", *made.constants]
        with refusals():
            table = made.model.table("events", made.constants)
            return event_rules(table, names, made.equal_names(self.closure.classes))

    def _columns_of_rules(self) -> Columns:
        """Order parameters that occur in event rules, preceded by the columns `WATCHED`."""
        used = {
            symbol.name
            for rule in self.events
            for expression in rule.expressions
            for symbol in expression.free_symbols
        }
        columns: list[tuple[str, Any]] = [
            (kind, k) for k in range(len(self.scalars)) for kind in ("state", "rate")
        ]
        entries = [(entry, name) for name, entry in self.entries.items()]
        columns += [(kind, entry) for entry in entries for kind in ("entry", "entry_rate")]
        names = self.made.observable_names
        columns += [(kind, name) for name in names for kind in ("observable", "observable_rate")]
        columns += [("risk", "")]
        columns = [column for column in columns if self._column_name(column) in used]
        return (*WATCHED, *(column for column in columns if column not in WATCHED))

    def _column_name(self, column: tuple[str, Any]) -> str:
        """Name of an order parameter in event rules; a rate has the prefix ``d_``."""
        kind, key = column
        name = str(key)
        if kind in ("state", "rate"):
            name = self.scalars[key]
        elif kind in ("entry", "entry_rate"):
            name = key[1]
        elif kind == "risk":
            name = "risk"
        return f"d_{name}" if kind.endswith("rate") else name

    @cached_property
    def reduced_layout(self) -> Layout:
        """Layout of a state of reduced coordinates."""
        count = len(self.scalars)
        if self.coordinates == "linear":
            return Layout(self.scalars, ((),) * count, (DEFAULT_GROUP,) * count)
        groups, arrays = self.made.group_of_arrays(), self.arrays_of_scalars()
        # A group of arrays has a learning rate even if its arrays contain no scalar.
        every = tuple(dict.fromkeys(groups.values()))
        if count <= MOST_NAMED:
            return Layout(self.scalars, ((),) * count, tuple(groups[a] for a in arrays), every)
        names = tuple(dict.fromkeys(arrays))
        sizes = tuple((arrays.count(name),) for name in names)
        return Layout(names, sizes, tuple(groups[name] for name in names), every)

    @cached_property
    def full_layout(self) -> Layout:
        """Layout of a state of every entry."""
        shapes, groups = self.made.shapes, self.made.group_of_arrays()
        return Layout(tuple(shapes), tuple(shapes.values()), tuple(groups[n] for n in shapes))

    def arrays_of_scalars(self) -> list[str]:
        """Name of the trained array that contains the first entry of each class."""
        first = self.closure.classes.first
        return [self.made.entry_position(int(entry))[0] for entry in first]

    @cached_property
    def start(self) -> FloatArray:
        """Coordinates at step 0; zeros in a linear space."""
        classes = self.closure.classes
        linear = self.coordinates == "linear"
        return np.zeros(len(self.scalars)) if linear else classes.start[classes.first]

    @cached_property
    def data(self) -> Data:
        """Data of the reduced risk, with one sample of each class of samples."""
        return self.made.representatives(self.closure.sample_groups)

    @cached_property
    def compiled(self) -> CompiledRisk | None:
        """Programs of the reduced risk, or None without a table of `MAX_VALUES` values or less."""
        made = self.made
        if len(self.scalars) > MOST_WHOLE or made.only_sampled:
            return None
        try:
            risk = reduced_risk(made.program, self.data, self.embedding, self.scalars)
        except NoProgram:
            return None
        if len(risk.values) > MAX_VALUES:
            return None
        if not risk.held:
            self._hold(risk)
            risk.held = True
        return CompiledRisk(risk, self.columns, self.data)

    def _hold(self, risk: ReducedRisk) -> None:
        """Raise InvalidRequest if the program's gradient differs from JAX's near the start."""
        states, slope = states_near(self.start), slope_of(self.made.program, True)
        payload = self.data, self.on_device
        expected = np.array([evaluated(slope, state, payload) for state in states])
        off = risk.departures(states, expected, self.data).max(initial=0.0)
        if off > SAME:
            raise InvalidRequest(
                f"the program of {self._name} has a wrong gradient (error {off:.1e}, "
                "relative to the sum of absolute terms): a bug of this package; please report it"
            )


def _coordinates(closure: Closure, name: str) -> str:
    """Replace the coordinates ``auto`` by ``linear`` or ``classes``."""
    known_word("coordinates", name, COORDINATES)
    if name == "auto":
        many = closure.scalars > LINEAR_FROM and 2 * closure.free <= closure.scalars
        return "linear" if many else "classes"
    return name


class ModelProblem(TracedProblem):
    """Base of the problems of a model.

    A state has coordinates of the closed space if `reduced`, else every entry. `data` replaces the
    data of the law in the gradient; `minibatches` selects the samples of each step. Raises
    InvalidRequest if the gradient vanishes at the start.
    """

    definition: ClassVar[Definition]
    other_events: ClassVar[tuple[EventRule, ...] | None] = None
    flows = True
    regime = PLAIN

    def __init__(
        self,
        parameters: Any,
        realized: Realized,
        reduced: bool,
        coordinates: str,
        seed: Any = 0,
        data: Data | None = None,
        minibatches: MiniBatches | None = None,
    ) -> None:
        made, closure = realized
        key, own = (id(closure), coordinates), (self.definition, made, closure, coordinates)
        if key not in made.reductions:
            made.reductions[key] = Reduction(*own)
        shared: Reduction = made.reductions[key]
        if self.other_events is not None:
            shared = Reduction(*own, self.other_events)
        self.reduction = shared
        self.parameters, self.realization, self.closure = parameters, made, closure
        self.reduced, self.coordinates = reduced, shared.coordinates
        self.embedding = shared.embedding
        self.scalars, self.events = shared.scalars, shared.events
        self.presentation, self.columns = shared.presentation, shared.columns
        self.order_names = shared.order_names
        self.rates = tuple(name for name in self.order_names if name.startswith("d_"))
        self.settings: Mapping[str, Any] = shared.settings
        if made.only_sampled and data is None and made.law is not None:
            self.settings = {**self.settings, "samples": made.law.size, "seed": int(seed)}
        whole = shared.data if reduced else made.data
        layout = shared.reduced_layout if reduced else shared.full_layout
        payload = whole if data is None else data, shared.on_device
        super().__init__(made.program, payload, layout, self.columns, reduced, minibatches)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.definition.pickled(type(self).__name__, self._arguments, self._options)

    @classmethod
    def realized(cls, parameters: Any, draws: tuple[Any, Any], regime: Regime = PLAIN) -> Realized:
        """Realized model at some parameters, and its closure under the regime of an update rule.

        `draws` has the number and the seed of the draws of a law that can only be sampled.
        """
        made = cls.definition.realization(parameters, *draws)
        return made, made.closure_under(regime)

    def under(self, regime: Regime) -> Self:
        """Problem on the closure of training under a regime of update rules."""
        if regime == self.regime:
            return self
        made = inspect.signature(type(self).__init__)
        bound = made.bind(self, *self._arguments, **self._options)
        del bound.arguments["self"]
        options = bound.arguments | bound.arguments.pop("training", {}) | {"regime": regime}
        if not regime.spaces:
            options["coordinates"] = "classes"
        return type(self)(**options)

    def own_rule(self) -> UpdateRule | None:
        """Update rule ``step`` of the model file, at the constants of the problem."""
        return self.definition.own_rule(self.realization.constants)

    def entries_of(self, name: str) -> NDArray[np.bool_]:
        """Mask, shape (n,), that selects a named array, parameter group or part of a state."""
        linear = self.reduced and self.coordinates == "linear"
        if linear or name not in self.realization.shapes:
            return super().entries_of(name)
        if self.reduced:
            return np.array([array == name for array in self.reduction.arrays_of_scalars()])
        arrays = self.realization.arrays
        return np.repeat([each == name for each in arrays], [a.size for a in arrays.values()])

    @property
    def multiplicities(self) -> FloatArray:
        """Count of trained entries that each number of a state stands for, shape (n,)."""
        if self.reduced and self.coordinates == "classes":
            return np.asarray(self.closure.sizes, dtype=float)
        return np.ones(self.layout.size)

    def moving(self, start: FloatArray) -> NDArray[np.bool_]:
        """Mask of the numbers of a state that training can change, shape (n,).

        The mask is False for a number with a proved gradient of 0 in the closed space, provided
        that the start lies in this space.
        """
        classes = self.closure.classes
        if self.reduced or self.closure.grade != PROVED:
            return super().moving(start)
        outside = np.abs(classes.residual(start - classes.start)).max(initial=0.0)
        if outside > INSIDE * max(1.0, float(np.abs(start).max(initial=0.0))):
            return super().moving(start)
        return classes.labels >= 0

    @property
    def identity(self) -> Mapping[str, Any]:
        """All settings that determine the gradients, except the parameters."""
        labels = np.ascontiguousarray(self.closure.classes.labels)
        classes = hashlib.sha256(labels.tobytes()).hexdigest()[:12]
        own = {name: entry for name, entry in self.settings.items() if name != "closure"}
        return {**own, "classes": classes, "model": dict(self.definition.digests)}

    def observables(self, state: ArrayLike) -> dict[str, float]:
        """Risk, model observables and named entries at a state."""
        return record_of(self.observables_along(self.layout.flatten(state)[None, :]), 0)

    def observables_along(self, states: FloatArray) -> dict[str, FloatArray]:
        """Observables of states, shape (records, n), in one compiled call."""
        values = self.observed(states)
        columns = {"risk": values["risk"]} | values["observables"]
        full = "scalars" in values
        if full:
            if len(self.scalars) <= MOST_NAMED:
                columns |= dict(zip(self.scalars, values["scalars"].T, strict=True))
            columns["outside"] = values["outside"]
        columns |= self.entries_along(states, full)
        return {name: np.array(column, dtype=np.float64) for name, column in columns.items()}

    def entries_along(self, states: FloatArray, full: bool) -> dict[str, FloatArray]:
        """Name -> values, shape (records,), of `entries`; with `full`, states have every entry."""
        classes, embedding = self.closure.classes, self.embedding
        found = {}
        for name, entry in self.reduction.entries.items():
            if full:
                found[name] = states[:, entry]
            elif classes.labels[entry] < 0:
                found[name] = np.full(len(states), classes.start[entry])
            else:
                found[name] = embedding.offset[entry] + states @ embedding.matrix[entry]
        return found
