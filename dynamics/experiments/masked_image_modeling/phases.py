"""The phases of a local patch where the information gap is positive, along P at fixed exponents.

Section 5.2 and Lemma 5.3: Phase I, in which Phi_0 falls, and the switch to Phi_m; and a figure of
all phases. What follows the switch is in `convergence`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log
from typing import Any

import matplotlib as mpl
import numpy as np

from dynamics.experiments.figure import Drawing, FigureRequest
from dynamics.experiments.masked_image_modeling.runs import (
    POSITIVE,
    SMALL_SHARE,
    UNITS,
    column,
    compared,
    family,
    only_one_cluster,
    patches_of,
    requires,
)
from dynamics.experiments.measurement import Chart, Measurement, Series, conclude, listed, measures
from dynamics.experiments.verify import Finding, Protocol
from dynamics.plotting.labels import NARROW, logarithmic
from dynamics.plotting.style import (
    BLUE,
    GREEN,
    PURPLE,
    RC,
    VERMILION,
    new_figure,
    offset_in_label,
    positive_time,
    time_axis,
)
from dynamics.plotting.training import shade
from dynamics.problem import FloatArray
from dynamics.registry import System
from dynamics.results.trajectory import Trajectory
from dynamics.training.gradient_descent import descend
from dynamics.validation import refuse

POSITIVE_GAP = requires(sign=1)
REST = "largest other correlation at the end of Phase I over Phi_m"
FACTOR = 2.0
"""How far two numbers of the same order may be apart."""
STILL = 0.1
"""Relative change of attention up to which it stays where it was."""
PANELS = {
    "correlation": {
        "local_Phi_target": r"$\Phi_m$, own area", "local_Phi_global": r"$\Phi_0$, global area",
        "local_Phi_other": r"$\Phi_i$, other area", "local_Ups_own": r"$\Upsilon$, own area",
    },
    "size of its rate": {
        "alpha_m": r"$\alpha_m$", "alpha_0": r"$|\alpha_0|$",
        "d_local_Phi_other": r"$|\alpha_i|$, other", "d_local_Ups_own": r"$|\beta|$, own area",
    },
    "attention": {
        "local_A_target": r"own area $A_m$", "local_A_global": r"global area $A_0$",
        "local_A_other": "other areas", "local_masked": "masked patches",
    },
}  # fmt: skip
"""Label of each panel -> its series and their labels; a law of one local area has no other one."""
STATES = {
    "local_Phi_target": "Phi_m", "local_Phi_global": "Phi_0", "local_Phi_other": "Phi_other",
    "local_Ups_own": "Ups_own",
}  # fmt: skip
FEW = 12
"""Records up to which curves show them."""
COLOURS = (BLUE, VERMILION, GREEN, PURPLE)
DASHES = ("-", "--", "-.", (0, (1, 1)))


@measures(
    "largest time of the paper's threshold (E1p) over that of the switch (E2)",
    "<=", 1.0, POSITIVE_GAP,
)  # fmt: skip
def stage_1(system: System, protocol: Protocol, measured: Any) -> Finding:
    """When Phi_0 passes the paper's threshold of stage 1, against the switch.

    Parameters
    ----------
    system : System
    protocol : Protocol
    measured : callable
        As of `dynamics.experiments.measurement.measures`.
    """
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
    """Correlations at the end of Phase I (E3) along P.

    Parameters
    ----------
    system : System
    protocol : Protocol
    measured : callable
        As of `dynamics.experiments.measurement.measures`.
    """
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
    """Depth of Phi_0 at the switch, and rho after it.

    Parameters
    ----------
    system : System
    protocol : Protocol
    measured : callable
        As of `dynamics.experiments.measurement.measures`.
    """
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
    series = [case.series_in_units(case.run["rho"]) for case in cases]
    chart = Chart(UNITS, r"$|\alpha_0| / \alpha_m$", series, {"equal rates": 1.0})
    also = Measurement("largest |alpha_0| / alpha_m after the switch", later, "<=", 1.0)
    return conclude([measured(max(factors), chart), also], reason, table=rows)


@measures(
    "relative change of the attention to the own area up to the switch, at the largest P",
    "<=", STILL, POSITIVE_GAP,
)  # fmt: skip
def separation(system: System, protocol: Protocol, measured: Any) -> Finding:
    """Attention to the own area up to the switch, and how long the phases last.

    Parameters
    ----------
    system : System
    protocol : Protocol
    measured : callable
        As of `dynamics.experiments.measurement.measures`.
    """
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
    series = [case.series_in_units(case.run["A_m"] / case.run["A_m"][0]) for case in cases]
    chart = Chart(
        UNITS, "attention to the own area\nover its first value", series,
        {"what counts as unchanged": 1 + STILL},
    )  # fmt: skip
    return conclude(measured(change, chart), reason, table=rows)


def phases_figure(system: System, request: FigureRequest) -> Drawing:
    """A run of one cluster. Options: ``eta``, ``steps``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    options = request.options({"eta": 1.0, "steps": 20_000}, {})
    one_cluster = request.user_parameters.get("family", "one_cluster") == "one_cluster"
    law = request.make_parameters(system, (), **(POSITIVE if one_cluster else {}))
    _check_sizes(law)
    problem = system.ReducedPopulation(law)
    run = descend(problem, options["eta"], options["steps"])
    present = {*run.layout.names, *run.observables}
    panels = {
        panel: {label: run[name] for name, label in table.items() if name in present}
        for panel, table in PANELS.items()
    }
    rates = panels["size of its rate"]
    panels["size of its rate"] = {label: np.abs(rate) for label, rate in rates.items()}
    held = (
        f"a local patch, $P = {law.P}$, $C_{{\\mathrm{{global}}}} = {law.C_global}$, "
        f"$C_{{\\mathrm{{local}}}} = {law.C_local}$, {law.masked} masked, "
        f"$\\Delta = {law.Delta:.3f}$, $|\\alpha_0| / \\alpha_m = {problem.rho0:.4g}$ at $Q = 0$"
    )
    times = {name: event and event.time for name, event in run.events.items()}
    data: dict[str, Any] = {"time": run.time, "events": times}
    for series in panels.values():
        data |= series
    events = ", ".join(f"{n} {'none' if at is None else f'{at:g}'}" for n, at in times.items())
    caption = (
        f"Correlations of a masked local patch with features and positions, their rates, and its "
        f"attention to unmasked patches (P={law.P}, C_global={law.C_global}, "
        f"C_local={law.C_local}, {law.masked} masked, eta={options['eta']:g}). Events: {events}. "
        f"{_words_of_run(problem, run)}"
    )
    return Drawing(_panels(run, panels, held), data, caption)


