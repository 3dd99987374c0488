"""Gradient descent on every trained entry: on the whole law, or on draws of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.models.engine.problem import MOST_NAMED, ModelProblem, drawn_settings
from dynamics.models.engine.program import device_data
from dynamics.models.engine.tracing import refusals
from dynamics.problem import FloatArray
from dynamics.training.minibatches import dealt
from dynamics.validation import InvalidRequest, integer, real


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
        self._refuse_representatives()
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
        self._refuse_representatives()
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
