"""Which correlations grow: what the information gap decides, and statements about all of training.

Equation (4.1), Theorems F.3 and F.4 on the gap Delta; Section 5.1 on monotone correlations; the key
observation and Section 5.4 on correlations with positions.
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from dynamics.experiments.masked_image_modeling import runs
from dynamics.experiments.measurement import TIME, Measurement, Study, Undecided, either, measures
from dynamics.experiments.verify import Finding
from dynamics.registry import System
from dynamics.results.power_law import exponent

NEAR = 0.05
"""How far an exponent of P may be from Delta: constants still count."""
BELOW = (0.6, 0.4)
"""kappa_c and kappa_s of a family with Delta = -0.2."""
NEGLIGIBLE = 0.1
"""Share of Phi_m up to which a correlation of positions is nearly zero."""
CLOSE = 0.1
"""Relative distance up to which one number is near another."""
LOCAL_SIZES = tuple({"P": 4096, "C_global": 2048, "C_local": size} for size in (4, 16, 64))
PAIRS = {"P": 4096, "C_global": 2048, "C_local": 2}
"""Local areas of two patches: one mate."""
CROSSING = {"family": "two_cluster_grid", "b11": 8, "b10": 8, "C_local": 4, "T": 1}
RATIO = r"$|\alpha_0| / \alpha_m$"
EQUAL = {"equal rates": 1.0}


@measures("largest distance of the exponent of rho(0) in P from Delta", "<=", NEAR)
def _along_sizes(study: Study) -> Finding:
    """A family with a positive gap and one with a negative one."""
    sizes, wrong = runs.MORE_SIZES if study.thorough else runs.MORE_SIZES[:5], 0
    for exponents in (runs.EXPONENTS, BELOW):
        laws = [runs.along(study.system, P, exponents) for P in sizes]
        ratios = [_first_ratio(study.system, law) for law in laws]
        wrong += sum((rho > 1) != (law.Delta > 0) for law, rho in zip(laws, ratios, strict=True))
        gap = (1 - exponents[1]) - 2 * (1 - exponents[0])
        # Whole patches move Delta a little from size to size: the level is without it.
        level = [rho * law.P ** (gap - law.Delta) for law, rho in zip(laws, ratios, strict=True)]
        slope = exponent(sizes, level)
        study.row({}, Delta=gap, P=list(sizes), rho0=ratios, exponent=slope)
        study.curve(rf"$\Delta = {gap:.2g}$", sizes, ratios)
    off = max(abs(row["exponent"] - row["Delta"]) for row in study.rows)
    powers = "; ".join(f"P^{r['exponent']:.3f} where Delta={r['Delta']:.2g}" for r in study.rows)
    side = f"wrong side of 1 at {wrong} sizes" if wrong else "side of 1 that Delta says"
    reason = f"rho(0) grows as {powers}, on the {side}"
    study.draw("patches $P$", f"{RATIO} at the start", EQUAL)
    also = Measurement("sizes at which rho(0) is on the wrong side of 1", wrong, "<=", 0)
    return study.conclude(off, reason, also)


@measures(
    "ln rho(0) / ln P at this size over Delta, which must not be negative",
    ">", 0.0, runs.requires(large=True),
)  # fmt: skip
def _one_size(study: Study) -> Finding:
    law = study.parameters
    gap = log(_first_ratio(study.system, law)) / log(law.P)
    reason = f"ln rho(0) / ln P is {gap:.3f}, Delta={law.Delta:.3f}"
    return study.conclude(gap / law.Delta, reason, parameters=runs.sizes_of(law))


equation_4_1 = either(_along_sizes, _one_size)
"""rho(0) along P at fixed exponents, or its sign alone at the user's parameters."""


def _first_ratio(system: System, parameters: Any) -> float:
    """|alpha_0| / alpha_m at the start, from the gradient."""
    problem = system.ReducedPopulation(parameters)
    values = problem.order_parameters(problem.initial_state)
    return float(values[problem.order_names.index("rho")])


