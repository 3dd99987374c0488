"""The page of the shallow ViT: every entry is trained, and the curves are order parameters.

The hinge loss has kinks at which training stays, so that there is no flow: the page has gradient
descent, from the random start of one seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dynamics.explorer import prepared
from dynamics.explorer.page_model import PageModel
from dynamics.registry import System
from dynamics.systems.shallow_vit.parameters import Parameters
from dynamics.validation import InvalidRequest

MOST_ENTRIES = 4000
"""Trained entries of a page: a step of so many takes milliseconds."""
MEMORY = ("layer", "column", "sums", "memory")
"""Fields of the data that are memory of the kernels."""
SHARES = (0.3, 0.4, 0.5, 0.6, 0.7)
"""Relevant tokens of a sample."""
MARGINS = (0.5, 1.0, 2.0)
"""Factors of the margin of the parameters."""


def page_model(system: System, parameters: Parameters) -> PageModel:
    """The model of the page.

    Parameters
    ----------
    system : System
    parameters : Parameters
        First positions of the sliders.

    Raises
    ------
    InvalidRequest
        Where a step would take too long for a page.
    """
    size = system.ReducedPopulation(parameters).layout.size
    if size > MOST_ENTRIES:
        most = parameters.m - -(-(size - MOST_ENTRIES) // parameters.d)  # d entries a neuron
        raise InvalidRequest(
            f"m={parameters.m} has {size} trained entries; explore can be of up to "
            f"{MOST_ENTRIES}; nearest: m={most}"
        )
    return prepared.page_model(system, parameters, _grid(parameters), MEMORY)


def _grid(parameters: Parameters) -> Mapping[str, Sequence[Any]]:
    """Values of the constants that have sliders, those of the parameters among them."""
    return {
        "alpha_star": sorted({parameters.alpha_star, *SHARES}),
        "margin": [float(f"{factor * parameters.margin:.6g}") for factor in MARGINS],
    }
