"""Equation (4.1), Theorems F.3 and F.4: what the information gap decides."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.experiments.criteria import Criterion, decided, listed
from dynamics.experiments.curves import curve, exponent, known, over_time
from dynamics.experiments.masked_image_modeling.runs import (
    EXPONENTS,
    MORE_SIZES,
    NEGATIVE,
    POSITIVE,
    SLIGHT,
    SMALL_SHARE,
    Case,
    along,
    chosen,
    family,
    outside,
    sizes_of,
)
from dynamics.experiments.verify import Finding, Protocol

if TYPE_CHECKING:
    from dynamics.registry import System

NEAR = 0.05
"""How far an exponent of P may be from Delta: constants still count."""
BELOW = (0.6, 0.4)
"""kappa_c and kappa_s of a family with Delta = -0.2."""


def equation_4_1(system: System, protocol: Protocol) -> Finding:
    """rho(0) along P at fixed exponents, a positive gap and a negative one."""
    if protocol.parameters is not None:
        return _one_size(system, protocol)
    quantity = "largest distance of the exponent of rho(0) in P from Delta"
    sizes = MORE_SIZES if protocol.thorough else MORE_SIZES[:5]
    rows: list[dict[str, Any]] = []
    curves, wrong = [], 0
    for exponents in (EXPONENTS, BELOW):
        laws = [along(system, P, exponents) for P in sizes]
        found = [_ratio(system, law) for law in laws]
        wrong += sum((rho > 1) != (law.Delta > 0) for law, rho in zip(laws, found, strict=True))
        gap = (1 - exponents[1]) - 2 * (1 - exponents[0])
        # Whole patches move Delta a little from size to size: what they explain is taken out.
        level = [rho * law.P ** (gap - law.Delta) for law, rho in zip(laws, found, strict=True)]
        slope = exponent(sizes, level)
        rows.append({"Delta": gap, "P": list(sizes), "rho0": found, "exponent": slope})
        curves.append(curve(rf"$\Delta = {gap:.2g}$", sizes, found))
    off = max(abs(row["exponent"] - row["Delta"]) for row in rows)
    told = "; ".join(f"P^{r['exponent']:.3f} where Delta={r['Delta']:.2g}" for r in rows)
    reason = f"rho(0) grows as {told}"
    reason += (
        f", on the wrong side of 1 at {wrong} sizes"
        if wrong
        else ", on the side of 1 that Delta says"
    )
    plot = {
        "x_label": "patches $P$", "y_label": r"$|\alpha_0| / \alpha_m$ at the start",
        "x_scale": "log", "y_scale": "log", "curves": curves,
        "lines": [{"label": "equal rates", "y": 1.0}],
    }  # fmt: skip
    evidence = {"table": rows, "plot": plot}
    criteria = (
        Criterion(quantity, off, "<=", NEAR),
        Criterion("sizes at which rho(0) is on the wrong side of 1", wrong, "<=", 0),
    )
    return decided(criteria, reason, evidence)


def _ratio(system: System, parameters: Any) -> float:
    """|alpha_0| / alpha_m at the start, from the gradient."""
    problem = system.ReducedPopulation(parameters)
    values = problem.order_parameters(problem.initial_state)
    return float(values[problem.order_names.index("rho")])


def _one_size(system: System, protocol: Protocol) -> Finding:
    """The sign alone, at the user's size."""
    parameters = protocol.parameters
    quantity = "ln rho(0) / ln P at this size over Delta, which must not be negative"
    undecided = outside(protocol, quantity, 0.0, large=True)
    if undecided is not None:
        return undecided
    gap = log(_ratio(system, parameters)) / log(parameters.P)
    reason = f"ln rho(0) / ln P is {gap:.3f}, Delta={parameters.Delta:.3f}"
    evidence = {"parameters": sizes_of(parameters)}
    return decided([Criterion(quantity, gap / parameters.Delta, ">", 0.0)], reason, evidence)


def theorem_f_3_local(system: System, protocol: Protocol) -> Finding:
    """One crossing of rho through 1, and a Phase I in which the rest stays small."""
    quantity = "least ratio |alpha_0| / alpha_m at the start where Delta is positive"
    undecided = outside(protocol, quantity, 1.0, 1)
    if undecided is not None:
        return undecided
    rows, curves = [], []
    for case in chosen(system, protocol, POSITIVE, *SLIGHT):
        rho, at = case.run["rho"], case.at("E2")
        rest = max(abs(at[name]) for name in case.others(local=True))
        row = sizes_of(case.parameters) | {
            "rho0": float(rho[0]), "crossings": case.crossings, "switch": known(case.time("E2")),
            "Phi_0": at["Phi_0"], "rest": rest, "two_phases": case.two_phases,
        }  # fmt: skip
        rows.append(row)
        curves.append(curve(_gap(case), case.run.time[1:], rho[1:]))
    least = min(row["rho0"] for row in rows)
    told = [
        f"Delta={row['Delta']:.3f}: {_phases(row)}" for row in rows
    ]  # fmt: skip
    plot = over_time(r"$|\alpha_0| / \alpha_m$", curves, [{"label": "equal rates", "y": 1.0}])
    evidence = {"table": rows, "plot": plot}
    crossings = max((row["crossings"] for row in rows), key=lambda many: abs(many - 1))
    shares = [row["rest"] / abs(row["Phi_0"]) if row["Phi_0"] else float("nan") for row in rows]
    criteria = (
        Criterion(quantity, least, ">", 1.0),
        Criterion("crossings of |alpha_0| / alpha_m through 1", crossings, "==", 1),
        Criterion(
            "largest other correlation at the switch over |Phi_0|", float(np.max(shares)), "<", 1.0
        ),
    )
    return decided(criteria, "; ".join(told), evidence)


