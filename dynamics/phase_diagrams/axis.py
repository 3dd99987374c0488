"""One axis of a phase diagram: the values of a parameter, linear or logarithmic.

Positions between two values are fractional indices: index 1.5 is half way between the second and
the third value, in the logarithm where the axis is logarithmic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynamics.problem import FloatArray
from dynamics.validation import real, refuse

WIDE = 3.0
"""Values up to this ratio apart have nothing to gain from a logarithm."""
DECADE = 10.0


@dataclass(frozen=True)
class Axis:
    """Values of a parameter, ascending.

    Attributes
    ----------
    name : str
        Of the parameter.
    values : float array, shape (n,)
    logarithmic : bool
        Whether positions between values are measured in the logarithm.
    """

    name: str
    values: FloatArray
    logarithmic: bool = False

    @classmethod
    def of(cls, name: str, values: ArrayLike) -> Axis:
        """The axis of some values, logarithmic where their steps are nearer to geometric ones."""
        ascending = np.sort(np.asarray(values, dtype=np.float64))
        return cls(name, ascending, _geometric(ascending))

    def at(self, index: ArrayLike) -> FloatArray:
        """Values at fractional indices, float array of the same shape."""
        numbers = np.arange(len(self.values), dtype=np.float64)
        fraction = np.asarray(index, dtype=np.float64)
        return self._back(np.interp(fraction, numbers, self._measured(self.values)))

    def index(self, values: ArrayLike) -> FloatArray:
        """Fractional indices of values; the ends where they are outside."""
        numbers = np.arange(len(self.values), dtype=np.float64)
        measured = self._measured(np.asarray(values, dtype=np.float64))
        return np.interp(measured, self._measured(self.values), numbers)

    @property
    def edges(self) -> FloatArray:
        """Edges of cells around the values, shape (n + 1,)."""
        at = self._measured(self.values)
        if len(at) == 1:
            width = np.log(1.5) if self.logarithmic else max(abs(at[0]) / 4, 0.5)
            return self._back(np.array([at[0] - width, at[0] + width]))
        middle = (at[1:] + at[:-1]) / 2
        ends = 2 * at[0] - middle[0], 2 * at[-1] - middle[-1]
        return self._back(np.concatenate([[ends[0]], middle, [ends[1]]]))

    def _measured(self, values: FloatArray) -> FloatArray:
        return np.log(values) if self.logarithmic else values

    def _back(self, measured: FloatArray) -> FloatArray:
        return np.exp(measured) if self.logarithmic else np.asarray(measured)


@dataclass(frozen=True)
class AxisRange:
    """A range of a parameter, linear or logarithmic.

    Parameters
    ----------
    name : str
    low, high : float
        Its ends, ``low < high``; positive where it is logarithmic.
    logarithmic : bool

    Raises
    ------
    InvalidRequest
        If the ends are not such.
    """

    name: str
    low: float
    high: float
    logarithmic: bool = False

    def __post_init__(self) -> None:
        low = real(f"least {self.name}", self.low, above=0.0 if self.logarithmic else None)
        real(f"greatest {self.name}", self.high)
        if not self.high > low:
            refuse(
                f"greatest {self.name}", self.high, f"is not above the least, {low:g}",
                f"any number above {low:g}", 2 * low if low > 0 else low + 1,
            )  # fmt: skip

    def axis(self, cells: int) -> Axis:
        """The range as ``cells + 1`` values, equal steps apart."""
        space = np.geomspace if self.logarithmic else np.linspace
        return Axis(self.name, space(self.low, self.high, cells + 1), self.logarithmic)

    def width(self, share: float) -> float:
        """A share of the range in its own unit; of a logarithmic one, a relative change."""
        if self.logarithmic:
            return float((self.high / self.low) ** share - 1.0)
        return float(share * (self.high - self.low))


def _geometric(values: FloatArray) -> bool:
    """Whether ascending values have more even steps in the logarithm."""
    if len(values) < 2 or values[0] <= 0 or values[-1] < WIDE * values[0]:
        return False
    if len(values) == 2:
        return bool(values[1] >= DECADE * values[0])
    plain, logs = np.diff(values), np.diff(np.log(values))
    return bool(logs.std() / logs.mean() < plain.std() / plain.mean())
