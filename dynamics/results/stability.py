"""Time up to which training keeps the entries of each class of a reduction equal."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import isfinite, isnan, nan
from typing import Any

from theory.summary import summarized

OFF, LEFT = 1e-10, 1e-3
"""Distance of a perturbed start from the *closed space*, in which the entries of each class are
equal; distance at which training counts as having left this space."""
GROWS = 1.005
"""Minimum growth factor of a perturbation off the closed space that is reported as growth."""
COUNTS = ("no start", "a start", "two starts", "three starts")


@summarized
@dataclass(frozen=True)
class Stability:
    """Time up to which training keeps the entries of each class of a reduction equal.

    `horizon` is the maximum time considered. `growth` is the maximum factor by which a distance
    from the closed space (states with these equal entries) grows, or an upper bound of this factor;
    NaN if not measured. A start at distance `OFF` from the closed space stays within distance
    `LEFT` up to time `safe`. `left` gives, for each trained start, the time at which the distance
    reaches `LEFT`: infinite if never, NaN if training ended early. `where` gives the size of the
    measured model if another size was measured, or the reason why nothing was measured.

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
        """Whether growth or training was measured."""
        return bool(self.left) or not isnan(self.growth)

    @property
    def until(self) -> float:
        """Time up to which the entries of each class are known to stay equal; NaN if unknown."""
        if not self.measured:
            return nan
        times = [self.safe if isnan(time) else time for time in self.left or (self.safe,)]
        return min(*times, self.horizon)

    @property
    def limited(self) -> bool:
        """Whether `until` is before the horizon."""
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
        """JSON-ready values; an infinite or NaN time is null."""
        times = [time if isfinite(time) else None for time in self.left]
        known = {"until": self.until if self.measured else None, "limited": self.limited}
        growth = self.growth if isfinite(self.growth) else None
        return asdict(self) | known | {"growth": growth, "left": times, "sentence": str(self)}