def _phases(row: dict[str, Any]) -> str:
    if row["rho0"] <= 1 and not row["crossings"]:
        return f"no Phase I, rho starts at {row['rho0']:.3g} and never exceeds 1"
    if row["two_phases"]:
        return (
            f"two phases, rho from {row['rho0']:.3g} through 1 at time {row['switch']:.4g}, where "
            f"Phi_0={row['Phi_0']:.3g} and the largest other correlation is {row['rest']:.2g}"
        )
    return f"rho from {row['rho0']:.3g} crosses 1 {row['crossings']} times"


def theorem_f_3_global(system: System, protocol: Protocol) -> Finding:
    """Rates of a global patch against that of its own feature, throughout."""
    quantity = "largest rate of another correlation of a global patch over that of its own feature"
    undecided = outside(protocol, quantity, 1.0, large=True, local=False)
    if undecided is not None:
        return undecided
    rows, curves = [], []
    for case in chosen(system, protocol, POSITIVE, NEGATIVE):
        rows.append(_dominance(case, local=False))
        own = case.leading(local=False)
        most = _largest(case, [f"d_{name}" for name in case.others(local=False)])
        curves.append(curve(_gap(case), case.run.time[1:], (most / case.run[f"d_{own}"])[1:]))
    worst = max(rows, key=lambda row: float(row["rates"]))
    end, falls = max(row["end"] for row in rows), sum(row["falls"] for row in rows)
    reason = (
        f"another correlation of a global patch moves at {worst['rates']:.2g} of the rate of its "
        f"own feature at most, and ends at {end:.2g} of it"
    )
    criteria = (
        Criterion(quantity, worst["rates"], "<", 1.0),
        Criterion(
            "largest other correlation of a global patch at the end over that with its own feature",
            end, "<=", SMALL_SHARE,
        ),
        Criterion("records at which that with its own feature does not rise", falls, "<=", 0),
    )  # fmt: skip
    plot = over_time("other rates over own", curves, [{"label": "as fast as the own", "y": 1.0}])
    return decided(criteria, reason, {"table": rows, "plot": plot})


def theorem_f_4(system: System, protocol: Protocol) -> Finding:
    """With a negative gap: rho below 1 throughout, and nothing else grows."""
    quantity = "largest ratio |alpha_0| / alpha_m of the run"
    undecided = outside(protocol, quantity, 1.0, -1)
    if undecided is not None:
        return undecided
    cases = chosen(system, protocol, NEGATIVE)
    if protocol.parameters is None:
        asked = Protocol(thorough=protocol.thorough)
        cases += family(system, asked, BELOW)
    rows, curves = [], []
    for case in cases:
        rho = case.run["rho"]
        rest = max(abs(case.run[name]).max() for name in (*case.others(local=True), "Phi_0"))
        rows.append(sizes_of(case.parameters) | {
            "largest": float(rho.max()), "rest": float(rest / case.run["Phi_m"][-1]),
            "falls": _falls(case, "Phi_m"),
        })  # fmt: skip
        curves.append(curve(f"{_gap(case)}, $P = {case.parameters.P}$", case.run.time[1:], rho[1:]))
    most, rest = max(row["largest"] for row in rows), max(row["rest"] for row in rows)
    reason = (
        f"rho is {most:.3g} at most (Delta {listed([row['Delta'] for row in rows])}); other "
        f"correlations of a local patch reach {rest:.2g} of its own one at the end"
    )
    criteria = (
        Criterion(quantity, most, "<", 1.0),
        Criterion(
            "largest other correlation of a local patch over its own one at the end",
            rest, "<=", SMALL_SHARE,
        ),
        Criterion(
            "records at which Phi_m does not rise", sum(row["falls"] for row in rows), "<=", 0
        ),
    )  # fmt: skip
    plot = over_time(r"$|\alpha_0| / \alpha_m$", curves, [{"label": "equal rates", "y": 1.0}])
    return decided(criteria, reason, {"table": rows, "plot": plot})


def _dominance(case: Case, local: bool) -> dict[str, Any]:
    """Other rates and values of a row against those of the own feature."""
    own, others = case.leading(local), case.others(local)
    rates = _largest(case, [f"d_{name}" for name in others]) / case.run[f"d_{own}"]
    end = max(abs(case.run[name][-1]) for name in others) / case.run[own][-1]
    return sizes_of(case.parameters) | {
        "rates": float(np.abs(rates).max()), "end": float(abs(end)),
        "falls": _falls(case, own),
    }  # fmt: skip


def _falls(case: Case, name: str) -> int:
    """Records at which a correlation is no larger than at the one before."""
    return int(np.count_nonzero(np.diff(case.run[name]) <= 0))


def _largest(case: Case, names: list[str]) -> Any:
    return np.abs([case.run[name] for name in names]).max(axis=0)


def _gap(case: Case) -> str:
    return rf"$\Delta = {case.parameters.Delta:.3f}$"
