"""The spectral expectation of `dynamics.expectations`, as the reduced problem takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynamics.codegen import AddressedModel
from dynamics.expectations.spectral_sum import SpectralSum
from dynamics.papers.positional_attention.reduced import Expectation, relative_error
from dynamics.problem import FloatArray

if TYPE_CHECKING:
    from dynamics.papers.positional_attention.parameters import Parameters

SECONDS_PER_SUM, SECONDS_PER_TYPE = 1.4e-5, 2.8e-7
"""Predicted time of one sum z, and there of one type; fitted to 20 problems on one core."""


class Spectral(Expectation):
    """Exact to a tolerance at any size.

    Parameters
    ----------
    parameters : Parameters
    tolerance : float
        Relative to the gross contributions.
    """

    def __init__(self, parameters: Parameters, tolerance: float) -> None:
        given, law = parameters, parameters.set_law
        self.sum = SpectralSum(
            given.D, given.C, given.p, given.nu, given.beta, given.scale,
            law.types, law.probabilities, tolerance, law.rounding,
        )  # fmt: skip
        self.settings = {"expectation": "spectral", "tolerance": tolerance}
        self.source = self.sum.module.source

    @property
    def addressed(self) -> AddressedModel:
        """Gradient, Hessian and order parameters, for the compiled loops."""
        return self.sum.addressed

    def risk(self, state: FloatArray) -> float:
        """Risk at a state."""
        return self.sum.value(state)

    def observe(self, states: FloatArray) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Gradients, risk, and the estimated error relative to the gross."""
        known = [self.sum.report(state) for state in states]
        values = np.array([each.value for each in known]).reshape(-1, 4)
        ratios = np.array([relative_error(each.error, each.gross) for each in known])
        return values[:, :3], {"risk": values[:, 3], "error_estimate": ratios}

    def error_estimate(self, state: FloatArray) -> dict[str, FloatArray]:
        """Value, gross and estimated error."""
        known = self.sum.report(state)
        return {"value": known.value, "gross": known.gross, "estimate": known.error}

    def failure(self, state: FloatArray) -> str:
        """Why there is no number: cancellation, overflow, or too many nodes."""
        return self.sum.failure(state)


def predicted_seconds(parameters: Parameters) -> float:
    """Time of one gradient, from the number of sums within three standard deviations.

    Parameters
    ----------
    parameters : Parameters
    """
    spread = 3.0 * np.sqrt((parameters.D - parameters.C) * parameters.q)
    columns = min(2.0 * spread + 1.0, 2.0 * (parameters.D - parameters.C) + 1.0)
    kinds = (parameters.C + 1) * (parameters.C + 2) // 2
    return float((SECONDS_PER_SUM + SECONDS_PER_TYPE * kinds) * columns)
