"""Phase II and convergence: rapid growth, what freezes, the loss and the attention at the end."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.experiments.curves import curve, exponent, known, over_time
from dynamics.experiments.masked_image_modeling.runs import (
    NEGATIVE,
    POSITIVE,
    Case,
    chosen,
    family,
    listed,
    outside,
    over_units,
    patches_of,
    sizes_of,
    slope_after,
)
from dynamics.experiments.verify import Finding, Protocol

if TYPE_CHECKING:
    from dynamics.systems import System

BOOST = 2.0
"""Factor from which on a rate has grown, not only wavered."""
MIDDLE = (0.2, 0.8)
"""Attention that is neither near 0 nor near 1."""
UNCHANGED = 0.1
"""Relative change up to which a correlation is nearly unchanged."""
AS_ONE_OVER_T = -0.9
"""Exponent in time from which on a loss falls as 1/t."""
STEEPER = 0.02
"""By how much an exponent in time falls over half a decade where it has not settled."""
SLOWER = 0.1
"""Exponent of P by which a time may exceed P^(1 - kappa_s) log P at these sizes."""
CONSTANT = 10.0
"""What O(epsilon) may hide: (1 - A)^2 is 2 / gamma times the gap where the rest is unattended."""


def rapid_growth(system: System, protocol: Protocol) -> Finding:
    """The rate of Phi_m from the switch to its peak."""
    quantity = "least growth of alpha_m from the switch to its peak"
    undecided = outside(protocol, quantity, BOOST, 1)
    if undecided is not None:
        return undecided
    cases, rows = family(system, protocol), []
    for case in cases:
        rate, switch = case.run["alpha_m"], case.after("E2").start
        peak = int(rate.argmax())
        rising = bool((np.diff(rate[switch : peak + 1]) > 0).all()) and peak > switch
        grown = float(rate[peak] / rate[switch]) if switch < rate.size else float("nan")
        rows.append(sizes_of(case.parameters) | {
            "growth": grown, "rising": rising, "A_m": float(case.run["A_m"][peak]),
        })  # fmt: skip
    least = min(row["growth"] for row in rows)
    holds = bool(least >= BOOST and all(row["rising"] for row in rows))
    reason = (
        f"alpha_m grows {listed([row['growth'] for row in rows])}-fold from the switch to its peak "
        f"(P={patches_of(rows)}), "
        f"{'without a fall' if all(row['rising'] for row in rows) else 'with falls in between'}, "
        f"where A_m is {listed([row['A_m'] for row in rows])}"
    )
    curves = [
        curve(f"$P = {c.parameters.P}$", c.scaled, c.run["alpha_m"][1:] / c.run["alpha_m"][0])
        for c in cases
    ]
    plot = over_units(r"$\alpha_m$ over its first value", curves)
    return Finding(holds, quantity, least, BOOST, reason, {"table": rows, "plot": plot})


def convergence(system: System, protocol: Protocol) -> Finding:
    """Where alpha_m peaks, and whether the loss goes to its floor."""
    quantity = "attention to the own area where alpha_m peaks, at the largest P"
    undecided = outside(protocol, quantity, 0.5, 1)
    if undecided is not None:
        return undecided
    cases, rows = family(system, protocol), []
    for case in cases:
        peak = int(case.run["alpha_m"].argmax())
        rows.append(sizes_of(case.parameters) | {
            "A_m": float(case.run["A_m"][peak]),
            "Phi_m_over_log": float(case.run["Phi_m"][peak] / log(case.parameters.P)),
            "left": float(case.run["gap"][-1] / case.run["gap"][0]), "slope": _late(case, True),
        })  # fmt: skip
    inside = all(MIDDLE[0] <= row["A_m"] <= MIDDLE[1] for row in rows)
    falls = _falls([row["slope"] for row in rows], [_steepens(case, True) for case in cases])
    reason = (
        f"alpha_m peaks at A_m = {listed([row['A_m'] for row in rows])} and Phi_m / ln P = "
        f"{listed([row['Phi_m_over_log'] for row in rows])} (P={patches_of(rows)}); the loss above "
        f"its floor ends at {listed([row['left'] for row in rows], 2)} of its start, falling as "
        f"time to the power {listed([row['slope'] for row in rows])}"
    )
    curves = [
        curve(f"$P = {c.parameters.P}$", c.run["A_m"][1:], c.run["alpha_m"][1:]) for c in cases
    ]
    plot = {
        "x_label": "attention to the own area $A_m$", "y_label": r"$\alpha_m$",
        "x_scale": "linear", "y_scale": "linear", "curves": curves, "lines": [],
    }  # fmt: skip
    evidence = {"table": rows, "plot": plot}
    holds = falls if inside else False
    return Finding(holds, quantity, rows[-1]["A_m"], 0.5, reason, evidence)


def frozen(system: System, protocol: Protocol) -> Finding:
    """What else moves after the switch."""
    quantity = "least change of another correlation after the switch, over its value there"
    undecided = outside(protocol, quantity, UNCHANGED, 1)
    if undecided is not None:
        return undecided
    cases, rows = family(system, protocol), []
    for case in cases:
        at = case.at("E2")
        moved = abs(case.run["Phi_0"][-1] - at["Phi_0"])
        rows.append(sizes_of(case.parameters) | {
            "Phi_0_at_switch": at["Phi_0"], "Phi_0_at_end": float(case.run["Phi_0"][-1]),
            "change": float(moved / abs(at["Phi_0"])) if at["Phi_0"] else float("inf"),
            "share": float(moved / abs(case.run["Phi_m"][-1] - at["Phi_m"])),
        })  # fmt: skip
    least = min(row["change"] for row in rows)
    reason = (
        f"Phi_0 goes on from {listed([row['Phi_0_at_switch'] for row in rows])} at the switch to "
        f"{listed([row['Phi_0_at_end'] for row in rows])} (P={patches_of(rows)}), a change of "
        f"{listed([row['change'] for row in rows], 2)} of itself and "
        f"{listed([row['share'] for row in rows], 2)} of the growth of Phi_m"
    )
    curves = []
    for case in cases:
        after = case.after("E2")
        if after.start < after.stop:
            values = case.run["Phi_0"][after] / case.at("E2")["Phi_0"]
            curves.append(
                curve(f"$P = {case.parameters.P}$", case.run.time[after] / case.unit, values)
            )
    lines = [{"label": "nearly unchanged", "y": 1 + UNCHANGED}]
    plot = over_units(r"$\Phi_0$ over its value at the switch", curves, lines, "linear")
    # Every size must be nearly unchanged for the claim; the least change shows how far off it is.
    holds = bool(max(row["change"] for row in rows) <= UNCHANGED)
    return Finding(holds, quantity, least, UNCHANGED, reason, {"table": rows, "plot": plot})


def loss(system: System, protocol: Protocol) -> Finding:
    """The late law of the loss, and how the time to a fixed loss grows with P."""
    quantity = "slowest exponent in time of the loss above its floor, after rapid growth"
    undecided = outside(protocol, quantity, AS_ONE_OVER_T)
    if undecided is not None:
        return undecided
    cases, ladder = chosen(system, protocol, POSITIVE, NEGATIVE), []
    rows = [
        sizes_of(case.parameters)
        | {"row": "local" if local else "global", "slope": _late(case, local),
           "visible": _visible(case, local),
           "left": float(case.run["gap" if local else "gap_g"][-1])}
        for case in cases for local in (True, False)
    ]  # fmt: skip
    slopes = [row["slope"] for row in rows]
    slowest = max(slopes)
    reason = (
        f"L_p - L*_p falls as time to the power {listed(slopes)} (local and global patches), to "
        f"{listed([row['left'] for row in rows], 2)}"
    )
    grows = float("nan")
    if protocol.parameters is None:
        ladder = family(system, protocol)
        times = [c.time("E5") / (c.unit * log(c.parameters.P)) for c in ladder]
        grows = exponent([c.parameters.P for c in ladder], times)
        reason += (
            f"; the time to 1e-3 over P^(1 - kappa_s) ln P is {listed(times)} along P="
            f"{', '.join(str(c.parameters.P) for c in ladder)}"
        )
    steepens = [_steepens(case, local) for case in cases for local in (True, False)]
    holds = False if grows > SLOWER else _falls(slopes, steepens)
    if holds is None:
        reason += "; the slowest of them still falls faster and faster"
    elif slowest > AS_ONE_OVER_T:
        slow = max(rows, key=lambda row: float(row["slope"]))
        reason += (
            f"; of the slowest about {slow['visible']:.2g} is what the own area misses where it is "
            "seen, the rest is of masks that hide all of it"
        )
    curves = [
        curve(f"{name}, $\\Delta = {c.parameters.Delta:.2f}$", *_tail(c, local))
        for c in cases
        for local, name in ((True, "local"), (False, "global"))
    ]
    law = [c["x"] for c in curves if len(c["x"])]
    if law:
        x = np.array(law[0])
        size = cases[0].parameters.K / 4
        curves.append(curve(r"$K / (4 \tau)$", x, size / x))
    plot = over_time("$L_p - L_p^*$", curves) | {"x_label": r"time since $A \geq 1/2$"}
    evidence = {"table": rows, "exponent_of_time": known(grows), "plot": plot}
    return Finding(holds, quantity, slowest, AS_ONE_OVER_T, reason, evidence)


def attention(system: System, protocol: Protocol) -> Finding:
    """(1 - A)^2 against the loss above its floor, while that falls."""
    quantity = "largest (1 - A)^2 over the loss above its floor, once that is below 0.1"
    undecided = outside(protocol, quantity, CONSTANT)
    if undecided is not None:
        return undecided
    rows, curves = [], []
    for case in chosen(system, protocol, POSITIVE, NEGATIVE):
        for local, name in ((True, "local"), (False, "global")):
            gap, own = _series(case, local)
            kept = gap < 0.1
            ratio = (1 - own[kept]) ** 2 / gap[kept]
            rows.append(sizes_of(case.parameters) | {
                "row": name, "own": float(own[-1]),
                "ratio": float(ratio.max()) if ratio.size else float("inf"),
            })  # fmt: skip
            label = f"{name}, $\\Delta = {case.parameters.Delta:.2f}$"
            curves.append(curve(label, gap[kept], (1 - own[kept]) ** 2))
    most = max(row["ratio"] for row in rows)
    near = min(row["own"] for row in rows)
    holds = bool(most <= CONSTANT)
    reason = (
        f"(1 - A)^2 is {most:.3g} times L_p - L*_p at most, and the own area, where one of it is "
        f"unmasked, ends with {near:.4f} of the attention or more"
        if np.isfinite(most)
        else f"a loss stays above its floor by 0.1, with {near:.3g} of the attention on the own"
    )
    plot = {
        "x_label": "$L_p - L_p^*$", "y_label": "$(1 - A)^2$", "x_scale": "log", "y_scale": "log",
        "curves": curves, "lines": [],
    }  # fmt: skip
    return Finding(holds, quantity, most, CONSTANT, reason, {"table": rows, "plot": plot})


def _visible(case: Case, local: bool) -> float:
    """Share of the loss above its floor that (1 - A)^2 makes at the end."""
    gap, own = _series(case, local)
    law = case.parameters
    return float(law.gamma * (1 - own[-1]) ** 2 / (2 * law.K * gap[-1]))


def _series(case: Case, local: bool) -> tuple[Any, Any]:
    names = ("gap", "A_m") if local else ("gap_g", "A_g")
    return case.run[names[0]], case.run[names[1]]


def _tail(case: Case, local: bool) -> tuple[Any, Any]:
    """Time since half of the attention was on the own area, and the loss above its floor."""
    start = case.time("E4" if local else "E4_global")
    later = case.run.time > start
    return case.run.time[later] - start, _series(case, local)[0][later]


def _late(case: Case, local: bool) -> float:
    """Exponent of the loss above its floor in the time since E4; 0 where E4 was not seen."""
    time, values = _tail(case, local)
    found = slope_after(time, values) if time.size else float("nan")
    return 0.0 if np.isnan(found) else found


def _steepens(case: Case, local: bool) -> bool:
    """Whether the loss above its floor falls faster at the end than half a decade before."""
    time, values = _tail(case, local)
    if not time.size:
        return False
    before = time <= time[-1] / np.sqrt(10.0)
    earlier = slope_after(time[before], values[before]) if before.any() else float("nan")
    return bool(slope_after(time, values) < earlier - STEEPER)


def _falls(slopes: list[float], steepens: list[bool]) -> bool | None:
    """Whether losses fall as 1/t; None where those that do not yet are on their way there."""
    pairs = list(zip(slopes, steepens, strict=True))
    if all(slope <= AS_ONE_OVER_T for slope, _ in pairs):
        return True
    return None if all(slope <= AS_ONE_OVER_T or more for slope, more in pairs) else False
