"""Reduced problems for interactive pages, from a declared reduction without its check."""

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
    """Mixin of problems on declared scalars, without the closure check of ``attdyn run``.

    The closure check takes seconds per problem, and a page needs many, one per slider value.
    """

    definition: Definition

    @classmethod
    def realized(
        cls, parameters: Any, draws: tuple[Any, Any], regime: Regime = PLAIN
    ) -> tuple[Realization, Closure]:
        """Model of the scalars at given parameters, and the closure of the model."""
        declaration, constants = cls.definition.declaration, dataclasses.asdict(parameters)
        assert declaration is not None
        with refusals():
            made = declaration.scalars(constants)
            classes = declaration.classes(made, constants)
        space = LinearSpace(np.eye(classes.count))
        names = tuple(made.arrays)
        return made, Closure(classes, space, None, (), names, 0.0, DECLARED, "", (), made.shapes)

    def _compiled_risk(self) -> None:
        """Return no compiled risk, because pages interpret the program of the risk."""

    def matrices(self) -> dict[str, Any]:
        """Return no trained arrays, because a declaration does not identify equal entries."""
        return {}


def unheld(system: System, **more: Any) -> System:
    """Replace the declared reduction of a system by an unchecked one with the attributes `more`.

    A system without a declared reduction is returned unchanged.
    """
    kind = system.ReducedPopulation
    if kind.definition.declaration is None:
        return system
    made = type(kind.__name__, (Unheld, kind), more)
    return dataclasses.replace(system, ReducedPopulation=made)
