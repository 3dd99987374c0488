"""Phase II: rapid growth, where it ends, and what freezes."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

import numpy as np

from dynamics.experiments.criteria import Criterion, decided, listed
from dynamics.experiments.curves import curve
from dynamics.experiments.masked_image_modeling.convergence import (
    AS_ONE_OVER_T,
    SLOWEST,
    late_slope,
    on_their_way,
    powers,
)
from dynamics.experiments.masked_image_modeling.runs import (
    family,
    outside,
    over_units,
    patches_of,
    sizes_of,
)
from dynamics.experiments.verify import Finding, Protocol

if TYPE_CHECKING:
    from dynamics.registry import System

BOOST = 2.0
"""Factor from which on a rate has grown, not only wavered."""
MIDDLE = 0.3
"""Distance from 1/2 of attention that is neither near 0 nor near 1."""
UNCHANGED = 0.1
"""Relative change up to which a correlation is nearly unchanged."""


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
        falls = int(np.count_nonzero(np.diff(rate[switch : peak + 1]) <= 0))
        grown = float(rate[peak] / rate[switch]) if switch < rate.size else float("nan")
        rows.append(sizes_of(case.parameters) | {
            "growth": grown, "falls": falls, "A_m": float(case.run["A_m"][peak]),
        })  # fmt: skip
    least = float(np.min([row["growth"] for row in rows]))
    falls = sum(row["falls"] for row in rows)
    reason = (
        f"alpha_m grows {listed([row['growth'] for row in rows])}-fold from the switch to its peak "
        f"(P={patches_of(rows)}), "
        f"{f'with a fall at {falls} records' if falls else 'without a fall'}, "
        f"where A_m is {listed([row['A_m'] for row in rows])}"
        if np.isfinite(least)
        else "there is no switch from which to grow"
    )
    curves = [
        curve(f"$P = {c.parameters.P}$", c.scaled, c.run["alpha_m"][1:] / c.run["alpha_m"][0])
        for c in cases
    ]
    plot = over_units(r"$\alpha_m$ over its first value", curves)
    criteria = (
        Criterion(quantity, least, ">=", BOOST),
        Criterion("records from the switch to the peak at which alpha_m falls", falls, "<=", 0),
    )
    return decided(criteria, reason, {"table": rows, "plot": plot})


def convergence(system: System, protocol: Protocol) -> Finding:
    """Where alpha_m peaks, and whether the loss goes to its floor."""
    quantity = "largest distance from 1/2 of the attention to the own area where alpha_m peaks"
    undecided = outside(protocol, quantity, MIDDLE, 1)
    if undecided is not None:
        return undecided
    cases, rows = family(system, protocol), []
    for case in cases:
        peak = int(case.run["alpha_m"].argmax())
        rows.append(sizes_of(case.parameters) | {
            "A_m": float(case.run["A_m"][peak]),
            "Phi_m_over_log": float(case.run["Phi_m"][peak] / log(case.parameters.P)),
            "left": float(case.run["gap"][-1] / case.run["gap"][0]),
            "slope": late_slope(case, True),
        })  # fmt: skip
    off = max(abs(row["A_m"] - 0.5) for row in rows)
    slopes = [row["slope"] for row in rows]
    open_ = on_their_way([(case, True) for case in cases])
    criteria = (
        Criterion(quantity, off, "<=", MIDDLE),
        Criterion(SLOWEST, float(np.max(slopes)), "<=", AS_ONE_OVER_T),
    )
    reason = (
        f"alpha_m peaks at A_m = {listed([row['A_m'] for row in rows])} and Phi_m / ln P = "
        f"{listed([row['Phi_m_over_log'] for row in rows])} (P={patches_of(rows)}); the loss above "
        f"its floor ends at {listed([row['left'] for row in rows], 2)} of its start, "
        f"{powers([(case, True) for case in cases])}"
    )
    if open_ and np.max(slopes) > AS_ONE_OVER_T:
        reason += ", and still faster and faster"
    curves = [
        curve(f"$P = {c.parameters.P}$", c.run["A_m"][1:], c.run["alpha_m"][1:]) for c in cases
    ]
    plot = {
        "x_label": "attention to the own area $A_m$", "y_label": r"$\alpha_m$",
        "x_scale": "linear", "y_scale": "linear", "curves": curves, "lines": [],
    }  # fmt: skip
    evidence = {"table": rows, "plot": plot}
    return decided(criteria, reason, evidence, open_=off <= MIDDLE and open_)


def frozen(system: System, protocol: Protocol) -> Finding:
    """What else moves after the switch."""
    quantity = "change of Phi_0 after the switch over its value there, at the largest P"
    undecided = outside(protocol, quantity, UNCHANGED, 1)
    if undecided is not None:
        return undecided
    cases, rows = family(system, protocol), []
    without = [case for case in cases if not case.time("E2") > 0]
    if without:
        reason = (
            f"the claim is about what follows a switch, and there is none at {without[0].shown}"
        )
        evidence = {"table": [sizes_of(case.parameters) for case in cases]}
        return Finding(None, quantity, float("nan"), UNCHANGED, reason, evidence)
    for case in cases:
        at = case.at("E2")
        moved = abs(case.run["Phi_0"][-1] - at["Phi_0"])
        rows.append(sizes_of(case.parameters) | {
            "Phi_0_at_switch": at["Phi_0"], "Phi_0_at_end": float(case.run["Phi_0"][-1]),
            "change": float(moved / abs(at["Phi_0"])),
            "share": float(moved / abs(case.run["Phi_m"][-1] - at["Phi_m"])),
        })  # fmt: skip
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
    criteria = (Criterion(quantity, rows[-1]["change"], "<=", UNCHANGED),)
    return decided(criteria, reason, {"table": rows, "plot": plot})
