r"""The realistic problem (E): N noisy samples, a random start, every entry of v and A free.

.. math:: \hat L(A, v) = \frac1N \sum_n \log\big(1 + e^{-y[n] F(X[n])}\big)

Nothing here knows the reduction. A state is read by its projection: alpha = <v, w*>, and the mean
of A over each orbit, which is laid beside the scalars of the reduced problem.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

import numpy as np
import pydantic
from numpy.random import Generator
from numpy.typing import ArrayLike

from dynamics import codegen
from dynamics.codegen.kernels.advance import advance
from dynamics.problem import FloatArray, IntArray, Layout
from dynamics.systems.positional_attention.empirical import sampling
from dynamics.systems.positional_attention.full import MatrixProblem, softmax
from dynamics.systems.positional_attention.kernels import empirical as kernels
from dynamics.systems.positional_attention.parameters import Parameters
from dynamics.training import minibatches
from dynamics.validation import STRICT, integer, whole
from theory.symmetry import Partition
from theory.systems.positional_attention.model import bayes_error

CACHE = 1 << 20
"""Bytes of a block of samples, which is read twice."""
WIDE = 64
"""Patches from which on rows of A are worth sharing among threads."""
WIDTHS = (128, 64, 32, 16, 8)
"""Samples of a block: the widest that fits; fewer than 8 would not fill a vector."""


@pydantic.dataclasses.dataclass(frozen=True, config=STRICT, kw_only=True)
class Training:
    """How the realistic problem is trained; the paper's way by default.

    Attributes
    ----------
    start : str
        ``"random"``: v and A as in Parametrization 3.1, realistic case; ``"symmetric"``: v =
        alpha0 w* and A = beta I, as in the idealised one.
    batch : int or None
        Samples of a mini-batch. Batches are fixed; every epoch takes them in a new random order.
    dtype : str
        ``"float64"``, or ``"float32"`` for samples and their sums within a block.
    diagonal : bool
        Train the diagonal of A too.
    test_samples : int
        Fresh samples for the test error.
    """

    start: Literal["random", "symmetric"] = "random"
    batch: whole(1, optional=True) = None  # type: ignore[valid-type]
    dtype: Literal["float64", "float32"] = "float64"
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
        Of the samples, the feature w*, the start, the test data and the order of batches.
    partition : Partition or str, optional
        The true sets: consecutive patches (``"contiguous"``, the default), blocks of a square
        ``"grid"``, ``"random"`` ones; or any partition, sets of unequal size allowed.
    law : SignalSets or Convolution, optional
        Another data law, with its own partition.
    **training
        See `Training`: ``start``, ``batch``, ``dtype``, ``diagonal``, ``test_samples``.

    Raises
    ------
    InvalidRequest, pydantic.ValidationError
        In one line, for a number of samples, a partition or an option that cannot be.

    Notes
    -----
    The state is (v, A), flat, A row by row. The gradient is that of the empirical risk of all
    samples; `advance` takes the batch of each step, whose number decides it, so a run can be cut
    anywhere.
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
        self.samples = integer("samples", samples, at_least=1, at_most=10**8)
        self.training = Training(**training)
        self.autonomous = self.training.batch is None
        self.parameters = parameters
        streams = np.random.default_rng(seed).spawn(6)
        if isinstance(partition, str):
            partition = sampling.named_partition(partition, parameters, streams[5])
        self.law = law or sampling.assumption_1(parameters, partition)
        self.partition = self.law.partition
        self._order_seed = int(streams[4].integers(2**62))
        self.feature = sampling.unit_vector(parameters.d, streams[0])
        self.fresh = sampling.fresh(self.law, self.training.test_samples, streams[2])
        self.bayes_error = self._least_error()
        self._start = self._initial_state(streams[1])
        self.settings = {
            "samples": self.samples,
            "seed": seed if isinstance(seed, int) else "generator",
            "law": type(self.law).__name__,
            **{k: v for k, v in dataclasses.asdict(self.training).items() if v is not None},
            "sets": self.partition.labels.tolist(),
        }
        size, kind = parameters.D, np.dtype(self.training.dtype)
        threaded = self.samples * size >= codegen.THREADED_FROM
        data = self._data_of_samples(streams[3], kind, codegen.LANES if threaded else 1)
        layout = Layout(("v", "A"), ((parameters.d,), (size, size)), groups=("v", "A"))
        super().__init__(_module(threaded, size >= WIDE), data, layout)

    def _data_of_samples(
        self, generator: Generator, kind: np.dtype[Any], lanes: int
    ) -> kernels.EmpiricalData:
        """The data of the gradient of all samples; its twin of mini-batches is `_batch_data`."""
        parameters, size, depth = self.parameters, self.parameters.D, self.parameters.d
        batch = min(self.training.batch or self.samples, self.samples)
        width = block_width(size, depth, kind.itemsize, batch)
        self._blocking = sampling.Blocking(self.samples, batch, width)
        patches, labels = sampling.blocks(self.law, self.feature, self._blocking, generator)
        data = kernels.EmpiricalData(
            nu=parameters.nu,
            power=parameters.p,
            scale=parameters.scale,
            diagonal=self.training.diagonal,
            patches=patches.astype(kind),
            labels=labels.astype(kind),
            bounds=np.array([[0, len(patches)]]),
            sizes=np.array([float(self.samples)]),
            batch=np.zeros(1, np.int64),
            sets=self.partition.labels,
            feature=self.feature,
            attention=np.empty((size, size)),
            value=np.empty(depth, kind),
            mixing=np.empty((size, size), kind),
            transposed=np.empty((size, size), kind),
            partial=np.empty((lanes, depth + size * size)),
        )
        self._batch_data = data._replace(
            bounds=self._blocking.bounds, sizes=self._blocking.sizes, batch=np.zeros(1, np.int64)
        )
        return data

    def _least_error(self) -> float:
        sizes = {members.size for members in self.partition.sets}
        if isinstance(self.law, sampling.SignalSets) and len(sizes) == 1:
            return bayes_error(len(self.partition.sets), sizes.pop(), self.law.q)
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

    @property
    def identity(self) -> dict[str, Any]:
        """What a resumed run must find again: beside the settings, the numbers drawn."""
        parts = (self._data.labels, self.feature, self._start, self.fresh.labels)
        return dict(super().identity) | {"drawn": minibatches.fingerprint(parts)}

    def data(self) -> tuple[FloatArray, FloatArray]:
        """The samples: patches X, shape (N, D, d), and labels y, shape (N,)."""
        block, within = self._blocking.positions(0, self.samples)
        patches = self._data.patches[block, :, :, within]
        return patches.astype(np.float64), self._data.labels[block, within].astype(float)

    @property
    def initial_state(self) -> FloatArray:
        """V and A of Parametrization 3.1, realistic case, or the symmetric start."""
        return self._start.copy()

    def _stepped(self, first: int, last: int) -> kernels.EmpiricalData:
        return self._batch_data

    def _batches_of(self, first: int, last: int) -> tuple[IntArray, IntArray]:
        if self.autonomous:
            return super()._batches_of(first, last)
        return self.batch_order(first, last), self._batch_data.batch

    def batch_order(self, first: int, last: int) -> IntArray:
        """The batch of every step first, ..., last - 1.

        Parameters
        ----------
        first, last : int
            Steps, counted from the start of the run.
        """
        return minibatches.order(self._order_seed, self._blocking.sizes.size, first, last)

    def alphas(self, states: FloatArray) -> FloatArray:
        """<v, w*> of each state."""
        return self.layout.part(states, "v") @ self.feature

    def orbit_values(self, states: FloatArray) -> Mapping[str, FloatArray]:
        """Reduced state -> what is compared with it: <v, w*>, orbit means of A; (records, 1)."""
        values = super().orbit_values(states)
        return {name: entries.mean(axis=1, keepdims=True) for name, entries in values.items()}

    @np.errstate(over="ignore", invalid="ignore")
    def observables(self, state: ArrayLike) -> dict[str, float]:
        """Projection, spreads, risk, training and test error, cosine, patch association."""
        flat = self.layout.flatten(state)
        value, alpha = self.layout.part(flat, "v"), float(self.alphas(flat))
        across = float(np.linalg.norm(value - alpha * self.feature))
        length = float(np.hypot(alpha, across))
        weights = softmax(self.layout.part(flat, "A"), self.parameters.scale)
        return (
            {"alpha": alpha}
            | super().observables(flat)
            | {
                "test_error": self.test_error(alpha, across, weights),
                "cosine": alpha / length if length > 0 else 0.0,
            }
        )

    def test_error(self, along: float, across: float, weights: FloatArray) -> float:
        """Share of the fresh samples without yF > 0 (a margin that is rounding is a tie).

        A margin that is not a number is an error, so that a run that diverged scores 1, not 0.

        Parameters
        ----------
        along, across : float
            Length of v along w*, and orthogonal to it.
        weights : float array, shape (D, D)
            S.
        """
        projected = self.fresh.projections(along, across)
        attended = len(weights) * (projected @ weights.T)
        terms = attended**self.parameters.p + self.parameters.nu * attended
        margin = self.fresh.labels * terms.sum(axis=1)
        right = margin > 1e-13 * np.abs(terms).sum(axis=1)
        return float((~right).mean())


def block_width(size: int, depth: int, itemsize: int, batch: int) -> int:
    """Samples of a block: within the cache, and a whole number of blocks in a batch."""
    fitting = (width for width in WIDTHS if width * size * depth * itemsize <= CACHE)
    width = next(fitting, WIDTHS[-1])
    return min(batch, width)


@cache
def _module(threaded: bool, wide: bool) -> codegen.CompiledModule:
    by_rows = (kernels.prepare, kernels.collect_rows) if wide else ()
    entries = (kernels.gradient, kernels.order_parameters, kernels.summary, advance)
    parallel = (kernels.accumulate, *by_rows) if threaded else ()
    parts = [codegen.kernel_source(*entries, parallel=parallel)]
    return codegen.build("Positional attention, realistic problem.", ("v", "A"), parts)
