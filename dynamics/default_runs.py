"""Default runs of the commands; each shows a system's typical dynamics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Contrast:
    """Reduced run at other parameters, plotted and reported with the default comparison."""

    parameters: Mapping[str, Any]
    """Parameter -> value, for parameters that differ from those of the default comparison."""
    overlaid: tuple[str, ...]
    """States and observables plotted for both runs."""
    remark: Callable[[Any], str]
    """Function from Parameters to sentences on the difference between the two runs."""


@dataclass(frozen=True)
class DefaultRun:
    """Default run of a command, called the system's showcase in messages."""

    parameters: Mapping[str, Any]
    """Parameter -> value, for parameters whose value differs from the default."""
    eta: float
    steps: int
    samples: int = 0
    contrast: Contrast | None = None
    presumes: Mapping[str, Any] = field(default_factory=dict)
    """Parameter -> required value; if the user gives another value, ``parameters`` do not apply."""
    remarks: Mapping[str, str] = field(default_factory=dict)
    """Parameter -> sentence printed if the default run sets it."""
    rule: str = "gd"
    schedule: str | None = None
    stages: Any = None

    def beside(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Select the default run's parameters that apply in addition to the user's `given`."""
        if any(given.get(name, value) != value for name, value in self.presumes.items()):
            return {}
        return {name: value for name, value in self.parameters.items() if name not in given}
