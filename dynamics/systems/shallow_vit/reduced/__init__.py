r"""The reduced population problem: training on patterns, exact where tokens have no noise.

The state is W_O (m, d) and what the other weights do to the patterns, V = W_V mu, K = W_K mu and
Q = W_Q mu, each (d, M). The gradient by them is that by the weights, and what weights do across the
patterns never moves. The mean over samples is a sum over weighted count vectors
(`dynamics.systems.shallow_vit.sampling.Vectors`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property

import numpy as np
from numpy.random import Generator

from dynamics import codegen
from dynamics.problem import FloatArray
from dynamics.systems.empirical_problem import ALL_SAMPLES, Batch
from dynamics.systems.shallow_vit.kernels import data as records
from dynamics.systems.shallow_vit.kernels import reduced as kernels
from dynamics.systems.shallow_vit.parameters import Parameters
from dynamics.systems.shallow_vit.presentation import VitProblem
from dynamics.systems.shallow_vit.projection import PARTS, layout
from dynamics.systems.shallow_vit.realization import Instance, NoiseFree, choice_of
from dynamics.systems.shallow_vit.sampling import IntArray, Vectors, weight_table
from theory.page import Page
from theory.papers.shallow_vit import recursion
from theory.reduction import ReducedSystem


def derivation(parameters: Parameters | None = None) -> Page:
    """The page of the derivation; with parameters, for their law, loss and frozen weights."""
    from theory.papers.shallow_vit.derivation import page

    if parameters is None:
        return page()
    return page(parameters.data, parameters.loss, parameters.frozen)


def derivations(parameters: Parameters | None = None) -> Mapping[str, ReducedSystem]:
    """The steps on patterns, their Gram form, and the collapse to 16 attention scalars."""
    return recursion.derivations(parameters)


class ReducedPopulation(NoiseFree, VitProblem):
    """Gradient descent on patterns.

    Parameters
    ----------
    parameters : Parameters
    expectation : str
        ``"exact"``: the law itself; ``"sampled"``: N samples; ``"auto"``: sampled where
        ``samples`` is not None, else exact.
    samples : int or None
        N.
    seed : int or numpy Generator
        Of every random number.
    start : int, "symmetric" or None
        Another seed for the weights alone; or the start of the seed, completed to a set of neurons
        that the symmetries of the law map onto itself (`realization.symmetric_start`).
    batch : int or None
        Samples of a mini-batch. Every epoch takes each sample once, in new batches; a size of N or
        more is full batch.

    Raises
    ------
    InvalidRequest
        In one line, for an option that cannot be.
    """

    view = "reduced population"

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
        self.parameters, self.instance, self.settings = parameters, instance, instance.settings
        choice = choice_of(parameters, parameters.L)
        whole = instance.whole
        data = records.PatternData(
            self._vectors(instance.vectors), whole, whole, choice, *self._room()
        )
        super().__init__(_module(), data, layout(parameters), instance.minibatches)

    def _room(self) -> tuple[records.Layer, records.Column, records.Sums, records.Memory]:
        neurons, depth, patterns = self.parameters.m, self.parameters.d, self.parameters.M
        five = kernels.FIVE
        tall, wide = five * -(-depth // five), five * -(-patterns // five)
        square = (patterns, patterns)
        return (
            records.Layer(
                tall=np.zeros((tall, neurons)),
                steep=np.empty((depth, neurons)),
                responses=np.zeros((wide, neurons)),
                scores=np.empty(square),
                powers=np.empty(square),
                padded=np.empty(tall),
                few=np.empty(wide),
            ),
            records.Column(
                attention=np.zeros(square),
                columns=np.zeros((patterns, wide)),
                gates=np.zeros((wide, neurons)),
                sums=np.empty(neurons),
                slopes=np.empty(patterns),
            ),
            records.Sums(
                by_response=np.zeros((wide, neurons)),
                by_score=np.empty(square),
                weights=np.zeros((patterns, wide)),
                products=np.empty(wide),
            ),
            records.Memory(
                numbers=np.empty(len(self.order_names)),
                state=np.full(layout(self.parameters).size, np.nan),
                number=np.full(1, ALL_SAMPLES),
            ),
        )

    @property
    def initial_state(self) -> FloatArray:
        """Weights of the start, on the patterns."""
        return self.layout.flatten(self.instance.start.on_patterns(self.parameters.M))

    def parts(self, states: FloatArray) -> tuple[FloatArray, ...]:
        """W_O, V, K, Q of flat states, shape (records, ...) each."""
        return tuple(self.layout.part(states, name) for name in PARTS)

    def attended(self, state: FloatArray) -> tuple[FloatArray, IntArray, FloatArray]:
        """Attention to relevant and confusion keys, of every pattern that a vector has."""
        vectors, patterns = self.instance.vectors, np.arange(self.parameters.M)
        masses = np.empty((vectors.labels.size, 2, patterns.size))
        self.module.attended(state, self._data, masses)
        queries = np.broadcast_to(patterns, vectors.counts.shape)
        return masses, queries, vectors.weights[:, None] * vectors.counts

    def reached(self, state: FloatArray) -> FloatArray:
        """Of every vector of the test set y F, shape (S,)."""
        out = np.empty(self._test.labels.size)
        self.module.outputs(state, self._test, self._data, out)
        return out

    def tested(self, state: FloatArray) -> dict[str, float]:
        """``test_loss`` (the hinge, over the margin) and ``test_error`` on fresh samples."""
        reached, margin = self.reached(state), self.parameters.margin
        weights = self.instance.test.weights
        loss = float(weights @ np.maximum(margin - reached, 0.0)) / margin
        # What is not a number, of a run that diverged, is an error as well.
        return {"test_loss": loss, "test_error": float(weights @ ~(reached > 0.0))}

    @cached_property
    def _test(self) -> records.Vectors:
        return self._vectors(self.instance.test)

    def _vectors(self, vectors: Vectors) -> records.Vectors:
        """Vectors as the kernels read them."""
        table, rows, scale = weight_table(self.instance.start.a, vectors, self.parameters.L)
        counts = vectors.counts.astype(np.float64)
        return records.Vectors(counts, vectors.labels, rows, scale, table)


@cache
def _module() -> codegen.CompiledModule:
    names = (kernels.gradient_or_order_parameters, kernels.outputs, kernels.attended)
    parts = [codegen.kernel_source(*names, data=(records.PatternData, Batch))]
    return codegen.build("Shallow ViT, training on patterns.", PARTS, parts)
