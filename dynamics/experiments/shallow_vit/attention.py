"""Where attention goes: Proposition 2, its rate, Figures 4 and 7."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.experiments.criteria import listed
from dynamics.experiments.curves import curve
from dynamics.experiments.shallow_vit.runs import (
    ETA,
    PATTERNS,
    SAMPLES,
    TOUCH,
    Case,
    both,
    margin_word,
    plot,
    proofs_margin,
    stands,
    trained,
    undecided,
)
from dynamics.experiments.shallow_vit.sparsification import order
from dynamics.experiments.verify import Finding, Protocol
from dynamics.problem import FloatArray
from dynamics.results.trajectory import Trajectory
from dynamics.training.gradient_descent import descend
from theory.systems.shallow_vit.attention_limits import ceiling

if TYPE_CHECKING:
    from dynamics.registry import System

CLOSE = 0.95
"""What is close to 1, for every query."""
MEAN_CLOSE = 0.9
"""What is close to 1, for the mean of all queries (Figure 4)."""
LONG = 10.0
"""Margin, over the root of m, of the run that tells the rate: it trains for long."""
FINE = 0.02
"""Its learning rate: at larger ones steps break the symmetry of the patterns."""
MOSTLY = 0.5
"""Share of what is left from which confusion tokens are named for it."""
SAME_SLOPE = 0.02
"""Part of an exponent by which a touch of the start may change it."""
TOUCHES = 4
"""Starts that are touched: rounding may leave one of them where it was."""
FEWEST = 3
"""Records that a line needs."""
APART = 0.05
"""By how much the attention at the end may differ between numbers of patterns."""
STEPS = 600
RECORD = 10
TO_RELEVANT = "attention to relevant tokens"


def limit(parameters: Any) -> float | None:
    """Ceiling of the mean attention to relevant tokens, without noise.

    None for ``"iid"``: it is of laws whose samples all have n_* and n_# such tokens.
    """
    if parameters.data == "iid":
        return None
    return ceiling(parameters.n_star, parameters.n_confusion, parameters.L)


def proposition_2(system: System, protocol: Protocol) -> Finding:
    """The least attention to relevant tokens, over queries and samples, along training."""
    quantity = "least attention of a query to label-relevant tokens, at the end"
    cases, curves = both(system, protocol), []
    rows: list[dict[str, Any]] = []
    for case in cases:
        least = np.array([_least(case, record) for record in range(case.last + 1)])
        last = case.last
        row = {name: float(case.run[name][last]) for name in ("relevant", "odds")}
        kinds = {
            kind: float(case.run[f"relevant_by_{kind}"][last])
            for kind in ("relevant", "confusion", "other")
        }
        rows.append({"case": case.shown, "least": float(least[-1]), **row, "by": kinds})
        steps = np.arange(case.last + 1)
        curves += [
            curve(f"least, {case.shown}", steps, least),
            curve(f"mean, {case.shown}", steps, case.run["relevant"][: last + 1]),
        ]
    found, law = max(row["least"] for row in rows), cases[0].parameters
    reason = (
        f"the least ends at {listed([r['least'] for r in rows])}, the mean of all queries at "
        f"{listed([r['relevant'] for r in rows])} ({', '.join(r['case'] for r in rows)})"
    )
    lines = {"1": 1.0}
    if (top := limit(law)) is not None:
        lines = {"ceiling of the mean": top, **lines}
        reason = (
            f"{reason}, which cannot pass {top:.3g}: with alpha_# > 0 no training moves the mean "
            "log-odds of relevant against confusion tokens"
            if law.n_confusion
            else f"without confusion tokens {reason}"
        )
    drawn = plot("step", TO_RELEVANT, curves, lines)
    evidence = {"table": rows, "plot": drawn}
    return Finding(bool(found >= CLOSE), quantity, found, CLOSE, reason, evidence)


def _least(case: Case, record: int) -> float:
    """The least attention to relevant tokens, over the queries that there are and all samples."""
    found, seen = case.problem.instance.vectors, case.attention(record)
    mass = np.where((found.labels > 0)[:, None], seen[:, 0], seen[:, 1])
    return float(mass[found.counts > 0].min())


def rate(system: System, protocol: Protocol) -> Finding:
    """How fast 1 minus the attention of relevant queries falls, before training ends."""
    quantity = "exponent in time of 1 - attention of relevant queries, last quarter of training"
    curves: list[Any] = []
    rows: list[dict[str, Any]] = []
    cases = _long(system, protocol)
    for case in cases:
        left = 1 - case.run["relevant_by_relevant"][: case.last + 1]
        time = case.run.time[: case.last + 1]
        late = (time >= 0.75 * time[-1]) & (time > 0)
        if late.sum() < FEWEST or not (left[late] > 0).all():
            reason = (
                f"a line needs {FEWEST} records, and there are {late.sum()} in the last quarter"
                if late.sum() < FEWEST else "nothing is left: all attention is on relevant tokens"
            )  # fmt: skip
            return undecided(quantity, -1.0, reason, case.parameters)
        slope = late_slope(time, left)
        name = rf"$\alpha_\# = {case.parameters.alpha_confusion:g}$"
        rows.append({
            "alpha_confusion": case.parameters.alpha_confusion, "exponent": slope,
            "left": float(left[-1]), "steps": case.last, "why": _why(case, slope, left[-1]),
        })  # fmt: skip
        curves.append(curve(name, time[1:], left[1:]))
    slope = rows[0]["exponent"]
    told = _unstable(cases[0], slope)
    if told:
        return undecided(quantity, -1.0, told, cases[0].parameters)
    reason = "; ".join(
        f"alpha_# = {r['alpha_confusion']:g}: falls as time to the power {r['exponent']:.2g}, "
        f"{r['left']:.2g} is left after {r['steps']} steps{r['why']}" for r in rows
    )  # fmt: skip
    time_label = r"time $\tau = \eta \times$ steps"
    drawn = plot(time_label, "1 - attention of relevant queries", curves, None, ("log", "log"))
    evidence = {"table": rows, "plot": drawn}
    return Finding(bool(slope <= -1), quantity, slope, -1.0, reason, evidence)


def _unstable(case: Case, slope: float) -> str:
    """Why an exponent tells nothing where training magnifies rounding; empty where it does not."""
    others = [
        late_slope(run.time, 1 - run["relevant_by_relevant"])
        for run in (case.touched(seed) for seed in range(TOUCHES))
    ]
    if all(abs(other - slope) <= SAME_SLOPE * max(1.0, abs(slope)) for other in others):
        return ""
    shown = ", ".join(f"{other:.3g}" for other in others)
    return (
        f"training here is unstable: the exponent comes out as {slope:.3g} after {case.last} "
        f"steps, and as {shown} from starts changed by {TOUCH:g} of themselves"
    )


def late_slope(time: FloatArray, values: FloatArray) -> float:
    """Exponent in time between the medians of both halves of the last quarter.

    Medians, because steps can be unstable for a moment just before the loss is zero. NaN where one
    of the halves has no record, or nothing is left in it.
    """
    halves = [time >= share * time[-1] for share in (0.75, 0.875)]
    parts = halves[0] & ~halves[1], halves[1]
    if not all(k.any() for k in parts):
        return float("nan")
    times, middles = zip(*[(np.median(time[k]), np.median(values[k])) for k in parts], strict=True)
    if min(middles) <= 0:
        return float("nan")
    return float(np.log(middles[1] / middles[0]) / np.log(times[1] / times[0]))


def _why(case: Case, slope: float, left: float) -> str:
    """What holds the attention of relevant queries back, where something is known to."""
    if slope <= -1:
        return ""
    if case.parameters.frozen == "attention":
        return ", attention is frozen"
    kept = _confusion_left(case)
    if kept >= MOSTLY * left:
        return f", {kept:.2g} of it on confusion tokens"
    return ""


def _confusion_left(case: Case) -> float:
    """Mean attention of relevant queries to confusion tokens at the end."""
    found, seen = case.problem.instance.vectors, case.attention(case.last)
    positive = found.labels > 0
    mass = np.where(positive, seen[:, 1, 0], seen[:, 0, 1])
    queries = np.where(positive, found.counts[:, 0], found.counts[:, 1]) * found.weights
    return float(mass @ queries / queries.sum())


def _long(system: System, protocol: Protocol) -> list[Case]:
    """The user's run; or a long one, and the same without confusion tokens."""
    if protocol.parameters is not None:
        return [trained(system, protocol.parameters, protocol.seed)]
    law = system.Parameters()
    law = replace(law, margin=LONG * sqrt(law.m))
    laws = (law, replace(law, alpha_confusion=0.0))
    return [trained(system, each, protocol.seed, FINE) for each in laws]


