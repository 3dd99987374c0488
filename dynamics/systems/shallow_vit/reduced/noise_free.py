"""What both problems on tokens without noise share: start, samples, batches, what is read off.

How a gradient is made is not among it: that of `population.ReducedPopulation` is taken on patterns,
that of `brute.FullPopulation`, its oracle, on tokens.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from dynamics.problem import CompiledProblem, FloatArray, Layout
from dynamics.systems.shallow_vit.empirical.sampling import IntArray
from dynamics.systems.shallow_vit.parameters import Parameters
from dynamics.systems.shallow_vit.presentation import PRESENTATION
from dynamics.systems.shallow_vit.realization import Instance
from theory.systems.shallow_vit.notation import EVENTS, ORDER_PARAMETERS, RATES


class NoiseFreeProblem(CompiledProblem, ABC):
    """Training on an `Instance`; its kernels have the batches as second part of their data.

    Parameters
    ----------
    parameters : Parameters
    expectation, samples, seed, start, batch
        See `population.ReducedPopulation`.

    Raises
    ------
    InvalidRequest
        In one line, for an option that cannot be.
    """

    system = "shallow_vit"
    presentation = PRESENTATION
    events = EVENTS
    order_names = ORDER_PARAMETERS
    rates = RATES
    flows = False

    def __init__(
        self,
        parameters: Parameters,
        expectation: str = "auto",
        samples: int | None = None,
        seed: int | Generator = 0,
        start: int | str | None = None,
        batch: int | None = None,
    ) -> None:
        self.parameters = parameters
        self.instance = Instance(parameters, expectation, samples, seed, start, batch)
        said = {"tokens": "without noise"} if parameters.noise > 0 else {}
        self.settings = {**self.instance.settings, **said}
        self.autonomous = self.instance.batch is None
        super().__init__(*self._compiled())

    @abstractmethod
    def _compiled(self) -> tuple[Any, tuple[Any, ...], Layout]:
        """Module, data and layout of `CompiledProblem`."""

    @abstractmethod
    def parts(self, state: FloatArray) -> tuple[FloatArray, ...]:
        """W_O, V, K, Q of a flat state."""

    @abstractmethod
    def attended(self, state: FloatArray) -> tuple[FloatArray, IntArray, FloatArray]:
        """Attention to relevant and confusion keys as training has it; see `Reader.odds`."""

    @abstractmethod
    def reached(self, state: ArrayLike) -> FloatArray:
        """Of every vector of the test set y F, shape (S,)."""

    @property
    def _whole(self) -> tuple[Any, ...]:
        """Every step on all samples."""
        return (*self.instance.vectors.batches(), np.zeros(1, np.int64), np.zeros(1, np.int64))

    def _stepped(self, first: int, last: int) -> tuple[Any, ...]:
        self._forget()
        found = self.instance.vectors.batches(self.instance.members(first, last))
        each = (*found, np.arange(1, last - first + 1), np.zeros(1, np.int64))
        return (self._data[0], each, *self._data[2:])

    @abstractmethod
    def _forget(self) -> None:
        """Drop the mark of the last pass: numbers of batches are those of one call of advance."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """What a resumed run must find again: beside the settings, the numbers drawn."""
        return dict(super().identity) | {"drawn": self.instance.fingerprint}

    def observables(self, state: ArrayLike) -> dict[str, float]:
        """Order parameters, errors on fresh samples, attention, scores, neurons at a state."""
        flat = self.layout.flatten(state)
        order = dict(zip(self.order_names, self.order_parameters(flat), strict=True))
        return (
            self.instance.reader.read(self.parts(flat))
            | {"odds": self.instance.reader.odds(*self.attended(flat))}
            | {name: float(value) for name, value in order.items()}
            | self.instance.tested(self.reached(flat))
        )
