"""The phases of a local patch where the information gap is positive, along P at fixed exponents.

Section 5.2 and Lemma 5.3 (Phase I, in which Phi_0 falls, and the switch to Phi_m), Section 5.3
(Phase II, the rapid growth of Phi_m), and what Theorem F.3 says of Phi_0 after the switch.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.experiments.masked_image_modeling.convergence import (
    AS_ONE_OVER_T,
    SLOWEST,
    late_slope,
    still_steepening,
    words_of_decay,
)
from dynamics.experiments.masked_image_modeling.runs import (
    SMALL_SHARE,
    UNITS,
    Case,
    column,
    compared,
    family,
    patches_of,
    requires,
)
from dynamics.experiments.measurement import (
    Chart,
    Measurement,
    Series,
    Undecided,
    conclude,
    listed,
    measures,
)
from dynamics.experiments.verify import Finding, Protocol

if TYPE_CHECKING:
    from dynamics.registry import System

POSITIVE_GAP = requires(sign=1)
REST = "largest other correlation at the end of Phase I over Phi_m"
FACTOR = 2.0
"""How far two numbers of the same order may be apart."""
STILL = 0.1
"""Relative change of attention up to which it stays where it was."""
BOOST = 2.0
"""Factor from which on a rate has grown, not only wavered."""
MIDDLE = 0.3
"""Distance from 1/2 of attention that is neither near 0 nor near 1."""
UNCHANGED = 0.1
"""Relative change up to which a correlation is nearly unchanged."""


def _series(case: Case, values: Any) -> Series:
    """Values at every record but the start, over time in units of K P / C_s."""
    return Series(f"$P = {case.parameters.P}$", case.scaled, values[1:])


@measures(
    "largest time of the paper's threshold (E1p) over that of the switch (E2)",
    "<=", 1.0, POSITIVE_GAP,
)  # fmt: skip
def stage_1(system: System, protocol: Protocol, measured: Any) -> Finding:
    """When Phi_0 passes the paper's threshold of stage 1, against the switch."""
    cases = family(system, protocol)
    rows, series = [], []
    for case in cases:
        at, size = case.at("E1p"), log(case.parameters.P)
        rows.append(case.entry(
            E1=case.time("E1"), E1p=case.time("E1p"), E2=case.time("E2"), Phi_m=at["Phi_m"],
            Phi_0=at["Phi_0"],
        ))  # fmt: skip
        near = (case.scaled < 5) & (case.scaled > 0.05)
        depth = case.run["Phi_0"][1:] / (case.parameters.Delta / 2 * size)
        label = f"$P = {case.parameters.P}$, switch at {case.time('E2') / case.unit:.2f}"
        series.append(Series(label, case.scaled[near], depth[near]))
    ratios = [row["E1p"] / row["E2"] if row["E2"] > 0 else float("nan") for row in rows]
    reason = "the threshold or the switch is not seen: there is no stage 1"
    if np.isfinite(ratios).all():
        reason = (
            f"Phi_0 passes -(Delta/2 - 0.01) ln P / U after {listed(ratios)} times the switch (P="
            f"{patches_of(rows)}), with Phi_m at {listed(column(rows, 'Phi_m'))} there"
        )
    earlier = sum(row["E1"] < row["E2"] < row["E1p"] for row in rows)
    if earlier:
        where = "" if earlier == len(rows) else f" at {earlier} of {len(rows)} sizes"
        reason += f"; with Delta_eff, the gap at this size, it is passed before (E1){where}"
    shares = [row["Phi_m"] / abs(row["Phi_0"]) for row in rows]
    chart = Chart(
        UNITS, r"$\Phi_0 / (\frac{\Delta}{2} \ln P)$", series, {"the paper's threshold": -1.0},
        y_scale="linear",
    )  # fmt: skip
    most = float(np.max(shares))
    also = Measurement("largest Phi_m over |Phi_0| at that threshold", most, "<", 1.0)
    return conclude([measured(float(np.max(ratios)), chart), also], reason, table=rows)


