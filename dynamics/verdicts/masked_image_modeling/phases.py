"""Phases of a local patch with a positive information gap, for growing P at fixed exponents.

Section 5.2 and Lemma 5.3 describe Phase I, in which Phi_0 falls, and the switch to Phi_m. Section
5.3 and Theorem F.3 describe rapid growth and convergence of Phi_m, frozen correlations, and ratios
of gradients in each stage.
"""

from __future__ import annotations

from dataclasses import replace
from math import log

import numpy as np

from dynamics.results.power_law import exponent, power_law
from dynamics.verdicts import rules
from dynamics.verdicts.cases import Case
from dynamics.verdicts.claim import Also, Experiment, Growth, Picture, Row
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.masked_image_modeling import gap, grid
from theory.papers.masked_image_modeling.notation import SLACK, STAGE_2
from theory.papers.masked_image_modeling.required_sizes import (
    change_after_switch,
    growth_in_stage_1,
    threshold_before_switch,
)

STEADY = 1.25
"""Maximum exponent in P of e^-Phi_0 over small P, divided by that over large P, in a power law."""
STILL = 0.1
"""Maximum relative change at which attention counts as unchanged."""
BOOST = 2.0
"""Minimum factor by which a rate grows if its growth counts as rapid."""
LEADING_GROWTH = 8 / 81
"""Leading order of (1 - gamma) P^(kappa_s - 1) times the growth of alpha_m from switch to peak."""
MIDDLE = 0.3
"""Maximum distance from 1/2 at which attention counts as of order one."""
UNCHANGED = 0.1
"""Maximum relative change at which a correlation counts as nearly unchanged."""
ONE_RUN = grid.ALONG_P | {"varies": ("step size", "time")}
LINEAR = ("log", "linear")


@grid.claim(
    "Section 5.2, stage 1", "largest time of the paper's threshold (E1p) over that of the switch "
    "(E2)", "<=", 1.0, **grid.ALONG_P,
    also=(Also("share", "<", 1.0, "largest Phi_m over |Phi_0| at that threshold"),),
    words="the threshold comes at {value:.3g} times the switch, with Phi_m at {Phi_m:.3g}, by "
    "Delta_eff at {with_gap_here:.2g}; {needed}",
    picture=Picture(grid.UNITS, r"$\Phi_0 / (\frac{\Delta}{2} \ln P)$",
                    {"the paper's threshold": -1.0}, LINEAR),
)  # fmt: skip
def stage_1(case: Case) -> Row:
    """Time at which Phi_0 passes the paper's threshold of stage 1, divided by the switch's time."""
    law, at = case.parameters, grid.switch(case)["time"]
    passed, here = grid.moment(case, "E1p"), case.run.events["E1"].time
    row = {"value": passed["time"] / at, "Phi_m": passed["Phi_m"], "with_gap_here": here / at}
    row["share"] = passed["Phi_m"] / abs(passed["Phi_0"])
    row |= grid.in_units(case, case.run["Phi_0"] / (law.Delta / 2 * log(law.P)))
    return row | grid.visible_from(law, threshold_before_switch)


def _shrinks(rows: list[Row], finding: Finding) -> Finding:
    """Let Lemma 5.3 hold only if the ratio ``value`` falls and e^-Phi_0 is a rising power of P."""
    finding = grid.at_largest(rows, finding)
    if len(rows) < 4 or not all("Phi_0" in row for row in rows):
        return finding
    sizes, fallen = [row["P"] for row in rows], [np.exp(-row["Phi_0"]) for row in rows]
    (low, high), half = power_law(sizes, fallen).intervals[0], len(rows) // 2
    early, later = (
        exponent(sizes[part], fallen[part]) for part in (slice(half + 1), slice(half, None))
    )
    shrinks = bool((np.diff([row["value"] for row in rows]) < 0).all())
    holds = finding.holds if shrinks and low > 0 and later / early >= 1 / STEADY else False
    words = f"e^-Phi_0 goes as P to the power {low:.2f} to {high:.2f} (95 %)"
    return replace(finding, holds=holds, reason=f"{finding.reason}; {words}")


@grid.claim(
    "Lemma 5.3", "largest other correlation at the end of Phase I over Phi_m, at the largest P",
    "<=", grid.SMALL_SHARE, **grid.ALONG_P, conclude=_shrinks,
    also=(Also("Phi_0", "<", 0.0, "Phi_0 there"),),
    words="where Phi_m, {at_switch:.3g} at the switch, comes to {share:.2g} ln P, Phi_0 is "
    "{Phi_0:.3g} and the largest other correlation {value:.3g} of Phi_m",
    picture=Picture(grid.UNITS, r"largest other correlation over $\Phi_m$",
                    {"small": grid.SMALL_SHARE}),
)  # fmt: skip
def lemma_5_3(case: Case) -> Row:
    """Correlations at the time after the switch at which Phi_m reaches a given share of ln P."""
    run, law, at = case.run, case.parameters, grid.switch(case)
    share, later = float(SLACK + STAGE_2 * (1 - law.kappa_s)), grid.since(case, "E2")
    reached = np.flatnonzero(run["Phi_m"][later] >= share * log(law.P))
    if not reached.size:
        most = float(run["Phi_m"].max() / log(law.P))
        words = f"after the switch Phi_m reaches {most:.2g} ln P, below {share:.2g} ln P"
        raise Undecided(words, "time")
    end, (_, _, others) = later.start + int(reached[0]), case.problem.rows.roles(local=True)
    rest = np.abs([run[name] for name in others]).max(axis=0)
    row = {"value": float(rest[end] / run["Phi_m"][end]), "Phi_0": float(run["Phi_0"][end])}
    row |= {"at_switch": at["Phi_m"], "share": share}
    row |= grid.in_units(case, rest / np.where(run["Phi_m"] > 0, run["Phi_m"], np.nan))
    # A small area can explain other correlations near Phi_m in size, but not a positive Phi_0.
    return row | ({"open": "size"} if law.C_local < grid.MANY and row["Phi_0"] < 0 else {})


