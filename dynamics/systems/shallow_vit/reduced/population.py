r"""The reduced population problem: training on patterns, exact where tokens have no noise.

The state is W_O (m, d) and what the other weights do to the patterns, V = W_V mu, K = W_K mu and
Q = W_Q mu, each (d, M). The gradient by them is that by the weights, and what weights do across the
patterns never moves. The mean over samples is a sum over weighted count vectors (`expectation`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics import codegen
from dynamics.codegen.kernels.advance import advance
from dynamics.problem import FloatArray, Layout
from dynamics.systems.shallow_vit.empirical.sampling import IntArray
from dynamics.systems.shallow_vit.full.projection import PARTS, layout
from dynamics.systems.shallow_vit.kernels import reduced as kernels
from dynamics.systems.shallow_vit.kernels.reduced import FIVE
from dynamics.systems.shallow_vit.parameters import Parameters
from dynamics.systems.shallow_vit.reduced.expectation import Vectors, weight_table
from dynamics.systems.shallow_vit.reduced.noise_free import NoiseFreeProblem
from theory.reduction import ReducedSystem
from theory.systems.shallow_vit import recursion


def derivations(parameters: Parameters | None = None) -> Mapping[str, ReducedSystem]:
    """The steps on patterns, their Gram form, and the collapse to 16 attention scalars."""
    return recursion.derivations(parameters)


class ReducedPopulation(NoiseFreeProblem):
    """Gradient descent on patterns.

    Parameters
    ----------
    parameters : Parameters
    expectation : str
        ``"exact"``: the law itself; ``"sampled"``: N samples; ``"auto"``: sampled where
        ``samples`` is given, else exact.
    samples : int or None
        N.
    seed : int or numpy Generator
        Of everything that is drawn.
    start : int, "symmetric" or None
        Another seed for the weights alone; or the start of the seed, completed to a set of neurons
        that the symmetries of the law map onto itself (`start.symmetric`).
    batch : int or None
        Samples of a mini-batch. Every epoch deals the samples out anew, each to one batch; a batch
        of all samples or more is all of them.

    Raises
    ------
    InvalidRequest
        In one line, for an option that cannot be.

    Notes
    -----
    Order parameters are those of all training samples, whatever the batch of a step; they are
    read off the pass that makes the gradient where that is over all.
    """

    view = "reduced population"

    def _compiled(self) -> tuple[Any, tuple[Any, ...], Layout]:
        return _module(), self._arrays(), layout(self.parameters)

    def _arrays(self) -> tuple[Any, ...]:
        parameters, found = self.parameters, self.instance
        table, vectors = _kernel_vectors(found.vectors, found.start.a, parameters.L)
        trained = (parameters.frozen != "attention", parameters.frozen != "values")
        choice = (
            np.array([parameters.margin, parameters.L]),
            np.array([*self._sizes, parameters.loss == "hinge", *trained], dtype=np.int64),
        )
        return vectors, self._whole, table, choice, self._work()

    @property
    def _sizes(self) -> tuple[int, int, int]:
        return self.parameters.m, self.parameters.d, self.parameters.M

    def _work(self) -> tuple[Any, ...]:
        many, depth, patterns = self._sizes
        tall, wide = FIVE * -(-depth // FIVE), FIVE * -(-patterns // FIVE)
        square = (patterns, patterns)
        return (
            (
                np.zeros((tall, many)), np.empty((depth, many)), np.zeros((wide, many)),
                np.empty(square), np.empty(square), np.empty(tall), np.empty(wide),
            ),
            (
                np.zeros((patterns, patterns)), np.zeros((patterns, wide)),
                np.zeros((wide, many)), np.empty(many), np.empty(patterns),
            ),
            (
                np.zeros((wide, many)), np.empty(square), np.zeros((patterns, wide)),
                np.empty(wide),
            ),
            (
                np.empty(len(self.order_names)),
                np.full(many * depth + 3 * depth * patterns, np.nan),
                np.full(1, -1, dtype=np.int64),
            ),
        )  # fmt: skip

    def _forget(self) -> None:
        self._data[4][3][2][0] = -1

    @property
    def initial_state(self) -> FloatArray:
        """Weights of the start, on the patterns."""
        return self.layout.flatten(self.instance.start.on_patterns(self.parameters.M))

    def parts(self, state: FloatArray) -> tuple[FloatArray, ...]:
        """W_O, V, K, Q of a flat state."""
        return tuple(self.layout.part(state, name) for name in PARTS)

    def attended(self, state: FloatArray) -> tuple[FloatArray, IntArray, FloatArray]:
        """Attention to relevant and confusion keys, of every pattern that a vector has."""
        found, patterns = self.instance.vectors, np.arange(self.parameters.M)
        masses = np.empty((found.labels.size, 2, patterns.size))
        self.module.attended(state, self._data, masses)
        asked = np.broadcast_to(patterns, found.counts.shape)
        return masses, asked, found.weights[:, None] * found.counts

    def reached(self, state: ArrayLike) -> FloatArray:
        """Of every vector of the test set y F, shape (S,)."""
        table, vectors = self._test
        out = np.empty(vectors[1].size)
        self.module.outputs(self.layout.flatten(state), vectors, table, self._data, out)
        return out

    @cached_property
    def _test(self) -> tuple[FloatArray, tuple[Any, ...]]:
        return _kernel_vectors(self.instance.test, self.instance.start.a, self.parameters.L)


def _kernel_vectors(
    found: Vectors, a: FloatArray, length: int
) -> tuple[FloatArray, tuple[Any, ...]]:
    """Table of output weights, and vectors as the kernels read them."""
    table, rows, scale = weight_table(a, found, length)
    return table, (found.counts.astype(np.float64), found.labels, rows, scale)


@cache
def _module() -> codegen.CompiledModule:
    own = kernels
    names = (own.gradient, own.order_parameters, own.summary, own.outputs, own.attended)
    parts = [codegen.kernel_source(*names, advance)]
    return codegen.build("Shallow ViT, training on patterns.", PARTS, parts)