@measures(f"{REST}, at the largest P", "<=", SMALL_SHARE, POSITIVE_GAP)
def lemma_5_3(system: System, protocol: Protocol, measured: Any) -> Finding:
    """Correlations at the end of Phase I (E3) along P."""
    rows = []
    for case in family(system, protocol):
        at, size = case.at("E3"), log(case.parameters.P)
        rest = max(abs(at[name]) for name in case.others(local=True))
        rows.append(case.entry(
            E2=case.time("E2"), E3=case.time("E3"), Phi_m_at_switch=case.at("E2")["Phi_m"],
            Phi_m_over_log=at["Phi_m"] / size, Phi_0_over_log=at["Phi_0"] / size,
            rest=rest / at["Phi_m"],
        ))  # fmt: skip
    shares = column(rows, "rest")
    ended = bool(np.isfinite(shares).all()) and all(row["E2"] > 0 for row in rows)
    # In units of log P both must be of one order along P, with their signs.
    apart = max(
        _apart(column(rows, "Phi_m_over_log")),
        _apart([-value for value in column(rows, "Phi_0_over_log")]),
    )
    reason = "there is no switch from Phi_0 to Phi_m followed by E3"
    if ended:
        reason = (
            f"at E3 Phi_m / ln P is {listed(column(rows, 'Phi_m_over_log'))} and Phi_0 / ln P "
            f"{listed(column(rows, 'Phi_0_over_log'))} (P={patches_of(rows)}), the largest other "
            f"one {listed(shares)} of Phi_m; at the switch itself Phi_m is "
            f"{listed(column(rows, 'Phi_m_at_switch'))}"
        )
    labels = {
        r"$\Phi_m / \ln P$": "Phi_m_over_log", r"$|\Phi_0| / \ln P$": "Phi_0_over_log",
        r"largest other $/ \Phi_m$": "rest",
    }  # fmt: skip
    series = [
        Series(label, column(rows, "P"), np.abs(column(rows, name)))
        for label, name in labels.items()
    ]
    chart = Chart("patches $P$", "at the end of Phase I", series, {"small": SMALL_SHARE})
    scale = "Phi_m / ln P, or -Phi_0 / ln P, largest over least along P"
    measurements = [
        measured(shares[-1] if ended else float("nan"), chart),
        Measurement(scale, apart, "<", FACTOR),
    ]
    if len(rows) > 1:
        grows = float(np.max(np.divide(shares[1:], shares[:-1])))
        name = f"{REST}, over that of the size before"
        measurements.append(Measurement(name, grows, "<", 1.0))
    return conclude(measurements, reason, table=rows)


def _apart(values: Sequence[float]) -> float:
    """Largest over least of positive values; infinite where one is not positive."""
    return float(max(values) / min(values)) if min(values) > 0 else float("inf")


@measures(
    "largest factor between Phi_0 at the switch and -(Delta/2) ln P", "<=", FACTOR, POSITIVE_GAP
)
def intuition(system: System, protocol: Protocol, measured: Any) -> Finding:
    """Depth of Phi_0 at the switch, and rho after it."""
    cases, rows = family(system, protocol), []
    for case in cases:
        after = case.run["rho"][case.after("E2")]
        depth = case.parameters.Delta / 2 * log(case.parameters.P)
        rows.append(case.entry(
            depth=-case.at("E2")["Phi_0"] / depth,
            later=float(after.max()) if after.size else float("nan"),
        ))  # fmt: skip
    depths, later = column(rows, "depth"), float(np.max(column(rows, "later")))
    reason = "there is no Phase I, at whose end both rates would be equal"
    if min(depths) > 0:
        reason = (
            f"both rates are equal where Phi_0 is {listed(depths)} of that depth (P="
            f"{patches_of(rows)}); after it rho is {later:.3g} at most"
        )
    factors = [max(depth, 1 / depth) if depth > 0 else float("inf") for depth in depths]
    series = [_series(case, case.run["rho"]) for case in cases]
    chart = Chart(UNITS, r"$|\alpha_0| / \alpha_m$", series, {"equal rates": 1.0})
    also = Measurement("largest |alpha_0| / alpha_m after the switch", later, "<=", 1.0)
    return conclude([measured(max(factors), chart), also], reason, table=rows)


