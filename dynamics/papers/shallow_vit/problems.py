r"""Training of the shallow Vision Transformer, on patterns and on tokens.

.. math:: \hat R = \sum_n p_n \max(\gamma - y^n F(X^n), 0).

Sample n has tokens :math:`X^n`, label :math:`y^n` and weight :math:`p_n`; :math:`\gamma` is the
margin. The loss comes from the model file `dynamics.models.shallow_vit`; it takes tokens instead of
patterns if every weight is trained. The reported risk is :math:`\hat R / \gamma`; the gradient is
the gradient of :math:`\hat R`. `FullPopulation` shares start, samples and observables with
`ReducedPopulation`. Agreement of the two problems, in W_O and in the products of W_V, W_K, W_Q with
the patterns, is evidence for the reduction. Order parameters always use all training samples.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from dynamics.cache import compiled_program, jax
from dynamics.models import shallow_vit as model_file
from dynamics.models.engine.functions import Columns
from dynamics.models.engine.program import Data, Program, program_of
from dynamics.models.engine.sampled import Training
from dynamics.models.engine.traced_problem import TracedProblem, hash_of_file
from dynamics.models.engine.tracing import namespace
from dynamics.papers.shallow_vit import sampling
from dynamics.papers.shallow_vit.parameters import Parameters
from dynamics.papers.shallow_vit.presentation import PRESENTATION
from dynamics.papers.shallow_vit.reader import Reader
from dynamics.papers.shallow_vit.sampling import Tokens, Vectors
from dynamics.papers.shallow_vit.starts import SYMMETRIC, Start, start_of
from dynamics.parameter_fields import check_parameters
from dynamics.problem import FloatArray, Layout
from dynamics.training.minibatches import MiniBatches, fingerprint, sampling_settings
from dynamics.validation import integer, refuse
from theory.law import Law
from theory.model import Model
from theory.model_file import read_model
from theory.papers.shallow_vit.attention import PARTS
from theory.papers.shallow_vit.notation import EVENTS, ORDER_PARAMETERS, RATES

GROUPS = ("W_O", "W_V", "W_K", "W_Q")
TEST_SAMPLES = 1000
"""Number of drawn test samples; for ``data="fixed"`` without noise, the test set is the law."""
OBSERVED = ("loss_over_margin", *ORDER_PARAMETERS[1:])
"""Names of the order parameters in the model file."""
PLACES = 2
"""Numbers of count vectors are padded to this many leading binary digits, to share code."""
ONE_BY_ONE = 64
"""Number of samples for which attention is computed at a time."""


@cache
def _model() -> Model:
    return read_model(Path(model_file.__file__))


@cache
def _masses(program: Program) -> Any:
    """Compiled (state, payload) -> total attention to relevant and to confusion keys, (S, n, 2)."""

    def masses(flat: Any, payload: Any) -> Any:
        data, _ = payload
        theta = program.theta(flat, data.fixed)

        def of(sample: Any) -> Any:
            _, P = model_file.attention(theta, sample, namespace())
            keys = [P @ sample[f"is_{kind}"] for kind in ("relevant", "confusion")]
            return jax.numpy.stack(keys, axis=1)

        return jax.lax.map(of, data.samples, batch_size=ONE_BY_ONE)

    return compiled_program(masses)


class VitProblem(TracedProblem):
    """Base of the problems of the shallow Vision Transformer.

    `start` has the initial weights; `training` and `test` are samples; `minibatches` selects the
    samples of each step.
    """

    system = "shallow_vit"
    presentation = PRESENTATION
    events = EVENTS
    order_names = ORDER_PARAMETERS
    rates = RATES
    flows = False
    has_jacobian = False
    rows_of_all = True
    sampling_options = ("samples", "seed", "start", "batch")
    training = Training()

    def __init__(
        self,
        parameters: Parameters,
        start: Start,
        training: Tokens,
        test: Tokens,
        minibatches: MiniBatches | None,
    ) -> None:
        self.parameters, self.start = parameters, start
        self.tokens, self.test, layout = training, test, self._layout(parameters)
        columns: Columns = tuple(("observable", name) for name in OBSERVED)
        shapes = tuple(zip(PARTS, layout.shapes, strict=True))
        words = (("frozen", parameters.frozen), ("hinge", parameters.loss == "hinge"))
        program = program_of(_model(), words, shapes)
        self._masses = _masses(program)
        data = self._data(training)
        super().__init__(program, (data, None), layout, columns, minibatches=minibatches)

    @staticmethod
    @abstractmethod
    def _layout(parameters: Parameters) -> Layout:
        """Layout of a state with W_O and the other weights, on patterns or on tokens."""

    def _data(self, tokens: Tokens) -> Data:
        """Samples as arguments of the loss, padded so that few sizes are compiled."""
        many, length = tokens.patterns.shape
        unit = 1 << max(0, many.bit_length() - PLACES) if tokens.values is None else 1
        rows = np.minimum(np.arange(-(-many // unit) * unit), many - 1)
        samples = {name: part[rows] for name, part in tokens.arrays().items()}
        weights = np.zeros(rows.size)
        weights[:many] = tokens.weights
        fixed = {"a": self.start.a.T if self.start.a.ndim == 1 else self.start.a.T[:length]}
        fixed["X"] = np.eye(self.parameters.M)
        return self.training.data(Law(weights, samples), fixed, {"margin": self.parameters.margin})

    @cached_property
    def reader(self) -> Reader:
        """Reader that computes the observables of a state from V, K, Q on the patterns."""
        tokens, many = self.tokens, np.arange(self.parameters.M)
        at = tokens.patterns[:, :, None] == many
        counts = (tokens.times[:, :, None] * at).sum(axis=1).astype(np.int64)
        own = counts, tokens.labels, tokens.weights
        return Reader(self.parameters, self.start.a, self.start.p, *own)

    @property
    def initial_state(self) -> FloatArray:
        """Initial weights as a flat state."""
        return self.layout.flatten(self.start.weights)

    def parts(self, states: FloatArray) -> tuple[FloatArray, ...]:
        """Split states (..., n) into W_O and the products V, K, Q of weights with the patterns."""
        hidden, *others = (self.layout.part(states, name) for name in self.layout.names)
        return hidden, *(part[..., : self.parameters.M] for part in others)

    @property
    def identity(self) -> Mapping[str, Any]:
        """Settings, hashes of the loss and random numbers; a resumed run must have the same."""
        arrays = [*jax.tree.leaves(self.payload[0]), self.initial_state]
        if self.minibatches is not None:
            arrays.append(np.array([self.minibatches.seed]))
        code = hash_of_file(model_file)
        return {**self.settings, "code": code, "random_numbers": fingerprint(arrays)}

    def risk(self, state: ArrayLike) -> float:
        """Risk divided by the margin gamma at a state."""
        return float(self.order_parameters(state)[0])

    def order_parameters(self, state: ArrayLike, gradient: FloatArray | None = None) -> FloatArray:
        """Order parameters at a state, over all training samples, in the order of `order_names`."""
        flat = self.layout.flatten(state)
        return super().order_parameters(flat, np.zeros_like(flat))

    @cached_property
    def _test(self) -> Any:
        return self._data(self.test), None

    def observables(self, state: ArrayLike) -> dict[str, float]:
        """Name -> observable at a state: order parameters, test error, attention, scores.

        Attention is averaged over the training samples; gates and scores are computed on the
        patterns. The observable ``odds`` is the error of an identity of log odds (`Reader.odds`),
        exact without noise. At the last finite state of a diverged run, observables may overflow.
        """
        flat = self.layout.flatten(state)
        function = self._functions.compiled_observables  # other batch sizes round differently
        fresh = self.evaluated(function, flat[None], payload=self._test)["observables"]
        masses = self.evaluated(self._masses, flat)[: len(self.tokens.labels)]
        order = dict(zip(self.order_names, self.order_parameters(flat), strict=True))
        attended = self.reader.attended(self.tokens, masses)
        found = {"relevant": order["relevant"]} | attended | self.reader.read(self.parts(flat))
        found |= {"odds": found.pop("odds")} | order
        found |= {"test_loss": fresh["hinge_over_margin"][0], "test_error": fresh["error"][0]}
        return {name: float(value) for name, value in found.items()}


class NoiseFree(VitProblem):
    """Base of the problems on tokens without noise; equal samples become one weighted sample.

    `expectation` is ``"exact"`` for the law, ``"sampled"`` for N samples, or ``"auto"``, which is
    sampled if the number N is given as `samples`. `seed` is the seed of all random numbers. `start`
    is another seed for the weights alone, or ``"symmetric"``; then the neurons drawn from `seed`
    are completed to a set that is invariant under the symmetries of the law
    (`starts.symmetric_start`). `batch` is the number of samples of a mini-batch, N or more for the
    full batch; every epoch uses each sample once, in new batches. Raises InvalidRequest for an
    invalid option.
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
        symmetric = checked_start(start) == SYMMETRIC
        streams = sampling.streams(seed, None if isinstance(start, str) else start)
        made = start_of(parameters, streams.start, symmetric)
        self.vectors: Vectors = sampling.vectors(parameters, samples, streams)
        self.training = Training(batch=batch)
        if batch is not None and samples is None:
            refuse(
                "batch", batch, "needs samples, but none are drawn", "left out, or with samples", 1
            )
        options = {"expectation": name, "start": start, "batch": self.training.batch}
        self.settings = sampling_settings(samples, seed, options) | (
            {"tokens": "without noise"} if parameters.noise > 0 else {}
        )
        drawn = None if parameters.data == "fixed" else TEST_SAMPLES
        own = streams._replace(training=streams.test, tokens=streams.test_tokens)
        test = sampling.vectors(parameters, drawn, own)
        training, fresh = (self._tokens(each, parameters, made) for each in (self.vectors, test))
        batches = self.training.minibatches(streams.order, self.vectors.member.size)
        super().__init__(parameters, made, training, fresh, batches)

    @staticmethod
    @abstractmethod
    def _tokens(vectors: Vectors, parameters: Parameters, start: Start) -> Tokens:
        """Tokens of count vectors, in the form that the weights of the problem act on."""

    def _batches(self, first: int, last: int) -> NDArray[np.int64] | None:
        """Indices of the count vectors in the batch of each step, padded with -1."""
        rows = super()._batches(first, last)
        return rows if rows is None else np.where(rows < 0, -1, self.vectors.member[rows])

    def weights_of(self, step: int | None) -> FloatArray:
        """Weights of the count vectors in a step, or in all samples for None, shape (S,)."""
        if step is None or self.minibatches is None:
            return self.vectors.weights
        (members,) = self.minibatches.members(step, step + 1)
        taken = np.bincount(self.vectors.member[members], minlength=self.vectors.weights.size)
        return np.asarray(taken / members.size)


