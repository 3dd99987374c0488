"""Default runs of the commands: the showcase of a system."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Contrast:
    """A reduced run at other parameters, which a default comparison is laid beside.

    `parameters`: those that differ; `overlaid`: states and observables that are drawn of both;
    `remark`: Parameters -> what distinguishes the two, in one or two sentences.
    """

    parameters: Mapping[str, Any]
    overlaid: tuple[str, ...]
    remark: Callable[[Any], str]


@dataclass(frozen=True)
class DefaultRun:
    """Defaults of a command: the showcase of its system.

    `parameters`: those that differ from the defaults of ``Parameters``. A flag changes its own one
    only; `presumes`: Parameters -> values without which ``parameters`` do not count, such as a
    family; `remarks`: parameter -> sentence that is printed where the showcase sets it; `rule`,
    `schedule`, `stages`: as of `dynamics.descend`.
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

        `given`: name -> value.
        """
        if any(given.get(name, value) != value for name, value in self.presumes.items()):
            return {}
        return {name: value for name, value in self.parameters.items() if name not in given}
