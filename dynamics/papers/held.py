"""Fast expectations, held against the declared recursion of their model file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from dynamics.cache.kept import kept
from dynamics.expectations import Expectation, FloatArray
from dynamics.models.engine import load
from dynamics.validation import InvalidRequest

SAME = 1e-9
"""Part of the terms of a component by which a gradient may differ from the declared one."""

Gradient = Callable[[tuple[str, ...], FloatArray], FloatArray]


def hold(
    expectation: Expectation, file: ModuleType, constants: Mapping[str, Any], gradient: Gradient
) -> None:
    """Hold a fast expectation against the declared recursion at a small size, once on a machine.

    `expectation`: held by its name and source; `file`: the model file, which declares its
    reduction; `constants`: of the small size; the others have their defaults; `gradient`: names of
    scalars, states of them, shape (states, n) -> gradients of the fast expectation at the small
    size, per entry, of the same shape. Raises InvalidRequest if they part.
    """
    path = Path(str(file.__file__))

    def departure() -> float:
        system = load(path)
        declaration = system.ReducedPopulation.definition.declaration
        off: float = declaration.departure_of({**system.model.constants, **constants}, gradient)
        return off

    of_file = path.read_bytes(), sorted(constants.items())
    off = kept((expectation.name, expectation.source, of_file), departure)
    if not off <= SAME:
        raise InvalidRequest(
            f"the {expectation.name} expectation does not have the gradient of the recursion that "
            f"{path.name} declares (they differ by {off:.1e} of its terms): a fault of this "
            "package; please report it"
        )
