"""The information gap decides which correlation moves first: equation (4.1), Theorems F.3, F.4.

And what holds whatever the gap is: signs of rates (Section 5.1), and global patches.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics.verdicts import rules
from dynamics.verdicts.claim import TIME, Also, Case, Literal, Picture, Row
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.masked_image_modeling import grid
from dynamics.verdicts.masked_image_modeling.rounding_of_terms import rounding_of_rates
from theory.papers.masked_image_modeling.required_sizes import ratio_at_start

SAME = 1e-9
"""Relative distance up to which two computations of rho(0) are the same."""
FAR = (1e10, 1e12, 1e14, 1e16)
"""Numbers of patches at which the exact rho(0) is a power of P."""
CROSSING = {"family": "two_cluster_grid", "b11": 8, "b10": 8, "C_local": 4, "T": 1}
RATIO = r"$|\alpha_0| / \alpha_m$"
EQUAL = {"equal rates": 1.0}
BELOW = grid.family(grid.BELOW)
FALLS = Also("falls", "<=", 0, "records at which the correlation with the own feature falls")
REST = "largest other correlation at the switch over |Phi_0|"


@grid.claim(
    "Equation (4.1)", "largest distance of the exponent of rho(0) in P from Delta, over Delta",
    "<=", rules.SHARE, laws=[*grid.ALONG_P["laws"], *BELOW["laws"]], require=grid.LARGE_GAP,
    also=(
        Also("off", "<=", SAME, "relative distance of the gradient's rho(0) from the exact one"),
        Also("wrong", "<=", 0, "sizes at which rho(0) is on the wrong side of 1"),
    ),
    words="rho(0)={rho0:.4g}, exactly as P^{exponent:.4f} at P=1e10 to 1e16",
    picture=Picture("patches $P$", f"{RATIO} at the start", EQUAL),
)  # fmt: skip
def equation_4_1(case: Case) -> Row:
    """The exponent of the exact rho(0) at the exponents of a law, and the gradient's own rho(0)."""
    law, rho = case.parameters, float(case.system.ReducedPopulation(case.parameters).rho0)
    kappas = min((grid.ABOVE, grid.BELOW), key=lambda pair: abs(pair[0] - law.kappa_c))
    if grid.sizes_along(law.P, kappas)["C_global"] != law.C_global:
        kappas = (law.kappa_c, law.kappa_s)
    gap = (1 - kappas[1]) - 2 * (1 - kappas[0])
    far = [float(ratio_at_start(P, kappas, law.gamma)) for P in FAR]
    power, off = rules.growth(FAR, far, gap).fit.exponent, abs(rho / law.P**law.Delta_eff - 1)
    row = {"value": abs(power / gap - 1), "exponent": power, "rho0": rho, "off": off}
    row |= {"wrong": int((rho > 1) != (law.Delta > 0))}
    row |= {"curves": {rf"$\Delta = {gap:.3g}$, $P = {law.P}$": ([law.P, *FAR], [rho, *far])}}
    return row | ({"open": "size"} if off <= SAME else {})  # rho(0) > 1 may need a larger P


@grid.claim(
    "Section 5.1, monotone",
    "least rate of Phi_m, or of -Phi_0, of a local patch over the largest of the run", ">=", 0.0,
    laws=(grid.POSITIVE, grid.NEGATIVE, grid.SMALL, CROSSING), run=grid.descended,
    require=grid.requires(), varies=("step size",),
    also=(Also("against", "<=", 0, "records at which Phi_m falls or Phi_0 rises"),),
    words="Phi_m falls or Phi_0 rises at {against} of {records} records",
    picture=Picture(TIME, "correlation", {"0": 0.0}, ("log", "linear")),
)  # fmt: skip
def monotone(case: Case) -> Row:
    """Signs of the rates of Phi_m and Phi_0 at every record, where rounding leaves them one."""
    run, law, least, against, curves = case.run, case.parameters, [], 0, {}
    rounding = rounding_of_rates(law, float(np.abs(run.states).max()))
    for name, sign, rate in (("Phi_m", 1, run["alpha_m"]), ("Phi_0", -1, run["alpha_0"])):
        lowest, most = float((sign * rate).min()), float(np.abs(rate).max())
        if most <= rounding:
            words = f"the rate of {name} is {most:.1e} at most, within its rounding"
            raise Undecided(words, "precision")
        least.append(0.0 if abs(lowest) <= rounding else lowest / most)
        back, spacing = -sign * np.diff(run[name]), np.spacing(np.abs(run[name][1:]))
        against += int(np.count_nonzero(back > rounding * np.diff(run.time) + spacing))
        label = rf"$\{name}$, $P={law.P}$, $\Delta={law.Delta:.2f}$"
        curves[label] = (run.time[1:], run[name][1:])
    return {"value": min(least), "against": against, "records": run.time.size, "curves": curves}