@grid.claim(
    "Section 5.2, intuition", "exponent of e^-Phi_0 at the switch in P^(Delta/2)", "==", 1.0,
    **grid.ALONG_P, growth=Growth("stated", 1.0),
    also=(Also("later", "<=", 1.0, "largest |alpha_0| / alpha_m after the switch"),),
    words="both rates are equal where Phi_0 is {depth:.3g} of -(Delta/2) ln P",
    picture=Picture(grid.UNITS, r"$|\alpha_0| / \alpha_m$", {"equal rates": 1.0}),
)  # fmt: skip
def intuition(case: Case) -> Row:
    """Correlation Phi_0 at the switch, and the ratio |alpha_0| / alpha_m of rates after it."""
    law, phi, rho = case.parameters, grid.switch(case)["Phi_0"], case.run["rho"]
    after, depth = rho[grid.since(case, "E2")], law.Delta / 2 * log(law.P)
    row = {"value": float(np.exp(-phi)), "stated": float(np.exp(depth)), "depth": -phi / depth}
    return row | {"later": float(after[np.isfinite(after)].max())} | grid.in_units(case, rho)


@grid.claim(
    "Section 5.2, separation",
    "relative change of the attention to the own area up to the end of stage 1, at the largest P",
    "<=", STILL, **grid.ALONG_P, conclude=grid.at_largest,
    words="up to {last} the attention to the own area grows by {value:.3g} of itself; the switch "
    "is at {E2:.3g} and the end of rapid growth at {E4:.3g} K P / C_s; {needed}",
    picture=Picture(grid.UNITS, "attention to the own area\nover its first value",
                    {"what counts as unchanged": 1 + STILL}),
)  # fmt: skip
def separation(case: Case) -> Row:
    """Growth of attention to the own area until the end of stage 1, and times of the phases."""
    events, law, own = case.run.events, case.parameters, case.run["A_m"]
    at, last = grid.switch(case), "the switch, before the paper's end of stage 1,"
    if events["E1p"].time < at["time"]:
        at, last = grid.moment(case, "E1p"), "the end of stage 1"
    row: Row = {name: events[name].time / grid.unit(law) for name in ("E2", "E4")}
    row |= {"value": at["A_m"] / float(own[0]) - 1, "last": last}
    needed = grid.visible_from(law, lambda *start: growth_in_stage_1(*start) <= STILL)
    return row | grid.in_units(case, own / own[0]) | needed


@grid.claim(
    "Section 5.3, rapid growth", "least growth of alpha_m from the switch to its peak", ">=", BOOST,
    **grid.ALONG_P,
    also=(Also("falls", "<=", 0, "records from the switch to the peak at which alpha_m falls"),),
    words="alpha_m grows {value:.3g}-fold, to its peak at A_m={A_m:.3g}",
    picture=Picture(grid.UNITS, r"$\alpha_m$ over its first value"),
)  # fmt: skip
def rapid_growth(case: Case) -> Row:
    """Growth of alpha_m, the rate of Phi_m, from the switch to the peak of alpha_m."""
    grid.switch(case)
    law, rate, start = case.parameters, case.run["alpha_m"], grid.since(case, "E2").start
    peak = start + int(rate[start:].argmax())
    falls = int(np.count_nonzero(np.diff(rate[start : peak + 1]) <= 0))
    row = {"value": float(rate[peak] / rate[start]), "falls": falls}
    row |= grid.in_units(case, rate / rate[0]) | {"A_m": float(case.run["A_m"][peak])}
    needed = (BOOST * (1 - law.gamma) / LEADING_GROWTH) ** (1 / (1 - law.kappa_s))
    early = f"{row['value']:.3g}-fold; {BOOST:g}-fold, to leading order, at {grid.near(needed)}"
    return row | ({"open": "size", "text": early} if row["value"] < BOOST and not falls else {})


def _constant(rows: list[Row], finding: Finding) -> Finding:
    """Let a finding hold only if the attention A_m at the peak of alpha_m is constant in P."""
    found = [row for row in rows if "A_m" in row]
    if len(found) < 3 or finding.holds is not True:
        return replace(finding, holds=None if finding.holds else finding.holds)
    growth = rules.growth([row["P"] for row in found], [row["A_m"] for row in found], 0.0)
    return replace(finding, holds=growth.holds, reason=f"{finding.reason}; A_m along P: {growth}")


