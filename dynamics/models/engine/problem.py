"""The problems of a model: on the scalars that training closes on, and on every trained entry."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

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
from dynamics.models.engine.program import Data, device_data
from dynamics.models.engine.realization import Realization
from dynamics.models.engine.tracing import refusals
from dynamics.problem import NO_BATCHES, FloatArray, Layout, Problem
from dynamics.training.minibatches import reshuffled_batches
from dynamics.validation import InvalidRequest, integer, real, refuse
from theory.closure import Closure
from theory.events import EventRule, event_rules

if TYPE_CHECKING:
    from dynamics.results.trajectory import Trajectory

MOST_NAMED = 256
"""Scalars that have names of their own; more are parts of their arrays."""
MOST_WHOLE = 256
"""Entries up to which the Jacobian is taken whole."""
LINEAR_FROM = 8
"""Scalars from which a linear space of at most half as many directions is used instead."""
DEFAULT_GROUP = "entries"
COORDINATES = ("auto", "classes", "linear")
BACKENDS = ("auto", "arrays", "numba")
LOOKS_ALONG = 24
"""States of a run at which the gradient of every entry is looked at afterwards."""


class ModelProblem(Problem):
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
    batch : int
        Samples of a step; 0 for all.

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
        batch: int = 0,
    ) -> None:
        import jax

        self.parameters, self.realization, self.closure = parameters, realization, closure
        if closure.scalars == 0:
            raise InvalidRequest(
                f"nothing moves: the gradient of {self.system} vanishes at its start; "
                "give it another"
            )
        self.coordinates = _coordinates(closure, coordinates)
        linear = self.coordinates == "linear"
        self._plain = (
            linear_embedding(closure.classes, closure.space)
            if linear
            else class_embedding(closure.classes)
        )
        with jax.enable_x64(True):
            embedding: Embedding = jax.tree.map(jax.numpy.asarray, self._plain)
        self._payload = (data, embedding)
        directions = tuple(f"z_{k + 1}" for k in range(closure.free))
        self.scalars = directions if linear else closure.names
        self.events = self._rules()
        self.presentation = self.definition.presentation(self.scalars, realization, self.events)
        self._columns = self._columns_of_rules()
        self.order_names = tuple(_column_name(self.scalars, column) for column in self._columns)
        self.rates = tuple(name for name in self.order_names if name.startswith("d_"))
        self.layout = self._reduced_layout() if reduced else self._full_layout()
        self._batch = batch
        self._functions = functions_of(
            realization.program, reduced, self._columns, self.layout.size, bool(batch)
        )
        self.settings: Mapping[str, Any] = {"closure": closure.document()}

    @property
    def identity(self) -> Mapping[str, Any]:
        """What decides the gradients beside the parameters."""
        labels = np.ascontiguousarray(self.closure.classes.labels)
        classes = hashlib.sha256(labels.tobytes()).hexdigest()[:12]
        own = {name: entry for name, entry in self.settings.items() if name != "closure"}
        return {**own, "classes": classes, "model": dict(self.definition.digests)}

    def _rules(self) -> tuple[EventRule, ...]:
        realization = self.realization
        moving = [*self.scalars, *realization.observable_names]
        names = [*moving, *(f"d_{name}" for name in moving), "risk", *realization.constants]
        with refusals():
            table = realization.model.table("events", realization.constants)
            return event_rules(table, names)

    def _columns_of_rules(self) -> Columns:
        """The order parameters that the rules use, the rate of a scalar among them."""
        used = {
            symbol.name
            for rule in self.events
            for expression in rule.expressions
            for symbol in expression.free_symbols
        }
        columns: list[tuple[str, Any]] = list(WATCHED)
        for k, name in enumerate(self.scalars):
            columns += [("state", k)] if name in used else []
            columns += [("rate", k)] if f"d_{name}" in used and ("rate", k) not in columns else []
        for name in self.realization.observable_names:
            columns += [("seen", name)] if name in used else []
            columns += [("seen_rate", name)] if f"d_{name}" in used else []
        return (*columns, *([("risk", "")] if "risk" in used else []))

    def _group(self, array: str) -> str:
        return self.realization.model.groups.get(array, DEFAULT_GROUP)

    def _reduced_layout(self) -> Layout:
        count = len(self.scalars)
        if self.coordinates == "linear":
            return Layout(self.scalars, ((),) * count, (DEFAULT_GROUP,) * count)
        arrays = self._arrays_of_scalars()
        if count <= MOST_NAMED:
            return Layout(self.scalars, ((),) * count, tuple(map(self._group, arrays)))
        names = tuple(dict.fromkeys(arrays))
        sizes = tuple((arrays.count(name),) for name in names)
        return Layout(names, sizes, tuple(map(self._group, names)))

    def _full_layout(self) -> Layout:
        shapes = self.realization.shapes
        return Layout(tuple(shapes), tuple(shapes.values()), tuple(map(self._group, shapes)))

    def _arrays_of_scalars(self) -> list[str]:
        """The array of the first entry of each class."""
        first = self.closure.classes.first
        return [self.realization.entry_position(int(entry))[0] for entry in first]

    def _evaluated(self, function: Any, *arguments: Any) -> Any:
        """What a compiled function gives in double precision, as numpy arrays."""
        import jax

        with jax.enable_x64(True):
            return jax.tree.map(np.asarray, function(*arguments, self._payload))

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
        flat = self.layout.flatten(state)
        return np.asarray(self._evaluated(self._functions.compiled_slope, flat))

    def order_parameters(self, state: ArrayLike, gradient: FloatArray | None = None) -> FloatArray:
        """Order parameters at a state, in the order of `order_names`.

        Parameters
        ----------
        state : float array, shape (n,)
        gradient : float array, shape (n,), optional
            The gradient there, computed if it is None.
        """
        flat = self.layout.flatten(state)
        slope = self.gradient(flat) if gradient is None else gradient
        return np.asarray(self._evaluated(self._functions.compiled_row, flat, slope))

    @property
    def has_jacobian(self) -> bool:
        """Whether the Jacobian is taken whole, by automatic differentiation."""
        return self.layout.size <= MOST_WHOLE

    def jacobian(self, state: ArrayLike) -> FloatArray:
        """Derivative of the gradient by the state, shape (n, n), by automatic differentiation."""
        flat = self.layout.flatten(state)
        return np.asarray(self._evaluated(self._functions.compiled_jacobian, flat))

    def hessian_product(self, state: ArrayLike, direction: ArrayLike) -> FloatArray:
        """The Jacobian of the gradient at a state times a direction, shape (n,).

        Parameters
        ----------
        state, direction : float arrays, shape (n,)
        """
        flat, along = self.layout.flatten(state), self.layout.flatten(direction)
        return np.asarray(self._evaluated(self._functions.compiled_product, flat, along))

    def risk(self, state: ArrayLike) -> float:
        """Risk at a state."""
        return self.observables(state)["risk"]

    def observables(self, state: ArrayLike) -> dict[str, float]:
        """Risk, and what the model observes, at a state."""
        return self.observed(self.layout.flatten(state)[None, :])[0]

    def observed(self, states: FloatArray) -> list[dict[str, float]]:
        """Observables of many states, shape (states, n), in one compiled call."""
        values = self._evaluated(self._functions.compiled_observed, states)
        rows = []
        for k in range(len(states)):
            row = {"risk": float(values["risk"][k])}
            row |= {name: float(column[k]) for name, column in values["observed"].items()}
            if "scalars" in values:
                if len(self.scalars) <= MOST_NAMED:
                    means = zip(self.scalars, values["scalars"][k], strict=True)
                    row |= {name: float(value) for name, value in means}
                row["outside"] = float(values["outside"][k])
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

    def _draws(self, seed: Any) -> dict[str, Any]:
        """Number and seed of the draws, where the law is known by draws alone."""
        law = self.realization.law
        if not self.realization.only_sampled or law is None:
            return {}
        return {"samples": law.size, "seed": int(seed)}


class ReducedPopulation(ModelProblem):
    """Gradient descent on the scalars that training closes on.

    Parameters
    ----------
    parameters : Parameters
    eta, steps : float, int
        The run along which the closure is looked at; the model's own by default.
    coordinates : str
        ``"classes"``: one value for each class of equal entries; ``"linear"``: directions of the
        smallest linear space; ``"auto"``: the second where it has at most half as many.
    samples, seed : int
        Of the draws, where the law can only be drawn from.
    backend : str
        ``"arrays"``: JAX; ``"numba"``: a generated file; ``"auto"``: the second for runs of
        millions of steps of a model whose gradient is short.

    Raises
    ------
    InvalidRequest
        If the model is wrong, in one line, or nothing moves.
    """

    view = "reduced population"

    def __init__(
        self,
        parameters: Any,
        eta: Any = None,
        steps: Any = None,
        coordinates: str = "auto",
        samples: Any = None,
        seed: Any = 0,
        backend: str = "auto",
    ) -> None:
        realization = self.definition.realization(parameters, samples, seed)
        closure = realization.closure(self.definition.walk(eta, steps))
        data = realization.representatives(closure.sample_groups)
        super().__init__(parameters, realization, closure, data, True, coordinates)
        self._compiled = self._compiled_gradient(backend, steps)
        own = {"backend": "numba"} if self._compiled else {}
        self.settings = {**self.settings, **self._draws(seed), **own}

    def _compiled_gradient(self, backend: str, steps: Any) -> Any:
        """The generated file with its data, where the gradient is compiled by numba; else None."""
        from dynamics.models.engine import symbolic

        if backend not in BACKENDS:
            refuse("backend", backend, "is unknown", ", ".join(BACKENDS), BACKENDS[0])
        if backend == "numba" and self.coordinates == "linear":
            raise InvalidRequest("backend='numba' is of classes; coordinates can be classes")
        plain = all(kind in ("state", "rate") for kind, _ in self._columns)
        if backend == "numba" and not plain:
            raise InvalidRequest(
                "backend='numba' knows scalars and their rates, and an event speaks of others; "
                "backend can be arrays"
            )
        long_run = self.definition.walk(steps=steps).steps >= symbolic.LONG_RUN
        fits = plain and self.coordinates != "linear"
        if backend == "arrays" or (backend == "auto" and not (long_run and fits)):
            return None
        try:
            return symbolic.compiled_gradient(self)
        except InvalidRequest:
            if backend == "auto":
                return None
            raise

    def gradient(self, state: ArrayLike) -> FloatArray:
        """What one step subtracts, divided by eta; see `ModelProblem.gradient`."""
        if self._compiled is None:
            return super().gradient(state)
        module, data = self._compiled
        out = np.empty(self.layout.size)
        module.gradient(self.layout.flatten(state), data, out)
        return out if np.isfinite(out).all() else super().gradient(state)

    def advance(
        self, state: FloatArray, eta: FloatArray, first: int, last: int, buffers: tuple[Any, ...]
    ) -> int:
        """Steps first, ..., last - 1 in place; see `dynamics.codegen.kernels.advance`."""
        if self._compiled is None:
            return super().advance(state, eta, first, last, buffers)
        module, data = self._compiled
        before = state.copy()
        work = (np.empty_like(state), np.empty_like(state), True, NO_BATCHES, NO_BATCHES)
        reached = int(module.advance(state, eta, first, last, (data, *work, *buffers)))
        if reached == last:
            return last
        state[:] = before
        return super().advance(state, eta, first, last, buffers)

    @property
    def initial_state(self) -> FloatArray:
        """The scalars at step 0; 0 in a linear space."""
        if self.coordinates == "linear":
            return np.zeros(len(self.scalars))
        classes = self.closure.classes
        return np.asarray(classes.start[classes.first])

    def outside(self, vector: FloatArray) -> FloatArray:
        """What of a vector of every entry, shape (n,), lies across the closed space."""
        if self.coordinates == "linear":
            return np.asarray(vector - self._plain.matrix @ (self._plain.matrix.T @ vector))
        return self.closure.classes.residual(vector)

    def leaving(self, run: Trajectory) -> str:
        """Where the gradient of every entry leaves the space along a run; empty if nowhere.

        Of a run no longer than the one that the closure was looked at along, nothing is new.

        Parameters
        ----------
        run : Trajectory
            Of this problem.
        """
        walked = run.steps.size and run.steps[-1] <= self.closure.walked
        if walked or self.realization.only_sampled:
            return ""
        records = np.unique(np.linspace(0, len(run.time) - 1, LOOKS_ALONG).astype(int))
        states = self.lift(run.states[records])
        departure = self.realization.first_leaving(self.closure, states)
        if departure is None:
            return ""
        number, entry = departure
        return (
            f"the reduction does not hold to the end: at time {run.time[records[number]]:.4g} the "
            f"gradient of {self.realization.entry_name(entry)} is another than that of its class; "
            "looked at along gradient descent with these --eta and --steps, the classes are finer"
        )

    def lift(self, states: FloatArray) -> FloatArray:
        """Every trained entry, shape (..., n), of reduced states, shape (..., scalars)."""
        if self.coordinates == "linear":
            return np.asarray(self._plain.offset + np.asarray(states) @ self._plain.matrix.T)
        return self.closure.classes.lift(states)


class FullModelProblem(ModelProblem):
    """A problem with every trained entry, which can be laid beside the reduced one."""

    def _refuse_representatives(self) -> None:
        model = self.definition.model
        if model.representatives:
            raise InvalidRequest(
                f"the law of {model.name} lists representatives, which have no symmetry of their "
                "own: there is no full problem; list every sample, at a small size"
            )

    def orbit_values(self, states: FloatArray) -> Mapping[str, FloatArray]:
        """Scalar -> every entry that stands for it, with its sign, shape (records, entries).

        Beside a direction of a linear space stands the projection, shape (records, 1).
        """
        classes = self.closure.classes
        if self.coordinates == "linear":
            inside = (states - self._plain.offset) @ self._plain.matrix
            return {name: inside[:, [k]] for k, name in enumerate(self.scalars)}
        if len(self.scalars) > MOST_NAMED:
            means, arrays = classes.project(states), self._arrays_of_scalars()
            return {
                name: means[:, [array == name for array in arrays]]
                for name in dict.fromkeys(arrays)
            }
        order = np.argsort(classes.labels, kind="stable")
        order = order[classes.labels[order] >= 0]
        edges = np.searchsorted(classes.labels[order], np.arange(1, classes.count))
        signed = states[:, order] * classes.signs[order]
        return dict(zip(self.scalars, np.split(signed, edges, axis=1), strict=True))


class FullPopulation(FullModelProblem):
    """Every trained entry, over every sample of the law, by automatic differentiation.

    Parameters
    ----------
    parameters : Parameters
    eta, steps, coordinates
        As for `ReducedPopulation`: they decide which entries the reduced scalars stand for.
    samples, seed : int
        Of the draws, where the law can only be drawn from.
    """

    view = "full population"

    def __init__(
        self,
        parameters: Any,
        eta: Any = None,
        steps: Any = None,
        coordinates: str = "auto",
        samples: Any = None,
        seed: Any = 0,
    ) -> None:
        self._refuse_representatives()
        realization = self.definition.realization(parameters, samples, seed)
        closure = realization.closure(self.definition.walk(eta, steps))
        super().__init__(parameters, realization, closure, realization.data, False, coordinates)
        self.settings = {**self.settings, **self._draws(seed)}

    @property
    def initial_state(self) -> FloatArray:
        """Every entry at step 0, shape (n,)."""
        return self.realization.flat_start.copy()


class FullEmpirical(FullModelProblem):
    """Every trained entry on N draws of the law, from a start with noise.

    Parameters
    ----------
    parameters : Parameters
    samples : int
        N.
    seed : int
        Of the draws and of the start.
    omega : float
        Standard deviation of what is added to every entry of the start.
    batch : int, optional
        Samples of a step, reshuffled every epoch; all by default.
    eta, steps, coordinates
        As for `ReducedPopulation`.

    Raises
    ------
    InvalidRequest
        If the model has no law to draw from.
    """

    view = "full empirical"

    def __init__(
        self,
        parameters: Any,
        samples: Any = 1000,
        seed: Any = 0,
        omega: Any = 1e-3,
        batch: Any = None,
        eta: Any = None,
        steps: Any = None,
        coordinates: str = "auto",
    ) -> None:
        self._refuse_representatives()
        model = self.definition.model
        if model.loss is None or (model.law is None and model.sample is None):
            raise InvalidRequest(
                f"{model.name} has its risk in closed form and nothing to draw from; "
                "give it a law and a loss, or a sample and a loss, for --full empirical"
            )
        count = self._count = integer("samples", samples, at_least=1, at_most=10**8)
        self._seed = integer("seed", seed, at_least=0, at_most=2**63 - 1)
        self._omega = real("omega", omega, at_least=0.0)
        size = 0 if batch is None else integer("batch", batch, at_least=1)
        realization = self.definition.realization(parameters, count, self._seed)
        closure = realization.closure(self.definition.walk(eta, steps))
        if closure.scalars == 0:
            # The noise of the start may move what the start itself does not.
            closure = realization.open_closure()
        law = realization.law
        if not realization.only_sampled:
            with refusals():
                law = model.draw_samples(realization.constants, count, self._seed)
        data = device_data(law, realization.data.fixed, realization.reals)
        batched = size if size < count else 0
        super().__init__(parameters, realization, closure, data, False, coordinates, batched)
        own = {"samples": count, "seed": self._seed, "omega": self._omega}
        self.settings = {**self.settings, **own, **({"batch": size} if size else {})}

    @cached_property
    def _start(self) -> FloatArray:
        noise = np.random.default_rng([self._seed, 1]).standard_normal(self.layout.size)
        return self.realization.flat_start + self._omega * noise

    @property
    def initial_state(self) -> FloatArray:
        """The start with noise, shape (n,)."""
        return self._start.copy()

    def _batches(self, first: int, last: int) -> NDArray[np.int64] | None:
        if not self._batch:
            return None
        rows = np.full((last - first, self._batch), -1, dtype=np.int64)
        batches = reshuffled_batches(self._seed, self._count, self._batch, first, last)
        for row, members in zip(rows, batches, strict=True):
            row[: members.size] = members
        return rows


def _column_name(scalars: tuple[str, ...], column: tuple[str, Any]) -> str:
    kind, key = column
    if kind in ("state", "rate"):
        return scalars[key] if kind == "state" else f"d_{scalars[key]}"
    return {"seen": str(key), "seen_rate": f"d_{key}", "risk": "risk"}[kind]


def _coordinates(closure: Closure, name: str) -> str:
    """Coordinates by their name, ``auto`` decided by the closure."""
    if name not in COORDINATES:
        refuse("coordinates", name, "is unknown", ", ".join(COORDINATES), "auto")
    if name == "auto":
        many = closure.scalars > LINEAR_FROM and 2 * closure.free <= closure.scalars
        return "linear" if many else "classes"
    return name
