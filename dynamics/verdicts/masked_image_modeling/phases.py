"""The phases of a local patch where the information gap is positive, along P at fixed exponents.

Section 5.2 and Lemma 5.3: Phase I, in which Phi_0 falls, and the switch to Phi_m; and a figure of
all phases. What follows the switch is in `convergence`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan, log, nan
from typing import Any

import numpy as np

from dynamics.plotting import style
from dynamics.plotting.labels import NARROW, logarithmic
from dynamics.plotting.phases import shade
from dynamics.problem import FloatArray
from dynamics.results.power_law import exponent, power_law
from dynamics.results.trajectory import Trajectory
from dynamics.system import System
from dynamics.training.descent import descend
from dynamics.validation import refuse
from dynamics.verdicts import rules
from dynamics.verdicts.figure import Drawing, FigureRequest, page, stated, title
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.masked_image_modeling import runs
from dynamics.verdicts.study import Measurement, Study, measures
from dynamics.verdicts.wording import listed
from theory.papers.masked_image_modeling.notation import SLACK, STAGE_2
from theory.papers.masked_image_modeling.required_sizes import (
    growth_in_stage_1,
    threshold_before_switch,
)

POSITIVE_GAP = runs.requires(sign=1, large=True)
REST = "largest other correlation at the end of Phase I over Phi_m"
FACTOR = 2.0
"""How far two numbers of the same order may be apart."""
STEADY = 1.25
"""Factor up to which exponents over the halves of the sizes are the same."""
STILL = 0.1
"""Relative change of attention up to which it stays where it was."""
FALLING = 0.01
"""Share of itself by which a ratio that still falls fell in the second half of a run."""
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
COLOURS = (style.BLUE, style.VERMILION, style.GREEN, style.PURPLE)
DASHES = ("-", "--", "-.", (0, (1, 1)))


@measures(
    "largest time of the paper's threshold (E1p) over that of the switch (E2)",
    "<=", 1.0, POSITIVE_GAP, single=("step size",), again=True,
)  # fmt: skip
def stage_1(study: Study) -> Finding:
    """When Phi_0 passes the paper's threshold of stage 1, against the switch."""
    cases = runs.family(study)
    for case in cases:
        at, times = case.at("E1p"), {name: case.time(name) for name in ("E1", "E1p", "E2")}
        study.row(case.sizes, **times, Phi_m=at["Phi_m"], Phi_0=at["Phi_0"])
        near = (case.scaled < 5) & (case.scaled > 0.05)
        depth = case.run["Phi_0"][1:] / (case.parameters.Delta / 2 * log(case.parameters.P))
        label = f"{case.size}, switch at {times['E2'] / case.unit:.2f}"
        study.curve(label, case.scaled[near], depth[near])
    if none := without_switch(study, cases, "there is no switch, before which stage 1 would end"):
        return none
    rows = study.rows
    ratios = [row["E1p"] / row["E2"] for row in rows]
    for case, ratio in zip(cases, ratios, strict=True):
        if isnan(ratio):
            depth = float(case.run["Phi_0"].min())
            reason = (
                f"Phi_0 does not pass -(Delta/2 - 0.01) ln P / U within "
                f"{case.run.time[-1] / case.time('E2'):.3g} times the switch, and ends stage 1 "
                f"nowhere: it comes to {depth:.3g} at P={case.parameters.P}"
            )
            raise Undecided(reason, table=rows)
    reason = (
        f"Phi_0 passes -(Delta/2 - 0.01) ln P / U after {listed(ratios)} times the switch (P="
        f"{runs.patches_of(study)}), with Phi_m at {study.listed('Phi_m')} there"
    )
    earlier = sum(row["E1"] < row["E2"] < row["E1p"] for row in rows)
    if earlier:
        where = "" if earlier == len(rows) else f" at {earlier} of {len(rows)} sizes"
        reason += f"; with Delta_eff, the gap at this size, it is passed before (E1){where}"
    law = cases[-1].parameters
    needed = runs.needed(law, threshold_before_switch)
    if needed > law.P:
        reason += (
            f"; P^0.01 exceeds the constants, so that the threshold comes before the switch, "
            f"from {runs.near(needed)} on"
        )
    level, y_label = {"the paper's threshold": -1.0}, r"$\Phi_0 / (\frac{\Delta}{2} \ln P)$"
    study.draw(runs.UNITS, y_label, level, y_scale="linear")
    most = float(np.max([row["Phi_m"] / abs(row["Phi_0"]) for row in rows]))
    also = Measurement("largest Phi_m over |Phi_0| at that threshold", most, "<", 1.0)
    return study.conclude(
        float(np.max(ratios)), reason, also, holds=None if needed > law.P else "as measured"
    )