@grid.claim(
    "Section 5.3, convergence",
    "largest distance from 1/2 of the attention to the own area where alpha_m peaks", "<=", MIDDLE,
    **ONE_RUN, conclude=_constant,
    also=(Also("slope", "<=", gap.AS_ONE_OVER_T, "exponent in time of the loss above its floor"),),
    words="alpha_m peaks at A_m={A_m:.3g}, Phi_m={depth:.3g} ln P; the loss above its floor ends "
    "at {left:.2g} of its start, falling as time to the power {slope:.3g}",
    picture=Picture("attention to the own area $A_m$", r"$\alpha_m$", {}, ("linear", "linear")),
)  # fmt: skip
def end_of_growth(case: Case) -> Row:
    """Attention A_m at the peak of alpha_m, and the late exponent of the loss."""
    run, law, slope = case.run, case.parameters, gap.late_slope(case, local=True)
    peak = int(run["alpha_m"].argmax())
    row: Row = {"A_m": float(run["A_m"][peak]), "depth": float(run["Phi_m"][peak] / log(law.P))}
    row |= {"value": abs(row["A_m"] - 0.5), "left": float(run["gap"][-1] / run["gap"][0])}
    row |= {"slope": slope, "curves": {f"$P = {law.P}$": (run["A_m"][1:], run["alpha_m"][1:])}}
    if not slope <= gap.AS_ONE_OVER_T and gap.steepens(case, local=True):
        return row | {"open": "time"}
    # One size gives no exponent of A_m, so only a loss that does not fall contradicts the claim.
    falls = slope <= gap.AS_ONE_OVER_T or row["left"] <= gap.FALLEN
    return row | ({"open": "size"} if not case.label and falls else {})


@grid.claim(
    "Theorem F.3, frozen",
    "change of Phi_0 after the switch over its value there, at the largest P", "<=", UNCHANGED,
    **ONE_RUN, conclude=grid.at_largest,
    words="Phi_0 goes on from {start:.3g} to {end:.3g}, {value:.2g} of itself and {share:.2g} of "
    "the growth of Phi_m; {needed}",
    picture=Picture(grid.UNITS, r"$\Phi_0$ over its value at the switch",
                    {"nearly unchanged": 1 + UNCHANGED}, LINEAR),
)  # fmt: skip
def frozen(case: Case) -> Row:
    """Relative change of Phi_0 after the switch."""
    phi, at = case.run["Phi_0"], grid.switch(case)
    start, end, grown = at["Phi_0"], float(phi[-1]), float(case.run["Phi_m"][-1]) - at["Phi_m"]
    row = {"value": abs((end - start) / start), "start": start, "end": end}
    row["share"] = abs((end - start) / grown)
    needed = grid.visible_from(
        case.parameters, lambda *at_start: change_after_switch(*at_start) <= UNCHANGED
    )
    return row | grid.in_units(case, phi / start) | needed


def _vanishing(rows: list[Row], finding: Finding) -> Finding:
    """Decide by other over leading rates at the largest P; undecided if large but falling in P."""
    finding = grid.at_largest(rows, finding)
    values = [row["value"] for row in rows]
    falls = bool((np.diff(values) < 0).all())
    return replace(finding, holds=finding.holds or (None if falls else False), missing=("size",))


def _gradients(source: str, when: str, leading: str, first: str, last: str) -> Experiment:
    """Claim on the largest rate of other correlations over the rate `leading` between events."""

    def measure(case: Case) -> Row:
        """Largest rate of a local patch's other correlations, divided by the leading rate."""
        run, (_, _, others) = case.run, case.problem.rows.roles(local=True)
        grid.switch(case)
        start, end = (grid.since(case, event).start if event else None for event in (first, last))
        names = [f"d_{name}" for name in others]
        names += ["alpha_0"] if leading == "alpha_m" else []
        ratios = np.abs([run[name] for name in names]).max(axis=0) / np.abs(run[leading])
        return grid.in_units(case, ratios) | {"value": float(ratios[start:end].max(initial=0.0))}

    return grid.claim(
        source, f"largest other rate over {leading} {when}, at the largest P", "<=",
        grid.SMALL_SHARE, **grid.ALONG_P, conclude=_vanishing, words="it is {value:.3g}",
        picture=Picture(grid.UNITS, rf"largest other rate over $|\{leading}|$",
                        {"small": grid.SMALL_SHARE}),
    )(measure)  # fmt: skip


gradients_of_stage_1 = _gradients("Section 5.2, gradients", "in stage 1", "alpha_0", "", "E1")
gradients_of_rapid_growth = _gradients(
    "Section 5.3, gradients", "in rapid growth", "alpha_m", "E3", "E4"
)
gradients_of_convergence = _gradients(
    "Section 5.3, gradients of convergence", "in the convergence stage", "alpha_m", "E4", ""
)
