"""Late in training: how the loss goes to its floor, and the attention to the own area."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, log
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from dynamics.experiments.criteria import Criterion, decided, listed
from dynamics.experiments.curves import curve, exponent, known, over_time
from dynamics.experiments.masked_image_modeling.runs import (
    NEGATIVE,
    POSITIVE,
    Case,
    chosen,
    family,
    outside,
    sizes_of,
    slope_after,
)
from dynamics.experiments.verify import Finding, Protocol
from theory.systems.masked_image_modeling.information_gap import late_loss
from theory.systems.masked_image_modeling.notation import NOTATION

if TYPE_CHECKING:
    from dynamics.registry import System

AS_ONE_OVER_T = -0.9
"""Exponent in time from which on a loss falls as 1/t."""
SLOWEST = "slowest exponent in time of the loss above its floor, after rapid growth"
STEEPER = 0.02
"""By how much an exponent in time falls over half a decade where it has not settled."""
RISING = 0.01
"""Share of itself by which attention that is still on its way grew in the second half of a run."""
SLOWER = 0.1
"""Exponent of P by which a time may exceed P^(1 - kappa_s) log P at these sizes."""
ALONG = 0.9
"""Exponent from which on one quantity falls as fast as another."""
FALLEN = 0.02
"""Share of its start to which a loss has to fall before its last decade is a law."""


def loss(system: System, protocol: Protocol) -> Finding:
    """The late law of the loss, and how the time to a fixed loss grows with P."""
    undecided = outside(protocol, SLOWEST, AS_ONE_OVER_T, large=True)
    if undecided is not None:
        return undecided
    cases = chosen(system, protocol, POSITIVE, NEGATIVE)
    series = _with_mates(cases)
    rows = [
        sizes_of(case.parameters)
        | {"row": "local" if local else "global", "slope": late_slope(case, local),
           "visible": _visible(case, local),
           "left": float(case.run["gap" if local else "gap_g"][-1])}
        for case, local in series
    ]  # fmt: skip
    slowest = float(np.max([row["slope"] for row in rows]))
    criteria = [Criterion(SLOWEST, slowest, "<=", AS_ONE_OVER_T)]
    left = ", ".join(f"{row['left']:.2g} ({row['row']})" for row in rows)
    reason = f"L_p - L*_p ends at {left}, {powers(series)}"
    grows = float("nan")
    if protocol.parameters is None:
        ladder = family(system, protocol)
        times = [c.time("E5") / (c.unit * log(c.parameters.P)) for c in ladder]
        grows = exponent([c.parameters.P for c in ladder], times)
        reason += (
            f"; the time to 1e-3 over P^(1 - kappa_s) ln P is {listed(times)} along P="
            f"{', '.join(str(c.parameters.P) for c in ladder)}"
        )
        exceeds = "exponent of P by which the time to 1e-3 exceeds P^(1 - kappa_s) ln P"
        criteria.append(Criterion(exceeds, grows, "<=", SLOWER))
    open_ = not grows > SLOWER and on_their_way(series)
    if slowest > AS_ONE_OVER_T:
        slow = max(rows, key=lambda row: float(row["slope"]))
        reason += (
            "; what falls too slowly still falls faster and faster"
            if open_
            else f"; of the slowest (1 - A)^2, of masks that leave a mate, makes "
            f"{slow['visible']:.2g} at least, other areas and masks that leave none make the rest"
        )
    curves = [
        curve(
            f"{'local' if local else 'global'}, $\\Delta = {case.parameters.Delta:.2f}$",
            *_tail(case, local),
        )
        for case, local in series
    ]
    law = [c["x"] for c in curves if len(c["x"])]
    if law:
        x = np.array(law[0])
        late = sympy.lambdify(NOTATION.symbols("K time"), late_loss())
        curves.append(curve(r"$K / (4 \tau)$", x, late(cases[0].parameters.K, x)))
    plot = over_time("$L_p - L_p^*$", curves) | {"x_label": r"time since $A \geq 1/2$"}
    evidence = {"table": rows, "exponent_of_time": known(grows), "plot": plot}
    return decided(criteria, reason, evidence, open_)


def attention(system: System, protocol: Protocol) -> Finding:
    """(1 - A)^2 against the loss above its floor, along the last decade of that."""
    quantity = "least exponent of (1 - A)^2 in the loss above its floor, over its last decade"
    undecided = outside(protocol, quantity, ALONG, large=True)
    if undecided is not None:
        return undecided
    rows, curves = [], []
    for case, local in _with_mates(chosen(system, protocol, POSITIVE, NEGATIVE)):
        (gap, own), name = _series(case, local), "local" if local else "global"
        rows.append(sizes_of(case.parameters) | {
            "row": name, "own": float(own[-1]), "left": float(gap[-1] / gap[0]),
            "exponent": _along(gap, 1 - own), "visible": _visible(case, local),
        })  # fmt: skip
        label = f"{name}, $\\Delta = {case.parameters.Delta:.2f}$"
        curves.append(curve(label, gap / gap[0], (1 - own) ** 2))
    plot = {
        "x_label": "$L_p - L_p^*$ over its start", "y_label": "$(1 - A)^2$", "x_scale": "log",
        "y_scale": "log", "curves": curves, "lines": [],
    }  # fmt: skip
    evidence = {"table": rows, "plot": plot}
    there = [row for row in rows if row["left"] <= FALLEN and not isnan(row["exponent"])]
    least = min((row["exponent"] for row in there), default=float("nan"))
    if len(there) < len(rows) and not least < ALONG:
        slow = max(rows, key=lambda row: float(row["left"]))
        reason = (
            f"L_p - L*_p of a {slow['row']} patch ends at {slow['left']:.2g} of its start, with "
            f"{slow['own']:.3g} of the attention on the own area: no decade to take an exponent of"
        )
        return Finding(None, quantity, least, ALONG, reason, evidence)
    reason = (
        f"(1 - A)^2 falls as L_p - L*_p to the power {listed([r['exponent'] for r in there])} and "
        f"makes {listed([r['visible'] for r in there], 2)} of it at the end, or more; the own area "
        f"ends with {min(r['own'] for r in there):.4f} of the attention or more"
    )
    return decided([Criterion(quantity, least, ">=", ALONG)], reason, evidence)


def _along(gap: Any, missing: Any) -> float:
    """Exponent of missing^2 in the gap, over the last decade of the gap."""
    kept = (gap <= 10 * gap[-1]) & (gap > 0) & (missing > 0)
    if kept.sum() < 3:
        return float("nan")
    return 2 * exponent(gap[kept], missing[kept])


def _visible(case: Case, local: bool) -> float:
    """Share of the loss above its floor that (1 - A)^2 makes at the end, at least.

    A is a mean over masks that leave a mate, so that the mean of the square is no smaller.
    """
    gap, own = _series(case, local)
    law, rows = case.parameters, case.problem.rows
    seen = law.gamma * rows.mates[rows.names.index(case.row(local))]
    return float(seen * law.L**2 * (1 - own[-1]) ** 2 / (2 * gap[-1]))


def _with_mates(cases: Sequence[Case]) -> list[tuple[Case, bool]]:
    """Cases with their local and their global row, where it has a mate to attend to."""
    every = [(case, local) for case in cases for local in (True, False)]
    return [one for one in every if np.isfinite(_series(*one)[1]).all()]


def _series(case: Case, local: bool) -> tuple[Any, Any]:
    names = ("gap", "A_m") if local else ("gap_g", "A_g")
    return case.run[names[0]], case.run[names[1]]


def _tail(case: Case, local: bool) -> tuple[Any, Any]:
    """Time since half of the attention was on the own area, and the loss above its floor."""
    start = case.time("E4" if local else "E4_global")
    later = case.run.time > start
    return case.run.time[later] - start, _series(case, local)[0][later]


def late_slope(case: Case, local: bool) -> float:
    """Exponent of the loss above its floor in the time since E4; NaN where E4 was not seen."""
    time, values = _tail(case, local)
    return slope_after(time, values) if time.size else float("nan")


def _steepens(case: Case, local: bool) -> bool:
    """Whether the loss above its floor falls faster at the end than half a decade before.

    Before E4, whether the attention to the own area still rises.
    """
    time, values = _tail(case, local)
    if not time.size:
        own = _series(case, local)[1]
        middle = int(np.searchsorted(case.run.time, case.run.time[-1] / 2))
        return bool(own[-1] > (1 + RISING) * own[middle])
    before = time <= time[-1] / np.sqrt(10.0)
    earlier = slope_after(time[before], values[before]) if before.any() else float("nan")
    return bool(slope_after(time, values) < earlier - STEEPER)


def on_their_way(series: Sequence[tuple[Case, bool]]) -> bool:
    """Whether every loss that does not fall as 1/t yet may still come to do so."""
    return all(late_slope(*one) <= AS_ONE_OVER_T or _steepens(*one) for one in series)


def powers(series: Sequence[tuple[Case, bool]]) -> str:
    """How losses fall, in words."""
    slopes = [late_slope(*one) for one in series]
    seen = [slope for slope in slopes if not np.isnan(slope)]
    told = [f"falling as time to the power {listed(seen)}"] if seen else []
    for (case, local), slope in zip(series, slopes, strict=True):
        if np.isnan(slope):
            own, still = _series(case, local)[1][-1], _steepens(case, local)
            told.append(
                f"a {'local' if local else 'global'} patch ends with {own:.3g} of its attention on "
                f"its own area, {'still rising' if still else 'which rises no more'}"
            )
    return "; ".join(told)
