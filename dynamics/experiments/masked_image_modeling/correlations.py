"""Statements about all of training: monotone correlations, and how small those of positions are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.experiments.criteria import Criterion, decided, listed
from dynamics.experiments.curves import curve, over_time
from dynamics.experiments.masked_image_modeling.runs import (
    NEGATIVE,
    POSITIVE,
    SMALL,
    Case,
    chosen,
    outside,
    sizes_of,
)
from dynamics.experiments.verify import Finding, Protocol

if TYPE_CHECKING:
    from dynamics.registry import System

NEGLIGIBLE = 0.1
"""Share of Phi_m up to which a correlation of positions is nearly zero."""
CLOSE = 0.1
"""Relative distance up to which one number is near another."""
LOCAL_SIZES = tuple({"P": 4096, "C_global": 2048, "C_local": size} for size in (4, 16, 64))
PAIRS = {"P": 4096, "C_global": 2048, "C_local": 2}
"""Local areas of two patches: one mate."""
CROSSING = {"family": "two_cluster_grid", "b11": 8, "b10": 8, "C_local": 4, "T": 1}


def monotone(system: System, protocol: Protocol) -> Finding:
    """Signs of the rates of Phi_m and Phi_0 at every record."""
    quantity = "least rate of Phi_m, or of -Phi_0, of a local patch over the largest of the run"
    undecided = outside(protocol, quantity, 0.0)
    if undecided is not None:
        return undecided
    rows, curves = [], []
    for case in chosen(system, protocol, POSITIVE, NEGATIVE, SMALL, CROSSING):
        run = case.run
        rising = float(run["alpha_m"].min() / np.abs(run["alpha_m"]).max())
        falling = float(-run["alpha_0"].max() / np.abs(run["alpha_0"]).max())
        still = (np.diff(run["Phi_m"]) <= 0) | (np.diff(run["Phi_0"]) >= 0)
        rows.append(sizes_of(case.parameters) | {
            "Phi_m": rising, "Phi_0": falling, "against": int(np.count_nonzero(still)),
            "records": int(run.time.size),
        })  # fmt: skip
        label = f"P={case.parameters.P}, $\\Delta = {case.parameters.Delta:.2f}$"
        curves.append(curve(label + r", $\Phi_m$", run.time[1:], run["Phi_m"][1:]))
        curves.append(curve(label + r", $\Phi_0$", run.time[1:], run["Phi_0"][1:]))
    least = min(min(row["Phi_m"], row["Phi_0"]) for row in rows)
    against = sum(row["against"] for row in rows)
    criteria = (
        Criterion(quantity, least, ">", 0.0),
        Criterion("records at which Phi_m does not rise or Phi_0 not fall", against, "<=", 0),
    )
    wrong = [
        f"Phi_{name} moves against it at P={row['P']}, Delta={row['Delta']:.2f}"
        for row in rows for name in ("m", "0") if row[f"Phi_{name}"] <= 0
    ]  # fmt: skip
    reason = (
        f"Phi_m rises and Phi_0 falls at each of {sum(row['records'] for row in rows)} records of "
        f"{len(rows)} run{'s' * (len(rows) > 1)}"
        if all(criterion.met for criterion in criteria)
        else "; ".join(wrong) or f"a correlation stands still or turns at {against} records"
    )
    plot = over_time("correlation", curves, [{"label": "0", "y": 0.0}], "linear")
    return decided(criteria, reason, {"table": rows, "plot": plot})


def key_observation(system: System, protocol: Protocol) -> Finding:
    """Rates of Ups over those of Phi of the same area."""
    quantity = "largest rate of Ups over that of Phi, own area of a local patch"
    given = protocol.parameters
    undecided = outside(protocol, quantity, 1.0)
    if undecided is not None:
        return undecided
    if given is not None and given.K > 1:
        reason = f"the rates of K={given.K} clusters add up in the reduced problem"
        evidence = {"parameters": sizes_of(given)}
        return Finding(None, quantity, float("nan"), 1.0, reason, evidence)
    rows, curves = [], []
    for case in chosen(system, protocol, POSITIVE, PAIRS, SMALL):
        ratios, turns = _by_area(case)
        others = {name: float(r.max()) for name, r in ratios.items() if name != "own"}
        rows.append(sizes_of(case.parameters) | {
            "own": float(ratios["own"].max()), "others": others,
            "turning": [name for name in turns if others.get(name, 0.0) > 1],
        })  # fmt: skip
        label = f"P={case.parameters.P}, $C_s = {case.parameters.C_local}$"
        curves.append(curve(label, case.run.time[1:], ratios["own"][1:]))
    most = max(row["own"] for row in rows)
    rest = max(value for row in rows for value in row["others"].values())
    told = ", ".join(f"{row['own']:.3g} (P={row['P']}, C_s={row['C_local']})" for row in rows)
    reason = f"in the own area the rate of Ups is up to {told} of that of Phi"
    if most > 1:
        reason += "; a masked mate feels only -u_q r, of either sign, and adds to it"
    if rest > 1:
        above = sorted({name for row in rows for name, r in row["others"].items() if r > 1})
        reason += f"; it is also above that of Phi in the areas called {', '.join(above)}"
        if all(row["turning"] for row in rows if max(row["others"].values()) > 1):
            reason += ", where the rate of Phi passes 0"
    plot = over_time(
        r"rate of $\Upsilon$ over rate of $\Phi$", curves,
        [{"label": "equal rates", "y": 1.0}],
    )  # fmt: skip
    criteria = (
        Criterion(quantity, most, "<=", 1.0),
        Criterion("largest rate of Ups over that of Phi, other areas", rest, "<=", 1.0),
    )
    return decided(criteria, reason, {"table": rows, "plot": plot})


def _by_area(case: Case) -> tuple[dict[str, Any], list[str]]:
    """|rate of Ups| / |rate of Phi| for every class of positions of the local row and its area.

    Beside it the classes in whose area the rate of Phi changes its sign.
    """
    rows = case.problem.rows
    number = rows.names.index(case.row(local=True))
    kind, start = rows.types[number], rows.starts[number]
    names, found, turns = rows.layout.names, {}, []
    for area in kind.clusters[0]:
        phi = case.run[f"d_{names[start + len(kind.ups_names) + area.phi]}"]
        for ups, _ in area.cells:
            rate = case.run[f"d_{names[start + ups]}"]
            with np.errstate(divide="ignore"):
                found[kind.ups_names[ups]] = np.abs(rate) / np.abs(phi)
            if phi.min() < 0 < phi.max():
                turns.append(kind.ups_names[ups])
    return found, turns


def positions(system: System, protocol: Protocol) -> Finding:
    """Largest correlation with a position against Phi_m at the end, for several local sizes."""
    quantity = "largest |Ups| of a local patch over Phi_m at the end"
    undecided = outside(protocol, quantity, NEGLIGIBLE, large=True)
    if undecided is not None:
        return undecided
    rows, curves = [], []
    for case in chosen(system, protocol, PAIRS, *LOCAL_SIZES):
        names = [name for name in case.others(local=True) if "_Ups_" in name]
        sizes = np.abs([case.run[name] for name in names])
        share = sizes.max(axis=0)[1:] / np.abs(case.run["Phi_m"][1:])
        rows.append(sizes_of(case.parameters) | {
            "share": float(share[-1]), "largest": names[int(sizes[:, -1].argmax())],
            "expected": 1 / (case.parameters.C_local - 1),
        })  # fmt: skip
        curves.append(curve(f"$C_s = {case.parameters.C_local}$", case.run.time[1:], share))
    shares = [row["share"] for row in rows]
    most, near = max(shares), [abs(r["share"] / r["expected"] - 1) <= CLOSE for r in rows]
    reason = (
        f"at the end it is {listed(shares)} of Phi_m at C_s="
        f"{', '.join(str(row['C_local']) for row in rows)}, {'near' if all(near) else 'where'} "
        f"1/(C_s - 1) {'=' if all(near) else 'is'} {listed([row['expected'] for row in rows])}"
    )
    if len(rows) > 1 and all(np.diff(shares) < 0):
        reason += ": the smaller the larger local areas are"
    lines = [{"label": "nearly zero", "y": NEGLIGIBLE}]
    plot = over_time(r"largest $|\Upsilon|$ over $\Phi_m$", curves, lines)
    criteria = (Criterion(quantity, most, "<=", NEGLIGIBLE),)
    return decided(criteria, reason, {"table": rows, "plot": plot})