@measures(
    "least ratio |alpha_0| / alpha_m at the start where Delta is positive",
    ">", 1.0, runs.requires(sign=1),
)  # fmt: skip
def theorem_f_3_local(study: Study) -> Finding:
    """One crossing of rho through 1, and a Phase I in which the rest stays small."""
    reasons, shares = [], []
    for case in runs.cases_of(study, runs.POSITIVE, *runs.SLIGHT):
        rho, at, switch = case.run["rho"], case.at("E2"), case.time("E2")
        rest, phi = max(abs(at[name]) for name in case.others(local=True)), at["Phi_0"]
        study.row(
            case.sizes, rho0=float(rho[0]), crossings=case.crossings, Phi_0=phi, rest=rest,
            switch=None if np.isnan(switch) else switch, two_phases=case.two_phases,
        )  # fmt: skip
        study.curve(case.gap, *case.in_time(rho))
        shares.append(rest / abs(phi) if phi else float("nan"))
        reasons.append(f"Delta={case.parameters.Delta:.3f}: {_words_of_phases(study.rows[-1])}")
    study.draw(TIME, RATIO, EQUAL)
    crossings = max(study.column("crossings"), key=lambda count: abs(count - 1))
    rest_name = "largest other correlation at the switch over |Phi_0|"
    return study.conclude(
        min(study.column("rho0")),
        "; ".join(reasons),
        Measurement("crossings of |alpha_0| / alpha_m through 1", crossings, "==", 1),
        Measurement(rest_name, float(np.max(shares)), "<", 1.0),
    )


def _words_of_phases(row: dict[str, Any]) -> str:
    if row["rho0"] <= 1 and not row["crossings"]:
        return f"no Phase I, rho starts at {row['rho0']:.3g} and never exceeds 1"
    if row["two_phases"]:
        return (
            f"two phases, rho from {row['rho0']:.3g} through 1 at time {row['switch']:.4g}, where "
            f"Phi_0={row['Phi_0']:.3g} and the largest other correlation is {row['rest']:.2g}"
        )
    return f"rho from {row['rho0']:.3g} crosses 1 {row['crossings']} times"


@measures(
    "largest rate of another correlation of a global patch over that of its own feature",
    "<", 1.0, runs.requires(large=True, local=False),
)  # fmt: skip
def theorem_f_3_global(study: Study) -> Finding:
    """Rates of a global patch against that of its own feature, throughout."""
    for case in runs.cases_of(study, runs.POSITIVE, runs.NEGATIVE):
        own, others, run = case.leading(local=False), case.others(local=False), case.run
        ratios = np.abs([run[f"d_{name}"] for name in others]).max(axis=0) / run[f"d_{own}"]
        end = abs(float(max(abs(run[name][-1]) for name in others) / run[own][-1]))
        most = float(np.abs(ratios).max())
        study.row(case.sizes, rates=most, end=end, falls=_falls(case, own))
        study.curve(case.gap, *case.in_time(ratios))
    most, end = max(study.column("rates")), max(study.column("end"))
    reason = (
        f"another correlation of a global patch moves at {most:.2g} of the rate of its own feature "
        f"at most, and ends at {end:.2g} of it"
    )
    study.draw(TIME, "other rates over own", {"as fast as the own": 1.0})
    end_name = (
        "largest other correlation of a global patch at the end over that with its own feature"
    )
    falls_name = "records at which that with its own feature does not rise"
    return study.conclude(
        most,
        reason,
        Measurement(end_name, end, "<=", runs.SMALL_SHARE),
        Measurement(falls_name, sum(study.column("falls")), "<=", 0),
    )


