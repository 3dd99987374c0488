"""Several measurements against their bounds: the verdict prints the one that decides it.

And how numbers are written in its reason.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isnan
from typing import Any

from dynamics.experiments.verify import Finding

RELATIONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}


@dataclass(frozen=True)
class Criterion:
    """What is measured and what it has to be.

    Attributes
    ----------
    quantity : str
        In words.
    measured : float
        NaN where it was not seen, which meets no bound: it counts as infinitely far from it.
    relation : str
        One of `RELATIONS`, to be read between the measured value and the bound.
    bound : float
    """

    quantity: str
    measured: float
    relation: str
    bound: float

    @property
    def met(self) -> bool:
        """Whether it is what it has to be."""
        return bool(RELATIONS[self.relation](self.measured, self.bound))


def decided(
    criteria: Sequence[Criterion], reason: str, evidence: Mapping[str, Any], open_: bool = False
) -> Finding:
    """The finding of criteria that all have to be met.

    It shows the first that is not, else the first of all.

    Parameters
    ----------
    criteria : sequence of Criterion
    reason : str
    evidence : mapping
    open_ : bool
        What is not met may still come to be: nothing is decided then.
    """
    failed = [criterion for criterion in criteria if not criterion.met]
    shown = (failed or list(criteria))[0]
    holds = None if failed and open_ else not failed
    measured = float(shown.measured)
    if isnan(measured):
        measured = -inf if shown.relation.startswith(">") else inf
    return Finding(holds, shown.quantity, measured, shown.bound, reason, evidence)


def listed(values: Iterable[float], digits: int = 3) -> str:
    """Numbers of a reason; what is not a number was not seen."""
    return ", ".join("not seen" if isnan(value) else f"{value:.{digits}g}" for value in values)
