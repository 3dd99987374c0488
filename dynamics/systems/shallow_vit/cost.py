"""What a gradient costs, predicted: the order in which the points of a sweep are run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from theory.systems.shallow_vit.data_law import support_size

if TYPE_CHECKING:
    from dynamics.systems.shallow_vit.parameters import Parameters

PER_NEURON = 2e-10
"""Seconds for each neuron and pair of patterns of a count vector."""
PER_TOKEN = 1.7e-9
"""Seconds for each neuron and token of a sample, of the problem with noise."""
PER_PRODUCT = 3e-9
"""Seconds for each neuron, token and dimension of a sample, by brute force."""


def gradient_seconds(parameters: Parameters, full: str | None, options: Mapping[str, Any]) -> float:
    """Predicted time of one gradient; see `dynamics.registry.System`."""
    vectors = float(support_size(parameters.shares, parameters.data))
    samples = float(options.get("samples") or vectors)
    placed = parameters.output_weights == "per_position"
    many = samples if placed else min(samples, vectors)
    if full == "empirical":
        return PER_TOKEN * samples * parameters.L * parameters.m
    if full == "population":
        return PER_PRODUCT * many * parameters.L * parameters.m * parameters.d
    return PER_NEURON * (many * parameters.M**2 + 2 * parameters.d * parameters.M) * parameters.m
