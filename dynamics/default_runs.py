"""Default runs of the commands, which show a system's typical dynamics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Contrast:
    """A reduced run at other parameters, compared with that of a default comparison.

    `parameters`: those that differ; `overlaid`: states and observables plotted for both; `remark`:
    function Parameters -> sentences on the difference.
    """

    parameters: Mapping[str, Any]
    overlaid: tuple[str, ...]
    remark: Callable[[Any], str]


@dataclass(frozen=True)
class DefaultRun:
    """Default run of a command, called the system's showcase.

    `parameters`: name -> value, where they differ from the defaults of ``Parameters``; a flag
    overrides only its own; `presumes`: Parameters -> values required for ``parameters`` to apply,
    such as a family; `remarks`: parameter -> sentence printed if the showcase sets it; `rule`,
    `schedule`, `stages`: as for `dynamics.descend`.
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
        """Showcase parameters that apply in addition to the user's.

        `given`: name -> value.
        """
        if any(given.get(name, value) != value for name, value in self.presumes.items()):
            return {}
        return {name: value for name, value in self.parameters.items() if name not in given}
