"""Making an expectation by its name, and what a gradient is predicted to cost.

The choice is made once, before a run. The costs are predicted, not timed, so that the same request
always has the same answer: from the number of configurations, and of sums that the spectral
expectation scans.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.problem import FloatArray
from dynamics.systems.positional_attention.reduced import (
    Expectation,
    configurations,
    spectral,
    weighted_sum,
)
from dynamics.validation import InvalidRequest, integer, real, refuse

if TYPE_CHECKING:
    from dynamics.systems.positional_attention.parameters import Parameters

EXPECTATIONS = ("auto", "exact", "truncated", "spectral", "sampled")
SECONDS_PER_PRODUCT = 4e-10
"""Of a full problem, for each entry of A and each feature or configuration."""


def make(
    parameters: Parameters,
    state: FloatArray,
    expectation: str,
    tolerance: float,
    samples: int,
    seed: int,
    dropped: float | None,
) -> Expectation:
    """The expectation of a name, good enough at a state.

    Parameters
    ----------
    parameters : Parameters
    state : float array, shape (3,)
    expectation : str
        One of `EXPECTATIONS`.
    tolerance : float
        Of ``"spectral"``, ``"truncated"`` and ``"auto"``, relative to the gross contributions.
    samples, seed : int
        Of ``"sampled"``.
    dropped : float or None
        Of ``"truncated"``: a fixed probability to leave out.

    Raises
    ------
    InvalidRequest
        If an argument is not valid, or the expectation cannot be made at this size.
    """
    if expectation not in EXPECTATIONS:
        refuse("expectation", expectation, "is unknown", ", ".join(EXPECTATIONS), "exact")
    fixed = dropped is not None
    if fixed and expectation != "truncated":
        refuse("dropped", dropped, f"is not of {expectation}", "given for truncated", "none")
    tolerance = real("tolerance", tolerance, at_least=1e-12, at_most=1e12 if fixed else 1e-2)
    samples = integer("samples", samples, at_least=2, at_most=10**8)
    seed = integer("seed", seed, at_least=0, at_most=2**63 - 1)
    if expectation == "exact":
        return weighted_sum.exact(parameters)
    if expectation == "sampled":
        return weighted_sum.sampled(parameters, samples, seed)
    if expectation == "spectral":
        return spectral.spectral(parameters, tolerance)
    if expectation == "auto":
        return _cheapest(parameters, tolerance, state)
    if fixed:
        dropped = real("dropped", dropped, above=0.0, at_most=0.5)
        made = weighted_sum.truncated(parameters, tolerance, dropped)
    else:
        made = weighted_sum.certified(parameters, tolerance, state)
    if made is None:
        least = dropped or 10.0**-weighted_sum.COARSEST
        raise InvalidRequest(
            f"expectation='truncated' at D={parameters.D} C={parameters.C} q={parameters.q:g}: "
            f"too many configurations to leave out only {least:g}; expectation can be spectral"
        )
    return made


def _cheapest(parameters: Parameters, tolerance: float, state: FloatArray) -> Expectation:
    """The sum over all configurations where it costs less, else the spectral expectation.

    Both hold for a whole run. Where the spectral one fails at the start, the sum if there is one.
    """
    costs = {name: predicted_seconds(parameters, name) for name in ("exact", "spectral")}
    name, other = "spectral", "exact"
    result: Expectation = spectral.spectral(parameters, tolerance)
    if costs["exact"] <= costs["spectral"] or (
        np.isfinite(costs["exact"]) and result.failure(state)
    ):
        name, other = other, name
        result = weighted_sum.exact(parameters)
    why = (
        f"{_milliseconds(costs[name])} a gradient predicted; {other} {_milliseconds(costs[other])}"
    )
    result.settings = {**result.settings, "auto": why}
    return result


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.2g} ms" if np.isfinite(seconds) else "impossible"


def predicted_seconds(parameters: Parameters, name: str) -> float:
    """Predicted time of one gradient along a run.

    Parameters
    ----------
    parameters : Parameters
    name : str
        One of `EXPECTATIONS`.
    """
    exact, smooth = (module.predicted_seconds(parameters) for module in (weighted_sum, spectral))
    return {"exact": exact, "spectral": smooth}.get(name, min(exact, smooth))


def gradient_seconds(parameters: Parameters, full: str | None, options: Mapping[str, Any]) -> float:
    """Predicted time of one gradient, by which the points of a sweep are ordered.

    Parameters
    ----------
    parameters : Parameters
    full : str or None
        ``"population"`` or ``"empirical"``; None for the reduced problem.
    options : mapping
        Of the problem: ``samples``, ``expectation``.
    """
    entries = SECONDS_PER_PRODUCT * parameters.D**2
    if full == "empirical":
        return entries * parameters.d * float(options.get("samples", 1))
    if full == "population":
        return entries * configurations.number_of_configurations(parameters.L, parameters.C)
    return predicted_seconds(parameters, str(options.get("expectation", "auto")))