@measures(
    "relative change of the attention to the own area up to the switch, at the largest P",
    "<=", STILL, POSITIVE_GAP,
)  # fmt: skip
def separation(system: System, protocol: Protocol, measured: Any) -> Finding:
    """Attention to the own area up to the switch, and how long the phases last."""
    cases = family(system, protocol)
    rows = [
        case.entry(
            grown=case.at("E2")["A_m"] / float(case.run["A_m"][0]) - 1,
            Phi_m=case.at("E2")["Phi_m"], E2=case.time("E2") / case.unit,
            E4=case.time("E4") / case.unit,
        ) for case in cases
    ]  # fmt: skip
    reason, change = "there is no switch", float("nan")
    if all(row["E2"] > 0 for row in rows):
        switch, end, grown = (column(rows, name) for name in ("E2", "E4", "grown"))
        change = abs(grown[-1])
        reason = (
            f"up to the switch the attention to the own area grows by {listed(grown)} of itself "
            f"and Phi_m to {listed(column(rows, 'Phi_m'))}; in units of K P / C_s the switch is at "
            f"{listed(switch)} and the end of rapid growth at {listed(end)} (P={patches_of(rows)})"
        )
        times = {"the switch": switch, "the end of rapid growth": end}
        powers = compared(column(rows, "P"), times)
        reason += f"; {powers}" if powers else ""
    series = [_series(case, case.run["A_m"] / case.run["A_m"][0]) for case in cases]
    chart = Chart(
        UNITS, "attention to the own area\nover its first value", series,
        {"what counts as unchanged": 1 + STILL},
    )  # fmt: skip
    return conclude(measured(change, chart), reason, table=rows)


@measures("least growth of alpha_m from the switch to its peak", ">=", BOOST, POSITIVE_GAP)
def rapid_growth(system: System, protocol: Protocol, measured: Any) -> Finding:
    """Growth of the rate of Phi_m from the switch to its peak."""
    cases, rows = family(system, protocol), []
    for case in cases:
        rate, switch = case.run["alpha_m"], case.after("E2").start
        peak = int(rate.argmax())
        rows.append(case.entry(
            growth=float(rate[peak] / rate[switch]) if switch < rate.size else float("nan"),
            falls=int(np.count_nonzero(np.diff(rate[switch : peak + 1]) <= 0)),
            A_m=float(case.run["A_m"][peak]),
        ))  # fmt: skip
    least, falls = float(np.min(column(rows, "growth"))), sum(row["falls"] for row in rows)
    reason = "there is no switch from which to grow"
    if np.isfinite(least):
        reason = (
            f"alpha_m grows {listed(column(rows, 'growth'))}-fold from the switch to its peak (P="
            f"{patches_of(rows)}), "
            f"{f'with a fall at {falls} records' if falls else 'without a fall'}, where A_m is "
            f"{listed(column(rows, 'A_m'))}"
        )
    series = [_series(case, case.run["alpha_m"] / case.run["alpha_m"][0]) for case in cases]
    chart = Chart(UNITS, r"$\alpha_m$ over its first value", series)
    also = "records from the switch to the peak at which alpha_m falls"
    return conclude([measured(least, chart), Measurement(also, falls, "<=", 0)], reason, table=rows)


