"""What a gradient costs, predicted: the order in which the points of a sweep are run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dynamics.systems.masked_image_modeling import sampling
from dynamics.systems.masked_image_modeling.expectation import blocks, choose
from dynamics.systems.masked_image_modeling.projection import rows_of

if TYPE_CHECKING:
    from dynamics.systems.masked_image_modeling.parameters import Parameters

PER_KEY = 8e-9
"""Seconds for each key of each masked query of an image."""
PER_PRODUCT = 3e-9
"""The same for each dimension, in the full population problem."""


def gradient_seconds(parameters: Parameters, full: str | None, options: Mapping[str, Any]) -> float:
    """Predicted time of one gradient; see `dynamics.systems.System`."""
    keys = float(parameters.P * parameters.masked)
    if full == "empirical":
        return PER_KEY * keys * float(options.get("samples", 1))
    if full == "population":
        return PER_PRODUCT * keys * parameters.d * sampling.number(parameters)
    name = str(options.get("expectation", "auto"))
    found = blocks.blocks_of(rows_of(parameters).types)
    return sum(choose.seconds(block, parameters, name) for block in found)