@grid.claim(
    "Theorem F.3, local areas",
    "least ratio |alpha_0| / alpha_m at the start where Delta is positive", ">", 1.0,
    laws=(grid.POSITIVE, grid.SLIGHT), run=grid.descended, require=grid.POSITIVE_GAP,
    varies=("step size",),
    also=(Also("crossings", "==", 1, "crossings of |alpha_0| / alpha_m through 1"),
          Also("share", "<", 1.0, REST)),
    literal=Literal("share", "<=", grid.SMALL_SHARE, REST, "it falls as 1/(Delta ln P)", "size"),
    words="rho starts at {value:.3g} and passes 1 {crossings} times, first at {switch:.4g}, with "
    "Phi_0 at {Phi_0:.3g} and the largest other correlation, Phi_m counted, at {rest:.2g}",
    picture=Picture(TIME, RATIO, EQUAL),
)  # fmt: skip
def theorem_f_3_local(case: Case) -> Row:
    """One crossing of rho through 1, and a Phase I in which the rest stays small."""
    rho, turns = case.run["rho"], grid.crossings(case.run)
    row: Row = {"value": float(rho[0]), "crossings": turns, "share": np.nan}
    if turns != 1:
        row["text"] = f"rho starts at {rho[0]:.3g} and passes 1 {turns} times"
        return row | ({"open": "size"} if rho[0] <= 1 and case.parameters.Delta_eff <= 0 else {})
    at, (_, own, others) = grid.moment(case, "E2"), case.problem.rows.roles(local=True)
    rest, phi = max(abs(at[name]) for name in (own, *others)), at["Phi_0"]
    row |= {"switch": at["time"], "Phi_0": phi, "rest": rest, "share": rest / abs(phi)}
    row |= grid.in_time(case, rho)
    return row | ({"open": "size"} if rho[0] > 1 else {})  # the share falls as 1/(Delta ln P)


def _one_phase(case: Case, local: bool, rates: Any, others: Any) -> Row:
    """Columns of a patch whose own correlation dominates; a small share is one of large P."""
    run, (_, own, _) = case.run, case.problem.rows.roles(local)
    most, rest = float(np.abs(rates).max()), float(np.abs(others).max() / np.abs(run[own][-1]))
    falls = int(np.count_nonzero(np.diff(run[own]) <= 0))
    row: Row = {"value": most, "rest": rest, "falls": falls} | grid.in_time(case, rates)
    return row | ({"open": "size"} if max(most, rest) < 1 and not falls else {})


@grid.claim(
    "Theorem F.3, global areas",
    "largest rate of another correlation of a global patch over that of its own feature", "<", 1.0,
    laws=(grid.POSITIVE, grid.NEGATIVE), run=grid.descended, varies=("step size", "time"),
    require=grid.requires(large=True, local=False, many=True),
    also=(Also("rest", "<=", grid.SMALL_SHARE, "largest other correlation of a global patch at the "
               "end over its own"), FALLS),
    words="others move at {value:.2g} of the rate of its own at most, and end at {rest:.2g} of it",
    picture=Picture(TIME, "other rates over own", {"as fast as the own": 1.0}),
)  # fmt: skip
def theorem_f_3_global(case: Case) -> Row:
    """Rates of a global patch against that of its own feature, throughout."""
    run, (_, own, others) = case.run, case.problem.rows.roles(local=False)
    rates = np.abs([run[f"d_{name}"] for name in others]).max(axis=0) / run[f"d_{own}"]
    return _one_phase(case, False, rates, [run[name][-1] for name in others])


@grid.claim(
    "Theorem F.4", "largest ratio |alpha_0| / alpha_m of the run", "<", 1.0,
    laws=[grid.NEGATIVE, *BELOW["laws"]], thorough=BELOW["thorough"], run=grid.descended,
    require=grid.requires(sign=-1, large=True, many=True), varies=("step size", "time"),
    also=(Also("rest", "<=", grid.SMALL_SHARE, "largest other correlation of a local patch over "
               "its own one at the end"), FALLS),
    words="rho is {value:.3g} at most; other correlations reach {rest:.2g} of the own one",
    picture=Picture(TIME, RATIO, EQUAL),
)  # fmt: skip
def theorem_f_4(case: Case) -> Row:
    """With a negative gap: rho below 1 throughout, and nothing else grows."""
    run, (_, _, others) = case.run, case.problem.rows.roles(local=True)
    return _one_phase(case, True, run["rho"], [run[name] for name in (*others, "Phi_0")])