@measures(
    "largest distance from 1/2 of the attention to the own area where alpha_m peaks",
    "<=", MIDDLE, POSITIVE_GAP,
)  # fmt: skip
def end_of_growth(system: System, protocol: Protocol, measured: Any) -> Finding:
    """Where alpha_m peaks, and whether the loss goes to its floor."""
    cases, rows = family(system, protocol), []
    for case in cases:
        run, peak = case.run, int(case.run["alpha_m"].argmax())
        rows.append(case.entry(
            A_m=float(run["A_m"][peak]),
            Phi_m_over_log=float(run["Phi_m"][peak] / log(case.parameters.P)),
            left=float(run["gap"][-1] / run["gap"][0]), slope=late_slope(case, True),
        ))  # fmt: skip
    off, slowest = max(abs(row["A_m"] - 0.5) for row in rows), float(np.max(column(rows, "slope")))
    patches = [(case, True) for case in cases]
    undecided_yet = still_steepening(patches)
    reason = (
        f"alpha_m peaks at A_m = {listed(column(rows, 'A_m'))} and Phi_m / ln P = "
        f"{listed(column(rows, 'Phi_m_over_log'))} (P={patches_of(rows)}); the loss above its "
        f"floor ends at {listed(column(rows, 'left'), 2)} of its start, {words_of_decay(patches)}"
    )
    if undecided_yet and slowest > AS_ONE_OVER_T:
        reason += ", and still faster and faster"
    series = [
        Series(f"$P = {c.parameters.P}$", c.run["A_m"][1:], c.run["alpha_m"][1:]) for c in cases
    ]
    chart = Chart(
        "attention to the own area $A_m$", r"$\alpha_m$", series, x_scale="linear",
        y_scale="linear",
    )  # fmt: skip
    measurements = [measured(off, chart), Measurement(SLOWEST, slowest, "<=", AS_ONE_OVER_T)]
    return conclude(
        measurements, reason, may_still_come=off <= MIDDLE and undecided_yet, table=rows
    )


@measures(
    "change of Phi_0 after the switch over its value there, at the largest P",
    "<=", UNCHANGED, POSITIVE_GAP,
)  # fmt: skip
def frozen(system: System, protocol: Protocol, measured: Any) -> Finding:
    """How much Phi_0 moves after the switch."""
    cases, rows, series = family(system, protocol), [], []
    for case in cases:
        if not case.time("E2") > 0:
            law = case.parameters
            raise Undecided(
                "the claim is about what follows a switch, and there is none at "
                f"P={law.P}, C_g={law.C_global}, C_s={law.C_local}",
                table=[each.entry() for each in cases],
            )
    for case in cases:
        phi, grown, at, after = (
            case.run["Phi_0"],
            case.run["Phi_m"],
            case.at("E2"),
            case.after("E2"),
        )
        moved = abs(phi[-1] - at["Phi_0"])
        rows.append(case.entry(
            Phi_0_at_switch=at["Phi_0"], Phi_0_at_end=float(phi[-1]),
            change=float(moved / abs(at["Phi_0"])),
            share=float(moved / abs(grown[-1] - at["Phi_m"])),
        ))  # fmt: skip
        if after.start < after.stop:
            label, time = f"$P = {case.parameters.P}$", case.run.time[after] / case.unit
            series.append(Series(label, time, phi[after] / at["Phi_0"]))
    reason = (
        f"Phi_0 goes on from {listed(column(rows, 'Phi_0_at_switch'))} at the switch to "
        f"{listed(column(rows, 'Phi_0_at_end'))} (P={patches_of(rows)}), a change of "
        f"{listed(column(rows, 'change'), 2)} of itself and {listed(column(rows, 'share'), 2)} of "
        "the growth of Phi_m"
    )
    chart = Chart(
        UNITS, r"$\Phi_0$ over its value at the switch", series,
        {"nearly unchanged": 1 + UNCHANGED}, y_scale="linear",
    )  # fmt: skip
    return conclude(measured(rows[-1]["change"], chart), reason, table=rows)
