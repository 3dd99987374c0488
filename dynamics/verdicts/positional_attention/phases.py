"""Theorem 4.1 and Events I, II, III, measured along the reduced flow.

Without parameters of the user the verdict is that of the whole regime; a user's parameters are
judged alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics.training.events import STILL_OPEN
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.positional_attention import population
from dynamics.verdicts.study import TIME, Measurement, Study, measures
from theory.events import RISE
from theory.papers.positional_attention.linear_rules import sign_rule_error

LONG = 1e6
NEAR = 0.1
"""Share of the gap between the linear rule's error and the irreducible one that may be left."""
STILL = 0.05
"""Relative change of G up to T0 below which attention stays where it started."""
CLEAR = 10.0
"""Standard errors by which sign(Z) has to err more than the best rule for errors to tell them."""
LINEAR = 0.5
"""Share of the gap between the irreducible error and that of sign(Z) from which on a model has not
generalised. It need not be sign(Z) itself: beta on the diagonal makes every patch see itself."""
HORIZONS = (1e3, 1e4, 1e5, 1e6)


def _errors(parameters: Any, state: Any, run: Any, seed: int) -> tuple[dict[str, float], float]:
    """Errors of a state, of sign(Z) and of the best rule; and the standard error of the first."""
    error, margin = population.sampled_error(parameters, state, seed)
    linear = float(sign_rule_error(parameters.D, parameters.C, parameters.q).error)
    return {"error": error, "linear": linear, "irreducible": float(run["bayes_error"][-1])}, margin


@measures(
    "share of the gap from the linear rule's error to the irreducible one that is left", "<=", NEAR,
    single=("time",), again=True,
)  # fmt: skip
def theorem_4_1(study: Study) -> Finding:
    """Association and error at the end of the idealised run."""
    time = LONG * study.repeat.time_factor
    cases = population.regime(study, time)
    for case in cases:
        law, run = case.parameters, case.run
        _, gamma, rho = run.final_state
        errors, margin = _errors(law, run.final_state, run, study.seed)
        gap = errors["linear"] - errors["irreducible"]
        left = (errors["error"] - errors["irreducible"]) / gap if gap > CLEAR * margin else np.nan
        associated = bool(min(law.beta, gamma) > rho)
        sizes = population.sizes_of(law) | errors
        study.row(sizes, associated=associated, standard_error=margin, left=left)
    finite = [left for left in study.column("left") if np.isfinite(left)]
    most, decided = max(finite, default=float("nan")), len(finite) == len(cases)
    lost = population.sizes_where(study, lambda row: not row["associated"])
    holds: bool | None = False
    if not lost:
        holds = None if not decided and not most > NEAR else most <= NEAR
    reason = f"at time {time:g} every row is associated"
    if lost:
        reason = f"at time {time:g} rho is above gamma at D={lost}: no association"
    if not decided:
        reason += "; sign(Z) is nearly as good as the best rule, so errors decide nothing"
    errors_there = "{error:.2g} (D={D}; irreducible {irreducible:.2g}, linear rule {linear:.2g})"
    reason += f"; errors {study.words(errors_there)}"
    population.draw_along(study, cases, "population risk", lambda run: run["risk"])
    return study.conclude(most, reason, holds=holds, parameters={"time": time})


@measures("relative change of the attention inside the own set, G, up to T0", "<=", STILL)
def event_1(study: Study) -> Finding:
    """What moves before T0."""
    cases = population.regime(study, population.HORIZON)
    for case in cases:
        law, run, event = case.parameters, case.run, case.run.events["T0"]
        sizes: dict[str, Any] = {"D": law.D, "C": law.C, "q": law.q}
        if not event:
            reason = (
                f"attention does not take over the growth of the signal up to time "
                f"{population.HORIZON:g} at D={law.D}, C={law.C}, q={law.q:.3g}"
            )
            raise Undecided(reason, "time", parameters=sizes)
        _, own = population.attention(law, np.stack([run.states[0], event.state]))
        alphas = np.append(run["alpha"][run.time <= event.time], event.state[0])
        errors, margin = _errors(law, event.state, run, study.seed)
        gap = errors["linear"] - errors["irreducible"]
        left = (errors["error"] - errors["irreducible"]) / gap if gap > CLEAR * margin else np.nan
        study.row(
            sizes | errors, T0=event.time, alpha=float(event.state[0]), left=left,
            moved=float(own[1] / own[0] - 1), rises=bool((np.diff(alphas) > 0).all()),
        )  # fmt: skip
    moved = float(np.max(np.abs(study.column("moved"))))
    falling = population.sizes_where(study, lambda row: not row["rises"])
    unclear = population.sizes_where(study, lambda row: np.isnan(row["left"]))
    least = min((left for left in study.column("left") if np.isfinite(left)), default=LINEAR)
    errors_there = study.words("{error:.3g} ({linear:.3g}, {irreducible:.2g})")
    risen = f"; alpha does not rise up to T0 at D={falling}" if falling else (
        ", while alpha has risen all the way"
    )  # fmt: skip
    reason = (
        f"G has changed by {moved:.2%} at T0 at most{risen}; T0 = "
        f"{study.words('{T0:.3g} (D={D})')}; errors there (of sign(Z), irreducible): {errors_there}"
    )
    if unclear:
        reason += f"; at D={unclear} sign(Z) is nearly as good as the best rule: nothing to tell by"
    population.draw_along(study, cases, r"$\alpha$", lambda run: run["alpha"])
    also = [
        Measurement("sizes at which alpha does not rise up to T0", len(falling.split()), "<=", 0),
        Measurement(
            "least share of the gap from the irreducible error to that of sign(Z) left at T0",
            least, ">=", LINEAR,
        ),
    ]  # fmt: skip
    met = study.met(moved) and all(each.met for each in also)
    holds: Any = None if met and unclear else "as measured"
    where = {"time": population.HORIZON}
    return study.conclude(moved, reason, *also, holds=holds, parameters=where)


