"""Problems with every entry of A, and how the reduced problem reads their states.

`population` trains alpha and A on the whole law, `dynamics.systems.positional_attention.empirical`
trains v and A on samples; both are `MatrixProblem`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics import codegen
from dynamics.codegen.kernels.advance import advance
from dynamics.problem import FloatArray, Layout
from dynamics.systems.positional_attention.kernels import full as kernels
from dynamics.systems.positional_attention.parameters import Parameters
from dynamics.systems.positional_attention.presentation import PositionalProblem
from theory.symmetry import Partition

CACHE = 1 << 20
"""Bytes of a block of samples, which is read twice."""
WIDE = 64
"""Patches from which on rows of A are worth sharing among threads."""
WIDTHS = (128, 64, 32, 16, 8)
"""Samples of a block: the widest that fits; fewer than 8 would not fill a vector."""


class MatrixProblem(PositionalProblem):
    """A problem whose state holds every entry of A.

    Parameters
    ----------
    parameters : Parameters
    partition : Partition
        The true sets.
    feature : float array, shape (d,)
        w*.
    samples : (patches, labels, weights)
        In blocks, see `dynamics.systems.positional_attention.kernels.full.MatrixData`.
    layout : Layout
        Of the state: d entries, then A row by row.
    threaded : bool
        Whether sums are shared among threads.
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
        samples: tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
        layout: Layout,
        threaded: bool,
        diagonal: bool = False,
    ) -> None:
        patches, labels, weights = samples
        size, kind = parameters.D, patches.dtype
        self.parameters, self.partition = parameters, partition
        data = kernels.MatrixData(
            nu=parameters.nu,
            power=parameters.p,
            scale=parameters.scale,
            diagonal=diagonal,
            patches=patches,
            labels=labels,
            weights=weights,
            bounds=np.array([[0, len(patches)]]),
            totals=np.array([weights.sum(dtype=np.float64)]),
            batch=np.zeros(1, np.int64),
            sets=partition.labels,
            feature=feature,
            attention=np.empty((size, size)),
            value=np.empty(feature.size, kind),
            mixing=np.empty((size, size), kind),
            transposed=np.empty((size, size), kind),
            partial=np.empty((codegen.LANES if threaded else 1, feature.size + size * size)),
        )
        super().__init__(_module(threaded, size >= WIDE), data, layout)

    def alphas(self, states: FloatArray) -> FloatArray:
        """<v, w*> of each state of shape (..., n)."""
        raise NotImplementedError

    def orbit_values(self, states: FloatArray) -> Mapping[str, FloatArray]:
        """Reduced state -> every value that it stands for, shape (records, values).

        Beside alpha stands <v, w*>; beside gamma the off-diagonal entries of A inside sets; beside
        rho those between sets.
        """
        matrices = self.layout.part(states, "A")
        same = same_set(self.partition)
        return {
            "alpha": self.alphas(states)[:, None],
            "gamma": matrices[:, same & ~np.eye(len(same), dtype=bool)],
            "rho": matrices[:, ~same],
        }

    @np.errstate(over="ignore", invalid="ignore")
    def observables(self, state: ArrayLike) -> dict[str, float]:
        """Orbit means and spreads of A, G, alpha G, risk, errors, patch association at a state.

        The last finite state of a run that diverged may be too large for some of them.
        """
        flat = self.layout.flatten(state)
        matrix, alpha = self.layout.part(flat, "A"), float(self.alphas(flat))
        values = MatrixProblem.orbit_values(self, flat[None, :])
        own = own_attention(softmax(matrix, self.parameters.scale), self.partition)
        risk, error = self._summary(flat)
        return {
            "gamma": float(values["gamma"].mean()),
            "rho": float(values["rho"].mean()),
            "gamma_spread": float(values["gamma"].std()),
            "rho_spread": float(values["rho"].std()),
            "G": own,
            "alpha_G": alpha * own,
            "risk": float(risk),
            "error": float(error),
            "bayes_error": self.bayes_error,
            "patch_association": associated_rows(matrix, self.partition),
            "cosine": float(np.sign(alpha)),
        }


def block_width(size: int, depth: int, itemsize: int, batch: int) -> int:
    """Samples of a block: within the cache, and no more than a mini-batch has.

    Parameters
    ----------
    size, depth : int
        D and d.
    itemsize : int
        Bytes of a number.
    batch : int
        Samples of a mini-batch.
    """
    fitting = (width for width in WIDTHS if width * size * depth * itemsize <= CACHE)
    return min(batch, next(fitting, WIDTHS[-1]))


@cache
def _module(threaded: bool, wide: bool) -> codegen.CompiledModule:
    by_rows = (kernels.prepare, kernels.collect_rows) if wide else ()
    entries = (kernels.gradient, kernels.order_parameters, kernels.summary, advance)
    parallel = (kernels.accumulate, *by_rows) if threaded else ()
    parts = [codegen.kernel_source(*entries, parallel=parallel)]
    return codegen.build("Positional attention, every entry of A.", ("v", "A"), parts)


def same_set(partition: Partition) -> np.ndarray:
    """Whether patches i and j belong to one set, shape (D, D)."""
    return partition.labels[:, None] == partition.labels[None, :]


def associated_rows(matrix: FloatArray, partition: Partition) -> float:
    """Share of rows i whose C largest A_ij are exactly their set (Definition 2.2).

    Parameters
    ----------
    matrix : float array, shape (D, D)
        A. Ties count against association: the least entry inside the set must exceed the greatest
        one outside.
    partition : Partition
        The true sets.
    """
    same = same_set(partition)
    inside = np.where(same, matrix, np.inf).min(axis=1)
    outside = np.where(same, -np.inf, matrix).max(axis=1)
    return float((inside > outside).mean())


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
