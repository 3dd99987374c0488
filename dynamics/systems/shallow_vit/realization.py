r"""What a seed makes of a law: the start, and the vectors of a noise-free problem.

Initial weights are those of Assumption 1, with patterns :math:`\mu_j = e_j`.

.. math:: W_V = O_V + E_V \mu^\top, \quad W_K = O_K + E_K \mu^\top, \quad
   W_Q = O_K + E_Q \mu^\top, \quad W_O \sim N(0, \xi^2)

O_V and O_K are Haar-orthogonal: :math:`p_j = O_V \mu_j`, and :math:`q_j = r_j = O_K \mu_j`. The
columns of the E are random directions of length sigma (E_V) or delta (E_K, E_Q). The output weights
a are :math:`\pm 1/\sqrt m`, never trained.

Every part comes from a stream of its own, so no parameter changes what another part draws, and more
neurons begin with the fewer ones (up to the size of a).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import factorial, sqrt
from typing import Any

import numpy as np
from numpy.random import Generator

from dynamics.problem import FloatArray
from dynamics.systems.empirical_problem import ALL_SAMPLES, Batch, sampling_settings
from dynamics.systems.shallow_vit import sampling
from dynamics.systems.shallow_vit.kernels.data import Choice
from dynamics.systems.shallow_vit.parameters import Parameters
from dynamics.systems.shallow_vit.projection import Reader
from dynamics.systems.shallow_vit.sampling import IntArray, Vectors
from dynamics.training.minibatches import MiniBatches
from dynamics.validation import check_cost, check_parameters, integer, refuse

MOST_IN_MATRIX, MOST_NUMBERS = 2**24, 2**29
"""Numbers in a matrix of a start, of which an orthogonal one takes some seconds; in all weights."""
TEST_SAMPLES = 1000
"""Samples of a test set that is drawn; that of ``data="fixed"`` is the law."""
SYMMETRIC = "symmetric"
"""A start that the symmetries of the law leave as it is."""


@dataclass(frozen=True)
class Start:
    """Weights before training.

    Attributes
    ----------
    a : float array, shape (m,), or (m, L) where the output weights are per position
    W_O : float array, shape (m, d)
    W_V, W_K, W_Q : float arrays, shape (d, d)
    p : float array, shape (d, M)
        The orthonormal p_j that V is near to.
    """

    a: FloatArray
    W_O: FloatArray
    W_V: FloatArray
    W_K: FloatArray
    W_Q: FloatArray
    p: FloatArray

    def on_patterns(self, patterns: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """W_O, V, K, Q: the last three (d, M), what W_V, W_K, W_Q do to the M patterns."""
        first = [np.ascontiguousarray(w[:, :patterns]) for w in (self.W_V, self.W_K, self.W_Q)]
        return self.W_O, first[0], first[1], first[2]


def orthogonal(depth: int, generator: Generator) -> FloatArray:
    """A Haar-orthogonal matrix, shape (d, d).

    Parameters
    ----------
    depth : int
        d.
    generator : numpy Generator
    """
    q, upper = np.linalg.qr(generator.standard_normal((depth, depth)))
    return np.asarray(q * np.sign(np.diag(upper)))


def directions(depth: int, many: int, generator: Generator) -> FloatArray:
    """Columns of length 1, each in a random direction, shape (d, many).

    Parameters
    ----------
    depth, many : int
    generator : numpy Generator
    """
    columns = generator.standard_normal((many, depth)).T
    return np.asarray(columns / np.linalg.norm(columns, axis=0))


def random_start(parameters: Parameters, generator: Generator) -> Start:
    """A random start.

    Parameters
    ----------
    parameters : Parameters
    generator : numpy Generator
    """
    many, depth, patterns = parameters.m, parameters.d, parameters.M
    for_a, for_v, for_k, for_errors, for_o = generator.spawn(5)
    shared = parameters.output_weights == "shared"
    signs = for_a.integers(2, size=many if shared else (many, parameters.L))
    values, keys = orthogonal(depth, for_v), orthogonal(depth, for_k)
    queries, frame = keys.copy(), values[:, :patterns].copy()
    lengths = (parameters.sigma, parameters.delta, parameters.delta)
    streams = for_errors.spawn(3)
    for matrix, length, stream in zip((values, keys, queries), lengths, streams, strict=True):
        matrix[:, :patterns] += length * directions(depth, patterns, stream)
    return Start(
        a=np.asarray((2.0 * signs - 1.0) / sqrt(many), dtype=np.float64),
        W_O=parameters.xi * for_o.standard_normal((many, depth)),
        W_V=values,
        W_K=keys,
        W_Q=queries,
        p=frame,
    )


def symmetric_start(parameters: Parameters, generator: Generator) -> Start:
    """A start that permutations of the non-discriminative patterns leave as it is.

    And the exchange of patterns 1 and 2 with that of the signs a. Neurons of a random start are
    completed to whole orbits; an element of the group turns a row of W_O as it permutes the p_j.

    Parameters
    ----------
    parameters : Parameters
        With sigma = delta = 0, shared output weights, and neurons in whole orbits.
    generator : numpy Generator

    Raises
    ------
    InvalidRequest
        If the start cannot be symmetric.
    """
    for name in ("sigma", "delta"):
        if getattr(parameters, name) > 0:
            refuse(name, getattr(parameters, name), "breaks a symmetric start", "0 there", 0)
    if parameters.output_weights != "shared":
        weights = parameters.output_weights
        refuse("output_weights", weights, "breaks a symmetric start", "shared there", "shared")
    order = 2 * factorial(parameters.M - 2)
    if parameters.m % order:
        near = order * max(1, round(parameters.m / order))
        problem = f"is no whole number of orbits of {order} neurons, as a symmetric start needs"
        refuse("m", parameters.m, problem, f"a multiple of {order}", near)
    start, base, size = random_start(parameters, generator), parameters.m // order, parameters.M
    inside = start.W_O[:base] @ start.p
    outside = start.W_O[:base] - inside @ start.p.T
    rows, signs = [], []
    for others in itertools.permutations(range(2, size)):
        for first, sign in (((0, 1), 1.0), ((1, 0), -1.0)):
            rows.append(inside[:, [*first, *others]] @ start.p.T + outside)
            signs.append(sign * start.a[:base])
    return replace(start, a=np.concatenate(signs), W_O=np.concatenate(rows))


def choice_of(parameters: Parameters, length: int) -> Choice:
    """What is trained on, as the kernels read it.

    Parameters
    ----------
    parameters : Parameters
    length : int
        Tokens of a sample.
    """
    return Choice(
        parameters.margin,
        float(length),
        parameters.loss == "hinge",
        parameters.frozen != "attention",
        parameters.frozen != "values",
    )


class Instance:
    """What a seed draws for a noise-free problem; see `reduced.ReducedPopulation`.

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
        check_parameters(parameters, Parameters)
        name = sampling.expectation_of(expectation, samples)
        self.parameters = parameters
        symmetric = start == SYMMETRIC
        if isinstance(start, str) and not symmetric:
            refuse("start", start, "is unknown", "a whole number, or 'symmetric'", SYMMETRIC)
        self._streams = sampling.streams(seed, None if isinstance(start, str) else start)
        self.start = start_of(parameters, self._streams.start, symmetric)
        self.vectors: Vectors = sampling.vectors(parameters, samples, self._streams)
        size = None if batch is None else integer("batch", batch, at_least=1, at_most=10**8)
        if size is not None and samples is None:
            refuse(
                "batch", batch, "is of samples, and none are drawn", "left out, or with samples", 1
            )
        self.minibatches = MiniBatches(
            int(self._streams.order.integers(2**62)), self.vectors.member.size, size
        )
        options = {"expectation": name, "start": start, "batch": size}
        self.settings: Mapping[str, Any] = sampling_settings(samples, seed, options) | (
            {"tokens": "without noise"} if parameters.noise > 0 else {}
        )

    @cached_property
    def reader(self) -> Reader:
        """What is read off a state."""
        vectors = self.vectors
        return Reader(
            self.parameters, self.start.a, self.start.p, vectors.counts, vectors.labels,
            vectors.weights,
        )  # fmt: skip

    @cached_property
    def test(self) -> Vectors:
        """Fresh samples, equal ones together; of ``data="fixed"`` the law."""
        fixed = self.parameters.data == "fixed"
        streams = self._streams._replace(
            training=self._streams.test, tokens=self._streams.test_tokens
        )
        return sampling.vectors(self.parameters, None if fixed else TEST_SAMPLES, streams)

    def random_numbers(self) -> Iterator[np.ndarray]:
        """All vectors, the start, and which vector every sample is."""
        vectors, start = self.vectors, self.start
        yield from (vectors.counts, vectors.labels, vectors.weights, vectors.member)
        yield from (start.a, start.W_O, start.W_V, start.W_K, start.W_Q)
        if vectors.sequences is not None:
            yield vectors.sequences

    @property
    def whole(self) -> Batch:
        """All vectors."""
        weights = self.vectors.weights
        return Batch(ALL_SAMPLES, np.arange(weights.size), weights)

    def batch(self, members: IntArray, number: int) -> Batch:
        """The vectors of samples; see `SampledProblem.batch`."""
        vectors, counts = np.unique(self.vectors.member[members], return_counts=True)
        return Batch(number, vectors, counts / members.size)

    def batch_of(self, step: int | None) -> Batch:
        """The vectors of a step; all of them where it is None."""
        if step is None or self.minibatches.size is None:
            return self.whole
        return self.batch(self.minibatches.members(step, step + 1)[0], step)


class NoiseFree:
    """What both problems on tokens without noise have of their `Instance`."""

    instance: Instance

    @property
    def reader(self) -> Reader:
        """What is read off a state."""
        return self.instance.reader

    def random_numbers(self) -> Iterator[np.ndarray]:
        """See `Instance.random_numbers`."""
        return self.instance.random_numbers()

    def batch(self, members: IntArray, number: int) -> Batch:
        """See `Instance.batch`."""
        return self.instance.batch(members, number)


def start_of(parameters: Parameters, generator: Generator, symmetric: bool) -> Start:
    """A random start, or a symmetric one.

    Parameters
    ----------
    parameters : Parameters
    generator : numpy Generator
    symmetric : bool

    Raises
    ------
    InvalidRequest
        If weights of these sizes do not fit.
    """
    wide = 8 * (parameters.d + parameters.M)
    wide += parameters.L if parameters.output_weights == "per_position" else 0
    for name in ("M", "d"):
        square = "numbers in a matrix"
        check_cost(name, getattr(parameters, name), lambda side: side**2, MOST_IN_MATRIX, square)
    check_cost("m", parameters.m, lambda m: m * wide, MOST_NUMBERS, "numbers")
    return (symmetric_start if symmetric else random_start)(parameters, generator)
