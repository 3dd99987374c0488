r"""Time until training escapes from the closed space, on which entries of a class are equal.

If the risk has the least curvature :math:`-\lambda < 0` in directions out of the closed space, the
distance of full training from this space grows as :math:`e^{\lambda t}`. From a distance
:math:`\epsilon` at the start, training reaches a given distance at the time

.. math:: T(\epsilon) = \frac{1}{\lambda} \ln \frac{1}{\epsilon} + \mathrm{const}. \qquad (1)
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from dynamics.analysis.stability import departure, off_start
from dynamics.analysis.transverse_growth import least_curvature
from dynamics.plotting.style import BLUE, GREY, legend
from dynamics.system import System
from dynamics.validation import InvalidRequest
from dynamics.verdicts.cases import Case, reduced_flow
from dynamics.verdicts.claim import Also, Experiment, Picture, claim
from dynamics.verdicts.figure import Drawing, Figure, FigureRequest, page, title
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.wording import listed

OFFSETS = (1e-12, 1e-10, 1e-8, 1e-6, 1e-4)
"""Distances of the starts from the closed space; all are far above rounding."""
AWAY = 0.1
"""Distance from the closed space at which training counts as escaped."""
SHARE = 0.05
"""Maximum relative difference of a fitted slope and 1/lambda, since lambda varies along a run."""
STRAIGHT = Also("bend", "<=", 0.02, "largest distance of a time from the line, over the longest")
QUANTITY = "distance of the slope of escape times from 1/lambda, relative"
PICTURE = Picture(r"distance $\epsilon$ of the start", "escape time", scales=("log", "linear"))


def escapes(system: System, law: Any, horizon: float) -> dict[str, Any]:
    """Escape times of full training, from starts displaced in one direction.

    ``times`` has an escape time for each distance in `OFFSETS`, infinite if training does not
    escape before `horizon`. If all are finite, the result also has ``rate`` (minus the least
    transverse curvature at the median time), ``decade`` (fitted time for a factor of ten in
    distance) and ``bend`` (largest deviation from the fitted line, divided by the longest time).
    """
    kinds: Any = system.ReducedPopulation, system.FullPopulation
    return _escapes(*kinds, law, horizon)


@lru_cache(maxsize=8)
def _escapes(reduced: Any, full: Any, law: Any, horizon: float) -> dict[str, Any]:
    (problem, run), whole = reduced_flow(reduced, law, horizon), full(law)
    starts = [off_start(whole, off=off) for off in OFFSETS]
    times = np.array([departure(whole, run, start, AWAY).reaches(AWAY) for start in starts])
    if not np.isfinite(times).all():
        return {"times": times}
    middle = int(np.searchsorted(run.time, np.median(times)).clip(0, len(run.time) - 1))
    rate = -least_curvature(whole, whole.lift(run.states[middle], problem.scalars))
    line = np.polyfit(-np.log10(OFFSETS), times, 1)
    bend = np.abs(times - np.polyval(line, -np.log10(OFFSETS))).max() / times.max()
    return {"times": times, "rate": rate, "decade": line[0], "bend": bend}


def claimed(horizon: float, **data: Any) -> Experiment:
    """Claim that escape times, measured up to `horizon`, have slope 1/lambda in ln(1/epsilon)."""
    data = {"also": (STRAIGHT,), "picture": PICTURE, **data}
    return claim("Escape", QUANTITY, "<=", SHARE, **data)(lambda case: measured(case, horizon))


def measured(case: Case, horizon: float) -> dict[str, Any]:
    """Row of a claim on the slope of escape times; undecided if a start does not escape."""
    found = escapes(case.system, case.parameters, horizon)
    if "rate" not in found:
        raise Undecided(f"a start does not leave the classes before time {horizon:g}", "time")
    times, rate, decade = found["times"], found["rate"], found["decade"]
    text = (
        f"by {AWAY:g} away from the classes at times {listed(times, 4)}, from starts off by "
        f"{listed(OFFSETS, 1)}: {decade:.3g} a decade; a least curvature across them of "
        f"{-rate:.4g} makes {np.log(10) / rate:.3g}"
    )
    value, curves = abs(decade * rate / np.log(10) - 1), {"full training": (OFFSETS, times)}
    return found | {"value": value, "times": times.tolist(), "text": text, "curves": curves}


def figure(horizon: float, *names: str, **fixed: Any) -> Figure:
    """Figure of escape times against the distance of the start; it has the option ``time``.

    `horizon`: default time of the flow; `*names`: parameters printed in the subtitle; `**fixed`:
    parameters that the user cannot set.
    """

    def drawn(system: System, request: FigureRequest) -> Drawing:
        options = request.options({"time": horizon})
        law = request.make_parameters(system, tuple(fixed), **fixed)
        words = title(system, law, *names, width=5.2)
        return picture(system, law, float(options["time"]), words)

    return drawn


def picture(system: System, law: Any, horizon: float, words: str) -> Drawing:
    """Draw escape times against the distance of the start, with the line of equation (1)."""
    found = escapes(system, law, horizon)
    if "rate" not in found:
        raise InvalidRequest(f"a start does not leave the classes before time {horizon:g}")
    times, rate, logs = found["times"], found["rate"], -np.log(OFFSETS)
    line = times.mean() + (logs - logs.mean()) / rate
    with page(5.2, 3.4, words) as (_, axes):
        label = rf"slope $1/\lambda$, $\lambda = {rate:.3g}$"
        axes.plot(OFFSETS, line, color=GREY, lw=1.0, ls="--", label=label)
        axes.plot(OFFSETS, times, "o", color=BLUE, label="full training")
        axes.set(xscale="log", xlabel=r"distance $\epsilon$ of the start from the classes")
        axes.set(ylabel="escape time", ylim=(0, 1.1 * times.max()))
        legend(axes)
    caption = (
        f"Time at which full training is {AWAY:g} away from the classes, over the distance of its "
        f"start from them: {found['decade']:.3g} for each factor of ten. The line has the slope "
        "that the least curvature across the classes gives."
    )
    return Drawing(axes, {"offset": OFFSETS, "time": times, "line": line}, caption)
