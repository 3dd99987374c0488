"""Theorem 4.1 and Events I, II, III, measured along the reduced flow.

Where the table of the regime is asked for, the verdict is that of the whole table; a user's
parameters are judged alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.experiments.curves import curve, over_time
from dynamics.experiments.positional_attention.population import (
    HORIZON,
    attention,
    population_flow,
    regime,
    sampled_error,
    sizes_of,
)
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


def theorem_4_1(system: System, protocol: Protocol) -> Finding:
    """Association and error at the end of the idealised run."""
    rows = []
    for parameters in regime(system, protocol):
        _, run = population_flow(system, parameters, LONG)
        _, gamma, rho = run.final_state
        error, margin = sampled_error(parameters, run.final_state, protocol.seed)
        linear = float(sign_rule_error(parameters.D, parameters.C, parameters.q).error)
        irreducible = float(run["bayes_error"][-1])
        rows.append(
            sizes_of(parameters)
            | {
                "associated": bool(min(parameters.beta, gamma) > rho),
                "error": error, "standard_error": margin,
                "irreducible": irreducible, "linear": linear,
                "left": _left(error, irreducible, linear, margin),
            }
        )  # fmt: skip
    associated = all(row["associated"] for row in rows)
    known = [row["left"] for row in rows if np.isfinite(row["left"])]
    most = max(known, default=float("nan"))
    holds: bool | None = False
    if associated:
        holds = None if len(known) < len(rows) and not most > NEAR else most <= NEAR
    reason = f"at time {LONG:g} every row is associated" if associated else _lost(rows)
    if len(known) < len(rows):
        reason += "; sign(Z) is nearly as good as the best rule, so errors decide nothing"
    reason += "; errors " + ", ".join(
        f"{row['error']:.2g} (D={row['D']}; irreducible {row['irreducible']:.2g}, "
        f"linear rule {row['linear']:.2g})"
        for row in rows
    )
    quantity = "share of the gap from the linear rule's error to the irreducible one that is left"
    evidence = {"parameters": {"time": LONG}, "table": rows, "plot": _risks(system, protocol)}
    return Finding(holds, quantity, most, NEAR, reason, evidence)


def _left(error: float, irreducible: float, linear: float, margin: float) -> float:
    """Share of the gap that is left; NaN where the gap is too small to be measured."""
    gap = linear - irreducible
    return (error - irreducible) / gap if gap > 10 * margin else float("nan")


def _lost(rows: list[dict[str, Any]]) -> str:
    lost = [str(row["D"]) for row in rows if not row["associated"]]
    return f"at time {LONG:g} rho is above gamma at D={', '.join(lost)}: no association"


def _risks(system: System, protocol: Protocol) -> dict[str, Any]:
    curves = []
    for parameters in regime(system, protocol):
        run = population_flow(system, parameters, LONG)[1]
        curves.append(curve(f"$D={parameters.D}$", run.time[1:], run["risk"][1:]))
    return over_time("population risk", curves)


def event_1(system: System, protocol: Protocol) -> Finding:
    """What moves before T0."""
    rows: list[dict[str, Any]] = []
    curves = []
    for parameters in regime(system, protocol):
        _, run = population_flow(system, parameters, HORIZON)
        event = run.events["T0"]
        row: dict[str, Any] = {"D": parameters.D, "C": parameters.C, "q": parameters.q}
        if event is None:
            rows.append(row | {"T0": None, "moved": float("nan"), "rises": False})
            continue
        before = run.time <= event.time
        _, own = attention(parameters, np.stack([run.states[0], event.state]))
        alphas = np.append(run["alpha"][before], event.state[0])
        row |= {
            "T0": event.time, "alpha": float(event.state[0]),
            "moved": float(own[1] / own[0] - 1), "rises": bool((np.diff(alphas) > 0).all()),
            "error": sampled_error(parameters, event.state, protocol.seed)[0],
            "linear": float(sign_rule_error(parameters.D, parameters.C, parameters.q).error),
            "irreducible": float(run["bayes_error"][-1]),
        }  # fmt: skip
        rows.append(row)
        curves.append(curve(f"$D={parameters.D}$", run.time[1:], run["alpha"][1:]))
    moved = max((abs(row["moved"]) for row in rows), key=lambda m: (np.isnan(m), m))
    holds = bool(moved <= STILL and all(row["rises"] and _does_not_generalise(row) for row in rows))
    missing = [str(row["D"]) for row in rows if row["T0"] is None]
    falling = [str(row["D"]) for row in rows if row["T0"] is not None and not row["rises"]]
    reason = f"G has changed by {moved:.2%} at T0 at most" if not missing else ""
    if missing:
        reason = f"attention never takes over the growth of the signal at D={', '.join(missing)}"
    elif falling:
        reason += f"; alpha falls before T0 at D={', '.join(falling)}"
    else:
        times = ", ".join(f"{row['T0']:.3g} (D={row['D']})" for row in rows)
        reason += f", while alpha has risen all the way; T0 = {times}"
        errors = ", ".join(
            f"{row['error']:.3g} ({row['linear']:.3g}, {row['irreducible']:.2g})" for row in rows
        )
        reason += f"; errors there (of sign(Z), irreducible): {errors}"
    plot = over_time(r"$\alpha$", curves)
    quantity = "relative change of the attention inside the own set, G, up to T0"
    evidence = {"parameters": {"time": HORIZON}, "table": rows, "plot": plot}
    return Finding(holds, quantity, moved, STILL, reason, evidence)


def _does_not_generalise(row: dict[str, Any]) -> bool:
    """Whether the model errs more like the linear rule than like the best one."""
    return bool(row["error"] - row["irreducible"] >= LINEAR * (row["linear"] - row["irreducible"]))


def event_2(system: System, protocol: Protocol) -> Finding:
    """Whether gamma passes the largest |rho| of the run, for runs of growing length."""
    rows: list[dict[str, Any]] = []
    curves = []
    for parameters in regime(system, protocol):
        _, run = population_flow(system, parameters, LONG)
        start = run.events["T0"]
        begin = np.inf if start is None else start.time
        for horizon in HORIZONS:
            inside = run.time <= horizon
            gamma, largest = run["gamma"][inside], float(np.abs(run["rho"][inside]).max())
            late = gamma[run.time[inside] >= begin]
            passed = np.flatnonzero(late > largest)
            stop = passed[0] if passed.size else late.size
            rows.append(
                {
                    "D": parameters.D, "q": parameters.q, "horizon": horizon,
                    "ratio": float(gamma.max() / largest) if largest else float("inf"),
                    "reached": bool(passed.size),
                    "increasing": bool((np.diff(late[: stop + 1]) > 0).all()) and late.size > 1,
                }
            )  # fmt: skip
        curves.append(
            curve(
                f"$D={parameters.D}$", run.time[1:],
                run["gamma"][1:] / np.maximum.accumulate(np.abs(run["rho"]))[1:],
            )
        )  # fmt: skip
    some = all(any(row["reached"] and row["increasing"] for row in rows if row["D"] == D)
               for D in {row["D"] for row in rows})  # fmt: skip
    lost = [row for row in rows if not row["reached"] and row["horizon"] == HORIZONS[-1]]
    holds = False if not some else None if lost else True
    best = min(max(r["ratio"] for r in rows if r["D"] == D) for D in {r["D"] for r in rows})
    if not some:
        reason = "gamma does not rise past the largest |rho| of the run at any horizon"
    else:
        reason = f"gamma rises past the largest |rho| of the run, up to {best:.2g} times it"
        reason += "".join(
            f"; not at horizon {row['horizon']:g} (D={row['D']}, q={row['q']:.3g}), where |rho| "
            "has gone on growing, so it depends on T" for row in lost
        )  # fmt: skip
    plot = over_time(
        r"$\gamma / \max_{s \leq t} |\rho|$",
        curves,
        [{"label": "needed for some time of the run", "y": 1.0}],
        "linear",
    )
    quantity = "largest gamma over largest |rho| of a run, at its best horizon"
    evidence = {"parameters": {"horizons": list(HORIZONS)}, "table": rows, "plot": plot}
    return Finding(holds, quantity, best, 1.0, reason, evidence)


def event_3(system: System, protocol: Protocol) -> Finding:
    """Whether alpha rises again, lastingly, after T1."""
    rows: list[dict[str, Any]] = []
    curves = []
    for parameters in regime(system, protocol):
        _, run = population_flow(system, parameters, LONG)
        found, after = run.events["event_III"], run.events["T1"]
        alpha = run["alpha"]
        row: dict[str, Any] = sizes_of(parameters) | {
            "T1": None if after is None else after.time,
            "event_III": None if found is None else found.time,
            "reason": run.reasons.get("event_III", ""),
            "last": float(alpha[-1]), "rise": 0.0,
        }  # fmt: skip
        if found is not None:
            later = alpha[run.time >= found.time]
            row["rise"] = float(later.max() / found.state[0] - 1)
            row["fell_again"] = bool(later[-1] < later.max() * (1 - 1e-6))
        if after is not None:
            row["at_T1"] = float(after.state[0])
        rows.append(row)
        curves.append(curve(f"$D={parameters.D}$", run.time[1:], alpha[1:]))
    grown = [row for row in rows if row["last"] > row.get("at_T1", np.inf)]
    reached = [row for row in rows if row["T1"] is not None]
    holds = None if not reached else len(grown) == len(reached)
    least = min((row["last"] / row["at_T1"] for row in reached), default=float("nan"))
    seen = [row for row in rows if row["event_III"] is not None]
    at_end = ", ".join(f"{row['last'] / row['at_T1']:.2g} (D={row['D']})" for row in reached)
    reason = f"alpha at time {LONG:g} over its value at T1: {at_end}" if reached else ""
    missing = [str(row["D"]) for row in rows if row["T1"] is None]
    if missing:
        reason += f"{'; ' if reason else ''}T1 is not reached at D={', '.join(missing)}"
    for row in seen:
        ending = "has fallen again by the end" if row["fell_again"] else "is still risen at the end"
        reason += (
            f"; it rises by {row['rise']:.1g} from time {row['event_III']:.4g} (D={row['D']}) and "
            f"{ending}"
        )
    plot = over_time(r"$\alpha$", curves)
    quantity = "least alpha at the end over alpha at T1"
    evidence = {"parameters": {"time": LONG}, "table": rows, "plot": plot}
    return Finding(holds, quantity, least, 1.0, reason, evidence)
