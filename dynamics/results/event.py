"""Events of a run: when each happened, or why it did not."""

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
    """When an event happened; false, with the reason, where it was not reached.

    Attributes
    ----------
    name : str
        Name of its rule.
    time : float
        eta * steps; NaN where it was not reached, since a run says nothing of what comes after it.
    step : int or None
        First step that satisfies the rule; None on a flow, and where it was not reached.
    state : float array, shape (n,)
        The flat state at that moment; NaN where it was not reached.
    horizon : float or None
        For rules that look at the whole run: the time up to which the run went.
    uncertainty : float
        Of a flow, what the errors of the gradient and of the integration may change in the time, by
        an estimate (see `dynamics.training.flow_events`). 0 for gradient descent, which has
        neither error.
    reason : str
        Why it was not reached, or what one that happened is due to; empty where nothing is to say.

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
        """Whether it happened within the run; also the truth value of the event."""
        return not math.isnan(self.time)

    def __bool__(self) -> bool:
        return self.reached

    def __eq__(self, other: object) -> bool:
        """Whether all that is known of two events is the same; what is not known is equal."""
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
        """An event that was not reached, of a run with flat states of this length."""
        return cls(name, math.nan, None, np.full(entries, math.nan))

    def overview(self) -> dict[str, Any]:
        """Entries of its text: when it happened, or why it did not."""
        at = {"time": self.time, "step": self.step} if self else {"reached": self.reached}
        return {"name": self.name, **at, "reason": self.reason}

    def record(self) -> dict[str, Any]:
        """Everything but name, state and reason, as plain values."""
        return {
            "time": self.time,
            "step": self.step,
            "horizon": self.horizon,
            "uncertainty": self.uncertainty,
        }


class Events(dict[str, Event]):
    """The events of a run by name, reached or not; another name is refused with those there are."""

    @classmethod
    def explained(cls, events: Mapping[str, Event], reasons: Mapping[str, str]) -> Events:
        """Events with their reasons, where there are any."""
        return cls({n: replace(event, reason=reasons.get(n, "")) for n, event in events.items()})

    @property
    def line(self) -> str:
        """Times of those that were reached, then names of the others, in one line."""
        reached = ", ".join(f"{name} {event.time:.5g}" for name, event in self.items() if event)
        others = ", ".join(name for name, event in self.items() if not event)
        return "; ".join(filter(None, [reached, others and f"not {others}"]))

    def to_xarray(self) -> xarray.Dataset:
        """Times, steps, states and reasons along ``event``; NaN where one was not reached."""
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
        raise KeyError(f"no event {name!r}; there are {', '.join(self) or 'none'}")
