"""Detection of a lasting period two in the order parameters of gradient descent."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.problem import FloatArray

LEAST_STREAK = 50
MAX_SAMPLES = 4096
VANISHING = 0.5
"""An oscillation lasts if its amplitude |rate| extrapolated to infinite time is above this fraction
of the present amplitude."""


@dataclass
class Oscillation:
    """A period of two: every step reverses the sign of a rate; the amplitude is |rate|."""

    column: int
    """Index, among the order parameters, of the rate whose sign is compared."""
    began: int = 0
    previous: float = 0.0
    stride: int = 1
    sampled: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    sizes: FloatArray = field(default_factory=lambda: np.empty(0))

    def feed(self, first: int, rows: FloatArray) -> None:
        """Process the order parameters `rows` of consecutive steps, from the step `first` on."""
        rate = np.concatenate([[self.previous], rows[:, self.column]])
        steady = np.flatnonzero(~(np.sign(rate[1:]) * np.sign(rate[:-1]) < 0))
        if steady.size:
            self.began = first + int(steady[-1])
            self.stride, self.sampled, self.sizes = 1, self.sampled[:0], self.sizes[:0]
        self.previous = float(rate[-1])
        steps = np.arange(max(first, self.began), first + len(rows))
        self.sampled = np.concatenate([self.sampled, steps])
        self.sizes = np.concatenate([self.sizes, np.abs(rows[steps - first, self.column])])
        while np.count_nonzero(self.sampled % self.stride == 0) > MAX_SAMPLES:
            self.stride *= 2
        regular = self.sampled % self.stride == 0
        self.sampled, self.sizes = self.sampled[regular], self.sizes[regular]

    def state(self) -> dict[str, Any]:
        """Plain values and arrays of everything detected so far, for `restore`."""
        return dict(vars(self))

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the detection from the values that `state` returned."""
        vars(self).update(state)

    def decay(self, last: int) -> float | None:
        """Decay factor of the amplitude per step, or None if the amplitude does not decay to 0.

        The amplitude at infinite time is extrapolated from its means over thirds of the last tenth
        of the run.
        """
        window = max(LEAST_STREAK, last // 10)
        count = int(np.count_nonzero(self.sampled > last - window)) // 3
        if last - self.began < window or not count:
            return None
        first, second, third = map(float, self.sizes[-3 * count :].reshape(3, count).mean(axis=1))
        early, late = first - second, second - third
        if not early > late > 0 or third - late * late / (early - late) > VANISHING * third:
            return None
        return float((third / first) ** (1.0 / (2 * count * self.stride)))

    def lasting(self, last: int) -> bool:
        """Whether a run that ends at step `last` has a lasting period two.

        Every step in the last tenth of the run (at least 50 steps) must reverse the sign of the
        rate. Within it, |rate| must have a mean over the second half above half its mean over the
        first half.
        """
        window = max(LEAST_STREAK, last // 10)
        if last - self.began < window:
            return False
        late = self.sampled > last - window / 2
        early = (self.sampled > last - window) & ~late
        if not late.any() or not early.any():
            return False
        return bool(self.sizes[late].mean() > 0.5 * self.sizes[early].mean())
