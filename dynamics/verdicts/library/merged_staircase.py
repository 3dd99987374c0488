"""The merged staircase: learned monomials, their order, and times of leaps; a figure."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import inf, nan
from typing import Any

import numpy as np

from dynamics.analysis.stability import departure, off_start
from dynamics.system import System
from dynamics.verdicts.cases import Case, flow_to, reduced_flow
from dynamics.verdicts.claim import TIME, Also, Picture, claim
from dynamics.verdicts.figure import Drawing, FigureRequest, title
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.library import escape
from dynamics.verdicts.library.lines import over_time
from dynamics.verdicts.stability import Trained
from dynamics.verdicts.wording import listed

LONG = 3000.0
LEARNED = 0.01
"""A target counts as learned if its risk is at most this."""
APART = 2.0
"""Minimum ratio of two times at which the second counts as later."""
SAME = 1e-10
"""Maximum relative difference at which two risks count as equal."""
BOUNDS = {"leap": 0.5, "parity": 0.5}
"""Target -> minimum risk of a network that does not depend on x_2 and x_3."""
OFFSETS = (1e-15, 1e-9, 1e-3)
"""Distances from w = 0 of the starts of full training."""
RISK = Picture(TIME, "risk")


def staircase(law: Any) -> None:
    """Raise Undecided unless the target is the staircase."""
    if law.target != "staircase":
        raise Undecided("the statement assumes the staircase", "law")


def leaps_over(law: Any) -> None:
    """Raise Undecided if the target has the merged-staircase property."""
    if law.target not in BOUNDS:
        raise Undecided("the claim assumes a target without the merged-staircase property", "law")


def leap(law: Any) -> None:
    """Raise Undecided unless the target is x_1 + x_1 x_2 x_3."""
    if law.target != "leap":
        raise Undecided("the statement assumes the target x_1 + x_1 x_2 x_3", "law")


@claim(
    "Staircase", "risk at the end", "<=", LEARNED, run=flow_to(LONG), require=staircase,
    also=(Also("apart", "<=", 1e-6, "difference of the risks at two dimensions"),),
    words="at time 3000 the risk is {value:.3g} and differs by {apart:.1e} at D={larger}; {moving} "
    "scalars at both",
    picture=RISK,
)  # fmt: skip
def learned(case: Case) -> dict[str, Any]:
    """Risk at the end, and its difference from the risk at dimension D + 2."""
    larger = replace(case.parameters, D=case.parameters.D + 2)
    other = reduced_flow(case.system.ReducedPopulation, larger, LONG)[1]
    runs = {case.parameters.D: case.run, larger.D: other}
    ends = [run["risk"][-1] for run in runs.values()]
    return {
        "value": ends[0], "apart": abs(ends[0] - ends[1]), "larger": larger.D, "open": "time",
        "moving": case.run.final_state.size, "trained": (*case.trained, Trained.of(larger, other)),
        "curves": {f"D = {D}": (run.time, run["risk"]) for D, run in runs.items()},
    }  # fmt: skip


@claim(
    "Leaps", "least risk along the run over the risk that a leap leaves", ">=", 1.0 - SAME,
    laws=({"target": "leap"}, {"target": "parity"}), run=flow_to(LONG), require=leaps_over,
    picture=RISK,
)  # fmt: skip
def not_learned(case: Case) -> dict[str, Any]:
    """Minimum risk along the run from w = 0, and times to half the risk from starts near w = 0."""
    run, bound = case.run, BOUNDS[case.parameters.target]
    size = max(float(run["w_2"].max()), float(run["w_3"].max()))
    times = _halved(case)
    seen = f"at times {listed(times)}" if np.isfinite(times).any() else f"not before time {LONG:g}"
    text = (
        f"from w = 0 the weights of x_2 and x_3 are {size:g} at every record to time {LONG:g}, so "
        f"the risk cannot fall below {bound:g}; from weights off by {listed(OFFSETS, 1)} full "
        f"training halves it {seen}"
    )
    return {
        "value": float(run["risk"].min()) / bound, "size": size, "halved": times, "text": text,
        "curves": {case.parameters.target: (run.time, run["risk"])},
    }  # fmt: skip


@lru_cache(maxsize=8)
def _off_zero(reduced: Any, full: Any, law: Any, off: float, end: float) -> tuple[Any, Any]:
    """Times and risks of full training up to time `end`, from the start displaced by `off`."""
    run, whole = reduced_flow(reduced, law, end)[1], full(law)
    found = departure(whole, run, off_start(whole, off=off), inf)
    return found.time, whole.observables_along(found.states)["risk"]


def _halved(case: Case) -> list[float]:
    """Times at which full training from distances `OFFSETS` reaches half the risk in `BOUNDS`."""
    kinds: Any = case.system.ReducedPopulation, case.system.FullPopulation
    level, times = BOUNDS[case.parameters.target] / 2, []
    for off in OFFSETS:
        time, risk = _off_zero(*kinds, case.parameters, off, LONG)
        k = int(np.argmax(risk < level))
        between = np.interp(level, risk[[k, k - 1]], time[[k, k - 1]])
        times.append(float(between) if k else nan)
    return times


@claim(
    "Order", "least ratio of the time of a monomial to that of the one before", ">=", APART,
    run=flow_to(LONG), require=staircase,
    words="half of each coefficient at times {times}; one start",
    picture=Picture(TIME, "Fourier coefficient", scales=("log", "linear")),
)  # fmt: skip
def one_by_one(case: Case) -> dict[str, Any]:
    """Times at which the coefficient of each staircase monomial reaches half its final value."""
    run, names = case.run, ("1", "12", "123")
    times = [run.events[f"T_{name}"].time for name in names]
    ratio = min(times[1] / times[0], times[2] / times[1])
    return {
        "value": ratio, "times": listed(times, 4), "open": "size" if np.isfinite(ratio) else "time",
        "curves": {f"coefficient {name}": (run.time, run[f"F_{name}"]) for name in names},
    }  # fmt: skip


escapes = escape.claimed(LONG, laws=({"target": "leap"},), require=leap)


def losses(system: System, request: FigureRequest) -> Drawing:
    """Risk of targets with and without the merged-staircase property; option ``time``."""
    base = request.make_parameters(system, ("target",))
    end = float(request.options({"time": LONG})["time"])
    kinds: Any = system.ReducedPopulation, system.FullPopulation
    words = {
        "staircase": r"$x_1 + x_1 x_2 + x_1 x_2 x_3$", "leap": r"$x_1 + x_1 x_2 x_3$",
        "parity": r"$x_1 x_2 x_3$",
    }  # fmt: skip
    runs = {name: reduced_flow(kinds[0], replace(base, target=name), end)[1] for name in words}
    curves = {words[name]: (run.time, run["risk"]) for name, run in runs.items()}
    off = _off_zero(*kinds, replace(base, target="leap"), OFFSETS[1], end)
    apart = off[0] > 20.0  # up to time 20 the curve coincides with that from w = 0
    label = rf"{words['leap']}, from weights off by $10^{{-9}}$"
    curves[label] = off[0][apart], off[1][apart]
    caption = (
        "Population risk along the gradient flow from w = 0. The staircase is learned; what leaps "
        "over two coordinates stays at its level, but for a start that is off by "
        f"{OFFSETS[1]:g}. Largest risk {max(run['risk'].max() for run in runs.values()):.4g}."
    )
    look = {"xlim": (0.3, end), "ylim": (0.0, None), "ylabel": "population risk"}
    return over_time(title(system, base, "D", "neurons", width=6.4), curves, caption, **look)


FIGURES = {"losses": losses, "escape": escape.figure(LONG, "D", "neurons", target="leap")}
