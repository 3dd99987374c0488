"""Flows that older claims share."""

from __future__ import annotations

from typing import Any

from dynamics.training.flow import flow
from dynamics.verdicts.positional_attention.grid import SHOWN
from dynamics.verdicts.study import Case, computed_once


@computed_once(64)
def population_flow(make: Any, parameters: Any, time: float) -> Case:
    """The reduced problem and its gradient flow to a time; cached, because checks share runs.

    Parameters
    ----------
    make : System
    parameters : Parameters
    time : float
    """
    problem = make(parameters)
    return Case(parameters, problem, flow(problem, time))


def sizes_of(parameters: Any) -> dict[str, Any]:
    """The parameters that a verdict is about, as plain values."""
    return {name: getattr(parameters, name) for name in SHOWN}
