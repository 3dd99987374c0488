"""Theorem 4.1 and Events I, II, III, measured along the reduced flow.

Without parameters of the user the verdict is that of the whole regime; a user's parameters are
judged alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.experiments.measurement import TIME, Chart, Measurement, Series, conclude
from dynamics.experiments.positional_attention import population
from dynamics.experiments.verify import Finding, Protocol
from theory.systems.positional_attention.linear_rules import sign_rule_error

if TYPE_CHECKING:
    from dynamics.registry import System

LONG = 1e6
NEAR = 0.1
"""Share of the gap between the linear rule's error and the irreducible one that may be left."""
STILL = 0.05
"""Relative change of G up to T0 below which attention stays where it started."""
LINEAR = 0.5
"""Share of the gap between the irreducible error and that of sign(Z) from which on a model has not
generalised. It need not be sign(Z) itself: beta on the diagonal makes every patch see itself."""
HORIZONS = (1e3, 1e4, 1e5, 1e6)


def _errors(parameters: Any, state: Any, run: Any, seed: int) -> tuple[dict[str, float], float]:
    """Errors of a state, of sign(Z) and of the best rule; and the standard error of the first."""
    error, margin = population.sampled_error(parameters, state, seed)
    linear = float(sign_rule_error(parameters.D, parameters.C, parameters.q).error)
    return {"error": error, "linear": linear, "irreducible": float(run["bayes_error"][-1])}, margin


def theorem_4_1(system: System, protocol: Protocol) -> Finding:
    """Association and error at the end of the idealised run.

    Parameters
    ----------
    system : System
    protocol : Protocol
    """
    rows: list[dict[str, Any]] = []
    cases = population.regime(system, protocol, LONG)
    for parameters, _, run in cases:
        _, gamma, rho = run.final_state
        errors, margin = _errors(parameters, run.final_state, run, protocol.seed)
        gap = errors["linear"] - errors["irreducible"]
        left = (errors["error"] - errors["irreducible"]) / gap if gap > 10 * margin else np.nan
        associated = bool(min(parameters.beta, gamma) > rho)
        row = {"associated": associated, "standard_error": margin, "left": left}
        rows.append(population.sizes_of(parameters) | errors | row)
    measured = [row["left"] for row in rows if np.isfinite(row["left"])]
    most = max(measured, default=float("nan"))
    lost = population.sizes_where(rows, lambda row: not row["associated"])
    holds: bool | None = False
    if not lost:
        holds = None if len(measured) < len(rows) and not most > NEAR else most <= NEAR
    reason = f"at time {LONG:g} every row is associated"
    if lost:
        reason = f"at time {LONG:g} rho is above gamma at D={lost}: no association"
    if len(measured) < len(rows):
        reason += "; sign(Z) is nearly as good as the best rule, so errors decide nothing"
    reason += "; errors " + ", ".join(
        f"{row['error']:.2g} (D={row['D']}; irreducible {row['irreducible']:.2g}, "
        f"linear rule {row['linear']:.2g})"
        for row in rows
    )
    quantity = "share of the gap from the linear rule's error to the irreducible one that is left"
    chart = Chart(TIME, "population risk", population.series_along(cases, lambda run: run["risk"]))
    measurement = Measurement(quantity, most, "<=", NEAR, chart)
    return conclude(measurement, reason, holds, parameters={"time": LONG}, table=rows)


def event_1(system: System, protocol: Protocol) -> Finding:
    """What moves before T0.

    Parameters
    ----------
    system : System
    protocol : Protocol
    """
    rows: list[dict[str, Any]] = []
    cases = population.regime(system, protocol, population.HORIZON)
    for parameters, _, run in cases:
        event = run.events["T0"]
        row: dict[str, Any] = {"D": parameters.D, "C": parameters.C, "q": parameters.q}
        if event is None:
            rows.append(row | {"T0": None, "moved": float("nan"), "rises": False})
            continue
        _, own = population.attention(parameters, np.stack([run.states[0], event.state]))
        alphas = np.append(run["alpha"][run.time <= event.time], event.state[0])
        errors, _ = _errors(parameters, event.state, run, protocol.seed)
        row |= {"T0": event.time, "alpha": float(event.state[0])}
        row |= {"moved": float(own[1] / own[0] - 1), "rises": bool((np.diff(alphas) > 0).all())}
        rows.append(row | errors)
    moved = max((abs(row["moved"]) for row in rows), key=lambda m: (np.isnan(m), m))
    missing = population.sizes_where(rows, lambda row: row["T0"] is None)
    falling = population.sizes_where(rows, lambda row: row["T0"] is not None and not row["rises"])
    reason = f"G has changed by {moved:.2%} at T0 at most"
    if missing:
        reason = f"attention never takes over the growth of the signal at D={missing}"
    elif falling:
        reason += f"; alpha falls before T0 at D={falling}"
    else:
        times = ", ".join(f"{row['T0']:.3g} (D={row['D']})" for row in rows)
        errors_there = ", ".join(
            f"{row['error']:.3g} ({row['linear']:.3g}, {row['irreducible']:.2g})" for row in rows
        )
        reason += (
            f", while alpha has risen all the way; T0 = {times}"
            f"; errors there (of sign(Z), irreducible): {errors_there}"
        )
    with_event = [case for case in cases if case.run.events["T0"] is not None]
    chart = Chart(TIME, r"$\alpha$", population.series_along(with_event, lambda run: run["alpha"]))
    quantity = "relative change of the attention inside the own set, G, up to T0"
    measurement = Measurement(quantity, moved, "<=", STILL, chart)
    holds = measurement.met and all(row["rises"] and _not_generalised(row) for row in rows)
    return conclude(measurement, reason, holds, parameters={"time": population.HORIZON}, table=rows)


