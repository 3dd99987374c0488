r"""The idealised problem (P) in full, by brute force: the oracle of the reduction.

`FullPopulation` trains alpha and every off-diagonal entry of A; the risk is summed over all values
of all patches. It shares nothing with `ReducedPopulation` but the logistic, so their agreement is
evidence for the reduction.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from dynamics import codegen
from dynamics.codegen.kernels.advance import advance
from dynamics.codegen.kernels.logistic import logistic, logistic_loss
from dynamics.problem import CompiledProblem, FloatArray, Layout
from dynamics.systems.positional_attention.full.attention import attention_sources
from dynamics.systems.positional_attention.full.hessian import Law, hessian
from dynamics.systems.positional_attention.full.projection import associated_rows, orbit_values
from dynamics.systems.positional_attention.kernels import full as brute_kernels
from dynamics.systems.positional_attention.parameters import Parameters
from dynamics.systems.positional_attention.presentation import PRESENTATION
from dynamics.validation import refuse
from theory.symmetry import Partition
from theory.systems.positional_attention.model import bayes_error
from theory.systems.positional_attention.notation import EVENTS, ORDER_PARAMETERS, RATES


class FullPopulation(CompiledProblem):
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

    system = "positional_attention"
    view = "full population"
    presentation = PRESENTATION
    events = EVENTS
    order_names = ORDER_PARAMETERS
    rates = RATES

    def __init__(
        self,
        parameters: Parameters,
        partition: Partition | None = None,
        max_configurations: int = 1_000_000,
    ) -> None:
        size, set_size = parameters.D, parameters.C
        needed = brute_configurations(size, set_size)
        if needed > max_configurations:
            refuse(
                "D",
                size,
                f"needs {needed:,} configurations in the full population problem at C={set_size}",
                f"a size of at most {max_configurations:,} configurations "
                "(the reduced problem has no such limit)",
                _nearest_brute(set_size, max_configurations),
            )
        self.parameters = parameters
        self.partition = partition or Partition.contiguous([set_size] * parameters.L)
        sizes = [members.size for members in self.partition.sets]
        if sizes != [set_size] * parameters.L:
            allowed = f"a partition of {size} patches in sets of {set_size}"
            refuse("partition", sizes, "are not the sizes of the sets", allowed, "the default")
        self.settings = {"sets": self.partition.labels.tolist()}
        self.law: Law = brute_law(self.partition, parameters.q)
        threaded = self.law[1].size >= codegen.THREADED_FROM
        lanes = codegen.LANES if threaded else 1
        constants = np.array([parameters.nu, float(parameters.p), parameters.scale])
        work = (np.empty((size, size)), np.empty((lanes, 1 + size * size)))
        data = (constants, self.law, self.partition.labels, work)
        super().__init__(_brute_module(threaded), data, _layout(size))

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

    def orbit_values(self, states: FloatArray) -> Mapping[str, FloatArray]:
        """Reduced state -> the entries it stands for, shape (records, entries)."""
        matrices = self.layout.part(states, "A")
        return orbit_values(self.layout.part(states, "alpha"), matrices, self.partition)

    def observables(self, state: ArrayLike) -> dict[str, float]:
        """Orbit means and spreads of A, G, alpha G, risk, errors, patch association at a state."""
        flat = self.layout.flatten(state)
        order = dict(zip(self.order_names, self.order_parameters(flat), strict=True))
        values = self.orbit_values(flat[None, :])
        risk, error = self._summary(flat)
        return {
            "gamma": float(order["gamma"]),
            "rho": float(order["rho"]),
            "gamma_spread": float(values["gamma"].std()),
            "rho_spread": float(values["rho"].std()),
            "G": float(order["G"]),
            "alpha_G": float(order["alpha"] * order["G"]),
            "risk": float(risk),
            "error": float(error),
            "bayes_error": bayes_error(self.parameters.L, self.parameters.C, self.parameters.q),
            "patch_association": associated_rows(self.layout.part(flat, "A"), self.partition),
            "cosine": float(np.sign(order["alpha"])),
        }


def _layout(size: int) -> Layout:
    return Layout(("alpha", "A"), ((), (size, size)), groups=("v", "A"))


def brute_configurations(size: int, set_size: int) -> int:
    """Signal sets times values of the other patches: (D/C) 3^(D-C)."""
    return int(size // set_size * 3 ** (size - set_size))


def brute_law(partition: Partition, q: float) -> Law:
    """All patch values given y = +1, shape (D, N), and their probabilities."""
    blocks, weights = [], []
    for members in partition.sets:
        others = np.setdiff1d(np.arange(partition.size), members)
        grid = np.indices((3,) * others.size, dtype=np.int8).reshape(others.size, -1) - 1
        values = np.ones((partition.size, grid.shape[1]), dtype=np.int8)
        values[others] = grid
        weights.append(np.where(grid == 0, 1 - q, q / 2).prod(axis=0) / len(partition.sets))
        blocks.append(values)
    return np.ascontiguousarray(np.concatenate(blocks, axis=1)), np.concatenate(weights)


def _nearest_brute(set_size: int, limit: int) -> str:
    fitting = [s for s in range(2, 64) if brute_configurations(s * set_size, set_size) <= limit]
    if fitting:
        return f"D={fitting[-1] * set_size} at C={set_size}"
    return f"D=4 at C=2 (no D fits C={set_size})"


@cache
def _brute_module(threaded: bool) -> codegen.CompiledModule:
    parts = [
        codegen.constants(brute_kernels, "BLOCK"),
        codegen.inline(logistic),
        codegen.inline(logistic_loss),
        *attention_sources(),
        codegen.inline(brute_kernels.margins),
        codegen.inline(brute_kernels.accumulate, "parallel_kernel" if threaded else "kernel"),
        codegen.inline(brute_kernels.gradient),
        codegen.inline(brute_kernels.order_parameters),
        codegen.inline(brute_kernels.summary),
        codegen.inline(advance, "exact_kernel"),
    ]
    return codegen.build("Positional attention, full population problem.", ("alpha", "A"), parts)