@measures("largest ratio |alpha_0| / alpha_m of the run", "<", 1.0, runs.requires(sign=-1))
def theorem_f_4(study: Study) -> Finding:
    """With a negative gap: rho below 1 throughout, and nothing else grows."""
    cases = runs.cases_of(study, runs.NEGATIVE)
    if study.parameters is None:
        cases += runs.family(study, BELOW)
    for case in cases:
        rho, names = case.run["rho"], (*case.others(local=True), "Phi_0")
        rest = float(max(abs(case.run[name]).max() for name in names) / case.run["Phi_m"][-1])
        study.row(case.sizes, largest=float(rho.max()), rest=rest, falls=_falls(case, "Phi_m"))
        study.curve(f"{case.gap}, {case.size}", *case.in_time(rho))
    most, rest = max(study.column("largest")), max(study.column("rest"))
    reason = (
        f"rho is {most:.3g} at most (Delta {study.listed('Delta')}); other correlations of "
        f"a local patch reach {rest:.2g} of its own one at the end"
    )
    study.draw(TIME, RATIO, EQUAL)
    name = "largest other correlation of a local patch over its own one at the end"
    falls = sum(study.column("falls"))
    return study.conclude(
        most,
        reason,
        Measurement(name, rest, "<=", runs.SMALL_SHARE),
        Measurement("records at which Phi_m does not rise", falls, "<=", 0),
    )


def _falls(case: runs.Case, name: str) -> int:
    """Records at which a correlation is no larger than at the one before."""
    return int(np.count_nonzero(np.diff(case.run[name]) <= 0))


@measures(
    "least rate of Phi_m, or of -Phi_0, of a local patch over the largest of the run",
    ">", 0.0, runs.requires(),
)  # fmt: skip
def monotone(study: Study) -> Finding:
    """Signs of the rates of Phi_m and Phi_0 at every record."""
    wrong = []
    for case in runs.cases_of(study, runs.POSITIVE, runs.NEGATIVE, runs.SMALL, CROSSING):
        run, law = case.run, case.parameters
        still = (np.diff(run["Phi_m"]) <= 0) | (np.diff(run["Phi_0"]) >= 0)
        rates = {"Phi_m": run["alpha_m"], "Phi_0": -run["alpha_0"]}
        least = {name: float(rate.min() / np.abs(rate).max()) for name, rate in rates.items()}
        counts = {"against": int(np.count_nonzero(still)), "records": int(run.time.size)}
        study.row(case.sizes, **least, **counts)
        where = f"P={law.P}, Delta={law.Delta:.2f}"
        wrong += [f"{name} moves against it at {where}" for name in least if least[name] <= 0]
        for name in rates:
            label = f"P={law.P}, $\\Delta = {law.Delta:.2f}$, $\\{name}$"
            study.curve(label, *case.in_time(run[name]))
    value = min(study.column("Phi_m") + study.column("Phi_0"))
    against = sum(study.column("against"))
    study.draw(TIME, "correlation", {"0": 0.0}, y_scale="linear")
    reason = "; ".join(wrong) or f"a correlation stands still or turns at {against} records"
    if value > 0 and not against:
        count = len(study.rows)
        reason = (
            f"Phi_m rises and Phi_0 falls at each of {sum(study.column('records'))} records of "
            f"{count} run{'s' * (count > 1)}"
        )
    also = "records at which Phi_m does not rise or Phi_0 not fall"
    return study.conclude(value, reason, Measurement(also, against, "<=", 0))


