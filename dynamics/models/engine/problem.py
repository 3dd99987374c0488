"""What the problems of a model share: names, order parameters, compiled functions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.models.engine.definition import Definition
from dynamics.models.engine.functions import (
    WATCHED,
    Columns,
    Embedding,
    class_embedding,
    functions_of,
    linear_embedding,
)
from dynamics.models.engine.program import Data
from dynamics.models.engine.realization import Realization
from dynamics.models.engine.tracing import refusals
from dynamics.problem import BaseProblem, FloatArray, Layout
from dynamics.validation import InvalidRequest, refuse
from theory.closure import Closure
from theory.events import EventRule, event_rules

MOST_NAMED = 256
"""Scalars that have names of their own; more are parts of their arrays."""
MOST_WHOLE = 256
"""Entries up to which the Jacobian is taken whole."""
LINEAR_FROM = 8
"""Scalars from which a linear space of at most half as many directions is used instead."""
DEFAULT_GROUP = "entries"


class ModelProblem(BaseProblem):
    """What the problems of a model share.

    Parameters
    ----------
    parameters : Parameters
    made : Realization
    closure : Closure
    data : Data
        Of the gradient.
    reduced : bool
    batch : int
        Samples of a step; 0 for all.
    """

    definition: ClassVar[Definition]
    system: ClassVar[str]
    view: ClassVar[str]
    flows = True

    def __init__(
        self,
        parameters: Any,
        made: Realization,
        closure: Closure,
        data: Data,
        reduced: bool,
        coordinates: str = "classes",
        batch: int = 0,
    ) -> None:
        import jax

        self.parameters, self.realization, self.closure = parameters, made, closure
        if closure.scalars == 0:
            raise InvalidRequest(
                f"nothing moves: the gradient of {self.system} vanishes at its start; "
                "give it another"
            )
        self.coordinates = _coordinates(closure, coordinates)
        plain = (
            linear_embedding(closure.classes, closure.space)
            if self.coordinates == "linear"
            else class_embedding(closure.classes)
        )
        with jax.enable_x64(True):
            embedding: Embedding = jax.tree.map(jax.numpy.asarray, plain)
        self._embedding, self._plain = embedding, plain
        self._payload = (data, embedding)
        self.scalars = (
            tuple(f"z_{k + 1}" for k in range(closure.free))
            if self.coordinates == "linear"
            else closure.names
        )
        self.events = self._rules()
        self.presentation = self.definition.presentation(self.scalars, made, self.events)
        self._columns = self._columns_of_rules()
        self.order_names = tuple(_column_name(self.scalars, column) for column in self._columns)
        self.rates = tuple(name for name in self.order_names if name.startswith("d_"))
        self.layout = self._reduced_layout() if reduced else self._full_layout()
        self._batch = batch
        self._functions = functions_of(
            made.program, reduced, self._columns, self.layout.size, bool(batch)
        )
        self.settings: Mapping[str, Any] = {"closure": closure.document()}

    # What the problem is called.

    @property
    def identity(self) -> Mapping[str, Any]:
        """What decides the gradients beside the parameters."""
        labels = np.ascontiguousarray(self.closure.classes.labels)
        classes = hashlib.sha256(labels.tobytes()).hexdigest()[:12]
        own = {name: entry for name, entry in self.settings.items() if name != "closure"}
        return {**own, "classes": classes, "model": dict(self.definition.digests)}

    def _rules(self) -> tuple[EventRule, ...]:
        made, seen = self.realization, self.realization.observable_names
        moving = [*self.scalars, *seen]
        known = [*moving, *(f"d_{name}" for name in moving), "risk", *made.constants]
        with refusals():
            return event_rules(made.model.table("events", made.constants), known)

    def _columns_of_rules(self) -> Columns:
        """The order parameters that the rules use, the rate of a scalar among them."""
        used: set[str] = set()
        for rule in self.events:
            for attribute in ("expression", "guard", "quantity", "bound"):
                used |= {s.name for s in getattr(rule, attribute, _NOTHING).free_symbols}
        found: list[tuple[str, Any]] = list(WATCHED)
        for k, name in enumerate(self.scalars):
            found += [("state", k)] if name in used else []
            found += [("rate", k)] if f"d_{name}" in used and ("rate", k) not in found else []
        for name in self.realization.observable_names:
            found += [("seen", name)] if name in used else []
            found += [("seen_rate", name)] if f"d_{name}" in used else []
        return (*found, *([("risk", "")] if "risk" in used else []))

    def _reduced_layout(self) -> Layout:
        classes, model = self.closure.classes, self.realization.model
        if self.coordinates == "linear":
            shapes: tuple[tuple[int, ...], ...] = ((),) * len(self.scalars)
            return Layout(self.scalars, shapes, (DEFAULT_GROUP,) * len(self.scalars))
        arrays = [self.realization.entry_position(int(k))[0] for k in classes.first]
        groups = [model.groups.get(array, DEFAULT_GROUP) for array in arrays]
        if len(self.scalars) <= MOST_NAMED:
            return Layout(self.scalars, ((),) * len(self.scalars), tuple(groups))
        names = tuple(dict.fromkeys(arrays))
        sizes = tuple((arrays.count(name),) for name in names)
        return Layout(names, sizes, tuple(model.groups.get(name, DEFAULT_GROUP) for name in names))

    def _full_layout(self) -> Layout:
        shapes, model = self.realization.shapes, self.realization.model
        groups = tuple(model.groups.get(name, DEFAULT_GROUP) for name in shapes)
        return Layout(tuple(shapes), tuple(shapes.values()), groups)

    # What the problem computes.

    @property
    def initial_state(self) -> FloatArray:
        """Where training starts, shape (n,)."""
        raise TypeError(f"{type(self).__name__} has no start")

    def gradient(self, state: ArrayLike) -> FloatArray:
        """What one step of gradient descent subtracts, divided by eta.

        Parameters
        ----------
        state : float array, shape (n,), or a sequence of its parts

        Returns
        -------
        float array, shape (n,)
            Per entry: the derivative by a scalar over the number of its entries.
        """
        import jax

        with jax.enable_x64(True):
            slope = self._functions.compiled_slope(self.layout.flatten(state), self._payload)
            return np.asarray(slope)

    def order_parameters(self, state: ArrayLike, gradient: FloatArray | None = None) -> FloatArray:
        """Order parameters at a state, in the order of `order_names`.

        Parameters
        ----------
        state : float array, shape (n,)
        gradient : float array, shape (n,), optional
            The gradient there, computed if it is not given.
        """
        import jax

        flat = self.layout.flatten(state)
        slope = self.gradient(flat) if gradient is None else gradient
        with jax.enable_x64(True):
            return np.asarray(self._functions.compiled_row(flat, slope, self._payload))

    def order_rows(self, states: FloatArray) -> FloatArray:
        """Order parameters of many states, shape (states, order parameters)."""
        import jax

        with jax.enable_x64(True):
            return np.asarray(self._functions.compiled_rows(states, self._payload)[1])

    @property
    def has_jacobian(self) -> bool:
        """Whether the Jacobian is taken whole, by automatic differentiation."""
        return self.layout.size <= MOST_WHOLE

    def jacobian(self, state: ArrayLike) -> FloatArray:
        """Derivative of the gradient by the state, shape (n, n), by automatic differentiation."""
        import jax

        with jax.enable_x64(True):
            return np.asarray(
                self._functions.compiled_jacobian(self.layout.flatten(state), self._payload)
            )

    def hessian_product(self, state: ArrayLike, direction: ArrayLike) -> FloatArray:
        """The Jacobian of the gradient at a state times a direction, shape (n,)."""
        import jax

        with jax.enable_x64(True):
            return np.asarray(
                self._functions.compiled_product(
                    self.layout.flatten(state), self.layout.flatten(direction), self._payload
                )
            )

    def risk(self, state: ArrayLike) -> float:
        """Risk at a state."""
        return self.observables(state)["risk"]

    def observables(self, state: ArrayLike) -> dict[str, float]:
        """Risk, and what the model observes, at a state."""
        return self.observed(self.layout.flatten(state)[None, :])[0]

    def observed(self, states: FloatArray) -> list[dict[str, float]]:
        """Observables of many states, shape (states, n), in one compiled call."""
        import jax

        with jax.enable_x64(True):
            seen = jax.tree.map(
                np.asarray, self._functions.compiled_observed(states, self._payload)
            )
        rows = []
        for k in range(len(states)):
            row = {"risk": float(seen["risk"][k])}
            row |= {name: float(values[k]) for name, values in seen["observed"].items()}
            if "scalars" in seen:
                if len(self.scalars) <= MOST_NAMED:
                    means = zip(self.scalars, seen["scalars"][k], strict=True)
                    row |= {name: float(value) for name, value in means}
                row["outside"] = float(seen["outside"][k])
            rows.append(row)
        return rows

    def advance(
        self, state: FloatArray, eta: FloatArray, first: int, last: int, buffers: tuple[Any, ...]
    ) -> int:
        """Steps first, ..., last - 1 in place; see `dynamics.codegen.kernels.advance`."""
        return self._functions.loop.advance(
            state, eta, (first, last), buffers, self._payload, self._batches(first, last)
        )

    def _batches(self, first: int, last: int) -> NDArray[np.int64] | None:
        return None


class _Nothing:
    free_symbols: frozenset[Any] = frozenset()


_NOTHING = _Nothing()


def _column_name(scalars: tuple[str, ...], column: tuple[str, Any]) -> str:
    kind, key = column
    if kind in ("state", "rate"):
        return scalars[key] if kind == "state" else f"d_{scalars[key]}"
    return {"seen": str(key), "seen_rate": f"d_{key}", "risk": "risk"}[kind]


def _coordinates(closure: Closure, wanted: str) -> str:
    known = ("auto", "classes", "linear")
    if wanted not in known:
        refuse("coordinates", wanted, "is unknown", ", ".join(known), "auto")
    if wanted == "auto":
        many = closure.scalars > LINEAR_FROM and 2 * closure.free <= closure.scalars
        return "linear" if many else "classes"
    return wanted


def drawn_settings(made: Realization, samples: Any, seed: Any) -> dict[str, Any]:
    """Number and seed of the draws, where the law is known by draws alone."""
    if not made.drawn or made.law is None:
        return {}
    return {"samples": made.law.size, "seed": int(seed)}
