"""Phase I of a local patch with a positive gap: its stages, the switch, and how far from the rest.

Sections 5.2 of the paper and Lemma 5.3, along the family with P growing at fixed exponents.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.experiments.criteria import Criterion, decided, listed
from dynamics.experiments.curves import curve
from dynamics.experiments.masked_image_modeling.runs import (
    SMALL_SHARE,
    Case,
    compared,
    family,
    outside,
    over_units,
    patches_of,
    sizes_of,
)
from dynamics.experiments.verify import Finding, Protocol

if TYPE_CHECKING:
    from dynamics.registry import System

REST = "largest other correlation at the end of Phase I over Phi_m"
FACTOR = 2.0
"""How far two numbers of the same order may be apart."""
STILL = 0.1
"""Relative change of attention up to which it stays where it was."""


def stage_1(system: System, protocol: Protocol) -> Finding:
    """When the paper's threshold is passed, against the switch."""
    quantity = "largest time of the paper's threshold (E1p) over that of the switch (E2)"
    undecided = outside(protocol, quantity, 1.0, 1)
    if undecided is not None:
        return undecided
    cases = family(system, protocol)
    rows = []
    for case in cases:
        at = case.at("E1p")
        rows.append(sizes_of(case.parameters) | {
            "E1": case.time("E1"), "E1p": case.time("E1p"), "E2": case.time("E2"),
            "Phi_m": at["Phi_m"], "Phi_0": at["Phi_0"],
        })  # fmt: skip
    ratios = [row["E1p"] / row["E2"] if row["E2"] > 0 else float("nan") for row in rows]
    seen = bool(np.isfinite(ratios).all())
    later = sum(row["E1"] < row["E2"] < row["E1p"] for row in rows)
    reason = (
        f"Phi_0 passes -(Delta/2 - 0.01) ln P / U after {listed(ratios)} times the switch (P="
        f"{patches_of(rows)}), with Phi_m at "
        f"{listed([row['Phi_m'] for row in rows])} there"
        if seen
        else "the threshold or the switch is not seen: there is no stage 1"
    )
    if later:
        where = "" if later == len(rows) else f" at {later} of {len(rows)} sizes"
        reason += f"; with Delta_eff, the gap at this size, it is passed before (E1){where}"
    plot = _in_units(
        cases, "Phi_0", r"$\Phi_0 / (\frac{\Delta}{2} \ln P)$", lambda c: c.parameters.Delta / 2
    )
    evidence = {"table": rows, "plot": plot}
    shares = [row["Phi_m"] / abs(row["Phi_0"]) for row in rows]
    criteria = (
        Criterion(quantity, float(np.max(ratios)), "<=", 1.0),
        Criterion("largest Phi_m over |Phi_0| at that threshold", float(np.max(shares)), "<", 1.0),
    )
    return decided(criteria, reason, evidence)


def lemma_5_3(system: System, protocol: Protocol) -> Finding:
    """Values at the end of Phase I (E3) along P."""
    quantity = f"{REST}, at the largest P"
    undecided = outside(protocol, quantity, SMALL_SHARE, 1)
    if undecided is not None:
        return undecided
    cases, rows = family(system, protocol), []
    for case in cases:
        at, switch = case.at("E3"), case.at("E2")
        rest = max(abs(at[name]) for name in case.others(local=True))
        rows.append(sizes_of(case.parameters) | {
            "E2": case.time("E2"), "E3": case.time("E3"), "Phi_m_at_switch": switch["Phi_m"],
            "Phi_m_over_log": at["Phi_m"] / log(case.parameters.P),
            "Phi_0_over_log": at["Phi_0"] / log(case.parameters.P),
            "rest": rest / at["Phi_m"],
        })  # fmt: skip
    shares = [row["rest"] for row in rows]
    reached = bool(np.isfinite(shares).all()) and all(row["E2"] > 0 for row in rows)
    # In units of log P both must be of one order along P, with their signs.
    apart = max(
        _apart([row["Phi_m_over_log"] for row in rows]),
        _apart([-row["Phi_0_over_log"] for row in rows]),
    )
    criteria = [
        Criterion(quantity, shares[-1] if reached else float("nan"), "<=", SMALL_SHARE),
        Criterion("Phi_m / ln P, or -Phi_0 / ln P, largest over least along P", apart, "<", FACTOR),
    ]
    if len(rows) > 1:
        grows = float(np.max(np.divide(shares[1:], shares[:-1])))
        criteria.append(Criterion(f"{REST}, over that of the size before", grows, "<", 1.0))
    reason = (
        f"at E3 Phi_m / ln P is {listed([row['Phi_m_over_log'] for row in rows])} and Phi_0 / ln P "
        f"{listed([row['Phi_0_over_log'] for row in rows])} (P="
        f"{patches_of(rows)}), the largest other one {listed(shares)} of "
        f"Phi_m; at the switch itself Phi_m is {listed([row['Phi_m_at_switch'] for row in rows])}"
        if reached
        else "there is no switch from Phi_0 to Phi_m followed by E3"
    )
    curves = [
        curve(label, [row["P"] for row in rows], [abs(row[name]) for row in rows])
        for label, name in (
            (r"$\Phi_m / \ln P$", "Phi_m_over_log"), (r"$|\Phi_0| / \ln P$", "Phi_0_over_log"),
            (r"largest other $/ \Phi_m$", "rest"),
        )
    ]  # fmt: skip
    plot = {
        "x_label": "patches $P$", "y_label": "at the end of Phase I", "x_scale": "log",
        "y_scale": "log", "curves": curves, "lines": [{"label": "small", "y": SMALL_SHARE}],
    }  # fmt: skip
    return decided(criteria, reason, {"table": rows, "plot": plot})