@measures(
    f"{REST}, at the largest P",
    "<=", runs.SMALL_SHARE, POSITIVE_GAP, single=("step size",), again=True,
)  # fmt: skip
def lemma_5_3(study: Study) -> Finding:
    """Correlations along P where Phi_m, after the switch, has come to a share of ln P."""
    cases = runs.family(study)
    for case in cases:
        run, law = case.run, case.parameters
        share = float(SLACK + STAGE_2 * (1 - law.kappa_s))
        reached = np.flatnonzero(run["Phi_m"][case.after("E2")] >= share * log(law.P))
        at = case.after("E2").start + int(reached[0]) if reached.size else None
        values = {n: nan if at is None else float(run[n][at]) for n in ("Phi_0", "Phi_m")}
        others = [0.0 if at is None else abs(run[n][at]) for n in case.others(local=True)]
        study.row(
            case.sizes, E2=case.time("E2"), time=nan if at is None else float(run.time[at]),
            share=share, **values, rest=float(max(others) / values["Phi_m"]),
            Phi_m_at_switch=case.at("E2")["Phi_m"],
        )  # fmt: skip
    sizes, depths, shares = (study.column(name) for name in ("P", "Phi_0", "rest"))
    if none := without_switch(
        study, cases, "there is no switch after which Phi_m comes to the order of ln P"
    ):
        return none
    for case, row in zip(cases, study.rows, strict=True):
        if isnan(row["rest"]):
            most = float(case.run["Phi_m"].max() / log(row["P"]))
            words = f"{most:.2g} ln P at P={row['P']}, not {row['share']:.2g} ln P"
            raise Undecided(f"after the switch Phi_m comes to {words}", "time", table=study.rows)
    reason = (
        f"after the switch, where Phi_m ({study.listed('Phi_m_at_switch')} at the switch) "
        f"comes to {study.listed('share', 2)} ln P, Phi_0 is {listed(depths)} (P="
        f"{runs.patches_of(study)}) and the largest other correlation {listed(shares)} of Phi_m"
    )
    also = [Measurement("Phi_0 there", max(depths), "<", 0.0)]
    shares_alone = max(depths) < 0  # what few mates do not explain is not excused by them
    if len(sizes) >= 4:
        fit = power_law(sizes, np.exp(np.negative(depths)))
        low, high = fit.intervals[0]
        middle = len(sizes) // 2
        early, late = (
            exponent(sizes[part], np.exp(np.negative(depths[part])))
            for part in (slice(0, middle + 1), slice(middle, None))
        )
        reason += f"; e^-Phi_0 goes as P^{fit.exponent:.2f} (95 %: {low:.2f} to {high:.2f})"
        also += [
            Measurement("least exponent of e^-Phi_0 in P, 95 %", float(low), ">", 0.0),
            Measurement(
                "exponent of e^-Phi_0 in P over the upper half of sizes over that of the lower",
                late / early, ">=", 1 / STEADY,
            ),
        ]  # fmt: skip
    if len(shares) > 1:
        grows = float(np.max(np.divide(shares[1:], shares[:-1])))
        also.append(Measurement(f"{REST}, over that of the size before", grows, "<", 1.0))
    study.curve(r"$\Phi_m$", sizes, study.column("Phi_m"))
    study.curve(r"$|\Phi_0|$", sizes, np.abs(depths))
    study.curve(r"largest other $/ \Phi_m$", sizes, np.abs(shares))
    study.draw("patches $P$", "at the end of Phase I", {"small": runs.SMALL_SHARE})
    few = cases[-1].parameters.C_local < runs.MANY
    if few:
        reason += f"; of areas of less than {runs.MANY:g} patches each mate makes more than that"
    return study.conclude(
        shares[-1], reason, *also, may_still_come=few and shares_alone, missing="size"
    )


