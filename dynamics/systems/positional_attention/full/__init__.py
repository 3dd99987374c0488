r"""Problems with every entry of A, and the idealised problem (P) in full.

`MatrixProblem` is the base: `FullPopulation` trains alpha and A on the whole law, the problems of
`dynamics.systems.positional_attention.empirical` train v and A on samples. `FullPopulation`
enumerates all patch values and shares nothing with `ReducedPopulation` but the logistic, so their
agreement is evidence for the reduction. The engine of `dynamics.models` derives the same problem
from a model file at small sizes (`tests/dynamics/models/test_conformance.py`); these kernels go on
to a million configurations.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import cache, cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics import codegen
from dynamics.codegen import AddressedModel, loops
from dynamics.problem import FloatArray, Layout, record_of
from dynamics.systems.empirical_problem import SampledProblem
from dynamics.systems.positional_attention.full.blocks import Blocking, lanes_for, sample_blocks
from dynamics.systems.positional_attention.full.enumeration import (
    brute_configurations,
    brute_law,
    nearest_brute,
)
from dynamics.systems.positional_attention.full.manifold import Law, hessian
from dynamics.systems.positional_attention.kernels import full as kernels
from dynamics.systems.positional_attention.kernels.full import SampleBlocks
from dynamics.systems.positional_attention.parameters import Parameters
from dynamics.systems.positional_attention.presentation import PositionalProblem
from dynamics.training.minibatches import MiniBatches
from dynamics.validation import check_parameters, refuse, written
from theory.papers.positional_attention.data_law import bayes_error
from theory.symmetry import Partition

NOTED = ("risk", "error", "gamma_spread", "rho_spread", "patch_association")
"""What a pass leaves behind beside the order parameters."""
WIDE = 64
"""Patches from which on rows of A are worth sharing among threads."""


class MatrixProblem(PositionalProblem, SampledProblem):
    """A problem whose state holds every entry of A.

    Parameters
    ----------
    parameters : Parameters
    partition : Partition
        The true sets.
    feature : float array, shape (d,)
        w*.
    samples : SampleBlocks
        All of them.
    layout : Layout
        Of the state: d entries, then A row by row.
    threaded : bool
        Whether sums are shared among threads.
    minibatches : MiniBatches
        Which samples every step is on.
    diagonal : bool
        Whether the diagonal of A is trained.

    Attributes
    ----------
    bayes_error : float
        The least error that any classifier can have.
    """

    bayes_error: float

    def __init__(
        self,
        parameters: Parameters,
        partition: Partition,
        feature: FloatArray,
        samples: SampleBlocks,
        layout: Layout,
        threaded: bool,
        minibatches: MiniBatches,
        diagonal: bool = False,
    ) -> None:
        size, kind = parameters.D, samples.patches.dtype
        lanes = lanes_for(minibatches.size or minibatches.samples) if threaded else 1
        self.parameters, self.partition = parameters, partition
        data = kernels.MatrixData(
            nu=parameters.nu,
            power=parameters.p,
            scale=parameters.scale,
            diagonal=diagonal,
            backward=True,
            batch=samples,
            sets=partition.labels,
            feature=feature,
            attention=np.empty((size, size)),
            attention_of=np.full((size, size), np.nan),
            value=np.empty(feature.size, kind),
            mixing=np.empty((size, size), kind),
            transposed=np.empty((size, size), kind),
            partial=np.empty((lanes, feature.size + size * size)),
        )
        super().__init__(_module(threaded, size >= WIDE), data, layout, minibatches)

    @abstractmethod
    def alphas(self, states: FloatArray) -> FloatArray:
        """<v, w*> of each state of shape (..., n)."""

    def orbit_values(self, states: FloatArray) -> Mapping[str, FloatArray]:
        """Reduced state -> every value that it stands for, shape (records, values).

        Beside alpha stands <v, w*>; beside gamma the off-diagonal entries of A inside sets; beside
        rho those between sets.
        """
        # By positions: a sum over a row is then the same whatever stands beside it.
        own, other = self._orbits
        return {
            "alpha": self.alphas(states)[:, None],
            "gamma": states.take(own, axis=1),
            "rho": states.take(other, axis=1),
        }

    @cached_property
    def _orbits(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Positions in the state of the off-diagonal entries of A inside and between sets."""
        same, first = same_set(self.partition), self.layout.slice_of("A").start
        inside = same & ~np.eye(len(same), dtype=bool)
        return first + np.flatnonzero(inside), first + np.flatnonzero(~same)

    @property
    def pass_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Risk and error, spreads and association, where every step is on all samples."""
        return NOTED if self.autonomous else ()

    def observables(self, state: ArrayLike) -> dict[str, float]:
        """Orbit means and spreads of A, G, alpha G, risk, errors, patch association at a state.

        The last finite state of a run that diverged may be too large for some of them.
        """
        return record_of(self.observables_along(self.layout.flatten(state)[None, :]), 0)

    def observables_along(self, states: FloatArray) -> dict[str, FloatArray]:
        """`observables` of states, shape (records, n): name -> values, shape (records,)."""
        every = np.ones(len(states), dtype=bool)
        return self.observables_of_records(states, np.full((len(states), 0), np.nan), every)

    @np.errstate(over="ignore", invalid="ignore")
    def observables_of_records(
        self, states: FloatArray, noted: FloatArray, costly: NDArray[np.bool_]
    ) -> dict[str, FloatArray]:
        """`observables_along` of the records of gradient descent; see `Problem`."""
        alpha, known = self.alphas(states), self._known(states, noted)
        return {
            "gamma": known["gamma"],
            "rho": known["rho"],
            "gamma_spread": known["gamma_spread"],
            "rho_spread": known["rho_spread"],
            "G": known["G"],
            "alpha_G": alpha * known["G"],
            "risk": known["risk"],
            "error": known["error"],
            "bayes_error": np.full(len(states), self.bayes_error),
            "patch_association": known["patch_association"],
            "cosine": np.sign(alpha),
        }

    @cached_property
    def _forward(self) -> AddressedModel:
        """The compiled functions on all samples, for passes that end with risk and error."""
        return self.addressed.with_data(self._data._replace(backward=False))

    def _summary(self, state: FloatArray) -> FloatArray:
        # The kernel's summary is of the last pass; order parameters need none (`reads_pass`).
        return risk_and_error(self._forward, state)

    def _known(self, states: FloatArray, noted: FloatArray) -> dict[str, FloatArray]:
        """Orbit means of A, G and `NOTED` of the records, computed where no pass has noted them.

        Parameters
        ----------
        states, noted
            As those of `observables_of_records`.
        """
        names = (*self.order_names, *NOTED)
        table = noted.copy() if noted.shape[1] else np.full((len(states), len(names)), np.nan)
        needed = [names.index(name) for name in ("G", "risk", "error")]
        for k in np.flatnonzero(np.isnan(table[:, needed]).any(axis=1)):
            risk_and_error(self._forward, states[k])
            still = np.zeros(states.shape[1])  # rates are not asked for
            table[k] = loops.order_parameters(self._forward, states[k], still, len(names))
        kept = ("gamma", "rho", "G", *NOTED)
        return {name: table[:, names.index(name)] for name in kept}


def risk_and_error(model: AddressedModel, state: FloatArray) -> FloatArray:
    """Risk and error by a forward pass, shape (2,).

    Parameters
    ----------
    model : AddressedModel
        Of data that are not ``backward``.
    state : float array, shape (d + D * D,)
    """
    loops.gradient(model, state)
    return loops.summary(model, state)


def same_set(partition: Partition) -> np.ndarray:
    """Whether patches i and j belong to one set, shape (D, D)."""
    return partition.labels[:, None] == partition.labels[None, :]


def softmax(matrix: FloatArray, scale: float) -> FloatArray:
    """S, the softmax of every row of scale * A.

    Parameters
    ----------
    matrix : float array, shape (D, D)
        A.
    scale : float
        Factor in the exponent.

    Returns
    -------
    float array, shape (D, D)
    """
    weights = np.exp(scale * (matrix - matrix.max(axis=1, keepdims=True)))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def own_attention(weights: FloatArray, partition: Partition) -> float:
    """G: D times the mean attention that falls inside the own set.

    Parameters
    ----------
    weights : float array, shape (D, D)
        S.
    partition : Partition
        The true sets.
    """
    return float(weights[same_set(partition)].sum())


class FullPopulation(MatrixProblem):
    """(P) with alpha and every off-diagonal entry of A trained, by brute enumeration.

    Parameters
    ----------
    parameters : Parameters
    partition : Partition, optional
        The true sets, of size C; consecutive patches by default.
    max_configurations : int
        Largest number of configurations that is accepted.

    Raises
    ------
    InvalidRequest
        If the enumeration is larger than that, with the number it needs.

    Notes
    -----
    The state is (alpha, A), flat, A row by row, its diagonal held at beta. Noise is orthogonal to
    w* and never enters F, so v stays in span(w*) (Lemma 4.2, checked by computation in `theory`).
    The label is +1: the other half of the law has the same risk because the activation is odd.
    """

    view = "full population"

    def __init__(
        self,
        parameters: Parameters,
        partition: Partition | None = None,
        max_configurations: int = 1_000_000,
    ) -> None:
        check_parameters(parameters, Parameters)
        size, set_size = parameters.D, parameters.C
        needed = brute_configurations(size, set_size)
        if needed > max_configurations:
            refuse(
                "D",
                size,
                f"needs {written(needed)} configurations in the full population problem at "
                f"C={set_size}",
                f"a size of at most {max_configurations:,} configurations "
                "(the reduced problem has no such limit)",
                nearest_brute(set_size, max_configurations),
            )
        partition = partition or Partition.contiguous([set_size] * parameters.L)
        sizes = [members.size for members in partition.sets]
        if sizes != [set_size] * parameters.L:
            allowed = f"a partition of {size} patches in sets of {set_size}"
            refuse("partition", sizes, "are not the sizes of the sets", allowed, "the default")
        self.settings = {"sets": partition.labels.tolist()}
        self.bayes_error = bayes_error(parameters.set_law, parameters.L)
        self.law: Law = brute_law(partition, parameters.set_law)
        values, probability = self.law
        samples = sample_blocks(
            values.T[:, :, None].astype(np.float64),
            np.ones_like(probability),
            probability,
            Blocking.of(size, 1, 8, probability.size),
        )
        layout = Layout(("alpha", "A"), ((), (size, size)), groups=("v", "A"))
        super().__init__(
            parameters,
            partition,
            np.ones(1),
            samples,
            layout,
            needed >= codegen.THREADED_FROM,
            MiniBatches(0, probability.size, None),
        )

    def random_numbers(self) -> tuple[np.ndarray, ...]:
        """None: everything follows from the parameters."""
        return ()

    @property
    def initial_state(self) -> FloatArray:
        """alpha0, and A = beta I (Parametrization 3.1, idealised case)."""
        matrix = self.parameters.beta * np.eye(self.parameters.D)
        return self.layout.flatten((self.parameters.alpha0, matrix))

    @property
    def has_jacobian(self) -> bool:
        """The Hessian is in closed form; see `hessian`."""
        return True

    def jacobian(self, state: ArrayLike) -> FloatArray:
        """Hessian of the risk by alpha and every off-diagonal entry, shape (1 + D^2, 1 + D^2)."""
        return hessian(self.layout.flatten(state), self.law, self.parameters)

    def alphas(self, states: FloatArray) -> FloatArray:
        """Alpha, the first entry of each state."""
        return self.layout.part(states, "alpha")


@cache
def _module(threaded: bool, wide: bool) -> codegen.CompiledModule:
    by_rows = (kernels.prepare, kernels.collect_rows) if wide else ()
    entries = (kernels.gradient, kernels.order_parameters, kernels.summary)
    parallel = (kernels.accumulate, *by_rows) if threaded else ()
    parts = [codegen.kernel_source(*entries, parallel=parallel, data=(kernels.MatrixData,))]
    return codegen.build("Positional attention, every entry of A.", ("v", "A"), parts)
