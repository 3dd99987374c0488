"""One instance of training: the start, the training vectors, the test vectors of a seed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from dynamics.problem import FloatArray
from dynamics.systems.shallow_vit import start as starts
from dynamics.systems.shallow_vit.empirical import sampling
from dynamics.systems.shallow_vit.empirical.sampling import IntArray
from dynamics.systems.shallow_vit.full.projection import Reader
from dynamics.systems.shallow_vit.parameters import Parameters
from dynamics.systems.shallow_vit.reduced import expectation as taken
from dynamics.systems.shallow_vit.reduced.expectation import Vectors
from dynamics.training import minibatches
from dynamics.validation import integer, refuse

TEST_SAMPLES = 1000
"""Samples of a test set that is drawn; that of ``data="fixed"`` is the law."""
SYMMETRIC = "symmetric"
"""A start that the symmetries of the law leave as it is."""


class Instance:
    """What a seed draws for a noise-free problem; see `population.ReducedPopulation`.

    Raises
    ------
    InvalidRequest
        In one line, for an option that cannot be.
    """

    def __init__(
        self,
        parameters: Parameters,
        expectation: str = "auto",
        samples: int | None = None,
        seed: int | Generator = 0,
        start: int | str | None = None,
        batch: int | None = None,
    ) -> None:
        name = taken.chosen(expectation, samples)
        self.parameters = parameters
        symmetric = start == SYMMETRIC
        if isinstance(start, str) and not symmetric:
            refuse("start", start, "is unknown", "a whole number, or 'symmetric'", SYMMETRIC)
        self._streams = sampling.streams(seed, None if isinstance(start, str) else start)
        self.start = start_of(parameters, self._streams.start, symmetric)
        self.vectors: Vectors = taken.vectors(parameters, samples, self._streams)
        self.batch = None if batch is None else integer("batch", batch, at_least=1, at_most=10**8)
        if self.batch is not None and samples is None:
            refuse(
                "batch", batch, "is of samples, and none are drawn", "left out, or with samples", 1
            )
        drawn = {"samples": samples, "start": start, "batch": self.batch}
        self.settings: Mapping[str, Any] = {
            "expectation": name,
            "seed": seed if isinstance(seed, int) else "generator",
            **{key: value for key, value in drawn.items() if value is not None},
        }
        self._order_seed = int(self._streams.order.integers(2**62))

    @cached_property
    def reader(self) -> Reader:
        """What is read off a state."""
        found = self.vectors
        return Reader(self.parameters, self.start, found.counts, found.labels, found.weights)

    @cached_property
    def test(self) -> Vectors:
        """Fresh samples, equal ones together; of ``data="fixed"`` the law."""
        fixed = self.parameters.data == "fixed"
        streams = self._streams._replace(
            training=self._streams.test, tokens=self._streams.test_tokens
        )
        return taken.vectors(self.parameters, None if fixed else TEST_SAMPLES, streams)

    @property
    def fingerprint(self) -> str:
        """Of all numbers that were drawn."""
        found, start = self.vectors, self.start
        places = () if found.places is None else (found.places,)
        weights = (start.a, start.W_O, start.W_V, start.W_K, start.W_Q)
        dealt = () if self.batch is None else (found.member, np.array([self._order_seed]))
        drawn = (found.counts, found.labels, found.weights, *weights, *places, *dealt)
        return minibatches.fingerprint(drawn)

    def members(self, first: int, last: int) -> list[IntArray]:
        """Samples of the batch of every step first, ..., last - 1; no lists without mini-batches.

        Every epoch deals the samples out anew; see `batches.dealt`.
        """
        if self.batch is None:
            return []
        samples = self.vectors.member.size
        return minibatches.reshuffled_batches(self._order_seed, samples, self.batch, first, last)

    def taken(self, step: int | None) -> tuple[IntArray, FloatArray]:
        """Vectors of the batch of a step, and their shares; of all samples where it is None."""
        dealt = [] if step is None else self.members(step, step + 1)
        bounds, index, share = self.vectors.batches(dealt)
        place = slice(*bounds[-1])
        return index[place], share[place]

    def tested(self, reached: FloatArray) -> dict[str, float]:
        """Test loss (hinge, over the margin) and test error, from y F of every test vector."""
        margin, weights = self.parameters.margin, self.test.weights
        with np.errstate(invalid="ignore", over="ignore"):
            loss = float(weights @ np.maximum(margin - reached, 0.0)) / margin
        # What is not a number, of a run that diverged, is an error as well.
        return {"test_loss": loss, "test_error": float(weights @ ~(reached > 0.0))}


def start_of(parameters: Parameters, generator: Generator, symmetric: bool) -> starts.Start:
    """A random start, or a symmetric one."""
    return (starts.symmetric if symmetric else starts.drawn)(parameters, generator)
