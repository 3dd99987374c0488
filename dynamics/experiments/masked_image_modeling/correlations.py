"""Which correlations grow: what the information gap decides, and statements about all of training.

Equation (4.1), Theorems F.3 and F.4 on the gap Delta; Section 5.1 on monotone correlations; the key
observation and Section 5.4 on correlations with positions.
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from dynamics.experiments.masked_image_modeling.runs import (
    EXPONENTS,
    MORE_SIZES,
    NEGATIVE,
    POSITIVE,
    SLIGHT,
    SMALL,
    SMALL_SHARE,
    Case,
    along,
    cases_of,
    column,
    family,
    requires,
    sizes_of,
)
from dynamics.experiments.measurement import (
    TIME,
    Chart,
    Measurement,
    Series,
    Undecided,
    conclude,
    listed,
    measures,
)
from dynamics.experiments.verify import Finding, Protocol
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


def equation_4_1(system: System, protocol: Protocol) -> Finding:
    """rho(0) along P at fixed exponents, or its sign alone at the user's parameters.

    Parameters
    ----------
    system : System
    protocol : Protocol
    """
    check = _along_sizes if protocol.parameters is None else _one_size
    return check(system, protocol)


@measures("largest distance of the exponent of rho(0) in P from Delta", "<=", NEAR)
def _along_sizes(system: System, protocol: Protocol, measured: Any) -> Finding:
    """A family with a positive gap and one with a negative one."""
    sizes = MORE_SIZES if protocol.thorough else MORE_SIZES[:5]
    rows: list[dict[str, Any]] = []
    series, wrong = [], 0
    for exponents in (EXPONENTS, BELOW):
        laws = [along(system, P, exponents) for P in sizes]
        ratios = [_first_ratio(system, law) for law in laws]
        wrong += sum((rho > 1) != (law.Delta > 0) for law, rho in zip(laws, ratios, strict=True))
        gap = (1 - exponents[1]) - 2 * (1 - exponents[0])
        # Whole patches move Delta a little from size to size: the level is without it.
        level = [rho * law.P ** (gap - law.Delta) for law, rho in zip(laws, ratios, strict=True)]
        slope = exponent(sizes, level)
        rows.append({"Delta": gap, "P": list(sizes), "rho0": ratios, "exponent": slope})
        series.append(Series(rf"$\Delta = {gap:.2g}$", sizes, ratios))
    off = max(abs(row["exponent"] - row["Delta"]) for row in rows)
    powers = "; ".join(f"P^{r['exponent']:.3f} where Delta={r['Delta']:.2g}" for r in rows)
    side = f"wrong side of 1 at {wrong} sizes" if wrong else "side of 1 that Delta says"
    reason = f"rho(0) grows as {powers}, on the {side}"
    chart = Chart("patches $P$", f"{RATIO} at the start", series, EQUAL)
    also = Measurement("sizes at which rho(0) is on the wrong side of 1", wrong, "<=", 0)
    return conclude([measured(off, chart), also], reason, table=rows)


@measures(
    "ln rho(0) / ln P at this size over Delta, which must not be negative",
    ">", 0.0, requires(large=True),
)  # fmt: skip
def _one_size(system: System, protocol: Protocol, measured: Any) -> Finding:
    law = protocol.parameters
    gap = log(_first_ratio(system, law)) / log(law.P)
    reason = f"ln rho(0) / ln P is {gap:.3f}, Delta={law.Delta:.3f}"
    return conclude(measured(gap / law.Delta), reason, parameters=sizes_of(law))


def _first_ratio(system: System, parameters: Any) -> float:
    """|alpha_0| / alpha_m at the start, from the gradient."""
    problem = system.ReducedPopulation(parameters)
    values = problem.order_parameters(problem.initial_state)
    return float(values[problem.order_names.index("rho")])


@measures(
    "least ratio |alpha_0| / alpha_m at the start where Delta is positive",
    ">", 1.0, requires(sign=1),
)  # fmt: skip
def theorem_f_3_local(system: System, protocol: Protocol, measured: Any) -> Finding:
    """One crossing of rho through 1, and a Phase I in which the rest stays small.

    Parameters
    ----------
    system : System
    protocol : Protocol
    measured : callable
        As of `dynamics.experiments.measurement.measures`.
    """
    rows, series, reasons = [], [], []
    for case in cases_of(system, protocol, POSITIVE, *SLIGHT):
        rho, at, switch = case.run["rho"], case.at("E2"), case.time("E2")
        rest = max(abs(at[name]) for name in case.others(local=True))
        rows.append(case.entry(
            rho0=float(rho[0]), crossings=case.crossings,
            switch=None if np.isnan(switch) else switch, Phi_0=at["Phi_0"], rest=rest,
            two_phases=case.two_phases,
        ))  # fmt: skip
        series.append(case.series(rho))
        reasons.append(f"Delta={case.parameters.Delta:.3f}: {_words_of_phases(rows[-1])}")
    chart = Chart(TIME, RATIO, series, EQUAL)
    crossings = max(column(rows, "crossings"), key=lambda count: abs(count - 1))
    shares = [row["rest"] / abs(row["Phi_0"]) if row["Phi_0"] else float("nan") for row in rows]
    rest_name = "largest other correlation at the switch over |Phi_0|"
    measurements = [
        measured(min(column(rows, "rho0")), chart),
        Measurement("crossings of |alpha_0| / alpha_m through 1", crossings, "==", 1),
        Measurement(rest_name, float(np.max(shares)), "<", 1.0),
    ]
    return conclude(measurements, "; ".join(reasons), table=rows)


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
    "<", 1.0, requires(large=True, local=False),
)  # fmt: skip
def theorem_f_3_global(system: System, protocol: Protocol, measured: Any) -> Finding:
    """Rates of a global patch against that of its own feature, throughout.

    Parameters
    ----------
    system : System
    protocol : Protocol
    measured : callable
        As of `dynamics.experiments.measurement.measures`.
    """
    rows, series = [], []
    for case in cases_of(system, protocol, POSITIVE, NEGATIVE):
        own, others, run = case.leading(local=False), case.others(local=False), case.run
        ratios = np.abs([run[f"d_{name}"] for name in others]).max(axis=0) / run[f"d_{own}"]
        end = max(abs(run[name][-1]) for name in others) / run[own][-1]
        rows.append(case.entry(
            rates=float(np.abs(ratios).max()), end=float(abs(end)), falls=_falls(case, own)
        ))  # fmt: skip
        series.append(case.series(ratios))
    most, end = max(column(rows, "rates")), max(column(rows, "end"))
    reason = (
        f"another correlation of a global patch moves at {most:.2g} of the rate of its own feature "
        f"at most, and ends at {end:.2g} of it"
    )
    chart = Chart(TIME, "other rates over own", series, {"as fast as the own": 1.0})
    end_name = (
        "largest other correlation of a global patch at the end over that with its own feature"
    )
    falls_name = "records at which that with its own feature does not rise"
    measurements = [
        measured(most, chart),
        Measurement(end_name, end, "<=", SMALL_SHARE),
        Measurement(falls_name, sum(column(rows, "falls")), "<=", 0),
    ]
    return conclude(measurements, reason, table=rows)


@measures("largest ratio |alpha_0| / alpha_m of the run", "<", 1.0, requires(sign=-1))
def theorem_f_4(system: System, protocol: Protocol, measured: Any) -> Finding:
    """With a negative gap: rho below 1 throughout, and nothing else grows.

    Parameters
    ----------
    system : System
    protocol : Protocol
    measured : callable
        As of `dynamics.experiments.measurement.measures`.
    """
    cases = cases_of(system, protocol, NEGATIVE)
    if protocol.parameters is None:
        cases += family(system, protocol, BELOW)
    rows, series = [], []
    for case in cases:
        rho, names = case.run["rho"], (*case.others(local=True), "Phi_0")
        rest = max(abs(case.run[name]).max() for name in names)
        rows.append(case.entry(
            largest=float(rho.max()), rest=float(rest / case.run["Phi_m"][-1]),
            falls=_falls(case, "Phi_m"),
        ))  # fmt: skip
        law = case.parameters
        series.append(case.series(rho, rf"$\Delta = {law.Delta:.3f}$, $P = {law.P}$"))
    most, rest = max(column(rows, "largest")), max(column(rows, "rest"))
    reason = (
        f"rho is {most:.3g} at most (Delta {listed(column(rows, 'Delta'))}); other correlations of "
        f"a local patch reach {rest:.2g} of its own one at the end"
    )
    name = "largest other correlation of a local patch over its own one at the end"
    falls = sum(column(rows, "falls"))
    measurements = [
        measured(most, Chart(TIME, RATIO, series, EQUAL)),
        Measurement(name, rest, "<=", SMALL_SHARE),
        Measurement("records at which Phi_m does not rise", falls, "<=", 0),
    ]
    return conclude(measurements, reason, table=rows)


def _falls(case: Case, name: str) -> int:
    """Records at which a correlation is no larger than at the one before."""
    return int(np.count_nonzero(np.diff(case.run[name]) <= 0))


@measures(
    "least rate of Phi_m, or of -Phi_0, of a local patch over the largest of the run",
    ">", 0.0, requires(),
)  # fmt: skip
def monotone(system: System, protocol: Protocol, measured: Any) -> Finding:
    """Signs of the rates of Phi_m and Phi_0 at every record.

    Parameters
    ----------
    system : System
    protocol : Protocol
    measured : callable
        As of `dynamics.experiments.measurement.measures`.
    """
    rows, series = [], []
    for case in cases_of(system, protocol, POSITIVE, NEGATIVE, SMALL, CROSSING):
        run, law = case.run, case.parameters
        still = (np.diff(run["Phi_m"]) <= 0) | (np.diff(run["Phi_0"]) >= 0)
        rows.append(case.entry(
            Phi_m=float(run["alpha_m"].min() / np.abs(run["alpha_m"]).max()),
            Phi_0=float(-run["alpha_0"].max() / np.abs(run["alpha_0"]).max()),
            against=int(np.count_nonzero(still)), records=int(run.time.size),
        ))  # fmt: skip
        for name, letter in (("Phi_m", r"\Phi_m"), ("Phi_0", r"\Phi_0")):
            label = f"P={law.P}, $\\Delta = {law.Delta:.2f}$, ${letter}$"
            series.append(case.series(run[name], label))
    least, against = min(min(r["Phi_m"], r["Phi_0"]) for r in rows), sum(column(rows, "against"))
    chart = Chart(TIME, "correlation", series, {"0": 0.0}, y_scale="linear")
    also = "records at which Phi_m does not rise or Phi_0 not fall"
    measurements = [measured(least, chart), Measurement(also, against, "<=", 0)]
    wrong = [
        f"Phi_{name} moves against it at P={row['P']}, Delta={row['Delta']:.2f}"
        for row in rows for name in ("m", "0") if row[f"Phi_{name}"] <= 0
    ]  # fmt: skip
    reason = "; ".join(wrong) or f"a correlation stands still or turns at {against} records"
    if all(measurement.met for measurement in measurements):
        reason = (
            f"Phi_m rises and Phi_0 falls at each of {sum(column(rows, 'records'))} records of "
            f"{len(rows)} run{'s' * (len(rows) > 1)}"
        )
    return conclude(measurements, reason, table=rows)


@measures("largest rate of Ups over that of Phi, own area of a local patch", "<=", 1.0, requires())
def key_observation(system: System, protocol: Protocol, measured: Any) -> Finding:
    """Rates of Ups over those of Phi of the same area.

    Parameters
    ----------
    system : System
    protocol : Protocol
    measured : callable
        As of `dynamics.experiments.measurement.measures`.
    """
    law = protocol.parameters
    if law is not None and law.K > 1:
        reason = f"the rates of K={law.K} clusters add up in the reduced problem"
        raise Undecided(reason, parameters=sizes_of(law))
    rows, series = [], []
    for case in cases_of(system, protocol, POSITIVE, PAIRS, SMALL):
        ratios, turning = _ratios_by_area(case)
        others = {name: float(r.max()) for name, r in ratios.items() if name != "own"}
        rows.append(case.entry(
            own=float(ratios["own"].max()), others=others,
            turning=[name for name in turning if others.get(name, 0.0) > 1],
        ))  # fmt: skip
        label = f"P={case.parameters.P}, $C_s = {case.parameters.C_local}$"
        series.append(case.series(ratios["own"], label))
    most, rest = max(column(rows, "own")), max(max(row["others"].values()) for row in rows)
    words = ", ".join(f"{row['own']:.3g} (P={row['P']}, C_s={row['C_local']})" for row in rows)
    reason = f"in the own area the rate of Ups is up to {words} of that of Phi"
    if most > 1:
        reason += "; a masked mate feels only -u_q r, of either sign, and adds to it"
    if rest > 1:
        above = sorted({name for row in rows for name, r in row["others"].items() if r > 1})
        reason += f"; it is also above that of Phi in the areas called {', '.join(above)}"
        if all(row["turning"] for row in rows if max(row["others"].values()) > 1):
            reason += ", where the rate of Phi passes 0"
    chart = Chart(TIME, r"rate of $\Upsilon$ over rate of $\Phi$", series, EQUAL)
    also = Measurement("largest rate of Ups over that of Phi, other areas", rest, "<=", 1.0)
    return conclude([measured(most, chart), also], reason, table=rows)


def _ratios_by_area(case: Case) -> tuple[dict[str, Any], list[str]]:
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
    "largest |Ups| of a local patch over Phi_m at the end", "<=", NEGLIGIBLE, requires(large=True)
)
def positions(system: System, protocol: Protocol, measured: Any) -> Finding:
    """Largest correlation with a position against Phi_m at the end, for several local sizes.

    Parameters
    ----------
    system : System
    protocol : Protocol
    measured : callable
        As of `dynamics.experiments.measurement.measures`.
    """
    rows, series = [], []
    for case in cases_of(system, protocol, PAIRS, *LOCAL_SIZES):
        names = [name for name in case.others(local=True) if "_Ups_" in name]
        sizes, size = np.abs([case.run[name] for name in names]), case.parameters.C_local
        share = sizes.max(axis=0)[1:] / np.abs(case.run["Phi_m"][1:])
        rows.append(case.entry(
            share=float(share[-1]), largest=names[int(sizes[:, -1].argmax())],
            expected=1 / (size - 1),
        ))  # fmt: skip
        series.append(Series(f"$C_s = {size}$", case.run.time[1:], share))
    shares, expected = column(rows, "share"), column(rows, "expected")
    near = all(abs(r["share"] / r["expected"] - 1) <= CLOSE for r in rows)
    reason = (
        f"at the end it is {listed(shares)} of Phi_m at C_s="
        f"{', '.join(map(str, column(rows, 'C_local')))}, {'near' if near else 'where'} "
        f"1/(C_s - 1) {'=' if near else 'is'} {listed(expected)}"
    )
    if len(rows) > 1 and all(np.diff(shares) < 0):
        reason += ": the smaller the larger local areas are"
    chart = Chart(TIME, r"largest $|\Upsilon|$ over $\Phi_m$", series, {"nearly zero": NEGLIGIBLE})
    return conclude(measured(max(shares), chart), reason, table=rows)
