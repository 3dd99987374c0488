"""Observables of every entry of A: orbit means, spreads, attention, patch association."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.papers.positional_attention.presentation import PositionalProblem
from dynamics.problem import FloatArray, record_of
from theory.papers.positional_attention.attention import same_set
from theory.symmetry import Partition


class MatrixProblem(PositionalProblem):
    """Base of problems that report on every entry of A.

    `partition` has the true sets; `bayes_error` is the smallest error of any classifier.
    """

    partition: Partition
    bayes_error: float

    @abstractmethod
    def matrices(self, states: FloatArray) -> FloatArray:
        """Matrices A, shape (records, D, D), of states."""

    @abstractmethod
    def alphas(self, states: FloatArray) -> FloatArray:
        """Projections <v, w*> of states, shape (records,)."""

    @abstractmethod
    def fits(self, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Risk and error on the training samples at states, shape (records,) each."""

    @cached_property
    def _orbits(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Flat indices of the off-diagonal entries of A inside sets, and of those between sets."""
        same = same_set(self.partition)
        return np.flatnonzero(same & ~np.eye(len(same), dtype=bool)), np.flatnonzero(~same)

    def orbit_values(self, states: FloatArray) -> Mapping[str, FloatArray]:
        """Reduced scalar -> all values compared with it, shape (records, values).

        The scalar gamma is compared with the off-diagonal entries of A inside sets, rho with the
        entries of A between sets.
        """
        flat = self.matrices(states).reshape(len(states), -1)
        own, other = self._orbits
        return {
            "alpha": self.alphas(states)[:, None],
            "gamma": flat.take(own, axis=1),
            "rho": flat.take(other, axis=1),
        }

    def observables(self, state: ArrayLike) -> dict[str, float]:
        """Name -> observable at a state, such as orbit means and spreads of A, risk and errors."""
        return record_of(self.observables_along(self.layout.flatten(state)[None, :]), 0)

    @np.errstate(over="ignore", invalid="ignore")
    def observables_along(self, states: FloatArray) -> dict[str, FloatArray]:
        """Name of an observable -> its values at states of shape (records, n), shape (records,)."""
        still = np.zeros(states.shape[1])  # rates are not reported
        order = np.array([self.order_parameters(state, still) for state in states])
        alpha, gamma, rho, own = order.T[:4]
        values = MatrixProblem.orbit_values(self, states)
        risk, error = self.fits(states)
        return {
            "gamma": gamma,
            "rho": rho,
            "gamma_spread": spread(values["gamma"]),
            "rho_spread": spread(values["rho"]),
            "G": own,
            "alpha_G": alpha * own,
            "risk": risk,
            "error": error,
            "bayes_error": np.full(len(states), self.bayes_error),
            "patch_association": associated_share(self.matrices(states), same_set(self.partition)),
            "cosine": np.sign(alpha),
        }


def associated_share(matrices: FloatArray, same: NDArray[np.bool_]) -> FloatArray:
    """Share of the rows of A in which the own set has the largest entries, for each record."""
    inside = np.where(same, matrices, np.inf).min(axis=2)
    outside = np.where(same, -np.inf, matrices).max(axis=2)
    return np.asarray((inside > outside).mean(axis=1))


def spread(entries: FloatArray) -> FloatArray:
    """Standard deviation of each row: exactly 0 for equal entries, NaN without entries."""
    if not entries.shape[1]:
        return np.full(len(entries), np.nan)
    return np.asarray((entries - entries[:, :1]).std(axis=1))
