r"""The population problem in full, by brute force: the oracle of the reduction.

Tokens are vectors of R^d without noise, one sample for each distinct vector, and all of W_O (m, d)
and W_V, W_K, W_Q (d, d) is trained by dense backpropagation. It shares with `ReducedPopulation` the
start, the samples and what is read off a state, nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics import codegen
from dynamics.codegen.kernels.advance import advance
from dynamics.problem import FloatArray, Layout
from dynamics.systems.shallow_vit.empirical.sampling import IntArray
from dynamics.systems.shallow_vit.full import projection
from dynamics.systems.shallow_vit.kernels import full as brute_kernels
from dynamics.systems.shallow_vit.reduced.expectation import Vectors
from dynamics.systems.shallow_vit.reduced.noise_free import NoiseFreeProblem


class FullPopulation(NoiseFreeProblem):
    """Every weight trained, on tokens without noise.

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

    def _compiled(self) -> tuple[Any, tuple[Any, ...], Layout]:
        return _module(), self._arrays(), projection.full_layout(self.parameters)

    def _arrays(self) -> tuple[Any, ...]:
        parameters, found = self.parameters, self.instance
        many, depth, length = parameters.m, parameters.d, parameters.L
        places = placed(found.vectors)
        trained = (parameters.frozen != "attention", parameters.frozen != "values")
        sizes = (many, depth, parameters.M, parameters.loss == "hinge", *trained)
        room = (
            np.empty((3, length, depth)), np.empty((length, length)), np.empty((length, depth)),
            np.empty((length, depth)), np.empty((many, length)), np.empty((length, depth)),
            np.empty((length, length)),
        )  # fmt: skip
        entries = many * depth + 3 * depth * depth
        return (
            (np.eye(depth)[places], places, found.vectors.labels, self._weights),
            self._whole,
            (np.array([parameters.margin]), np.array(sizes, dtype=np.int64)),
            (
                room, np.empty(entries), np.empty(len(self.order_names)), np.full(entries, np.nan),
                np.full(2, -1, dtype=np.int64),
            ),
        )  # fmt: skip

    def _forget(self) -> None:
        self._data[3][4][0] = -1

    @property
    def _weights(self) -> FloatArray:
        """Output weights at every position, shape (m, L)."""
        a, shape = self.instance.start.a, (self.parameters.m, self.parameters.L)
        return np.array(np.broadcast_to(a if a.ndim == 2 else a[:, None], shape))

    @property
    def initial_state(self) -> FloatArray:
        """Weights of the start."""
        start = self.instance.start
        return self.layout.flatten((start.W_O, start.W_V, start.W_K, start.W_Q))

    def orbit_values(self, states: FloatArray) -> Mapping[str, FloatArray]:
        """Reduced state -> the entries beside it, shape (records, ...)."""
        return projection.orbit_values(self.parameters, states)

    def parts(self, state: FloatArray) -> tuple[FloatArray, ...]:
        """W_O, V, K, Q of a flat state: what the weights do to the patterns."""
        return tuple(self.orbit_values(state).values())

    def attended(self, state: FloatArray) -> tuple[FloatArray, IntArray, FloatArray]:
        """Attention to relevant and confusion keys, of every token."""
        found, places = self.instance.vectors, self._data[0][1]
        masses = np.empty((len(places), 2, places.shape[1]))
        self.module.attended(state, self._data, masses)
        return masses, places, np.broadcast_to(found.weights[:, None], places.shape)

    def reached(self, state: ArrayLike) -> FloatArray:
        """Of every vector of the test set y F, shape (S,)."""
        test = self.instance.test
        out, tokens = np.empty(test.labels.size), np.eye(self.parameters.d)[placed(test)]
        flat = self.layout.flatten(state)
        self.module.outputs(flat, tokens, test.labels, self._weights, self._data, out)
        return out


def placed(found: Vectors) -> np.ndarray:
    """Pattern of every token, shape (S, L); in order of the patterns where places do not matter."""
    if found.places is not None:
        return found.places
    patterns = np.arange(found.counts.shape[1])
    return np.stack([np.repeat(patterns, row) for row in found.counts])


@cache
def _module() -> codegen.CompiledModule:
    own = brute_kernels
    names = (own.gradient, own.order_parameters, own.summary, own.outputs, own.attended)
    parts = [codegen.kernel_source(*names, advance)]
    return codegen.build("Shallow ViT, full population problem.", projection.GROUPS, parts)
