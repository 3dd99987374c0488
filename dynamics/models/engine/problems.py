r"""The problems of a model: reduced and full, on the whole law or on draws.

`ReducedPopulation` descends on the scalars that a closure found, its expectation over one sample of
each class; `FullPopulation` on every trained entry, over every sample, by automatic differentiation
and nothing else; `FullEmpirical` on N draws, from a start with noise. All are what drivers expect.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.batches import dealt
from dynamics.models.engine.definition import Definition
from dynamics.models.engine.embedding import Embedding, class_embedding, linear_embedding
from dynamics.models.engine.functions import WATCHED, Columns, functions_of
from dynamics.models.engine.program import Data, device_data
from dynamics.models.engine.realization import Realization, representative_data
from dynamics.models.engine.tracing_errors import refusals
from dynamics.problem import BaseProblem, FloatArray, Layout
from dynamics.validation import InvalidRequest, integer, real, refuse
from theory.closure import Closure
from theory.event_text import event_rules
from theory.events import EventRule

if TYPE_CHECKING:
    from dynamics.trajectory import Trajectory

MOST_NAMED = 256
"""Scalars that have names of their own; more are parts of their arrays."""
MOST_WHOLE = 256
"""Entries up to which the Jacobian is taken whole."""
LINEAR_FROM = 8
"""Scalars from which a linear space of at most half as many directions is used instead."""
DEFAULT_GROUP = "entries"
BACKENDS = ("auto", "arrays", "numba")
LOOKS_ALONG = 24
"""States of a run at which the gradient of every entry is looked at afterwards."""


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
        made, seen = self.realization, self.realization.seen_names
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
        for name in self.realization.seen_names:
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
        """Steps first, ..., last - 1 in place; see `dynamics.kernels.advance`."""
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
        made = self.definition.realization(parameters, samples, seed)
        closure = made.closure(self.definition.walk(eta, steps))
        data = representative_data(made, closure.sample_groups)
        super().__init__(parameters, made, closure, data, True, coordinates)
        self._compiled = self._chosen(backend, steps)
        self.settings = {
            **self.settings,
            **drawn_settings(made, samples, seed),
            **({"backend": "numba"} if self._compiled else {}),
        }

    def _chosen(self, backend: str, steps: Any) -> Any:
        """The generated file with its data, where the gradient is compiled by numba; else None."""
        from dynamics.models.engine import compiled

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
        long_run = self.definition.walk(steps=steps).steps >= compiled.LONG_RUN
        fits = plain and self.coordinates != "linear"
        if backend == "arrays" or (backend == "auto" and not (long_run and fits)):
            return None
        try:
            return compiled.compiled_gradient(self)
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
        """Steps first, ..., last - 1 in place; see `dynamics.kernels.advance`."""
        if self._compiled is None:
            return super().advance(state, eta, first, last, buffers)
        module, data = self._compiled
        before, work = state.copy(), (np.empty_like(state), np.empty_like(state), True)
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
        if run.steps.size and run.steps[-1] <= self.closure.walked:
            return ""
        if self.realization.drawn:
            return ""
        chosen = np.unique(np.linspace(0, len(run.time) - 1, LOOKS_ALONG).astype(int))
        found = self.realization.first_leaving(self.closure, self.lift(run.states[chosen]))
        if found is None:
            return ""
        number, entry = found
        return (
            f"the reduction does not hold to the end: at time {run.time[chosen[number]]:.4g} the "
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

    def __init__(self, parameters: Any, *given: Any, **options: Any) -> None:
        model = self.definition.model
        if model.representatives:
            raise InvalidRequest(
                f"the law of {model.name} lists representatives, which have no symmetry of their "
                "own: there is no full problem; list every sample, at a small size"
            )
        super().__init__(parameters, *given, **options)

    def orbit_values(self, states: FloatArray) -> Mapping[str, FloatArray]:
        """Scalar -> every entry that stands for it, with its sign, shape (records, entries).

        Beside a direction of a linear space stands the projection, shape (records, 1).
        """
        classes = self.closure.classes
        if self.coordinates == "linear":
            inside = (states - self._plain.offset) @ self._plain.matrix
            return {name: inside[:, [k]] for k, name in enumerate(self.scalars)}
        if len(self.scalars) > MOST_NAMED:
            means = classes.project(states)
            arrays = [self.realization.entry_position(int(k))[0] for k in classes.first]
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
    eta, steps : float, int
        As for `ReducedPopulation`: they decide which entries the reduced scalars stand for.
    coordinates : str
        As for `ReducedPopulation`.
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
        made = self.definition.realization(parameters, samples, seed)
        closure = made.closure(self.definition.walk(eta, steps))
        super().__init__(parameters, made, closure, made.data, False, coordinates)
        self.settings = {**self.settings, **drawn_settings(made, samples, seed)}

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
        Samples of a step, dealt out anew every epoch; all by default.
    eta, steps : float, int
        As for `ReducedPopulation`.
    coordinates : str
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
        model = self.definition.model
        if model.loss is None or (model.law is None and model.sample is None):
            raise InvalidRequest(
                f"{model.name} has its risk in closed form and nothing to draw from; "
                "give it a law and a loss, or a sample and a loss, for --full empirical"
            )
        count = integer("samples", samples, at_least=1, at_most=10**8)
        self._seed = integer("seed", seed, at_least=0, at_most=2**63 - 1)
        self._omega = real("omega", omega, at_least=0.0)
        size = 0 if batch is None else integer("batch", batch, at_least=1)
        made = self.definition.realization(parameters, count, self._seed)
        closure = made.closure(self.definition.walk(eta, steps))
        if closure.scalars == 0:
            # The noise of the start may move what the start itself does not.
            closure = made.open_closure()
        with refusals():
            law = made.law if made.drawn else model.drawn_samples(made.constants, count, self._seed)
        data = device_data(law, made.data.fixed, made.reals)
        self._count = count
        super().__init__(
            parameters, made, closure, data, False, coordinates, size if size < count else 0
        )
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
        dealt_out = dealt(self._seed, self._count, self._batch, first, last)
        for row, members in zip(rows, dealt_out, strict=True):
            row[: members.size] = members
        return rows


def drawn_settings(made: Realization, samples: Any, seed: Any) -> dict[str, Any]:
    """Number and seed of the draws, where the law is known by draws alone."""
    if not made.drawn or made.law is None:
        return {}
    return {"samples": made.law.size, "seed": int(seed)}
