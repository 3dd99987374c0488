r"""The empirical problem: N samples of noisy tokens, every entry of W_O, W_V, W_K, W_Q free.

.. math:: \hat R = \frac1N \sum_n \max(\gamma - y^n F(X^n), 0), \quad
   F(X) = \frac1L \sum_l a_{(l)}^\top \mathrm{relu}\big(W_O W_V X\,
   \mathrm{softmax}(X^\top W_K^\top W_Q x_l)\big)

The gradient is that of :math:`\hat R`; what is reported as the risk is :math:`\hat R / \gamma`.
Nothing here knows that noise-free training closes on patterns. A state is read by its projection,
W_O and what W_V, W_K, W_Q do to the patterns; attention is that of the noisy tokens.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from dynamics import codegen
from dynamics.codegen.kernels.advance import advance
from dynamics.problem import CompiledProblem, FloatArray
from dynamics.systems.shallow_vit.empirical import sampling
from dynamics.systems.shallow_vit.empirical.tokens import Training, drawn
from dynamics.systems.shallow_vit.full import projection
from dynamics.systems.shallow_vit.kernels import empirical as empirical_kernels
from dynamics.systems.shallow_vit.parameters import Parameters
from dynamics.systems.shallow_vit.presentation import PRESENTATION
from dynamics.systems.shallow_vit.realization import SYMMETRIC, start_of
from dynamics.systems.shallow_vit.reduced import unrolled
from dynamics.training import minibatches
from dynamics.validation import integer
from theory.systems.shallow_vit.notation import EVENTS, ORDER_PARAMETERS, RATES

SHARED_FROM = 200_000
"""Neurons times tokens of a batch from which a step is worth sharing among threads."""
CHUNK = 3200
"""Weights of a chunk of neurons: with a few rows beside them they fit into the first cache."""
WIDE = 320
"""Neurons of a chunk at most."""


class FullEmpirical(CompiledProblem):
    """W_O, W_V, W_K and W_Q trained, every entry, on N samples of noisy tokens.

    Parameters
    ----------
    parameters : Parameters
    samples : int
        N.
    seed : int or numpy Generator
        Of the start, the samples, the test samples and the order of batches; see
        `sampling.streams`.
    **training
        See `Training`: ``start``, ``batch``, ``sparsify``, ``removed``, ``noisy_share``,
        ``noisy_std``, ``test_samples``.

    Raises
    ------
    InvalidRequest, pydantic.ValidationError
        In one line, for a number of samples or an option that cannot be, and for a sparsifier that
        removes every token.

    Notes
    -----
    The gradient is that of all samples; `advance` takes the batch of each step, whose number
    decides it, so a run can be cut anywhere. Order parameters are those of all training samples:
    with mini-batches, a step also makes one pass without slopes over all of them.
    """

    system = "shallow_vit"
    view = "full empirical"
    presentation = PRESENTATION
    events = EVENTS
    order_names = ORDER_PARAMETERS
    rates = RATES
    flows = False

    def __init__(
        self,
        parameters: Parameters,
        samples: int = 200,
        seed: int | Generator = 0,
        **training: Any,
    ) -> None:
        self.parameters = parameters
        self.samples = integer("samples", samples, at_least=1, at_most=10**8)
        self.training = Training(**training)
        self.autonomous = self.training.batch is None
        begun = self.training.start
        self.streams = sampling.streams(seed, begun if isinstance(begun, int) else None)
        self.start = start_of(parameters, self.streams.start, begun == SYMMETRIC)
        self.tokens = drawn(
            parameters, self.samples, self.training, self.streams.training, self.streams.tokens
        )
        self.test = drawn(
            parameters, self.training.test_samples, self.training, self.streams.test,
            self.streams.test_tokens,
        )  # fmt: skip
        self._order_seed = int(self.streams.order.integers(2**62))
        self.settings = {
            "samples": self.samples,
            "seed": seed if isinstance(seed, int) else "generator",
            **{k: v for k, v in dataclasses.asdict(self.training).items() if v is not None},
        }
        layout = projection.full_layout(parameters)
        batch = min(self.training.batch or self.samples, self.samples)
        length = self.tokens.values.shape[1]
        threaded = batch * length * parameters.m >= SHARED_FROM
        lanes = codegen.LANES if threaded else 1
        constants = np.array(
            [
                parameters.margin,
                float(parameters.loss == "linear"),
                1.0,
                float(parameters.frozen != "attention"),
                float(parameters.frozen != "values"),
            ]
        )
        model, room = self._room(lanes, length)
        self._test = (self.test.compiled(), _batching(self.training.test_samples))
        data = (constants, self.tokens.compiled(), _batching(self.samples), model, room)
        super().__init__(_module(parameters.d, threaded), data, layout)

    def _room(self, lanes: int, length: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
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
        model = (
            np.empty((depth, depth)),
            aligned(chunks, depth, width),
            aligned(chunks, depth, width),
            np.empty((depth, depth)),
            np.empty((depth, depth)),
            signs,
        )
        room = (
            aligned(lanes, chunks, depth, width),
            np.empty((lanes, depth, depth)),
            np.empty((lanes, 6)),
            aligned(lanes, chunks, length, width),
            aligned(lanes, 2, length, wide),
            aligned(lanes, 4, depth, wide),
            np.empty((lanes, length, depth)),
            np.zeros(6),
        )
        return model, room

    @property
    def initial_state(self) -> FloatArray:
        """The random start of Assumption 1."""
        begun = self.start
        return self.layout.flatten((begun.W_O, begun.W_V, begun.W_K, begun.W_Q))

    @property
    def identity(self) -> Mapping[str, Any]:
        """What a resumed run must find again: beside the settings, the numbers drawn."""
        dealt = () if self.training.batch is None else (np.array([self._order_seed]),)
        parts = (self.tokens.values, self.tokens.labels, self.test.values, self.start.a, *dealt)
        return dict(super().identity) | {
            "drawn": minibatches.fingerprint((*parts, self.initial_state))
        }

    def _stepped(self, first: int, last: int) -> tuple[Any, ...]:
        each = _batching(self.samples, self.members(first, last))
        return (*self._data[:2], each, *self._data[3:])

    def members(self, first: int, last: int) -> list[sampling.IntArray]:
        """Samples of the batch of every step first, ..., last - 1; see `batches.dealt`."""
        size = self.training.batch or self.samples
        return minibatches.reshuffled_batches(self._order_seed, self.samples, size, first, last)

    def orbit_values(self, states: FloatArray) -> Mapping[str, FloatArray]:
        """Reduced state -> the entries beside it, shape (records, ...)."""
        return projection.orbit_values(self.parameters, states)

    @cached_property
    def reader(self) -> projection.Reader:
        """What is read off a state on the patterns."""
        found, many = self.tokens, self.samples
        counts = (found.places[:, :, None] == np.arange(self.parameters.M)).sum(axis=1)
        weights = np.full(many, 1.0 / many)
        return projection.Reader(self.parameters, self.start, counts, found.labels, weights)

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def observables(self, state: ArrayLike) -> dict[str, float]:
        """Order parameters, errors on fresh samples, attention, scores, neurons at a state.

        Attention is that of the noisy training tokens, gates and scores are those of the patterns.
        With noise ``odds`` is how far it is from what is exact without.
        The last finite state of a run that diverged may be too large for some of them.
        """
        flat = self.layout.flatten(state)
        parts = tuple(self.orbit_values(flat).values())
        order, masses = self._passed(flat, self._data[1:3])
        tested = self._passed(flat, self._test, hinge=True)[0]
        names = [f"relevant_by_{query}" for query in projection.QUERIES]
        return (
            self.reader.read(parts)
            | {"odds": self.reader.odds(*self.attended(flat))}
            | {name: float(mass) for name, mass in zip(names, masses, strict=True)}
            | {name: float(value) for name, value in zip(self.order_names, order, strict=True)}
            | {"test_loss": float(tested[0]), "test_error": float(tested[2])}
        )

    def attended(self, state: FloatArray) -> tuple[FloatArray, sampling.IntArray, FloatArray]:
        """Attention to relevant and confusion keys, of every token; see `Reader.odds`."""
        places = self.tokens.places
        masses = np.empty((self.samples, 2, places.shape[1]))
        self.module.attended(state, self._data, masses)
        return masses, places, np.ones(places.shape)

    def order_parameters(self, state: ArrayLike, gradient: FloatArray | None = None) -> FloatArray:
        """Risk over the margin, active, error, relevant, of all training samples.

        Parameters
        ----------
        state : float array, shape (n,)
        gradient : float array, shape (n,), optional
            Not needed: none of them is a rate.
        """
        return self._passed(self.layout.flatten(state), self._data[1:3])[0]

    def _summary(self, state: FloatArray) -> FloatArray:
        return self.order_parameters(state)[[0, 2]]

    def _passed(
        self, state: FloatArray, data: tuple[Any, ...], hinge: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """Order parameters, and the attention to relevant tokens by kind of query, of samples.

        Parameters
        ----------
        state : float array, shape (n,)
        data : (samples, batching)
        hinge : bool
            The loss is the hinge, whatever is trained on.
        """
        constants, out = self._data[0].copy(), np.empty(len(self.order_names))
        constants[1] *= not hinge
        constants[2] = 0.0
        one_pass = (constants, *data, *self._data[3:])
        self.module.gradient(state, one_pass, np.empty(state.size))
        self.module.order_parameters(state, state, one_pass, out)
        queries = np.bincount(data[0][3].ravel(), minlength=len(projection.QUERIES))
        sums = self._data[4][7][3:]
        return out, np.divide(sums, queries, out=np.full(queries.size, np.nan), where=queries > 0)


def chunk_width(neurons: int, depth: int) -> int:
    """Neurons of a chunk: whole cache lines, few places left empty, and few chunks."""
    line = unrolled.LINE
    widest = max(line, min(WIDE, CHUNK // depth) // line * line)
    if neurons <= widest:
        return unrolled.padded(neurons)
    widths = range(widest, widest // 2, -line)
    return min(widths, key=lambda width: -(-neurons // width) * (width + line))


def _batching(samples: int, dealt: Sequence[sampling.IntArray] = ()) -> tuple[Any, ...]:
    """Bounds of the whole and of every batch, 1 / its size, members, an order, where it stands."""
    bounds, index = minibatches.joined([np.arange(samples), *dealt])
    order = np.arange(1, len(bounds)) if dealt else np.zeros(1, np.int64)
    return bounds, 1.0 / np.diff(bounds, axis=1).ravel(), index, order, np.zeros(1, np.int64)


@cache
def _module(depth: int, threaded: bool) -> codegen.CompiledModule:
    own = empirical_kernels
    names = (own.gradient, own.order_parameters, own.attended)
    written = codegen.kernel_source(*names, advance, parallel=(own.gradient,) if threaded else ())
    parts = [*unrolled.sources(depth), written]
    return codegen.build("Shallow ViT, empirical problem.", projection.GROUPS, parts)