class ReducedPopulation(NoiseFree):
    """Gradient descent on the patterns, which is exact for tokens without noise.

    The state is W_O (m, d) and the products V = W_V mu, K = W_K mu, Q = W_Q mu of the other weights
    with the patterns mu, each (d, M). Components of weights orthogonal to the patterns never move.
    `NoiseFree` describes the arguments.
    """

    view = "reduced population"

    @staticmethod
    def _layout(parameters: Parameters) -> Layout:
        square = (parameters.d, parameters.M)
        return Layout(PARTS, ((parameters.m, parameters.d), square, square, square), GROUPS)

    @staticmethod
    def _tokens(vectors: Vectors, parameters: Parameters, start: Start) -> Tokens:
        return vectors.on_patterns(start.a)

    @property
    def initial_state(self) -> FloatArray:
        """Initial W_O, and products of the other weights with the patterns, as a flat state."""
        return self.layout.flatten(self.start.on_patterns(self.parameters.M))


class FullProblem(VitProblem):
    """Base of the problems with every weight, comparable with the reduced problem."""

    @staticmethod
    def _layout(parameters: Parameters) -> Layout:
        square = (parameters.d, parameters.d)
        return Layout(GROUPS, ((parameters.m, parameters.d), square, square, square), GROUPS)

    def orbit_values(self, states: FloatArray) -> Mapping[str, FloatArray]:
        """Name -> values to compare: W_O, and products V, K, Q of weights with the patterns."""
        return dict(zip(PARTS, self.parts(states), strict=True))


class FullPopulation(FullProblem, NoiseFree):
    """Training of every weight on tokens without noise, one sample per distinct count vector.

    The same arguments give the same start and samples as in `ReducedPopulation`.
    """

    view = "full population"

    @staticmethod
    def _tokens(vectors: Vectors, parameters: Parameters, start: Start) -> Tokens:
        return vectors.token_by_token(parameters.d)


def checked_start(value: object) -> int | str | None:
    """Check the option `start`: a seed of the weights alone, ``"symmetric"``, or None."""
    if value is None or value == SYMMETRIC:
        return None if value is None else SYMMETRIC
    if isinstance(value, str):
        refuse("start", value, "is unknown", "a whole number, or 'symmetric'", SYMMETRIC)
    return integer("start", value, at_least=0, at_most=2**62)
