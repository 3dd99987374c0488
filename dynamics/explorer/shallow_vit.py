"""The page of the shallow ViT: every entry is trained, and the curves are order parameters.

The hinge loss has kinks at which training stays, so that there is no flow: the page has gradient
descent, from the random start of one seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dynamics.explorer import prepared
from dynamics.explorer.page_model import PageModel
from dynamics.registry import System
from dynamics.systems.shallow_vit.parameters import Parameters
from dynamics.systems.shallow_vit.problems import ReducedPopulation
from dynamics.validation import InvalidRequest

MOST_ENTRIES = 4000
"""Trained entries of a page: a step of so many takes milliseconds."""
SHARES = (0.3, 0.4, 0.5, 0.6, 0.7)
"""Relevant tokens of a sample."""
MARGINS = (0.5, 1.0, 2.0)
"""Factors of the margin of the parameters."""


class Data(NamedTuple):
    """What `assets/shallow_vit.js` needs beside the state; ``own``: a is (vectors, M, m)."""

    m: int
    d: int
    M: int
    L: int
    margin: float
    hinge: bool
    values: bool
    attention: bool
    own: bool
    counts: Any
    labels: Any
    weights: Any
    a: Any


def _data(problem: ReducedPopulation) -> Data:
    given, tokens = problem.parameters, problem.tokens
    trained = (given.frozen != "values", given.frozen != "attention")
    own = tokens.output is not None
    a = tokens.output if own else problem.start.a[None]
    sizes = (given.m, given.d, given.M, given.L, given.margin, given.loss == "hinge")
    return Data(*sizes, *trained, own, tokens.times, tokens.labels, tokens.weights, a)


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
    return prepared.page_model(system, parameters, _grid(parameters), own=("shallow_vit.js", _data))


def _grid(parameters: Parameters) -> Mapping[str, Sequence[Any]]:
    """Values of the constants that have sliders, those of the parameters among them."""
    return {
        "alpha_star": sorted({parameters.alpha_star, *SHARES}),
        "margin": [float(f"{factor * parameters.margin:.6g}") for factor in MARGINS],
    }
