"""Making an expectation by its name; for ``"auto"``, the cheapest that is good enough.

The costs are predicted, not timed, so that the same request always takes the same way: from the
number of configurations, and from the nodes that the spectral plan asks for at a state. What is
compared is the time of one gradient at the requested tolerance.
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
    weighted_sum,
)
from dynamics.systems.positional_attention.reduced.expectation import Expectation
from dynamics.validation import InvalidRequest, integer, real, refuse

if TYPE_CHECKING:
    from dynamics.systems.positional_attention.parameters import Parameters

EXPECTATIONS = ("auto", "exact", "truncated", "spectral", "sampled")
FIRST_LEVEL = 3
WORTH = 1.2
"""A truncation must be cheaper by this factor, since it may have to be refined."""
NODES_BESIDE_SCAN = 10.0
"""Along a flow the nodes of the spectral expectation cost about so many times its scan of sums."""
GAIN = 1.5
"""A run goes over to another expectation where that one is cheaper by this factor."""


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
    return cheapest(parameters, request.tolerance, state)


def _truncated(parameters: Parameters, request: Request, state: NDArray[np.float64]) -> Expectation:
    made = truncated.truncated(parameters, request.tolerance, request.dropped, FIRST_LEVEL)
    if made is None:
        wanted = request.dropped or 10.0**-FIRST_LEVEL
        raise InvalidRequest(
            f"expectation='truncated' at D={parameters.D} C={parameters.C} q={parameters.q:g}: "
            f"too many configurations to leave out only {wanted:g}; expectation can be spectral"
        )
    return made.finer(state) or made


def cheapest(
    parameters: Parameters, tolerance: float, state: NDArray[np.float64], no_spectral: bool = False
) -> Expectation:
    """What has the least predicted time of a gradient at a state, and is certified there.

    Where nothing is, the spectral expectation, whose failure says what it would need. What cannot
    be cheaper is not tried: small problems are enumerated without a look at the others. Where the
    spectral expectation has just failed, ``no_spectral`` leaves it out.
    """
    counted, least = enumeration.seconds(parameters), spectral.least_seconds(parameters)
    if counted <= least:
        reason = f"no other costs less than {_milliseconds(least)}"
        return _explained(enumeration.exact(parameters), counted, reason)
    budget = GAIN * counted / spectral.predicted_seconds(0.0, 1.0, parameters.C)
    smooth = spectral.spectral(parameters, tolerance, budget if np.isfinite(counted) else None)
    spectral_cost = float("inf") if no_spectral else smooth.seconds(state)
    costs = {"exact": counted, "spectral": spectral_cost, "truncated": float("inf")}
    cut = None
    best = min(costs.values())
    if np.isfinite(best):
        # A power of two, so that what was found too large once is not counted again.
        entries = weighted_sum.most_entries(best / WORTH, weighted_sum.cells_of(parameters))
        most = 1 << int(entries / parameters.L).bit_length()
        first = truncated.truncated(parameters, tolerance, level=FIRST_LEVEL, limit=most)
        cut = first.finer(state, most) if first else None
    if cut is not None and WORTH * cut.seconds(state) < best:
        costs["truncated"] = cut.seconds(state)
    name = min(costs, key=lambda one: costs[one]) if np.isfinite(best) else "spectral"
    chosen = smooth if name == "spectral" else cut if name == "truncated" else None
    others = ", ".join(
        f"{other} {_milliseconds(cost) if np.isfinite(cost) else 'none'}"
        for other, cost in costs.items()
        if other != name
    )
    return _explained(chosen or enumeration.exact(parameters), costs[name], others)


def _explained(chosen: Expectation, cost: float, others: str) -> Expectation:
    why = f"{_milliseconds(cost)} a gradient predicted; {others}"
    chosen.settings = {**chosen.settings, "auto": why}
    return chosen


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.2g} ms"


def typical_seconds(parameters: Parameters, name: str) -> float:
    """Predicted time of one gradient somewhere along a run; see `NODES_BESIDE_SCAN`."""
    counted, scan = enumeration.seconds(parameters), spectral.least_seconds(parameters)
    smooth = NODES_BESIDE_SCAN * scan
    return {"exact": counted, "spectral": smooth}.get(name, min(counted, smooth))