def concentration(system: System, parameters: Any, seed: int, samples: int = SAMPLES) -> Trajectory:
    """Training on noisy tokens, as in Figures 4 and 7."""
    problem = system.FullEmpirical(parameters, samples, seed, test_samples=1)
    stop = stands(problem, descend(problem, ETA, STEPS, record=[STEPS]))
    end = STEPS if stop is None or stop.step is None else max(1, stop.step)
    return descend(problem, ETA, end, record=RECORD)


def figure_4(system: System, protocol: Protocol) -> Finding:
    """Mean attention to relevant tokens on noisy tokens, at both margins."""
    quantity = "mean attention to label-relevant tokens at the end, the best margin"
    law = protocol.parameters or system.Parameters()
    laws = [law] if protocol.parameters is not None else [law, proofs_margin(law)]
    curves: list[Any] = []
    rows: list[dict[str, Any]] = []
    for each in laws:
        run = concentration(system, each, protocol.seed)
        ends = {
            kind: float(run[f"relevant_by_{kind}"][-1])
            for kind in ("relevant", "confusion", "other")
        }
        rows.append({
            "case": margin_word(each), "start": float(run["relevant"][0]),
            "end": float(run["relevant"][-1]), "by": ends, "steps": int(run.steps[-1]),
        })  # fmt: skip
        curves.append(curve(margin_word(each), run.steps, run["relevant"]))
    best = max(row["end"] for row in rows)
    lines = {"close to 1": MEAN_CLOSE}
    reason = "; ".join(
        f"{r['case']}: from {r['start']:.3g} to {r['end']:.3g} in {r['steps']} steps (queries "
        f"relevant {r['by']['relevant']:.3g}, confusion {r['by']['confusion']:.3g}, others "
        f"{r['by']['other']:.3g})" for r in rows
    )  # fmt: skip
    if (top := limit(law)) is not None:
        lines |= {"ceiling": top}
        reason += f"; without noise at most {top:.3g}"
    drawn = plot("step", TO_RELEVANT, curves, lines)
    evidence = {"table": rows, "plot": drawn}
    return Finding(bool(best >= MEAN_CLOSE), quantity, best, MEAN_CLOSE, reason, evidence)


