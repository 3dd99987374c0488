"""Measurements that a verdict rests on: a number, its bound, and the series that show it.

A check ends with ``conclude(measurement, reason, table=rows)``: the verdict's measured value and
bound, its evidence and its picture all come from the `Measurement`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from math import inf, isnan, nan
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynamics.experiments.verify import Check, Finding, Protocol

if TYPE_CHECKING:
    from dynamics.registry import System

RELATIONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}
TIME = r"time $\tau = \eta \times$ steps"


class Series(NamedTuple):
    """One curve: a label, and the points (x, y)."""

    label: str
    x: ArrayLike
    y: ArrayLike


@dataclass(frozen=True)
class Chart:
    """Series in one picture, as `dynamics.plotting.evidence` draws them.

    Attributes
    ----------
    x_label, y_label : str
    series : sequence of Series
    levels : mapping
        Label -> y of a horizontal line.
    x_scale, y_scale : str
        ``"linear"``, ``"log"`` or ``"symlog"``.
    """

    x_label: str
    y_label: str
    series: Sequence[Series]
    levels: Mapping[str, float] = field(default_factory=dict)
    x_scale: str = "log"
    y_scale: str = "log"

    def document(self) -> dict[str, Any]:
        """The chart as plain values, which is ``plot`` in the evidence of a verdict."""
        return {
            "x_label": self.x_label,
            "y_label": self.y_label,
            "x_scale": self.x_scale,
            "y_scale": self.y_scale,
            "curves": [
                {"label": label, "x": np.asarray(x).tolist(), "y": np.asarray(y).tolist()}
                for label, x, y in self.series
            ],
            "lines": [{"label": label, "y": y} for label, y in self.levels.items()],
        }


@dataclass(frozen=True)
class Measurement:
    """A number and what a claim says of it.

    Attributes
    ----------
    quantity : str
        What is measured, in words.
    value : float
        NaN where it was not observed: it meets no bound and counts as infinitely far from it.
    relation : str
        ``"<"``, ``"<="``, ``"=="``, ``">="`` or ``">"``, to be read between value and bound.
    bound : float
    chart : Chart, optional
        What the picture of the verdict shows.
    """

    quantity: str
    value: float
    relation: str
    bound: float
    chart: Chart | None = None

    @property
    def met(self) -> bool:
        """Whether the value has the relation to the bound."""
        return bool(RELATIONS[self.relation](self.value, self.bound))


def conclude(
    measurements: Measurement | Sequence[Measurement],
    reason: str,
    holds: Literal["as measured"] | bool | None = "as measured",
    may_still_come: bool = False,
    **evidence: Any,
) -> Finding:
    """The finding of one measurement, or of several that must all meet their bounds.

    The finding shows the first measurement that does not meet its bound, else the first of all.

    Parameters
    ----------
    measurements : Measurement or sequence of Measurement
    reason : str
        Why the verdict is what it is, with the numbers that matter.
    holds : bool or None, optional
        The verdict where the bounds alone do not decide it; None where nothing is decided. The
        first measurement is shown then.
    may_still_come : bool
        A bound that is not met may be met by a longer run, so that nothing is decided.
    **evidence
        Plain values (JSON), such as ``parameters`` and ``table``.

    Returns
    -------
    Finding
    """
    every = [measurements] if isinstance(measurements, Measurement) else list(measurements)
    decisive, value = every[0], float(every[0].value)
    if holds == "as measured":
        failed = [measurement for measurement in every if not measurement.met]
        decisive = (failed or every)[0]
        holds = None if failed and may_still_come else not failed
        value = float(decisive.value)
        if isnan(value):
            value = -inf if decisive.relation.startswith(">") else inf
    charts = [each.chart for each in (decisive, *every) if each.chart is not None]
    if charts:
        evidence["plot"] = charts[0].document()
    return Finding(holds, decisive.quantity, value, decisive.bound, reason, evidence)


def undecided(quantity: str, bound: float, reason: str, **evidence: Any) -> Finding:
    """The finding of a check that measures nothing.

    Parameters
    ----------
    quantity : str
        What would be measured, in words.
    bound : float
    reason : str
        Why it is not measured.
    **evidence
        Plain values (JSON).
    """
    return Finding(None, quantity, nan, bound, reason, evidence)


def listed(values: Iterable[float], digits: int = 3) -> str:
    """Numbers separated by commas, for the reason of a finding.

    Parameters
    ----------
    values : iterable of float
        NaN is written as "not seen".
    digits : int
        Significant digits.
    """
    return ", ".join("not seen" if isnan(value) else f"{value:.{digits}g}" for value in values)


class Undecided(Exception):
    """Why a check measures nothing; the keywords become the evidence of its finding."""

    def __init__(self, reason: str, **evidence: Any) -> None:
        super().__init__(reason)
        self.evidence = evidence


def measures(
    quantity: str, relation: str, bound: float, require: Callable[[Any], None] | None = None
) -> Callable[[Callable[..., Finding]], Check]:
    """Decorate ``check(system, protocol, measured)`` with the quantity that it measures.

    The check calls ``measured(value, chart)`` for its first `Measurement`. Where it raises
    `Undecided`, its finding is undecided.

    Parameters
    ----------
    quantity, relation, bound : str, str, float
        As of a `Measurement`.
    require : function, optional
        Raises `Undecided` for parameters of the user that do not meet the claim's hypothesis.
    """

    def decorate(check: Callable[..., Finding]) -> Check:
        @wraps(check)
        def decorated(system: System, protocol: Protocol) -> Finding:
            def measured(value: float, chart: Chart | None = None) -> Measurement:
                return Measurement(quantity, value, relation, bound, chart)

            try:
                if require is not None and protocol.parameters is not None:
                    require(protocol.parameters)
                return check(system, protocol, measured)
            except Undecided as refusal:
                return undecided(quantity, bound, str(refusal), **refusal.evidence)

        return decorated

    return decorate