def _check_sizes(law: Any) -> None:
    """Refuse local areas without mates, or of the size of the global one."""
    only_one_cluster(law)
    if law.C_local < 2:
        problem = "makes no local patch with a mate"
    elif law.C_local == law.C_global:
        problem = f"makes local areas like the global one, C_global={law.C_global}"
    else:
        return
    left = law.P - law.C_global
    sizes = [c for c in range(2, left + 1) if left % c == 0 and c != law.C_global]
    allowed = ", ".join(map(str, sizes)) or "2 or more, with a smaller C_global"
    near = min(sizes, key=lambda c: (abs(c - law.C_local), c), default="a smaller C_global")
    refuse("C_local", law.C_local, problem, allowed, near)


def _words_of_run(problem: Any, run: Trajectory) -> str:
    """Correlations at the events and at the end, and the loss above its floor, in words."""
    moments = {
        f"at {name}": event.state for name in ("E2", "E4")
        if (event := run.events[name]) is not None and event.time > 0
    } | {"at the end": run.final_state}  # fmt: skip
    words = [f"rho(0) = {problem.rho0:.5g}"]
    for moment, state in moments.items():
        values = dict(zip(run.layout.names, state, strict=True))
        parts = (f"{label} {values[n]:.4g}" for n, label in STATES.items() if n in values)
        words.append(f"{moment} {', '.join(parts)}")
    end = problem.observables(run.final_state)
    labels = {"A_m": "own attention", "gap": "loss above its floor"}
    words.append(", ".join(f"{label} {end[n]:.4g}" for n, label in labels.items() if n in end))
    return "; ".join(words) + "."


def _panels(run: Trajectory, panels: Mapping[str, Mapping[str, FloatArray]], held: str) -> Any:
    """A panel for every group of curves over logarithmic time, with the phases shaded."""
    with mpl.rc_context(RC):
        figure, axes = new_figure(7.4, 2.15 * len(panels) + 0.4, nrows=len(panels), sharex=True)
        for panel, (panel_label, curves) in zip(axes, panels.items(), strict=True):
            for k, (label, values) in enumerate(curves.items()):
                time, positive = positive_time(run, values)
                # Rings of several sizes, so that equal values do not hide each other.
                ring: dict[str, Any] = {"marker": "o", "mfc": "none", "ms": 10 - 2 * k}
                look = ring if len(time) <= FEW else {}
                panel.plot(time, positive, color=COLOURS[k], ls=DASHES[k], label=label, **look)
            panel.set_ylabel(panel_label)
            if "rate" in panel_label:
                panel.set_yscale("log")
            else:
                offset_in_label(panel)
            panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9)
        shade(axes, run)
        time_axis(axes[-1], run)
        first, last = run.time[run.time > 0].min(), run.time[-1]
        if last < NARROW * first:
            logarithmic(axes[-1].xaxis, last / first)
        for panel in axes[:-1]:
            panel.set_xlabel("")
        figure.suptitle(held, fontsize=8, x=0.01, ha="left")
    return axes