@measures(
    "exponent of e^-Phi_0 at the switch in P^(Delta/2), distance from 1",
    "<=", rules.SHARE, POSITIVE_GAP, single=("step size",), again=True,
)  # fmt: skip
def intuition(study: Study) -> Finding:
    """Depth of Phi_0 at the switch, and rho after it."""
    cases = runs.family(study)
    for case in cases:
        after = case.run["rho"][case.after("E2")]
        after = after[np.isfinite(after)]  # where nothing moves, 0/0
        depth = case.parameters.Delta / 2 * log(case.parameters.P)
        later = float(after.max()) if after.size else nan
        phi = case.at("E2")["Phi_0"]
        study.row(case.sizes, Phi_0=phi, paper=-depth, depth=-phi / depth, later=later)
        study.curve(case.size, *case.in_units(case.run["rho"]))
    if none := without_switch(
        study, cases, "there is no switch, at which both rates would be equal"
    ):
        return none
    depths, later = study.column("depth"), float(np.max(study.column("later")))
    growth = None
    also = Measurement("largest |alpha_0| / alpha_m after the switch", later, "<=", 1.0)
    study.draw(runs.UNITS, r"$|\alpha_0| / \alpha_m$", {"equal rates": 1.0})
    stated, measured = (np.exp(np.negative(study.column(name))) for name in ("paper", "Phi_0"))
    reason = (
        f"both rates are equal where Phi_0 is {listed(depths)} of -(Delta/2) ln P (P="
        f"{runs.patches_of(study)}); after it rho is {later:.3g} at most"
    )
    if len(depths) > 1:
        growth = rules.growth(stated, measured, 1.0)
        off = abs(growth.fit.exponent - 1)
        reason += f"; e^-Phi_0 as a power of P^(Delta/2): {growth}"
    else:
        factor = "factor between Phi_0 at the switch and -(Delta/2) ln P"
        study.quantity, study.bound = factor, FACTOR
        off = max(depths[0], 1 / depths[0])
    undecided = growth is not None and growth.holds is None
    open_yet = undecided and later <= 1
    return study.conclude(off, reason, also, may_still_come=open_yet, missing="size")


@measures(
    "relative change of the attention to the own area up to the end of stage 1, at the largest P",
    "<=", STILL, POSITIVE_GAP, single=("step size",), again=True,
)  # fmt: skip
def separation(study: Study) -> Finding:
    """Attention to the own area up to the end of stage 1, and how long the phases last."""
    cases = runs.family(study)
    for case in cases:
        last = "E1p" if case.time("E1p") < case.time("E2") else "E2"
        at, own = case.at(last), case.run["A_m"]
        times = {name: case.time(name) / case.unit for name in ("E2", "E4")}
        change = at["A_m"] / float(own[0]) - 1
        study.row(case.sizes, last=last, grown=change, Phi_m=at["Phi_m"], **times)
        study.curve(case.size, *case.in_units(own / own[0]))
    if none := without_switch(study, cases, "there is no switch, before which stage 1 would end"):
        return none
    law = cases[-1].parameters
    needed = runs.needed(law, lambda *start: growth_in_stage_1(*start) <= STILL)
    switch, end, grown = (study.column(name) for name in ("E2", "E4", "grown"))
    ended = "not seen" if np.isnan(end).any() else f"at {listed(end)}"
    reason = (
        f"up to the switch, which comes before the paper's end of stage 1, the attention to "
        f"the own area grows by {listed(grown)} of itself and Phi_m to "
        f"{study.listed('Phi_m')}; in units of K P / C_s the switch is at "
        f"{listed(switch)} and the end of rapid growth {ended} "
        f"(P={runs.patches_of(study)})"
    )
    if set(study.column("last")) != {"E2"}:
        reason = reason.replace("which comes before the paper's", "or the paper's earlier")
    lengths = {"the switch": switch, "the end of rapid growth": end}
    powers = runs.compared(study.column("P"), lengths)
    reason += f"; {powers}" if powers else ""
    if needed > law.P:
        reason += f"; less than {STILL:g} needs {runs.near(needed)}, as P^-0.02 has to be small"
    level = {"what counts as unchanged": 1 + STILL}
    study.draw(runs.UNITS, "attention to the own area\nover its first value", level)
    return study.conclude(abs(grown[-1]), reason, holds=None if needed > law.P else "as measured")


