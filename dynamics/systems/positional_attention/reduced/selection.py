"""Making an expectation by its name; for ``"auto"``, the cheapest that is good enough.

The choice is made once, before a run. The costs are predicted, not timed, so that the same request
always has the same answer: from the number of configurations, and of sums that the spectral
expectation scans.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynamics.systems.positional_attention.reduced import (
    enumeration,
    sampled,
    spectral,
    truncated,
)
from dynamics.systems.positional_attention.reduced.expectation import Expectation
from dynamics.validation import InvalidRequest, integer, real, refuse

if TYPE_CHECKING:
    from dynamics.systems.positional_attention.parameters import Parameters

EXPECTATIONS = ("auto", "exact", "truncated", "spectral", "sampled")


@dataclass(frozen=True)
class Request:
    """What a user asks of the expectation; checked.

    Attributes
    ----------
    name : str
        One of `EXPECTATIONS`.
    tolerance : float
        Of ``"spectral"``, ``"truncated"`` and ``"auto"``, relative to the gross contributions.
    samples, seed : int
        Of ``"sampled"``.
    dropped : float or None
        Of ``"truncated"``: a fixed probability to leave out.
    """

    name: str = "auto"
    tolerance: float = 1e-10
    samples: int = 10_000
    seed: int = 0
    dropped: float | None = None

    def checked(self) -> Request:
        """The same with plain numbers.

        Raises
        ------
        InvalidRequest
            If one of them is not valid.
        """
        if self.name not in EXPECTATIONS:
            refuse("expectation", self.name, "is unknown", ", ".join(EXPECTATIONS), "exact")
        fixed = self.dropped is not None
        if fixed and self.name != "truncated":
            refuse("dropped", self.dropped, f"is not of {self.name}", "given for truncated", "none")
        loosest = 1e12 if fixed else 1e-2
        return Request(
            self.name,
            real("tolerance", self.tolerance, at_least=1e-12, at_most=loosest),
            integer("samples", self.samples, at_least=2, at_most=10**8),
            integer("seed", self.seed, at_least=0, at_most=2**63 - 1),
            real("dropped", self.dropped, above=0.0, at_most=0.5) if fixed else None,
        )


def make(parameters: Parameters, request: Request, state: NDArray[np.float64]) -> Expectation:
    """The expectation that was asked for, good enough at a state.

    Raises
    ------
    InvalidRequest
        If it cannot be made at this size.
    """
    if request.name == "exact":
        return enumeration.exact(parameters)
    if request.name == "sampled":
        return sampled.sampled(parameters, request.samples, request.seed)
    if request.name == "spectral":
        return spectral.spectral(parameters, request.tolerance)
    if request.name == "truncated":
        return _truncated(parameters, request, state)
    return _cheapest(parameters, request.tolerance, state)


def _truncated(parameters: Parameters, request: Request, state: NDArray[np.float64]) -> Expectation:
    if request.dropped is None:
        made = truncated.certified(parameters, request.tolerance, state)
    else:
        made = truncated.truncated(parameters, request.tolerance, request.dropped)
    if made is None:
        least = request.dropped or 10.0**-truncated.COARSEST
        raise InvalidRequest(
            f"expectation='truncated' at D={parameters.D} C={parameters.C} q={parameters.q:g}: "
            f"too many configurations to leave out only {least:g}; expectation can be spectral"
        )
    return made


def _cheapest(parameters: Parameters, tolerance: float, state: NDArray[np.float64]) -> Expectation:
    """The sum over all configurations where it costs less, else the spectral expectation.

    Both hold for a whole run. Where the spectral one fails at the start, the sum if there is one.
    """
    costs = {name: predicted_seconds(parameters, name) for name in ("exact", "spectral")}
    name, other = "spectral", "exact"
    chosen: Expectation = spectral.spectral(parameters, tolerance)
    if costs["exact"] <= costs["spectral"] or (
        np.isfinite(costs["exact"]) and chosen.failure(state)
    ):
        name, other = other, name
        chosen = enumeration.exact(parameters)
    why = (
        f"{_milliseconds(costs[name])} a gradient predicted; {other} {_milliseconds(costs[other])}"
    )
    chosen.settings = {**chosen.settings, "auto": why}
    return chosen


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
    counted, smooth = enumeration.seconds(parameters), spectral.predicted_seconds(parameters)
    return {"exact": counted, "spectral": smooth}.get(name, min(counted, smooth))
