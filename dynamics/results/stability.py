"""The time up to which the scalars of a reduction are stable, as a value with a sentence."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import isfinite, isnan, nan
from typing import Any

from theory.summary import summarized

OFF, LEFT = 1e-10, 1e-3
"""Departure of a start from the closed space, and the one at which training has left it."""
GROWS = 1.005
"""Factor from which a departure is said to grow."""
COUNTS = ("no start", "a start", "two starts", "three starts")


@summarized
@dataclass(frozen=True)
class Stability:
    """Until when training stays on the classes of a reduction, up to a horizon.

    `horizon`: time up to which it was asked; `growth`: largest factor by which a departure grows up
    to there, or a bound on it; NaN where full training decides alone, or nothing was measured;
    `safe`: time up to which that growth keeps starts that are off by `OFF` within `LEFT`; `left`:
    for each start that was trained, the time at which it has departed by `LEFT`; infinite where it
    does not, NaN where training ended before the horizon; `where`: the size at which it was
    measured, where that is another one, or why nothing was measured.

    Examples
    --------
    >>> stability = Stability(2e4, growth=1e12, safe=7e3, left=(8.7e3, 9.1e3, 9.0e3))
    >>> stability.until, stability.limited
    (8700.0, True)
    >>> str(Stability(100.0, growth=1.5, safe=100.0))
    'the classes hold to time 100: a departure grows 1.5-fold at most'
    """

    horizon: float
    growth: float = nan
    safe: float = 0.0
    left: tuple[float, ...] = ()
    where: str = ""

    @property
    def measured(self) -> bool:
        """Whether something is known."""
        return bool(self.left) or not isnan(self.growth)

    @property
    def until(self) -> float:
        """Time up to which the classes hold, as far as it is known; NaN where nothing is."""
        if not self.measured:
            return nan
        times = [self.safe if isnan(time) else time for time in self.left or (self.safe,)]
        return min(*times, self.horizon)

    @property
    def limited(self) -> bool:
        """Whether the classes are left before the horizon, as far as it is known."""
        return self.until < self.horizon

    def __str__(self) -> str:
        where = f" ({self.where})" if self.where else ""
        if not self.measured:
            return f"the stability of the classes is not measured{where}"
        begin = f"the classes hold to time {self.until:.4g}"
        starts = f"{COUNTS[len(self.left)]} off by {OFF:g}"
        departed = [f"{time:.4g}" for time in self.left if isfinite(time)]
        if departed:
            words = f"from {starts} full training leaves them by {LEFT:g} at {', '.join(departed)}"
        elif self.left and not self.limited:
            words = f"{starts} stay{'s' * (len(self.left) == 1)} within {LEFT:g}"
        elif self.limited:
            begin += " at least"
            words = f"by time {self.horizon:.4g} a departure may grow {self.growth:.2g}-fold"
        elif self.growth < GROWS:
            words = "no departure grows"
        else:
            words = f"a departure grows {self.growth:.3g}-fold at most"
        return f"{begin}: {words}{where}"

    def document(self) -> dict[str, Any]:
        """Plain values (JSON); a time at which no start departs is null."""
        times = [time if isfinite(time) else None for time in self.left]
        known = {"until": self.until if self.measured else None, "limited": self.limited}
        growth = self.growth if isfinite(self.growth) else None
        return asdict(self) | known | {"growth": growth, "left": times, "sentence": str(self)}
