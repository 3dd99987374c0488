"""Problems on the scalars of a declared reduction, without its check, for pages."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from dynamics.models.engine.definition import Definition
from dynamics.models.engine.realization import Realization
from dynamics.models.engine.tracing import refusals
from dynamics.system import System
from theory.closure import DECLARED, Closure
from theory.closure.linear import LinearSpace
from theory.closure.regime import PLAIN, Regime


class Unheld:
    """Mixin: problems on declared scalars without checking the declaration against the entries.

    A page has many sizes, and a check takes seconds at each; ``attdyn run`` performs it.
    """

    definition: Definition

    @classmethod
    def realized(
        cls, parameters: Any, draws: tuple[Any, Any], regime: Regime = PLAIN
    ) -> tuple[Realization, Closure]:
        """The model of the scalars at given parameters, and its closure."""
        declaration, constants = cls.definition.declaration, dataclasses.asdict(parameters)
        assert declaration is not None
        with refusals():
            made = declaration.scalars(constants)
            classes = declaration.classes(made, constants)
        space = LinearSpace(np.eye(classes.count))
        names = tuple(made.arrays)
        return made, Closure(classes, space, None, (), names, 0.0, DECLARED, "", (), made.shapes)

    def _compiled_risk(self) -> None:
        """None: a page interprets lists instead of compiled code."""

    def matrices(self) -> dict[str, Any]:
        """Trained arrays by class; empty, because a declaration does not identify equal entries."""
        return {}


def unheld(system: System, **more: Any) -> System:
    """The system with an unchecked declared reduction; a system without a declaration is unchanged.

    `system`: of a model; `**more`: further attributes of its reduced problem.
    """
    kind = system.ReducedPopulation
    if kind.definition.declaration is None:
        return system
    made = type(kind.__name__, (Unheld, kind), more)
    return dataclasses.replace(system, ReducedPopulation=made)
