"""Events of a run: their times, or why they were not reached."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.problem import FloatArray
from theory.summary import summarized

if TYPE_CHECKING:
    import xarray


@summarized
@dataclass(frozen=True, eq=False)
class Event:
    """Time and state of an event, or the reason why it was not reached (then its bool is False).

    Attributes
    ----------
    name : str
        Name of the rule.
    time : float
        Time of the event, eta * steps; NaN if not reached within the run.
    step : int or None
        First step that satisfies the rule; None on a flow, or if not reached.
    state : float array, shape (n,)
        Flat state at the event; NaN if not reached.
    horizon : float or None
        End time of the run, for rules that use the whole run.
    uncertainty : float
        Estimated error of the time of a flow, from the errors of the gradient and of the
        integration (see `dynamics.training.flow_events`); 0 for gradient descent.
    reason : str
        Why the event was not reached, or a remark on a reached one; may be empty.

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    >>> events = dynamics.descend(problem, eta=0.02, steps=100).events
    >>> events["T0"].step, events["T0"].time, events["T0"].state.shape
    (28, 0.56, (3,))
    >>> bool(events["T1"]), events["T1"].time, events["T1"].reason
    (False, nan, 'not reached by time 2')
    """

    name: str
    time: float
    step: int | None
    state: FloatArray
    horizon: float | None = None
    uncertainty: float = 0.0
    reason: str = ""

    @property
    def reached(self) -> bool:
        """Whether the event was reached within the run; also its truth value."""
        return not math.isnan(self.time)

    def __bool__(self) -> bool:
        return self.reached

    def __eq__(self, other: object) -> bool:
        """Field-wise equality; NaNs compare equal."""
        if not isinstance(other, Event):
            return NotImplemented
        names = [name for name in self.__dataclass_fields__ if name not in ("time", "state")]
        same = all(getattr(self, name) == getattr(other, name) for name in names)
        one, two = (np.append(each.time, each.state) for each in (self, other))
        return same and np.array_equal(one, two, equal_nan=True)

    def __hash__(self) -> int:
        return hash((self.name, self.step))

    @classmethod
    def missing(cls, name: str, entries: int) -> Event:
        """Event that was not reached in a run; `entries` is the length of the run's states."""
        return cls(name, math.nan, None, np.full(entries, math.nan))

    def overview(self) -> dict[str, Any]:
        """Names and values of the printed summary: time and step, or the reason."""
        at = {"time": self.time, "step": self.step} if self else {"reached": self.reached}
        return {"name": self.name, **at, "reason": self.reason}

    def record(self) -> dict[str, Any]:
        """All fields except name, state and reason, as plain values."""
        return {
            "time": self.time,
            "step": self.step,
            "horizon": self.horizon,
            "uncertainty": self.uncertainty,
        }


class Events(dict[str, Event]):
    """Name -> `Event` for all events of a run, reached or not; an unknown name raises KeyError."""

    @classmethod
    def explained(cls, events: Mapping[str, Event], reasons: Mapping[str, str]) -> Events:
        """Events of a run, completed with the reasons why they were not reached."""
        return cls({n: replace(event, reason=reasons.get(n, "")) for n, event in events.items()})

    @property
    def line(self) -> str:
        """Line of text: names and times of reached events, then names of unreached events."""
        reached = ", ".join(f"{name} {event.time:.5g}" for name, event in self.items() if event)
        others = ", ".join(name for name, event in self.items() if not event)
        return "; ".join(filter(None, [reached, others and f"not {others}"]))

    def to_xarray(self) -> xarray.Dataset:
        """Dataset of times, steps, states and reasons along ``event``, with NaN if not reached."""
        import xarray

        events = list(self.values())
        states = np.stack([event.state for event in events]) if events else np.empty((0, 0))
        numbers = {
            name: ("event", np.array([event.record()[name] for event in events], dtype=np.float64))
            for name in ("time", "step", "horizon", "uncertainty")
        }
        reasons = ("event", [event.reason for event in events])
        return xarray.Dataset(
            numbers | {"reason": reasons, "state": (("event", "entry"), states)},
            {"event": list(self)},
        )

    def __missing__(self, name: str) -> Event:
        raise KeyError(f"no event {name!r}; events are {', '.join(self) or 'none'}")
