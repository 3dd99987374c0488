"""Problems of a model: on its scalars, on every entry with the whole law, and with N draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pydantic
from numpy.typing import ArrayLike, NDArray

from dynamics import loops
from dynamics.loops import Updates
from dynamics.models.engine.declaration import MAX_LISTED
from dynamics.models.engine.problem import MOST_NAMED, ModelProblem, Realized
from dynamics.models.engine.program import Data
from dynamics.models.engine.sampled import Training
from dynamics.models.engine.tracing import refusals
from dynamics.parameter_fields import STRICT, check_parameters, number, refusing, whole
from dynamics.problem import FloatArray
from dynamics.validation import InvalidRequest, integer, known_word
from theory.closure.regime import PLAIN, Regime
from theory.law import Law
from theory.model import DECLARED_START

if TYPE_CHECKING:
    from dynamics.results.trajectory import Trajectory

LOOKS_ALONG = 24
"""After a run, the gradient of every entry is checked at this number of recorded states."""
START, FRESH = 1, 2
"""Numbers appended to a seed for the random streams of the start and of fresh samples."""
OMEGA = 1e-3
"""Default standard deviation of the noise on every entry of the declared start."""


class ReducedPopulation(ModelProblem):
    """Gradient descent on the scalars of the closure.

    `coordinates` is ``"classes"`` for one value per class of equal entries, ``"linear"`` for
    directions of the smallest linear space, or ``"auto"``. Auto means linear for more than 8
    scalars if the space has at most half as many directions. `samples` and `seed` set the draws of
    a law that can only be sampled. The closure depends on the `regime` of the update rule. Raises
    InvalidRequest if a function of the model fails, or if the gradient vanishes at the start.
    """

    view = "reduced population"

    def __init__(
        self,
        parameters: Any,
        coordinates: str = "auto",
        samples: Any = None,
        seed: Any = 0,
        regime: Regime = PLAIN,
    ) -> None:
        realized = self.realized(parameters, (samples, seed), regime)
        super().__init__(parameters, realized, True, coordinates, seed)
        self.regime = regime
        self._compiled = self.reduction.compiled

    @classmethod
    def realized(cls, parameters: Any, draws: tuple[Any, Any], regime: Regime = PLAIN) -> Realized:
        """Realized model or declared reduction at some parameters, and its closure."""
        return cls.definition.reduction(parameters, *draws, regime)

    @property
    def loop_data(self) -> Any:
        """Programs for compiled loops, or None if the reduced risk has none."""
        return None if self._compiled is None else self._compiled.data

    def gradient(self, state: ArrayLike) -> FloatArray:
        """Gradient per entry, shape (n,): the change in a descent step, divided by -eta."""
        if self.loop_data is None:
            return super().gradient(state)
        return loops.gradient(self.loop_data, self.layout.flatten(state))

    def order_parameters(self, state: ArrayLike, gradient: FloatArray | None = None) -> FloatArray:
        """Order parameters at a state, in the order of `order_names`."""
        if self.loop_data is None:
            return super().order_parameters(state, gradient)
        flat = self.layout.flatten(state)
        slope = self.gradient(flat) if gradient is None else np.asarray(gradient, dtype=float)
        return loops.order_parameters(self.loop_data, flat, slope, len(self.order_names))

    def jacobian(self, state: ArrayLike) -> FloatArray:
        """Jacobian matrix of the gradient, shape (n, n)."""
        if self.loop_data is None:
            return super().jacobian(state)
        return loops.hessian(self.loop_data, self.layout.flatten(state))

    def observables_along(self, states: FloatArray) -> dict[str, FloatArray]:
        """Name -> observable at states of shape (records, n)."""
        if self._compiled is None:
            return super().observables_along(states)
        columns = dict(zip(self._compiled.names, self._compiled.rows(states).T, strict=True))
        columns |= self.entries_along(states, False)
        return {name: np.ascontiguousarray(column) for name, column in columns.items()}

    def advance(
        self, state: FloatArray, updates: Updates, first: int, last: int, buffers: tuple[Any, ...]
    ) -> int:
        """Take steps first, ..., last - 1 in place; see `dynamics.loops.kernels.advance`."""
        if self.loop_data is None:
            return super().advance(state, updates, first, last, buffers)
        return loops.advance(self.loop_data, state, updates, (first, last), True, buffers)

    @property
    def initial_state(self) -> FloatArray:
        """Scalars at step 0; zeros in a linear space."""
        return self.reduction.start.copy()

    def leaving(self, run: Trajectory) -> str:
        """Message on the first record with a gradient outside the closed space, or ""."""
        made = self.realization
        if made.only_sampled:
            return ""
        records = np.unique(np.linspace(0, len(run.time) - 1, LOOKS_ALONG).astype(int))
        states = self.lift(run.states[records])
        departure = made.first_leaving(self.closure, states, self.coordinates == "linear")
        if departure is None:
            return ""
        number, why = departure
        return (
            f"the reduction does not hold to the end: at time {run.time[records[number]]:.4g} {why}"
        )

    def lift(self, states: FloatArray) -> FloatArray:
        """Every trained entry, shape (..., n), of reduced states, shape (..., scalars)."""
        if self.coordinates == "linear":
            return np.asarray(self.embedding.offset + np.asarray(states) @ self.embedding.matrix.T)
        return self.closure.classes.lift(states)


class FullModelProblem(ModelProblem):
    """Base of the problems on every trained entry, comparable with the reduced problem."""

    @classmethod
    def realized(cls, parameters: Any, draws: tuple[Any, Any], regime: Regime = PLAIN) -> Realized:
        """Realized model and its closure; raises InvalidRequest if the law is too long to list."""
        model = cls.definition.model
        check_parameters(parameters, cls.definition.Parameters, model.name)
        declared = cls.definition.declaration
        if declared is not None and not declared.can_be_listed(asdict(parameters)):
            raise InvalidRequest(
                f"the law of {model.name} has more than {MAX_LISTED:,} samples here, and its "
                "declared reduction has no entries: a full problem is impossible at this size"
            )
        return super().realized(parameters, draws, regime)

    def outside(self, vector: FloatArray) -> FloatArray:
        """Part of a vector of every entry, shape (n,), outside the closed space."""
        if self.coordinates == "linear":
            return np.asarray(vector - self.embedding.matrix @ (self.embedding.matrix.T @ vector))
        return self.closure.classes.residual(vector)

    def lift(self, states: FloatArray, scalars: tuple[str, ...]) -> FloatArray:
        """Every trained entry, shape (..., n), from values of named scalars, shape (..., scalars).

        Several scalars of a declared reduction may belong to one class.
        """
        if self.coordinates == "linear":
            return np.asarray(self.embedding.offset + states @ self.embedding.matrix.T)
        classes = self.closure.classes
        if scalars == self.scalars:
            return classes.lift(states)
        entries = self.realization.named_entries()
        values = np.zeros((*states.shape[:-1], classes.count))
        for column, name in enumerate(scalars):
            entry = entries[name]
            if classes.labels[entry] >= 0:
                values[..., classes.labels[entry]] = states[..., column] * classes.signs[entry]
        return classes.lift(values)

    def orbit_values(self, states: FloatArray) -> Mapping[str, FloatArray]:
        """Name of a scalar -> signed entries of the scalar's class, shape (records, entries).

        In a linear space, keys name directions, and values are projections, shape (records, 1).
        """
        classes = self.closure.classes
        if self.coordinates == "linear":
            inside = (states - self.embedding.offset) @ self.embedding.matrix
            return {name: inside[:, [k]] for k, name in enumerate(self.scalars)}
        if len(self.scalars) > MOST_NAMED:
            means, arrays = classes.project(states), self.reduction.arrays_of_scalars()
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
    """Gradient descent on every trained entry, with the exact mean over the law.

    `ReducedPopulation` describes the parameters.
    """

    view = "full population"

    def __init__(
        self,
        parameters: Any,
        coordinates: str = "auto",
        samples: Any = None,
        seed: Any = 0,
        regime: Regime = PLAIN,
    ) -> None:
        realized = self.realized(parameters, (samples, seed), regime)
        super().__init__(parameters, realized, False, coordinates, seed)
        self.regime = regime

    @property
    def initial_state(self) -> FloatArray:
        """Every entry at step 0, shape (n,)."""
        return self.realization.flat_start.copy()


@refusing
@pydantic.dataclasses.dataclass(frozen=True, config=STRICT, kw_only=True)
class DrawnTraining(Training):
    """Options of training for `FullEmpirical` of a model file.

    `start` is ``"declared"`` or one of the ``starts`` of the file. `omega` is the standard
    deviation of the noise on every entry of the start, by default 1e-3 for the declared start and 0
    for another start. `test_samples` is the number of fresh samples; their risk is reported as
    ``test_risk``, their means of ``observe`` with the prefix ``test_``.
    """

    start: str = DECLARED_START
    omega: number(at_least=0.0, optional=True) = None  # type: ignore[valid-type]
    test_samples: whole(1, optional=True, at_most=10**8) = None  # type: ignore[valid-type]


class FullEmpirical(FullModelProblem):
    """Gradient descent on every trained entry, with N draws of the law, from a start with noise.

    `samples` is N; `seed` sets the draws and the noise; `training` has the options of
    `DrawnTraining`. Raises InvalidRequest if the model has no law to sample.
    """

    view = "full empirical"

    def __init__(
        self,
        parameters: Any,
        samples: Any = 1000,
        seed: Any = 0,
        coordinates: str = "auto",
        regime: Regime = PLAIN,
        **training: Any,
    ) -> None:
        model = self.definition.model
        check_parameters(parameters, self.definition.Parameters, model.name)
        if model.loss is None or (model.law is None and not model.can_be_drawn):
            raise InvalidRequest(
                f"{model.name} has a risk in closed form and no law to sample; "
                "give it a law and a loss, or a sample and a loss, for --full empirical"
            )
        self.samples = integer("samples", samples, at_least=1, at_most=10**8)
        seed = integer("seed", seed, at_least=0, at_most=2**63 - 1)
        self.training = how = DrawnTraining(**training)
        known_word("start", how.start, (DECLARED_START, *model.starts))
        made, closure = self.realized(parameters, (self.samples, seed), regime)
        if closure.scalars == 0:
            # Noise on the start may move entries whose gradient vanishes at the declared start.
            closure = made.open_closure

        def drawn(count: int, seed: Any, held_out: Law | None = None) -> Data:
            law = made.law
            if law is None or not made.only_sampled or seed != made.seed:
                with refusals():
                    law = model.draw_samples(made.constants, count, seed, law)
            return how.data(law, made.data.fixed, made.reals, held_out)

        data = drawn(self.samples, seed, made.held_out)
        fresh = how.test_samples
        self._fresh = None if fresh is None else drawn(fresh, [seed, FRESH])
        dealt = how.minibatches(seed, self.samples)
        super().__init__(parameters, (made, closure), False, coordinates, 0, data, dealt)
        self.regime = regime
        self._start, omega = self._drawn_start(np.random.default_rng([seed, START]))
        stated = how.changed | {"omega": omega}
        self.settings = {**self.settings, "samples": self.samples, "seed": seed, **stated}

    def _drawn_start(self, generator: np.random.Generator) -> tuple[FloatArray, float]:
        """Start with noise, shape (n,), and the standard deviation of the noise."""
        how, start = self.training, self.realization.flat_start
        declared = how.start == DECLARED_START
        if not declared:
            model, constants = self.definition.model, self.realization.constants
            with refusals():
                arrays = model.random_start(how.start, generator, constants)
            start = self.layout.flatten(tuple(arrays.values()))
        omega = float((OMEGA if declared else 0.0) if how.omega is None else how.omega)
        return start + omega * generator.standard_normal(start.size), omega

    @property
    def initial_state(self) -> FloatArray:
        """Start with noise, shape (n,)."""
        return self._start.copy()

    def moving(self, start: FloatArray) -> NDArray[np.bool_]:
        """Mask that is True everywhere, since no proof says that an entry never moves."""
        return np.ones(self.layout.size, dtype=bool)

    def observables_along(self, states: FloatArray) -> dict[str, FloatArray]:
        """Name -> observable at states, shape (records, n), on training and on fresh samples."""
        columns = super().observables_along(states)
        if self._fresh is None:
            return columns
        found = self.observed(states, payload=(self._fresh, self.payload[1]))
        averaged = self.realization.program.observed_names[1]
        fresh = {"risk": found["risk"]} | {name: found["observables"][name] for name in averaged}
        return columns | {f"test_{name}": np.asarray(each) for name, each in fresh.items()}