@measures("largest gamma over largest |rho| of a run, at its best horizon", ">", 1.0)
def event_2(study: Study) -> Finding:
    """Whether gamma passes the largest |rho| of the run, for runs of growing length."""
    tables = []
    for case in population.regime(study, LONG):
        law, run = case.parameters, case.run
        tables.append([_passing(law, run, horizon) for horizon in HORIZONS])
        study.rows += tables[-1]
        ratios = run["gamma"][1:] / np.maximum.accumulate(np.abs(run["rho"]))[1:]
        study.curve(f"$D={law.D}$", run.time[1:], ratios)
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
    y_label = r"$\gamma / \max_{s \leq t} |\rho|$"
    study.draw(TIME, y_label, {"needed for some time of the run": 1.0}, y_scale="linear")
    holds = False if not passes else None if lost else True
    where = {"horizons": list(HORIZONS)}
    return study.conclude(best, reason, holds=holds, missing="time", parameters=where)


def _passing(parameters: Any, run: Any, horizon: float) -> dict[str, Any]:
    """Whether gamma passes the largest |rho| of the run up to a horizon, rising from T0 on."""
    start, inside = run.events["T0"], run.time <= horizon
    gamma, largest = run["gamma"][inside], float(np.abs(run["rho"][inside]).max())
    later = gamma[run.time[inside] >= (start.time if start else np.inf)]
    passed = np.flatnonzero(later > largest)
    stop = passed[0] if passed.size else later.size
    return {
        "D": parameters.D, "q": parameters.q, "horizon": horizon,
        "ratio": float(gamma.max() / largest) if largest else float("inf"),
        "reached": bool(passed.size),
        "increasing": bool((np.diff(later[: stop + 1]) > 0).all()) and later.size > 1,
    }  # fmt: skip


@measures("least alpha at the end over alpha at T1", ">", 1 + RISE)
def event_3(study: Study) -> Finding:
    """Whether alpha rises above its value at T1, and goes on rising to the end of the run."""
    parts, ratios = [], []
    cases = population.regime(study, LONG)
    for case in cases:
        run, alpha, law = case.run, case.run["alpha"], case.parameters
        rise, after = run.events["event_III"], run.events["T1"]
        passes = bool(run.events["T1_paper"])
        row: dict[str, Any] = {"last": float(alpha[-1]), "ratio": float("nan"), "passes": passes}
        row["reason"] = rise.reason
        rises = f"rises from time {rise.time:.4g} on" if rise else row["reason"]
        if after:
            first = float(after.state[0])
            earlier = float(np.interp(LONG / 2, run.time, alpha)) / first
            row |= {"at_T1": first, "earlier": earlier, "ratio": row["last"] / first}
            open_still = STILL_OPEN in row["reason"]
            row["falls"] = not rise and not open_still and row["ratio"] < max(earlier, 1.0)
            now, before = (f"{x:{'.2g' if x < 1 else '.4g'}}" for x in (row["ratio"], earlier))
            ratios.append(f"{now} (D={law.D}; at half of that time {before})")
            top = int(np.where(run.time >= after.time, alpha, -np.inf).argmax())
            row["of_largest"] = row["last"] / float(max(alpha[top], first))
            if row["falls"] and alpha[top] > first:
                rises = f"rises to {alpha[top] / first:.4g} of its value at T1, and falls from time"
                rises += f" {run.time[top]:.4g} on"
        rises += "" if passes else ", and gamma has not passed the largest |rho|, as it is to"
        parts.append(f"D={law.D}, q={law.q:.3g}: {rises}")
        times = {event.name: event.time if event else None for event in (after, rise)}
        study.row(population.sizes_of(law) | times, **row)
    if ratios:
        parts.insert(0, f"alpha at time {LONG:g} over its value at T1: {', '.join(ratios)}")
    parts[0] = f"at nu={law.nu:g}, beta={law.beta:g}, {parts[0]}"
    population.draw_along(study, cases, r"$\alpha$", lambda run: run["alpha"])
    # The statement begins "because gamma has passed the largest |rho|".
    of_it = [row for row in study.rows if row["T1"] is not None and row["passes"]]
    seen = of_it or [row for row in study.rows if row["T1"] is not None] or study.rows
    lowest = min(seen, key=lambda row: row["ratio"] if row["T1"] is not None else np.inf)
    holds: bool | None = all(row["event_III"] is not None for row in of_it)
    if not of_it or not (holds or any(row["falls"] for row in of_it)):
        holds = None
    from_top = Measurement(
        "least alpha at the end over its largest from T1 on",
        min((row["of_largest"] for row in of_it if row["falls"]), default=1.0), ">=", 1.0,
    )  # fmt: skip
    ratio, where = lowest["ratio"], {"time": LONG}
    also = [from_top] if ratio > 1 + RISE else []  # a ratio below the bound says enough
    reason = "; ".join(parts)
    return study.conclude(ratio, reason, *also, holds=holds, missing="time", parameters=where)
