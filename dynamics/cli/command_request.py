"""The commands of ``attdyn``, one module each: ``flags(parser, system)``, ``execute(request)``.

`dynamics.cli` finds them here, reads the words, and turns every refusal into one line.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynamics.registry import System

COMMANDS = {
    "systems": "list the systems there are",
    "derive": "print what sympy derives: text, LaTeX, or the compiled source",
    "run": "gradient descent on one problem, with its events",
    "compare": "the reduced and the full problem side by side",
    "sweep": "a grid of runs, kept block by block; the same command goes on with it",
    "phase": "a sweep as a phase diagram, slices or a power law (attdyn phase STORE)",
    "status": "how far a sweep is (attdyn status STORE)",
    "diversity": "how much the queries of attention maps differ (attdyn diversity FILE ...)",
    "verify": "a measured verdict on every claim of the paper",
    "figure": "a figure of the paper, or one of those behind the verdicts",
}
MODULES = {
    "derive": "derive",
    "run": "train",
    "compare": "train",
    "sweep": "sweep",
    "phase": "phase",
    "status": "status",
    "diversity": "diversity",
    "verify": "verify",
    "figure": "figure",
}
"""Command -> module of this package."""
OF_STORES = {"phase": "store", "status": "store", "diversity": "file"}
"""Commands whose word is no system, and what it is: ``flags(parser)``, ``execute(word, flags)``."""


@dataclass(frozen=True)
class Asked:
    """What a command is asked for.

    Attributes
    ----------
    command : str
    system : System
    flags : mapping
        What was given, by flags or in a file; nothing else.
    """

    command: str
    system: System
    flags: Mapping[str, Any]

    def parameters(self, default: Mapping[str, Any] | None = None) -> Any:
        """The system's ``Parameters``; ``default`` where none of its names is given."""
        names = {parameter.name for parameter in dataclasses.fields(self.system.Parameters)}
        given = {name: entry for name, entry in self.flags.items() if name in names}
        usual = dict(default or {})
        return self.system.Parameters(**(given if given.keys() & usual.keys() else usual | given))

    @property
    def names_parameters(self) -> bool:
        """Whether any parameter was given."""
        names = {parameter.name for parameter in dataclasses.fields(self.system.Parameters)}
        return bool(names & self.flags.keys())
