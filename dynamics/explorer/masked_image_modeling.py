"""The page of masked image modelling: sizes of the global area, and numbers of masked patches.

The counts of masked patches are listed in Python (`prepared`). Where they are too many, so that the
expectation is a contour integral, there is no page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dynamics.explorer import prepared
from dynamics.explorer.page_model import PageModel
from dynamics.registry import System
from dynamics.systems.masked_image_modeling.parameters import Parameters
from dynamics.validation import InvalidRequest
from theory.papers.masked_image_modeling.notation import CONSTANTS

SHARES = (1 / 8, 1 / 4, 3 / 8, 1 / 2, 5 / 8, 3 / 4, 7 / 8)
"""Of the patches: sizes of the global area, and numbers of masked patches."""
CONTOUR = {
    "contour_block": """function contour_block() {
  throw new Error("the counts are too many to be listed");
}"""
}


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
        Where the counts are not listed.
    """
    if system.ReducedPopulation(parameters).settings.get("expectation") != "counts":
        raise InvalidRequest(
            "a page has no contour integrals; explore can be at fewer patches; nearest: P=64"
        )
    grid = _grid(parameters)
    return prepared.page_model(system, parameters, grid, ("sums", "room"), CONSTANTS, CONTOUR)


def _grid(parameters: Parameters) -> Mapping[str, Sequence[Any]]:
    """Values of the constants that have sliders, those of the parameters among them."""
    P = parameters.P
    masked = sorted({parameters.masked, *(max(1, round(share * P)) for share in SHARES)} - {P})
    if parameters.family != "one_cluster":
        return {"masked": masked}
    step = parameters.C_local
    sizes = {step * round(share * P / step) for share in SHARES}
    sizes = {size for size in sizes if step <= size < P and (P - size) % step == 0}
    return {"C_global": sorted({parameters.C_global, *sizes}), "masked": masked}
