"""Idealised problem (P) in alpha and every entry of A, summed over all configurations.

`FullPopulation` enumerates all patch values and shares no code with `ReducedPopulation`, so their
agreement is evidence for the reduction.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynamics import loops
from dynamics.expectations import Expectation
from dynamics.papers.positional_attention.kernels import full as kernels
from dynamics.papers.positional_attention.matrices import MatrixProblem
from dynamics.papers.positional_attention.parameters import Parameters
from dynamics.parameter_fields import check_parameters
from dynamics.problem import ExpectedProblem, FloatArray, Layout
from dynamics.validation import check_cost, refuse
from theory.papers.positional_attention.data_law import bayes_error
from theory.papers.positional_attention.enumeration import Law, brute_configurations, brute_law
from theory.symmetry import Partition

MOST, HUGE = 1_000_000, 10**300
"""Maximum number of enumerated configurations; larger value at which their number is capped."""


class FullPopulation(MatrixProblem, ExpectedProblem):
    """Idealised problem (P): alpha and every off-diagonal entry of A are trained, by enumeration.

    `partition` has the true sets, of size C; by default sets of consecutive patches. Raises
    InvalidRequest for more than `MOST` configurations.

    Notes
    -----
    The flat state has alpha, then A row by row, with the diagonal of A fixed at beta. Noise is
    orthogonal to w* and never enters F, so v stays in span(w*) (Lemma 4.2). All samples have the
    label +1, because the activation is odd and label -1 has the same risk.
    """

    view = "full population"

    def __init__(
        self,
        parameters: Parameters,
        partition: Partition | None = None,
    ) -> None:
        check_parameters(parameters, Parameters)
        size, set_size = parameters.D, parameters.C
        check_cost(
            "D", size, lambda D: float(min(brute_configurations(D, set_size), HUGE)), MOST,
            "configurations of the full problem", range(set_size, size, set_size),
        )  # fmt: skip
        partition = partition or Partition.contiguous([set_size] * parameters.L)
        sizes = [members.size for members in partition.sets]
        if sizes != [set_size] * parameters.L:
            allowed = f"a partition of {size} patches in sets of {set_size}"
            refuse("partition", sizes, "are not the sizes of the sets", allowed, "the default")
        self.parameters, self.partition = parameters, partition
        self.settings = {"sets": partition.labels.tolist()}
        self.bayes_error = bayes_error(parameters.set_law, parameters.L)
        self.law: Law = brute_law(partition, parameters.set_law)
        data = kernels.MatrixData(
            np.ascontiguousarray(self.law[0].T, dtype=np.float64), self.law[1], partition.labels,
            parameters.p, parameters.nu, parameters.scale,
        )  # fmt: skip
        self.expectation = EveryConfiguration(data)
        self.layout = Layout(("alpha", "A"), ((), (size, size)), groups=("v", "A"))

    @property
    def initial_state(self) -> FloatArray:
        """Start alpha = alpha0, A = beta I (Parametrization 3.1, idealised case)."""
        matrix = self.parameters.beta * np.eye(self.parameters.D)
        return self.layout.flatten((self.parameters.alpha0, matrix))

    def moving(self, start: FloatArray) -> NDArray[np.bool_]:
        """Mask of trained entries: all except the diagonal of A."""
        return np.append(True, ~np.eye(self.parameters.D, dtype=bool))

    def matrices(self, states: FloatArray) -> FloatArray:
        """Matrices A, shape (records, D, D), of states."""
        return self.layout.part(states, "A")

    def alphas(self, states: FloatArray) -> FloatArray:
        """Values of alpha at states, shape (records,)."""
        return self.layout.part(states, "alpha")

    def fits(self, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Risk and error at states, shape (records,) each."""
        found = np.array([loops.summary(self.loop_data, state) for state in states])
        return found[:, 0], found[:, 1]


class EveryConfiguration(Expectation):
    """Expectation as a plain sum over all configurations, without reduction."""

    name = "exact"
    has_hessian = False

    def __init__(self, data: kernels.MatrixData) -> None:
        self.data = data
