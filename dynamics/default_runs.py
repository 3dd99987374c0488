"""Default runs of the commands: the showcase of a system."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Contrast:
    """A reduced run at other parameters, which a default comparison is laid beside.

    Attributes
    ----------
    parameters : mapping
        Those that differ.
    overlaid : tuple of str
        States and observables that are drawn of both.
    remark : callable
        Parameters -> what distinguishes the two, in one or two sentences.
    """

    parameters: Mapping[str, Any]
    overlaid: tuple[str, ...]
    remark: Callable[[Any], str]


@dataclass(frozen=True)
class DefaultRun:
    """Defaults of a command: the showcase of its system.

    Attributes
    ----------
    parameters : mapping
        Those that differ from the defaults of ``Parameters``. A flag changes its own one only.
    eta : float
    steps, samples : int
    contrast : Contrast or None
    presumes : mapping
        Parameters -> values without which ``parameters`` do not count, such as a family.
    remarks : mapping
        Parameter -> sentence that is printed where the showcase sets it.
    rule, schedule, stages
        As of `dynamics.descend`.
    """

    parameters: Mapping[str, Any]
    eta: float
    steps: int
    samples: int = 0
    contrast: Contrast | None = None
    presumes: Mapping[str, Any] = field(default_factory=dict)
    remarks: Mapping[str, str] = field(default_factory=dict)
    rule: str = "gd"
    schedule: str | None = None
    stages: Any = None

    def beside(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters that count beside those that a user gave.

        Parameters
        ----------
        given : mapping
            Name -> value.
        """
        if any(given.get(name, value) != value for name, value in self.presumes.items()):
            return {}
        return {name: value for name, value in self.parameters.items() if name not in given}
