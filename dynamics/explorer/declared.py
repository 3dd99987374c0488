"""Problems on the scalars of a declaration, as a page is made from them."""

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
    """Makes a problem on the scalars of a declaration, which is not held against the entries.

    A page has many sizes, and holding takes seconds at each; ``attdyn run`` does it.
    """

    definition: Definition

    @classmethod
    def realized(
        cls, parameters: Any, draws: tuple[Any, Any], regime: Regime = PLAIN
    ) -> tuple[Realization, Closure]:
        """The model of the scalars at some parameters, and its closure."""
        declaration, constants = cls.definition.declaration, dataclasses.asdict(parameters)
        assert declaration is not None
        with refusals():
            made = declaration.scalars(constants)
            classes = declaration.classes(made, constants)
        space = LinearSpace(np.eye(classes.count))
        names = tuple(made.arrays)
        return made, Closure(classes, space, None, (), names, 0.0, DECLARED, "", (), made.shapes)

    def _compiled_risk(self) -> None:
        """Nothing: a page has lists of its own."""

    def matrices(self) -> dict[str, Any]:
        """Trained arrays by class; none, since a declaration does not say where they are equal."""
        return {}


def unheld(system: System, **more: Any) -> System:
    """A system whose declared reduction is not held against the entries; another one as it is.

    `system`: of a model; `**more`: further attributes of its reduced problem.
    """
    kind = system.ReducedPopulation
    if kind.definition.declaration is None:
        return system
    made = type(kind.__name__, (Unheld, kind), more)
    return dataclasses.replace(system, ReducedPopulation=made)