@measures(
    "largest rate of Ups over that of Phi, own area of a local patch", "<=", 1.0, runs.requires()
)
def key_observation(study: Study) -> Finding:
    """Rates of Ups over those of Phi of the same area."""
    law = study.parameters
    if law is not None and law.K > 1:
        reason = f"the rates of K={law.K} clusters add up in the reduced problem"
        raise Undecided(reason, parameters=runs.sizes_of(law))
    for case in runs.cases_of(study, runs.POSITIVE, PAIRS, runs.SMALL):
        ratios, turning = _ratios_by_area(case)
        others = {name: float(r.max()) for name, r in ratios.items() if name != "own"}
        above = [name for name in turning if others.get(name, 0.0) > 1]
        study.row(case.sizes, own=float(ratios["own"].max()), others=others, turning=above)
        label = f"P={case.parameters.P}, $C_s = {case.parameters.C_local}$"
        study.curve(label, *case.in_time(ratios["own"]))
    rows, most = study.rows, max(study.column("own"))
    rest = max(max(row["others"].values()) for row in rows)
    words = ", ".join(f"{row['own']:.3g} (P={row['P']}, C_s={row['C_local']})" for row in rows)
    reason = f"in the own area the rate of Ups is up to {words} of that of Phi"
    if most > 1:
        reason += "; a masked mate feels only -u_q r, of either sign, and adds to it"
    if rest > 1:
        above = sorted({name for row in rows for name, r in row["others"].items() if r > 1})
        reason += f"; it is also above that of Phi in the areas called {', '.join(above)}"
        if all(row["turning"] for row in rows if max(row["others"].values()) > 1):
            reason += ", where the rate of Phi passes 0"
    study.draw(TIME, r"rate of $\Upsilon$ over rate of $\Phi$", EQUAL)
    also = Measurement("largest rate of Ups over that of Phi, other areas", rest, "<=", 1.0)
    return study.conclude(most, reason, also)


def _ratios_by_area(case: runs.Case) -> tuple[dict[str, Any], list[str]]:
    """|rate of Ups| / |rate of Phi| for every class of positions of the local row and its area.

    And the classes in whose area the rate of Phi changes its sign.
    """
    rows = case.problem.rows
    number = rows.names.index(case.row(local=True))
    kind, start = rows.types[number], rows.starts[number]
    rates = [f"d_{name}" for name in rows.layout.names]
    ratios, turning = {}, []
    for area in kind.clusters[0]:
        phi = case.run[rates[start + len(kind.ups_names) + area.phi]]
        for ups, _ in area.cells:
            with np.errstate(divide="ignore"):
                ratios[kind.ups_names[ups]] = np.abs(case.run[rates[start + ups]]) / np.abs(phi)
            if phi.min() < 0 < phi.max():
                turning.append(kind.ups_names[ups])
    return ratios, turning


@measures(
    "largest |Ups| of a local patch over Phi_m at the end",
    "<=",
    NEGLIGIBLE,
    runs.requires(large=True),
)
def positions(study: Study) -> Finding:
    """Largest correlation with a position against Phi_m at the end, for several local sizes."""
    for case in runs.cases_of(study, PAIRS, *LOCAL_SIZES):
        names = [name for name in case.others(local=True) if "_Ups_" in name]
        sizes, size = np.abs([case.run[name] for name in names]), case.parameters.C_local
        share = sizes.max(axis=0)[1:] / np.abs(case.run["Phi_m"][1:])
        largest = names[int(sizes[:, -1].argmax())]
        study.row(case.sizes, share=float(share[-1]), largest=largest, expected=1 / (size - 1))
        study.curve(f"$C_s = {size}$", case.run.time[1:], share)
    shares = study.column("share")
    near = np.allclose(np.divide(shares, study.column("expected")), 1.0, rtol=0, atol=CLOSE)
    reason = (
        f"at the end it is {study.listed('share')} of Phi_m at C_s="
        f"{', '.join(map(str, study.column('C_local')))}, {'near' if near else 'where'} "
        f"1/(C_s - 1) {'=' if near else 'is'} {study.listed('expected')}"
    )
    if len(shares) > 1 and all(np.diff(shares) < 0):
        reason += ": the smaller the larger local areas are"
    study.draw(TIME, r"largest $|\Upsilon|$ over $\Phi_m$", {"nearly zero": NEGLIGIBLE})
    return study.conclude(max(shares), reason)
