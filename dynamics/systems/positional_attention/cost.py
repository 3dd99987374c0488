"""What a gradient costs, predicted: the order in which the points of a sweep are run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dynamics.systems.positional_attention.reduced import enumeration, selection

if TYPE_CHECKING:
    from dynamics.systems.positional_attention.parameters import Parameters

PER_PRODUCT = 4e-10
"""Seconds for each entry of A and each feature or configuration."""


def gradient_seconds(parameters: Parameters, full: str | None, options: Mapping[str, Any]) -> float:
    """Predicted time of one gradient; see `dynamics.registry.System`."""
    entries = PER_PRODUCT * parameters.D**2
    if full == "empirical":
        return entries * parameters.d * float(options.get("samples", 1))
    if full == "population":
        return entries * enumeration.count(parameters.L, parameters.C)
    return selection.predicted_seconds(parameters, str(options.get("expectation", "auto")))
