"""The type of a training event: a named condition, and when it is first sought.

A rule speaks of *order parameters*: time, the few scalars of the reduction, and their rates
(``d_alpha`` is minus the per-entry gradient: change per unit of time, time being eta times steps).
The same rule is therefore evaluated on reduced and on full runs. It is evaluated at every step of
gradient descent (the event is the first step that satisfies it), whatever is recorded.

Three shapes of condition are enough so far:

- `Crossing`: an expression becomes non-negative.
- `ExceedsRunMaximum`: a quantity exceeds the maximum of another over the *whole* run. Such an event
  depends on the horizon and is stored with it.
- `SustainedRise`: a quantity starts a rise that is large and long enough to count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    import sympy


@dataclass(frozen=True)
class EventRule:
    """What every rule has.

    Attributes
    ----------
    name : str
        Key under which the event is reported.
    meaning : str
        One line for a reader.
    latex : str
        The condition, for pictures and tables.
    after : str or None
        The event is first sought at the time of this other event.
    """

    whole_run: ClassVar[bool] = False
    """Whether the rule looks at the whole run, so that the event depends on the horizon."""

    name: str
    meaning: str
    latex: str
    after: str | None


@dataclass(frozen=True)
class Crossing(EventRule):
    """First time with ``expression >= 0`` and ``guard > 0``; upward crossings only.

    Attributes
    ----------
    expression, guard : sympy.Expr
        In symbols named like the order parameters.
    strict : bool
        If True, the condition is ``expression > 0``.
    resolution : float
        Of an expression of rates that comes to rest at 0: part of its largest absolute value so
        far below which its sign is rounding, and decides nothing. An exact 0 after motion counts.
    """

    expression: sympy.Expr
    guard: sympy.Expr
    strict: bool = False
    resolution: float = 0.0


@dataclass(frozen=True)
class ExceedsRunMaximum(EventRule):
    """First time with ``quantity > max over the run of bound``.

    Attributes
    ----------
    quantity, bound : sympy.Expr
        In symbols named like the order parameters.
    """

    whole_run: ClassVar[bool] = True

    quantity: sympy.Expr
    bound: sympy.Expr


@dataclass(frozen=True)
class SustainedRise(EventRule):
    """First time at which ``quantity`` starts a monotone rise, or is already inside one.

    Attributes
    ----------
    quantity : sympy.Expr
        In symbols named like the order parameters.
    relative : float
        The rise counts when it exceeds this fraction of its starting value ...
    duration : float
        ... and lasts at least this long, in units of time.
    """

    quantity: sympy.Expr
    relative: float
    duration: float