def _not_generalised(row: dict[str, Any]) -> bool:
    """Whether the model errs more like the linear rule than like the best one."""
    return bool(row["error"] - row["irreducible"] >= LINEAR * (row["linear"] - row["irreducible"]))


def event_2(system: System, protocol: Protocol) -> Finding:
    """Whether gamma passes the largest |rho| of the run, for runs of growing length.

    Parameters
    ----------
    system : System
    protocol : Protocol
    """
    cases = population.regime(system, protocol, LONG)
    tables = [
        [_passing(parameters, run, horizon) for horizon in HORIZONS] for parameters, _, run in cases
    ]
    rows = [row for table in tables for row in table]
    passes = all(any(row["reached"] and row["increasing"] for row in table) for table in tables)
    lost = [table[-1] for table in tables if not table[-1]["reached"]]
    best = min(max(row["ratio"] for row in table) for table in tables)
    reason = "gamma does not rise past the largest |rho| of the run at any horizon"
    if passes:
        reason = f"gamma rises past the largest |rho| of the run, up to {best:.2g} times it"
        reason += "".join(
            f"; not at horizon {row['horizon']:g} (D={row['D']}, q={row['q']:.3g}), where |rho| "
            "has gone on growing, so it depends on T" for row in lost
        )  # fmt: skip
    series = []
    for parameters, _, run in cases:
        ratios = run["gamma"][1:] / np.maximum.accumulate(np.abs(run["rho"]))[1:]
        series.append(Series(f"$D={parameters.D}$", run.time[1:], ratios))
    levels = {"needed for some time of the run": 1.0}
    chart = Chart(TIME, r"$\gamma / \max_{s \leq t} |\rho|$", series, levels, y_scale="linear")
    quantity = "largest gamma over largest |rho| of a run, at its best horizon"
    measurement = Measurement(quantity, best, ">", 1.0, chart)
    holds = False if not passes else None if lost else True
    return conclude(measurement, reason, holds, parameters={"horizons": list(HORIZONS)}, table=rows)


def _passing(parameters: Any, run: Any, horizon: float) -> dict[str, Any]:
    """Whether gamma passes the largest |rho| of the run up to a horizon, rising from T0 on."""
    start, inside = run.events["T0"], run.time <= horizon
    gamma, largest = run["gamma"][inside], float(np.abs(run["rho"][inside]).max())
    later = gamma[run.time[inside] >= (np.inf if start is None else start.time)]
    passed = np.flatnonzero(later > largest)
    stop = passed[0] if passed.size else later.size
    return {
        "D": parameters.D, "q": parameters.q, "horizon": horizon,
        "ratio": float(gamma.max() / largest) if largest else float("inf"),
        "reached": bool(passed.size),
        "increasing": bool((np.diff(later[: stop + 1]) > 0).all()) and later.size > 1,
    }  # fmt: skip


def event_3(system: System, protocol: Protocol) -> Finding:
    """Whether alpha rises again, lastingly, after T1.

    Parameters
    ----------
    system : System
    protocol : Protocol
    """
    rows: list[dict[str, Any]] = []
    cases = population.regime(system, protocol, LONG)
    for parameters, _, run in cases:
        rise, after = run.events["event_III"], run.events["T1"]
        alpha = run["alpha"]
        row: dict[str, Any] = population.sizes_of(parameters) | {
            "T1": None if after is None else after.time,
            "event_III": None if rise is None else rise.time,
            "reason": run.reasons.get("event_III", ""),
            "last": float(alpha[-1]), "rise": 0.0,
        }  # fmt: skip
        if rise is not None:
            later = alpha[run.time >= rise.time]
            row["rise"] = float(later.max() / rise.state[0] - 1)
            row["fell_again"] = bool(later[-1] < later.max() * (1 - 1e-6))
        if after is not None:
            row["at_T1"] = float(after.state[0])
        rows.append(row)
    reached = [row for row in rows if row["T1"] is not None]
    ratios = [row["last"] / row["at_T1"] for row in reached]
    parts = []
    if reached:
        ends = (f"{ratio:.2g} (D={row['D']})" for ratio, row in zip(ratios, reached, strict=True))
        parts.append(f"alpha at time {LONG:g} over its value at T1: {', '.join(ends)}")
    missing = population.sizes_where(rows, lambda row: row["T1"] is None)
    if missing:
        parts.append(f"T1 is not reached at D={missing}")
    for row in rows:
        if row["event_III"] is not None:
            fell = row["fell_again"]
            ending = "has fallen again by the end" if fell else "is still risen at the end"
            parts.append(
                f"it rises by {row['rise']:.1g} from time {row['event_III']:.4g} (D={row['D']}) "
                f"and {ending}"
            )
    chart = Chart(TIME, r"$\alpha$", population.series_along(cases, lambda run: run["alpha"]))
    least = min(ratios, default=float("nan"))
    measurement = Measurement("least alpha at the end over alpha at T1", least, ">", 1.0, chart)
    holds = measurement.met if reached else None
    return conclude(measurement, "; ".join(parts), holds, parameters={"time": LONG}, table=rows)
