r"""Escape times of reductions that repel: how long training stays near the closed space.

Where the reduced run rests, at a least transverse curvature :math:`-\lambda < 0`, a departure grows
as :math:`e^{\lambda t}`. From a start that is off by :math:`\epsilon` it reaches a given size at

.. math:: T(\epsilon) = \frac{1}{\lambda} \ln \frac{1}{\epsilon} + \mathrm{const}. \qquad (1)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.analysis.stability import departure, off_start
from dynamics.analysis.transverse_growth import least_curvature
from dynamics.plotting.style import BLUE, GREY, legend
from dynamics.problem import FloatArray
from dynamics.verdicts.claim import Also, Case, Picture, reduced_flow
from dynamics.verdicts.figure import Drawing, page
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.wording import listed

if TYPE_CHECKING:
    from dynamics.system import System

OFFSETS = (1e-12, 1e-10, 1e-8, 1e-6, 1e-4)
"""Distances of the starts from the closed space; rounding is far smaller."""
AWAY = 0.1
"""Distance from the closed space at which training has escaped."""
SHARE = 0.05
"""Part of 1/lambda by which a slope may differ from it: lambda moves with the reduced run."""
STRAIGHT = Also("bend", "<=", 0.02, "largest distance of a time from the line, over the longest")
QUANTITY = "distance of the slope of escape times from 1/lambda, relative"
PICTURE = Picture(r"distance $\epsilon$ of the start", "escape time", scales=("log", "linear"))


@dataclass(frozen=True)
class Escapes:
    """Escape times over the distance of the start.

    Attributes
    ----------
    offsets, times : float arrays, shape (n,)
        Times are infinite where training does not escape before the horizon.
    rate : float
        Minus the least transverse curvature where the reduced run is at the median of the times.
    """

    offsets: FloatArray
    times: FloatArray
    rate: float

    @property
    def line(self) -> FloatArray:
        """Slope in ln(1/epsilon), and the time at epsilon = 1."""
        return np.asarray(np.polyfit(np.log(1 / self.offsets), self.times, 1))

    @property
    def decade(self) -> float:
        """Time for each factor of ten of the distance."""
        return float(self.line[0] * np.log(10))

    @property
    def bend(self) -> float:
        """Largest distance of a time from the line, over the longest time."""
        off = self.times - np.polyval(self.line, np.log(1 / self.offsets))
        return float(np.abs(off).max() / self.times.max())


@lru_cache(maxsize=8)
def _escapes(
    reduced: Any, full: Any, law: Any, horizon: float, offsets: tuple[float, ...]
) -> Escapes:
    (problem, run), whole = reduced_flow(reduced, law, horizon), full(law)
    starts = [off_start(whole, off=off) for off in offsets]
    times = [departure(whole, run, start, AWAY).reaches(AWAY) for start in starts]
    middle = int(np.searchsorted(run.time, np.median(times)).clip(0, len(run.time) - 1))
    rate = -least_curvature(whole, whole.lift(run.states[middle], problem.scalars))
    return Escapes(np.array(offsets), np.array(times), rate)


def escapes(
    system: System, law: Any, horizon: float, offsets: tuple[float, ...] = OFFSETS
) -> Escapes:
    """Escape times of full training, from starts in one direction off the closed space.

    Parameters
    ----------
    system : System
    law : Parameters
    horizon : float
        Time of the flow.
    offsets : tuple of float
        Largest distances of an entry of the starts from the closed space.
    """
    kinds: Any = system.ReducedPopulation, system.FullPopulation
    return _escapes(*kinds, law, horizon, offsets)


def measured(case: Case, horizon: float) -> dict[str, Any]:
    """The row of a claim on the slope of escape times, by `QUANTITY` and `STRAIGHT`.

    Parameters
    ----------
    case : Case
    horizon : float
        Time of the flow; undecided where a start does not escape before.
    """
    found = escapes(case.system, case.parameters, horizon)
    if not np.isfinite(found.times).all():
        raise Undecided(f"a start does not leave the classes before time {horizon:g}", "time")
    text = (
        f"by {AWAY:g} away from the classes at times {listed(found.times, 4)}, from starts off by "
        f"{listed(found.offsets, 1)}: {found.decade:.3g} a decade; a least curvature across them "
        f"of {-found.rate:.4g} makes {np.log(10) / found.rate:.3g}"
    )
    return {
        "value": abs(found.line[0] * found.rate - 1), "bend": found.bend, "decade": found.decade,
        "rate": found.rate, "text": text, "curves": {"full training": (found.offsets, found.times)},
    }  # fmt: skip


def picture(system: System, law: Any, horizon: float, words: str) -> Drawing:
    """Escape times over the distance of the start, and the line of (1).

    Parameters
    ----------
    system : System
    law : Parameters
    horizon : float
        Time of the flow.
    words : str
        Parameters, above the picture.
    """
    found = escapes(system, law, horizon)
    logs = np.log(1 / found.offsets)
    line = found.times.mean() + (logs - logs.mean()) / found.rate
    with page(5.2, 3.4, words) as (_, axes):
        label = rf"slope $1/\lambda$, $\lambda = {found.rate:.3g}$"
        axes.plot(found.offsets, line, color=GREY, lw=1.0, ls="--", label=label)
        axes.plot(found.offsets, found.times, "o", color=BLUE, label="full training")
        axes.set(xscale="log", xlabel=r"distance $\epsilon$ of the start from the classes")
        axes.set(ylabel="escape time", ylim=(0, 1.1 * found.times.max()))
        legend(axes)
    caption = (
        f"Time at which full training is {AWAY:g} away from the classes, over the distance of its "
        f"start from them: {found.decade:.3g} for each factor of ten. The line has the slope that "
        "the least curvature across the classes gives."
    )
    data = {"offset": found.offsets, "time": found.times, "line": line}
    return Drawing(axes, data, caption)