def without_switch(study: Study, cases: Sequence[runs.Case], what: str) -> Finding | None:
    """The finding where a case never switches from Phi_0 to Phi_m; None where all do.

    A Phase I that does not end contradicts a switch by the ratio of rates at the end, unless that
    still falls.

    Parameters
    ----------
    study : Study
        Its table becomes the evidence.
    cases : sequence of Case
    what : str
        What there is no longer, in words.

    Raises
    ------
    Undecided
        Where there is no Phase I that could end.
    """
    for case in cases:
        if case.switches:
            continue
        law, rho = case.parameters, case.run["rho"]
        first, middle, last = (float(rho[k]) for k in (0, len(rho) // 2, -1))
        where = f"{what}: at P={law.P}, C_g={law.C_global}, C_s={law.C_local}"
        if not (first > 1 and last > 1):
            words = f"{where} rho starts at {first:.3g}, which is no Phase I"
            raise Undecided(words, table=study.rows)
        study.quantity, study.relation = "|alpha_0| / alpha_m at the end of the run", "<="
        study.bound = 1.0
        reason = f"{where} rho goes from {first:.3g} to {last:.3g} and does not pass 1"
        return study.conclude(
            last, reason, may_still_come=last < (1 - FALLING) * middle, missing="time"
        )
    return None


def phases_figure(system: System, request: FigureRequest) -> Drawing:
    """A run of one cluster. Options: ``eta``, ``steps``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    options = request.options({"eta": 1.0, "steps": 20_000})
    law = runs.of_one_cluster(system, request, runs.POSITIVE)
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
        f"a local patch, {title(system, law, 'P', 'C_global', 'C_local', 'masked', 'Delta')}, "
        f"$|\\alpha_0| / \\alpha_m = {problem.rho0:.4g}$ at $Q = 0$"
    )
    times = {name: event.time if event else None for name, event in run.events.items()}
    data: dict[str, Any] = {"time": run.time, "events": times}
    for series in panels.values():
        data |= series
    events = ", ".join(f"{n} {'none' if at is None else f'{at:g}'}" for n, at in times.items())
    caption = (
        f"Correlations of a masked local patch with features and positions, their rates, and its "
        f"attention to unmasked patches ({stated(law, 'P', 'C_global', 'C_local')}, {law.masked} "
        f"masked, eta={options['eta']:g}). Events: {events}. {_words_of_run(problem, run)}"
    )
    return Drawing(_panels(run, panels, held), data, caption)


def _check_sizes(law: Any) -> None:
    """Refuse local areas without mates, or of the size of the global one."""
    runs.only_one_cluster(law)
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
    events = {f"at {name}": run.events[name] for name in ("E2", "E4")}
    moments = {moment: event.state for moment, event in events.items() if event.time > 0}
    words = [f"rho(0) = {problem.rho0:.5g}"]
    for moment, state in {**moments, "at the end": run.final_state}.items():
        values = dict(zip(run.layout.names, state, strict=True))
        parts = (f"{label} {values[n]:.4g}" for n, label in STATES.items() if n in values)
        words.append(f"{moment} {', '.join(parts)}")
    end = problem.observables(run.final_state)
    labels = {"A_m": "own attention", "gap": "loss above its floor"}
    words.append(", ".join(f"{label} {end[n]:.4g}" for n, label in labels.items() if n in end))
    return "; ".join(words) + "."


def _panels(run: Trajectory, panels: Mapping[str, Mapping[str, FloatArray]], held: str) -> Any:
    """A panel for every group of curves over logarithmic time, with the phases shaded."""
    count = len(panels)
    with page(7.4, 2.15 * count + 0.4, held, nrows=count, sharex=True) as (_, axes):
        for panel, (panel_label, curves) in zip(axes, panels.items(), strict=True):
            for k, (label, values) in enumerate(curves.items()):
                time, positive = style.positive_time(run, values)
                # Rings of several sizes, so that equal values do not hide each other.
                ring: dict[str, Any] = {"marker": "o", "mfc": "none", "ms": 10 - 2 * k}
                look = ring if len(time) <= FEW else {}
                panel.plot(time, positive, color=COLOURS[k], ls=DASHES[k], label=label, **look)
            panel.set_ylabel(panel_label)
            if "rate" in panel_label:
                panel.set_yscale("log")
            else:
                style.offset_in_label(panel)
            style.legend_on_the_right(panel, fontsize=9)
        shade(axes, run)
        style.time_axis(axes[-1], run)
        first, last = run.time[run.time > 0].min(), run.time[-1]
        if last < NARROW * first:
            logarithmic(axes[-1].xaxis, last / first)
        for panel in axes[:-1]:
            panel.set_xlabel("")
    return axes
