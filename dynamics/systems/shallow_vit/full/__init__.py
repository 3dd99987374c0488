r"""Training of every weight on samples of tokens, and the population problem: tokens without noise.

.. math:: \hat R = \sum_n p_n \max(\gamma - y^n F(X^n), 0), \quad
   F(X) = \frac1L \sum_l a_{(l)}^\top \mathrm{relu}\big(W_O W_V X\,
   \mathrm{softmax}(X^\top W_K^\top W_Q x_l)\big)

The gradient is that of :math:`\hat R`; what is reported as the risk is :math:`\hat R / \gamma`.
Nothing here knows that noise-free training closes on patterns: with `ReducedPopulation` the problem
shares the start, the samples and what is read off a state, so their agreement is evidence for the
reduction. A state is read by its projection, W_O and what W_V, W_K, W_Q do to the patterns;
attention is that of the tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from dynamics import codegen
from dynamics.codegen import AddressedModel, loops
from dynamics.problem import FloatArray
from dynamics.systems.empirical_problem import ALL_SAMPLES, Batch
from dynamics.systems.shallow_vit import kernels as unrolled
from dynamics.systems.shallow_vit import projection, sampling
from dynamics.systems.shallow_vit.kernels import data as records
from dynamics.systems.shallow_vit.kernels import full as kernels
from dynamics.systems.shallow_vit.parameters import Parameters
from dynamics.systems.shallow_vit.presentation import VitProblem
from dynamics.systems.shallow_vit.realization import Instance, NoiseFree, Start, choice_of
from dynamics.systems.shallow_vit.sampling import IntArray
from dynamics.training.minibatches import MiniBatches

SHARED_FROM = 200_000
"""Neurons times tokens of a batch from which a step is worth sharing among threads."""
CHUNK = 3200
"""Weights of a chunk of neurons: with a few rows beside them they fit into the first cache."""
WIDE = 320
"""Neurons of a chunk at most."""
TEST_SAMPLES = ALL_SAMPLES - 1
"""Number of the batch that holds the test samples."""


@dataclass(frozen=True)
class Tokens:
    """Samples as the network sees them.

    Attributes
    ----------
    values : float array, shape (N, L, d)
        Tokens.
    patterns : int array, shape (N, L)
        Their patterns, from 0.
    labels, weights : float arrays, shape (N,)
        Weights are relative.
    """

    values: FloatArray
    patterns: IntArray
    labels: FloatArray
    weights: FloatArray

    @cached_property
    def kinds(self) -> IntArray:
        """Of every token 0 relevant, 1 confusion, 2 another, shape (N, L)."""
        return sampling.kinds(self.patterns, self.labels)

    def compiled(self) -> records.Samples:
        """What the kernels read."""
        many, length, depth = self.values.shape
        rows = unrolled.aligned(many, depth, unrolled.padded(length))
        rows[:, :, :length] = self.values.transpose(0, 2, 1)
        return records.Samples(np.ascontiguousarray(self.values), rows, self.labels, self.kinds)

    def batch(self, number: int) -> Batch:
        """All of them."""
        return Batch(number, np.arange(self.labels.size), self.weights)


class TokenProblem(VitProblem):
    """W_O, W_V, W_K and W_Q trained, every entry, on weighted samples of tokens.

    Parameters
    ----------
    parameters : Parameters
    start : Start
    tokens, test : Tokens
        Training and test samples.
    minibatches : MiniBatches
        Which samples every step is on.
    """

    def __init__(
        self,
        parameters: Parameters,
        start: Start,
        tokens: Tokens,
        test: Tokens,
        minibatches: MiniBatches,
    ) -> None:
        self.parameters, self.start, self.tokens, self.test = parameters, start, tokens, test
        many, length = tokens.patterns.shape
        threaded = min(minibatches.size or many, many) * length * parameters.m >= SHARED_FROM
        choice = choice_of(parameters, length)
        whole = tokens.batch(ALL_SAMPLES)
        model, room = self._room(codegen.LANES if threaded else 1, length)
        data = records.TokenData(choice, tokens.compiled(), whole, whole, model, room)
        layout = projection.full_layout(parameters)
        super().__init__(_module(parameters.d, threaded), data, layout, minibatches)

    @cached_property
    def _test(self) -> AddressedModel:
        """The compiled functions on the fresh samples."""
        data = self._data._replace(
            choice=self._data.choice._replace(hinge=True),
            samples=self.test.compiled(),
            whole=self.test.batch(TEST_SAMPLES),
        )
        return self.addressed.with_data(data)

    def _room(self, lanes: int, length: int) -> tuple[records.Model, records.Room]:
        """What kernels work in, neurons in chunks, every row on a cache line of its own."""
        depth, neurons = self.parameters.d, self.parameters.m
        width = chunk_width(neurons, depth)
        chunks = -(-neurons // width)
        output = np.atleast_2d(self.start.a.T)[:length]
        signs = unrolled.aligned(chunks, len(output), width)
        for chunk in range(chunks):
            part = output[:, chunk * width : (chunk + 1) * width]
            signs[chunk, :, : part.shape[1]] = part
        wide = unrolled.padded(length)
        aligned = unrolled.aligned
        model = records.Model(
            scores=np.empty((depth, depth)),
            inner=aligned(chunks, depth, width),
            outer=aligned(chunks, depth, width),
            values=np.empty((depth, depth)),
            turned=np.empty((depth, depth)),
            signs=signs,
        )
        room = records.Room(
            by_neuron=aligned(lanes, chunks, depth, width),
            by_score=np.empty((lanes, depth, depth)),
            numbers=np.empty((lanes, 6)),
            gates=aligned(lanes, chunks, length, width),
            squares=aligned(lanes, 2, length, wide),
            strips=aligned(lanes, 4, depth, wide),
            entering=np.empty((lanes, length, depth)),
            totals=np.zeros(6),
            state=np.full(projection.full_layout(self.parameters).size, np.nan),
            number=np.full(1, ALL_SAMPLES),
        )
        return model, room

    @property
    def initial_state(self) -> FloatArray:
        """Weights of the start."""
        return self.layout.flatten((self.start.W_O, self.start.W_V, self.start.W_K, self.start.W_Q))

    def orbit_values(self, states: FloatArray) -> Mapping[str, FloatArray]:
        """Reduced state -> the entries beside it, shape (records, ...)."""
        return projection.orbit_values(self.parameters, states)

    def parts(self, states: FloatArray) -> tuple[FloatArray, ...]:
        """W_O, V, K, Q of flat states: what the weights do to the patterns."""
        return tuple(self.orbit_values(states).values())

    def attended(self, state: FloatArray) -> tuple[FloatArray, IntArray, FloatArray]:
        """Attention to relevant and confusion keys, of every token; see `Reader.odds`."""
        patterns = self.tokens.patterns
        masses = np.empty((len(patterns), 2, patterns.shape[1]))
        self.module.attended(state, self._data, masses)
        return masses, patterns, np.broadcast_to(self.tokens.weights[:, None], patterns.shape)

    def tested(self, state: FloatArray) -> dict[str, float]:
        """``test_loss`` (the hinge, over the margin) and ``test_error`` on fresh samples."""
        count = len(self.order_names)
        out = loops.order_parameters(self._test, state, state, count)
        return {"test_loss": float(out[0]), "test_error": float(out[2])}

    def observables(self, state: ArrayLike) -> dict[str, float]:
        """Order parameters, errors on fresh samples, attention, scores, neurons at a state.

        Attention is that of the training tokens, gates and scores are those of the patterns. With
        noise ``odds`` is how far it is from what is exact without.
        """
        return super().observables(state)

    def _observed(self, states: FloatArray) -> dict[str, FloatArray]:
        result, sums, kinds = super()._observed(states), [], self.tokens.kinds
        for state in states:
            self.order_parameters(state)
            sums.append(self._data.room.totals[3:].copy())
        for kind, (name, each) in enumerate(zip(projection.QUERIES, np.array(sums).T, strict=True)):
            queries = float(self.tokens.weights @ (kinds == kind).sum(axis=1)) or float("nan")
            result[f"relevant_by_{name}"] = each / queries
        return result


class FullPopulation(NoiseFree, TokenProblem):
    """Every weight trained, on tokens without noise, one sample for each distinct vector.

    Parameters
    ----------
    parameters : Parameters
    expectation, samples, seed, start, batch
        As for `ReducedPopulation`, which then has the same start and the same samples.

    Raises
    ------
    InvalidRequest
        In one line, for an option that cannot be.
    """

    view = "full population"

    def __init__(
        self,
        parameters: Parameters,
        expectation: str = "auto",
        samples: int | None = None,
        seed: int | Generator = 0,
        start: int | str | None = None,
        batch: int | None = None,
    ) -> None:
        instance = Instance(parameters, expectation, samples, seed, start, batch)
        self.instance, self.settings = instance, instance.settings
        tokens, test = (
            _noise_free(parameters, vectors) for vectors in (instance.vectors, instance.test)
        )
        super().__init__(parameters, instance.start, tokens, test, instance.minibatches)


def _noise_free(parameters: Parameters, vectors: sampling.Vectors) -> Tokens:
    """Tokens of count vectors."""
    patterns = sampling.token_patterns(vectors)
    values = np.eye(parameters.d)[patterns]
    return Tokens(values, patterns, vectors.labels, vectors.weights)


def chunk_width(neurons: int, depth: int) -> int:
    """Neurons of a chunk: whole cache lines, few positions left empty, and few chunks.

    Parameters
    ----------
    neurons, depth : int
        m and d.
    """
    line = unrolled.LINE
    widest = max(line, min(WIDE, CHUNK // depth) // line * line)
    if neurons <= widest:
        return unrolled.padded(neurons)
    widths = range(widest, widest // 2, -line)
    return min(widths, key=lambda width: -(-neurons // width) * (width + line))


@cache
def _module(depth: int, threaded: bool) -> codegen.CompiledModule:
    names = (kernels.gradient_or_order_parameters, kernels.attended)
    parallel = (kernels.sum_batch,) if threaded else ()
    parts = [
        *unrolled.sources(depth),
        codegen.kernel_source(*names, parallel=parallel, data=(records.TokenData, Batch)),
    ]
    return codegen.build("Shallow ViT, every weight.", projection.GROUPS, parts)
