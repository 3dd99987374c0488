r"""Realistic problem (E): all entries of v and A are trained on N noisy samples.

.. math:: \hat L(A, v) = \frac1N \sum_n \log\big(1 + e^{-y[n] F(X[n])}\big)

The reduced scalars are compared with alpha = <v, w*> and with the mean of A over each orbit. The
law and gradient descent are invariant under rotations, so the feature w* is the first unit vector
by default. Adam is not invariant under rotations, so its runs need a random direction of w*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pydantic
from numpy.random import Generator
from numpy.typing import NDArray

from dynamics.models import positional_attention as file
from dynamics.models.engine.functions import functions_of
from dynamics.models.engine.program import Data, Program, program_of
from dynamics.models.engine.sampled import BATCH, DTYPE, Training
from dynamics.models.engine.traced_problem import TracedProblem, hash_of_file
from dynamics.papers.positional_attention.matrices import MatrixProblem
from dynamics.papers.positional_attention.parameters import Parameters
from dynamics.papers.positional_attention.partitions import check_sets, named_partition
from dynamics.parameter_fields import STRICT, check_parameters, refusing, whole, word
from dynamics.problem import FloatArray, Layout
from dynamics.training.minibatches import fingerprint, sampling_settings
from dynamics.validation import check_cost, integer, random_stream
from theory.law import Law
from theory.model import Model
from theory.papers.positional_attention import samples as sampling
from theory.papers.positional_attention.data_law import SetLaw, bayes_error
from theory.papers.positional_attention.notation import ORDER_PARAMETERS
from theory.symmetry import Partition

MATRICES = 12
"""Minimum number of D x D matrices in a run: states, gradients, rates, records."""
MOST_NUMBERS = 2**29
"""Maximum count of numbers in `MATRICES` matrices, 4 GiB; samples may have twice as many."""


@refusing
@pydantic.dataclasses.dataclass(frozen=True, config=STRICT, kw_only=True)
class RealisticTraining(Training):
    """Options of training for the realistic problem, with the paper's values as defaults.

    `start` is ``"random"`` for v and A as in the realistic case of Parametrization 3.1, or
    ``"symmetric"`` for v = alpha0 w* and A = beta I as in the idealised case. `feature` is
    ``"first"`` if w* is the first unit vector, or ``"random"`` for a random direction. `diagonal`
    says whether the diagonal of A is trained; `test_samples` is the number of fresh samples for the
    test error.
    """

    start: word("random", "symmetric") = "random"  # type: ignore[valid-type]
    feature: word("first", "random") = "first"  # type: ignore[valid-type]
    diagonal: bool = False
    test_samples: whole(1) = 10_000  # type: ignore[valid-type]


def order_parameters(theta: Any, xp: Any, scale: float) -> dict[str, Any]:
    """Alpha, orbit means of A, G and association margin, from the arrays `theta` of the model."""
    matrix = theta["A"]
    same = theta["sets"][:, None] == theta["sets"][None, :]
    inside = 1.0 * same - xp.eye(len(theta["sets"]))
    gaps = xp.min(xp.where(same, matrix, np.inf), axis=1) - xp.max(
        xp.where(same, -np.inf, matrix), axis=1
    )
    return {
        "alpha": theta["v"] @ theta["feature"],
        "gamma": xp.sum(inside * matrix) / xp.sum(inside),
        "rho": xp.sum(xp.where(same, 0.0, matrix)) / xp.sum(1.0 * ~same),
        "G": xp.sum(same * xp.softmax(scale * matrix, axis=-1)),
        "association_margin": xp.min(gaps),
    }


@cache
def trained_model(diagonal: bool = False) -> Model:
    """Model of the model file, with order parameters for every entry of v and A."""
    made = Model(
        start=file.start, law=file.law, fixed=file.fixed, loss=file.loss, observe=file.observe,
        observables=order_parameters, path=Path(file.__file__),
    )  # fmt: skip
    if not diagonal:
        return made

    def loss(
        theta: Any, sample: Any, xp: Any, D: int, p: int, nu: float, scale: float = 1.0
    ) -> Any:
        return xp.softplus(-sample["y"] * xp.sum(file.shares(theta, sample, xp, D, p, nu, scale)))

    return replace(made, loss=loss)


def program_at(model: Model, parameters: Parameters, shapes: Mapping[str, Any]) -> Program:
    """Traced functions of a model, given the shape of each trained array by name."""
    statics = (("D", parameters.D), ("p", parameters.p))
    return program_of(model, statics, tuple(shapes.items()))


COLUMNS = tuple(
    ("observable_rate", name[2:]) if name.startswith("d_") else ("observable", name)
    for name in ORDER_PARAMETERS
)


class FullEmpirical(MatrixProblem, TracedProblem):
    """Realistic problem (E): v and every off-diagonal entry of A are trained on N samples.

    `samples` is the number N; `seed` sets the samples, the start, the test data and the
    mini-batches. `partition` names the true sets: ``"contiguous"`` for consecutive patches
    (default), ``"grid"`` for blocks of a square, ``"random"``, or any partition, with sets of any
    sizes. `law` is another data law, with its own partition. `**training` has ``start``, ``batch``,
    ``dtype``, ``diagonal``, ``test_samples``, see `RealisticTraining`. Raises InvalidRequest for an
    invalid number of samples, partition or option.

    Notes
    -----
    The state is (v, A), flat, A row by row. The method `gradient` uses all samples; `advance` uses
    the batch of each step. With mini-batches the rates among the order parameters at a step come
    from the batch of this step.
    """

    view = "full empirical"
    trained = "A"
    options: ClassVar = {
        "partition": "true sets: contiguous (default), grid or random",
        "start": "random (default) or symmetric, as in the idealised case",
        "feature": "w*: the first unit vector (first, default) or a random direction (random)",
        "batch": BATCH,
        "dtype": DTYPE,
        "diagonal": "1 to train the diagonal of A too",
        "test_samples": "fresh samples of the test error (default 10000)",
    }

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
        self.training = RealisticTraining(**training)
        size, depth = parameters.D, parameters.d
        sizes = range(parameters.C, size, parameters.C)
        check_cost("D", size, lambda D: MATRICES * D**2, MOST_NUMBERS, "numbers", sizes)
        of_samples = 2 * MOST_NUMBERS, "numbers"
        check_cost("samples", self.samples, lambda n: n * size * depth, *of_samples)
        check_cost("test_samples", self.training.test_samples, lambda n: n * size, *of_samples)
        self.parameters = parameters
        streams = random_stream(seed).spawn(6)
        if isinstance(partition, str):
            partition = named_partition(partition, parameters, streams[4])
        self.law = law or sampling.assumption_1(parameters, partition)
        self.partition = self.law.partition
        if law is None:
            check_sets(parameters, self.partition)
        first = self.feature = np.eye(depth)[0]
        if self.training.feature == "random":
            drawn = streams[5].standard_normal(depth)
            self.feature = drawn / np.linalg.norm(drawn)
        self.bayes_error = self._least_error()
        self._start = self._initial_state(streams[0])
        patches, labels = sampling.samples(self.law, depth, self.samples, streams[2])
        data = self._data_of(reflected(patches, first - self.feature), labels, self.feature)
        self.fresh = sampling.fresh(self.law, self.training.test_samples, streams[1])
        self._fresh = self._data_of(self.fresh.pairs(), self.fresh.labels, np.eye(2)[0])
        self.settings = sampling_settings(self.samples, seed, self.training) | {
            "law": type(self.law).__name__,
            "sets": self.partition.labels.tolist(),
        }
        dealt = self.training.minibatches(streams[3], self.samples)
        layout = Layout(("v", self.trained), ((depth,), (size, size)), groups=("v", self.trained))
        program = program_at(
            self._model, parameters, dict(zip(layout.names, layout.shapes, strict=True))
        )
        super().__init__(program, (data, None), layout, COLUMNS, minibatches=dealt)

    @property
    def _model(self) -> Model:
        return trained_model(self.training.diagonal)

    def _data_of(self, patches: FloatArray, labels: FloatArray, feature: FloatArray) -> Data:
        law = Law(np.full(labels.size, 1 / labels.size), {"X": patches, "y": labels})
        reals = {name: getattr(self.parameters, name) for name in ("nu", "beta", "scale")}
        fixed = {"sets": self.partition.labels, "feature": feature}
        return self.training.data(law, fixed, reals)

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

    @property
    def identity(self) -> Mapping[str, Any]:
        """Settings, hashes of model file and random numbers; a resumed run must have the same."""
        numbers = self.data()[1], self._start, self.fresh.labels
        return {**self.settings, "code": hash_of_file(file), "numbers": fingerprint(numbers)}

    def data(self) -> tuple[FloatArray, FloatArray]:
        """Training samples: patches X, shape (N, D, d), and labels y, shape (N,)."""
        samples = self.payload[0].samples
        return np.asarray(samples["X"], np.float64), np.asarray(samples["y"], np.float64)

    @property
    def initial_state(self) -> FloatArray:
        """Flat start (v, A): the realistic case of Parametrization 3.1, or the symmetric start."""
        return self._start.copy()

    def moving(self, start: FloatArray) -> NDArray[np.bool_]:
        """Mask of trained entries: v and A, without the diagonal of A unless `diagonal` is set."""
        every = np.ones(self.layout.size, dtype=bool)
        if not self.training.diagonal:
            np.fill_diagonal(self.layout.part(every, "A"), False)
        return every

    def matrices(self, states: FloatArray) -> FloatArray:
        """Matrices A, shape (records, D, D), of states."""
        return self.layout.part(states, "A")

    def alphas(self, states: FloatArray) -> FloatArray:
        """Projections <v, w*> of states, shape (records,)."""
        return np.asarray(self.layout.part(states, "v") @ self.feature)

    def orbit_values(self, states: FloatArray) -> Mapping[str, FloatArray]:
        """Reduced scalar -> <v, w*> or orbit mean of A to compare with it, shape (records, 1)."""
        values = super().orbit_values(states)
        return {name: entries.mean(axis=1, keepdims=True) for name, entries in values.items()}

    def fits(self, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Risk and error on the training samples at states, shape (records,) each."""
        found = self.observed(states)
        return found["risk"].astype(float), found["observables"]["error"].astype(float)

    @np.errstate(over="ignore", invalid="ignore")
    def observables_along(self, states: FloatArray) -> dict[str, FloatArray]:
        """Name -> observable at states, such as risk, test error, and cosine of v and w*."""
        alpha = self.alphas(states)
        length = np.linalg.norm(self.layout.part(states, "v"), axis=1)
        error = self._test_errors(states)
        cosine = np.divide(alpha, length, out=np.zeros_like(alpha), where=length > 0)
        rest = super().observables_along(states)
        return {"alpha": alpha} | rest | {"test_error": error, "cosine": cosine}

    def _test_errors(self, states: FloatArray) -> FloatArray:
        """Share of fresh samples with y F <= 0, for each state.

        F depends on a patch only through its product with v, so v is replaced by two numbers: the
        lengths of its parts along and across w*.
        """
        size = self.parameters.D
        program = program_at(trained_model(), self.parameters, {"v": (2,), "A": (size, size)})
        value, alpha = self.layout.part(states, "v"), self.alphas(states)
        across = np.linalg.norm(value - alpha[:, None] * self.feature, axis=1)
        pairs = np.stack([alpha, across], axis=1)
        flat = np.concatenate([pairs, self.matrices(states).reshape(len(states), -1)], axis=1)
        functions = functions_of(program, False, COLUMNS, flat.shape[1])
        found = functions.observed(flat, (self._fresh, None))
        return np.asarray(found["observables"]["error"], dtype=float)


def reflected(patches: FloatArray, normal: FloatArray) -> FloatArray:
    """Patches (..., d) reflected at the plane orthogonal to `normal`; unchanged for normal = 0."""
    square = normal @ normal
    if square == 0:
        return patches
    return np.asarray(patches - (2 / square) * (patches @ normal)[..., None] * normal)
