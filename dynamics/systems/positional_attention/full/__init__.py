"""Problems with every entry of A, and how the reduced problem reads their states.

`population` trains alpha and A on the whole law, `dynamics.systems.positional_attention.empirical`
trains v and A on samples; both are `MatrixProblem`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from dynamics.problem import CompiledProblem, FloatArray
from dynamics.systems.positional_attention.parameters import Parameters
from dynamics.systems.positional_attention.presentation import PRESENTATION
from theory.symmetry import Partition
from theory.systems.positional_attention.notation import EVENTS, ORDER_PARAMETERS, RATES


class MatrixProblem(CompiledProblem):
    """A problem whose state holds every entry of A.

    Attributes
    ----------
    parameters : Parameters
    partition : Partition
        The true sets.
    bayes_error : float
        The least error that any classifier can have.
    """

    system = "positional_attention"
    presentation = PRESENTATION
    events = EVENTS
    order_names = ORDER_PARAMETERS
    rates = RATES

    parameters: Parameters
    partition: Partition
    bayes_error: float

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