def _apart(values: Sequence[float]) -> float:
    """Largest over least of positive values; infinite where one is not positive."""
    return float(max(values) / min(values)) if min(values) > 0 else float("inf")


def intuition(system: System, protocol: Protocol) -> Finding:
    """Depth of Phi_0 at the switch, and rho after it."""
    quantity = "largest factor between Phi_0 at the switch and -(Delta/2) ln P"
    undecided = outside(protocol, quantity, FACTOR, 1)
    if undecided is not None:
        return undecided
    cases, rows = family(system, protocol), []
    for case in cases:
        after = case.run["rho"][case.after("E2")]
        depth = case.parameters.Delta / 2 * log(case.parameters.P)
        rows.append(sizes_of(case.parameters) | {
            "depth": -case.at("E2")["Phi_0"] / depth,
            "later": float(after.max()) if after.size else float("nan"),
        })  # fmt: skip
    depths, later = [row["depth"] for row in rows], float(np.max([row["later"] for row in rows]))
    reason = (
        f"both rates are equal where Phi_0 is {listed(depths)} of that depth (P="
        f"{patches_of(rows)}); after it rho is {later:.3g} at most"
        if min(depths) > 0
        else "there is no Phase I, at whose end both rates would be equal"
    )
    factors = [max(depth, 1 / depth) if depth > 0 else float("inf") for depth in depths]
    criteria = (
        Criterion(quantity, max(factors), "<=", FACTOR),
        Criterion("largest |alpha_0| / alpha_m after the switch", later, "<=", 1.0),
    )
    curves = [curve(f"$P = {c.parameters.P}$", c.scaled, c.run["rho"][1:]) for c in cases]
    plot = over_units(r"$|\alpha_0| / \alpha_m$", curves, [{"label": "equal rates", "y": 1.0}])
    return decided(criteria, reason, {"table": rows, "plot": plot})


def separation(system: System, protocol: Protocol) -> Finding:
    """Attention to the own area up to the switch, and how long the phases last."""
    quantity = "relative change of the attention to the own area up to the switch, at the largest P"
    undecided = outside(protocol, quantity, STILL, 1)
    if undecided is not None:
        return undecided
    cases = family(system, protocol)
    rows = [
        sizes_of(case.parameters) | {
            "grown": case.at("E2")["A_m"] / float(case.run["A_m"][0]) - 1,
            "Phi_m": case.at("E2")["Phi_m"],
            "E2": case.time("E2") / case.unit, "E4": case.time("E4") / case.unit,
        } for case in cases
    ]  # fmt: skip
    grown = [row["grown"] for row in rows]
    seen = all(row["E2"] > 0 for row in rows)
    reason = (
        f"up to the switch the attention to the own area grows by {listed(grown)} of itself and "
        f"Phi_m to {listed([row['Phi_m'] for row in rows])}; in units of K P / C_s the switch is "
        f"at {listed([row['E2'] for row in rows])} and the end of rapid growth at "
        f"{listed([row['E4'] for row in rows])} (P={patches_of(rows)})"
        if seen
        else "there is no switch"
    )
    times = {
        word: [row[name] for row in rows]
        for word, name in (("the switch", "E2"), ("the end of rapid growth", "E4"))
    }
    powers = compared([row["P"] for row in rows], times) if seen else ""
    reason += f"; {powers}" if powers else ""
    own = [
        curve(f"$P = {c.parameters.P}$", c.scaled, c.run["A_m"][1:] / c.run["A_m"][0])
        for c in cases
    ]
    lines = [{"label": "what counts as unchanged", "y": 1 + STILL}]
    plot = over_units("attention to the own area\nover its first value", own, lines)
    change = abs(grown[-1]) if seen else float("nan")
    criteria = (Criterion(quantity, change, "<=", STILL),)
    return decided(criteria, reason, {"table": rows, "plot": plot})


def _in_units(cases: list[Case], name: str, y_label: str, factor: Any) -> dict[str, Any]:
    """A correlation over a multiple of ln P, from the start to past the switch."""
    curves = []
    for case in cases:
        scale = factor(case) * log(case.parameters.P)
        label = f"$P = {case.parameters.P}$, switch at {case.time('E2') / case.unit:.2f}"
        kept = (case.scaled < 5) & (case.scaled > 0.05)
        curves.append(curve(label, case.scaled[kept], (case.run[name][1:] / scale)[kept]))
    return over_units(y_label, curves, [{"label": "the paper's threshold", "y": -1.0}], "linear")
