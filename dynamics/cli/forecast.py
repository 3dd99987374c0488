"""What is said before a long run of gradient descent that the flow would do in seconds.

The predicted durations are gradients times the cost model of the system, so that they are good to a
small factor; a model of one's own has no costs in seconds, and no prediction.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dynamics.system import FLOW_GRADIENTS

if TYPE_CHECKING:
    from dynamics.cli.arguments import CommandRequest

SLOW, QUICK = 30.0, 30.0
"""Seconds of gradient descent from which, and of the flow up to which, something is said."""
PER_JACOBIAN = 20.0
"""Gradients of a flow for each of which it differentiates once, where there is no Jacobian."""
UNITS = (("s", 1.0, 100.0), ("min", 60.0, 6000.0), ("h", 3600.0, 172800.0))


def hint(
    request: CommandRequest,
    problems: Sequence[tuple[Any, str | None]],
    settings: Mapping[str, Any],
    options: Mapping[str, Any],
) -> str:
    """One line on the durations of gradient descent and of the flow; empty where none is due.

    Parameters
    ----------
    request : CommandRequest
        Of ``run`` or ``compare``.
    problems : sequence of (Problem, str or None)
        All that are trained, each with the name of its full problem, None for a reduced one.
    settings : mapping
        Of the driver.
    options : mapping
        Of the problems.
    """
    system, flags = request.system, request.flags
    no_flow = not system.flows or flags.get("batch") or flags.get("resume")
    if "time" in settings or isinstance(settings["eta"], list) or system.model or no_flow:
        return ""
    slow = quick = 0.0
    for problem, full in problems:
        seconds = float(system.cost_model(problem.parameters, full, options))
        jacobians = 0.0 if problem.has_jacobian else problem.layout.size / PER_JACOBIAN
        slow += seconds * settings["steps"]
        quick += seconds * FLOW_GRADIENTS * (1.0 + jacobians)
    if slow < SLOW or quick > min(QUICK, slow / 10):
        return ""
    return (
        f"about {duration(slow)} of gradient descent are predicted; the flow, its limit of small "
        f"steps, takes about {duration(quick)}: {_command(request, settings)}"
    )


def _command(request: CommandRequest, settings: Mapping[str, Any]) -> str:
    """The same request of the flow, to the same time."""
    words = ["attdyn", request.command, request.system.reference]
    for name, entry in request.flags.items():
        if name not in ("eta", "steps", "record", "checkpoint", "config"):
            words.append(f"--{name}" if entry is True else f"--{name}={entry}")
    return shlex.join([*words, f"--time={settings['eta'] * settings['steps']:.12g}"])


def duration(seconds: float) -> str:
    """A duration in a unit in which it is short, to two digits: ``"12 min"``."""
    for unit, size, most in UNITS:
        if seconds < most:
            return f"{max(1.0, float(f'{seconds / size:.2g}')):g} {unit}"
    return f"{float(f'{seconds / 86400:.2g}'):g} days"
