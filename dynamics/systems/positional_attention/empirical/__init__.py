r"""The realistic problem (E): N noisy samples, a random start, every entry of v and A free.

.. math:: \hat L(A, v) = \frac1N \sum_n \log\big(1 + e^{-y[n] F(X[n])}\big)

Nothing here knows the reduction. A state is read by its projection: alpha = <v, w*>, and the mean
of A over each orbit, which is compared with the scalars of the reduced problem.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
import pydantic
from numpy.random import Generator
from numpy.typing import NDArray

from dynamics import codegen
from dynamics.codegen import AddressedModel
from dynamics.problem import FloatArray, IntArray, Layout
from dynamics.systems.empirical_problem import sampling_settings
from dynamics.systems.positional_attention.empirical import sampling
from dynamics.systems.positional_attention.full import MatrixProblem, risk_and_error
from dynamics.systems.positional_attention.full.blocks import (
    Blocking,
    batch_of,
    sample_blocks,
    samples_of,
)
from dynamics.systems.positional_attention.kernels.full import SampleBlocks
from dynamics.systems.positional_attention.parameters import Parameters
from dynamics.training.minibatches import MiniBatches
from dynamics.validation import (
    STRICT,
    check_cost,
    check_parameters,
    integer,
    random_stream,
    refusing,
    whole,
    word,
)
from theory.papers.positional_attention.data_law import SetLaw, bayes_error
from theory.symmetry import Partition

MATRICES = 12
"""Matrices D x D that a run holds: states, slopes, rates, the records at least."""
MOST_NUMBERS = 2**29
"""Numbers in them, 4 GiB; samples may hold twice as many."""


@refusing
@pydantic.dataclasses.dataclass(frozen=True, config=STRICT, kw_only=True)
class Training:
    """How the realistic problem is trained; the paper's way by default.

    Attributes
    ----------
    start : str
        ``"random"``: v and A as in Parametrization 3.1, realistic case; ``"symmetric"``: v =
        alpha0 w* and A = beta I, as in the idealised one.
    batch : int or None
        Samples of a mini-batch, reshuffled every epoch; all samples by default.
    dtype : str
        ``"float64"``, or ``"float32"`` for samples, fresh ones too, and sums within a block.
    diagonal : bool
        Train the diagonal of A too.
    test_samples : int
        Fresh samples for the test error.
    """

    start: word("random", "symmetric") = "random"  # type: ignore[valid-type]
    batch: whole(1, optional=True) = None  # type: ignore[valid-type]
    dtype: word("float64", "float32") = "float64"  # type: ignore[valid-type]
    diagonal: bool = False
    test_samples: whole(1) = 10_000  # type: ignore[valid-type]


class FullEmpirical(MatrixProblem):
    """(E) with v and every off-diagonal entry of A trained, on N samples.

    Parameters
    ----------
    parameters : Parameters
    samples : int
        N.
    seed : int or numpy Generator
        Of the samples, the feature w*, the start, the test data and the mini-batches.
    partition : Partition or str, optional
        The true sets: consecutive patches (``"contiguous"``, the default), blocks of a square
        ``"grid"``, ``"random"`` ones; or any partition, sets of unequal size allowed.
    law : SignalSets or Convolution, optional
        Another data law, with its own partition.
    **training
        See `Training`: ``start``, ``batch``, ``dtype``, ``diagonal``, ``test_samples``.

    Raises
    ------
    InvalidRequest
        In one line, for a number of samples, a partition or an option that cannot be.

    Notes
    -----
    The state is (v, A), flat, A row by row. The gradient is that of the empirical risk of all
    samples; `advance` takes the batch of each step. With mini-batches the order parameters at a
    step have the rates of its batch.
    """

    view = "full empirical"

    def __init__(
        self,
        parameters: Parameters,
        samples: int = 1000,
        seed: int | Generator = 0,
        partition: Partition | str | None = None,
        law: sampling.Law | None = None,
        **training: Any,
    ) -> None:
        check_parameters(parameters, Parameters)
        self.samples = integer("samples", samples, at_least=1, at_most=10**8)
        self.training = Training(**training)
        size, depth = parameters.D, parameters.d
        sizes = range(parameters.C, size, parameters.C)
        check_cost("D", size, lambda D: MATRICES * D**2, MOST_NUMBERS, "numbers", sizes)
        of_samples = 2 * MOST_NUMBERS, "numbers"
        check_cost("samples", self.samples, lambda n: n * size * depth, *of_samples)
        check_cost("test_samples", self.training.test_samples, lambda n: n * size, *of_samples)
        self.parameters = parameters
        streams = random_stream(seed).spawn(6)
        if isinstance(partition, str):
            partition = sampling.named_partition(partition, parameters, streams[5])
        self.law = law or sampling.assumption_1(parameters, partition)
        self.partition = self.law.partition
        self.feature = sampling.unit_vector(parameters.d, streams[0])
        self.fresh = sampling.fresh(self.law, self.training.test_samples, streams[2])
        self.bayes_error = self._least_error()
        self._start = self._initial_state(streams[1])
        self.settings = {
            **sampling_settings(self.samples, seed, self.training),
            "law": type(self.law).__name__,
            "sets": self.partition.labels.tolist(),
        }
        kind = np.dtype(self.training.dtype)
        blocking = Blocking.of(size, depth, kind.itemsize, self.samples)
        law, feature = self.law, self.feature
        patches, labels = sampling.blocks(law, feature, self.samples, blocking, streams[3])
        patches, labels = patches.astype(kind), labels.astype(kind)
        seed_of_batches = int(streams[4].integers(2**62))
        super().__init__(
            parameters,
            self.partition,
            self.feature,
            batch_of(patches, labels, np.abs(labels), blocking),
            Layout(("v", "A"), ((depth,), (size, size)), groups=("v", "A")),
            self.samples * size >= codegen.THREADED_FROM,
            MiniBatches(seed_of_batches, self.samples, self.training.batch),
            self.training.diagonal,
        )

    def _least_error(self) -> float:
        sizes = {members.size for members in self.partition.sets}
        if isinstance(self.law, sampling.SignalSets) and len(sizes) == 1:
            law = SetLaw(sizes.pop(), self.law.q, self.law.random_sets)
            return bayes_error(law, len(self.partition.sets))
        return 0.0 if isinstance(self.law, sampling.Convolution) else float("nan")

    def _initial_state(self, generator: Generator) -> FloatArray:
        parameters, size = self.parameters, self.parameters.D
        matrix, value = np.zeros((size, size)), parameters.alpha0 * self.feature
        if self.training.start == "random":
            for_value, for_matrix = generator.spawn(2)
            value = parameters.omega * for_value.standard_normal(parameters.d)
            matrix = parameters.omega * for_matrix.standard_normal((size, size))
        np.fill_diagonal(matrix, parameters.beta)
        return np.concatenate([value, matrix.ravel()])

    def random_numbers(self) -> tuple[np.ndarray, ...]:
        """The labels, the feature, the start and the labels of the test data."""
        return self._data.batch.labels, self.feature, self._start, self.fresh.labels

    def batch(self, members: IntArray, number: int) -> SampleBlocks:
        """Samples in blocks of their own; see `SampledProblem.batch`."""
        patches, labels = samples_of(self._data.batch, members)
        size, depth = patches.shape[1:]
        blocking = Blocking.of(size, depth, patches.itemsize, members.size)
        return sample_blocks(patches, labels, np.abs(labels), blocking)

    def data(self) -> tuple[FloatArray, FloatArray]:
        """The samples: patches X, shape (N, D, d), and labels y, shape (N,)."""
        patches, labels = samples_of(self._data.batch, np.arange(self.samples))
        return patches.astype(np.float64), labels.astype(np.float64)

    @property
    def initial_state(self) -> FloatArray:
        """V and A of Parametrization 3.1, realistic case, or the symmetric start."""
        return self._start.copy()

    def alphas(self, states: FloatArray) -> FloatArray:
        """<v, w*> of each state."""
        along: FloatArray = (self.layout.part(states, "v") * self.feature).sum(axis=-1)
        return along  # by a sum over each row, which is the same whatever stands beside it

    def orbit_values(self, states: FloatArray) -> Mapping[str, FloatArray]:
        """Reduced state -> what is compared with it: <v, w*>, orbit means of A; (records, 1)."""
        values = super().orbit_values(states)
        return {name: entries.mean(axis=1, keepdims=True) for name, entries in values.items()}

    @property
    def costly_passes(self) -> float:  # type: ignore[override]
        """A forward pass over the fresh samples, in gradients of the samples of a step.

        Of as many samples, one pass took .31, .17 and .08 of a gradient at D = 16, 64 and 196.
        """
        share = 1.3 / sqrt(self.parameters.D)
        return share * self.fresh.labels.size / (self.training.batch or self.samples)

    @np.errstate(over="ignore", invalid="ignore")
    def observables_of_records(
        self, states: FloatArray, noted: FloatArray, costly: NDArray[np.bool_]
    ) -> dict[str, FloatArray]:
        """Projection, spreads, risk, training and test error, cosine, patch association."""
        values, alpha = self.layout.part(states, "v"), self.alphas(states)
        across = np.linalg.norm(values - alpha[:, None] * self.feature, axis=1)
        length = np.hypot(alpha, across)
        error = np.full(len(states), np.nan)
        for k in np.flatnonzero(costly):
            matrix = self.layout.part(states[k], "A")
            error[k] = self.test_error(float(alpha[k]), float(across[k]), matrix)
        cosine = np.divide(alpha, length, out=np.zeros_like(alpha), where=length > 0)
        rest = super().observables_of_records(states, noted, costly)
        return {"alpha": alpha} | rest | {"test_error": error, "cosine": cosine}

    def test_error(self, along: float, across: float, matrix: FloatArray) -> float:
        """Share of the fresh samples without yF > 0; see `loss_and_error` of the kernels.

        A margin that is not a number is an error, so that a run that diverged scores 1, not 0.

        Parameters
        ----------
        along, across : float
            Length of v along w*, and orthogonal to it.
        matrix : float array, shape (D, D)
            A.
        """
        state = np.concatenate([[along, across], matrix.ravel()])
        return float(risk_and_error(self._on_fresh_samples, state)[1])

    @cached_property
    def _on_fresh_samples(self) -> AddressedModel:
        """The compiled functions on the fresh samples, by their projections on v: d = 2."""
        kind, count = self._data.batch.patches.dtype, self.fresh.labels.size
        blocking = Blocking.of(self.parameters.D, 2, kind.itemsize, count)
        patches, labels = self.fresh.blocks(blocking, kind)
        samples = batch_of(patches, labels, np.abs(labels), blocking)
        data = self._data._replace(batch=samples, value=np.empty(2, kind), backward=False)
        return self.addressed.with_data(data)
