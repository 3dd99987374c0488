r"""The idealised problem (P) in full, by enumeration of all patch values: oracle of the reduction.

`FullPopulation` trains alpha and every off-diagonal entry of A. It shares nothing with
`ReducedPopulation` but the logistic, so their agreement is evidence for the reduction. The engine
of `dynamics.models` derives the same problem from a model file at small sizes
(`tests/dynamics/models/test_conformance.py`); these kernels go on to a million configurations.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynamics import codegen
from dynamics.problem import FloatArray, Layout
from dynamics.systems.positional_attention.full import MatrixProblem, block_width
from dynamics.systems.positional_attention.full.manifold import Law, hessian
from dynamics.systems.positional_attention.parameters import Parameters
from dynamics.validation import refuse
from theory.symmetry import Partition
from theory.systems.positional_attention.model import bayes_error


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
        partition = partition or Partition.contiguous([set_size] * parameters.L)
        sizes = [members.size for members in partition.sets]
        if sizes != [set_size] * parameters.L:
            allowed = f"a partition of {size} patches in sets of {set_size}"
            refuse("partition", sizes, "are not the sizes of the sets", allowed, "the default")
        self.settings = {"sets": partition.labels.tolist()}
        self.bayes_error = bayes_error(parameters.L, set_size, parameters.q)
        self.law: Law = brute_law(partition, parameters.q)
        samples, threaded = _blocks(self.law), needed >= codegen.THREADED_FROM
        layout = Layout(("alpha", "A"), ((), (size, size)), groups=("v", "A"))
        super().__init__(parameters, partition, np.ones(1), samples, layout, threaded)

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


def brute_configurations(size: int, set_size: int) -> int:
    """Number of configurations: signal sets times values of the other patches, (D/C) 3^(D-C).

    Parameters
    ----------
    size, set_size : int
        D and C.
    """
    return int(size // set_size * 3 ** (size - set_size))


def brute_law(partition: Partition, q: float) -> Law:
    """All patch values given y = +1, and their probabilities.

    Parameters
    ----------
    partition : Partition
        The true sets.
    q : float
        Chance of a feature on a patch of a random set.

    Returns
    -------
    values : int8 array, shape (D, N)
    probabilities : float array, shape (N,)
    """
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


def _blocks(law: Law) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Configurations as samples in blocks: values, labels +1, probabilities."""
    values, probability = law
    size, count = values.shape
    width = block_width(size, 1, 8, count)
    blocks = -(-count // width)
    patches, weights = np.zeros((size, blocks * width)), np.zeros(blocks * width)
    patches[:, :count], weights[:count] = values, probability
    patches = np.ascontiguousarray(patches.reshape(size, blocks, 1, width).transpose(1, 0, 2, 3))
    weights = weights.reshape(blocks, width)
    return patches, np.ones_like(weights), weights