def figures_7_and_8(system: System, protocol: Protocol) -> Finding:
    """Attention at the end, and the order of the sparsifiers, at several numbers of patterns."""
    quantity = "largest difference of the attention at the end between numbers of patterns"
    given = protocol.parameters
    law = given or proofs_margin(system.Parameters(d=20))
    depth = max(law.d, *PATTERNS)
    curves: list[Any] = []
    rows: list[dict[str, Any]] = []
    for patterns in PATTERNS:
        each = replace(law, M=patterns, d=depth)
        case = trained(system, each, protocol.seed)
        found = order(system, protocol, given and each, M=patterns, d=depth)
        rows.append({
            "M": patterns, "end": float(case.run["relevant"][case.last]), "loss": found,
            "irrelevant_helps": found["irrelevant"] < min(found["none"], found["random"]),
            "noisiest_helps": found["noisiest"] < min(found["none"], found["random"]),
        })  # fmt: skip
        steps = np.arange(case.last + 1)
        curves.append(curve(f"$M = {patterns}$", steps, case.run["relevant"][: case.last + 1]))
    ends = [row["end"] for row in rows]
    apart = max(ends) - min(ends)
    same = all(row["irrelevant_helps"] and row["noisiest_helps"] for row in rows)
    reason = (
        f"attention ends at {listed(ends)} for M = {listed(PATTERNS)}; test loss without and with "
        "tokens removed (random, irrelevant, noisiest first): "
        + "; ".join(listed(list(row["loss"].values()), 2) for row in rows)
    )
    evidence = {"table": rows, "plot": plot("step", TO_RELEVANT, curves)}
    return Finding(bool(apart <= APART and same), quantity, apart, APART, reason, evidence)
