"""Where attention goes: Proposition 2, its rate, Figures 4 and 7."""

from __future__ import annotations

from dataclasses import asdict, replace
from math import sqrt
from typing import Any

import numpy as np

from dynamics.experiments.measurement import (
    TIME,
    Chart,
    Series,
    Undecided,
    conclude,
    listed,
    measures,
)
from dynamics.experiments.shallow_vit.runs import (
    ETA,
    FEWEST,
    PATTERNS,
    PERTURBATION,
    SAMPLES,
    Case,
    at_both_margins,
    column,
    descend_to_rest,
    margin_word,
    over_steps,
    proofs_margin,
    trained,
)
from dynamics.experiments.shallow_vit.sparsification import mean_losses
from dynamics.experiments.verify import Finding, Protocol
from dynamics.problem import FloatArray
from dynamics.registry import System
from dynamics.results.trajectory import Trajectory
from theory.systems.shallow_vit.attention_limits import ceiling

CLOSE = 0.95
"""What is close to 1, for every query."""
MEAN_CLOSE = 0.9
"""What is close to 1, for the mean of all queries (Figure 4)."""
LONG = 10.0
"""Margin, over the root of m, of the run that shows the rate: it trains for long."""
FINE = 0.02
"""Its learning rate: at larger ones steps break the symmetry of the patterns."""
MOSTLY = 0.5
"""Share of what is left from which confusion tokens are named for it."""
SAME_SLOPE = 0.02
"""Part of an exponent by which a perturbation of the start may change it."""
PERTURBATIONS = 4
"""Perturbed starts: rounding may leave one of them where it was."""
APART = 0.05
"""By how much the attention at the end may differ between numbers of patterns."""
STEPS = 600
RECORD = 10
TO_RELEVANT = "attention to relevant tokens"
KINDS = ("relevant", "confusion", "other")


def limit(parameters: Any) -> float | None:
    """Ceiling of the mean attention to relevant tokens, without noise.

    None for ``"iid"``: it is of laws whose samples all have n_* and n_# such tokens.
    """
    if parameters.data == "iid":
        return None
    return ceiling(parameters.n_star, parameters.n_confusion, parameters.L)


def _by_kind(run: Trajectory, record: int) -> dict[str, float]:
    """Attention to relevant tokens of the queries of every kind."""
    return {kind: float(run[f"relevant_by_{kind}"][record]) for kind in KINDS}


@measures("least attention of a query to label-relevant tokens, at the end", ">=", CLOSE)
def proposition_2(system: System, protocol: Protocol, measured: Any) -> Finding:
    """The least attention to relevant tokens, over queries and samples, along training.

    Parameters
    ----------
    system : System
    protocol : Protocol
    measured : callable
        As of `dynamics.experiments.measurement.measures`.
    """
    cases, rows, series = at_both_margins(system, protocol), [], []
    for case in cases:
        least = np.array([_least(case, record) for record in range(case.last + 1)])
        means = {name: float(case.run[name][case.last]) for name in ("relevant", "odds")}
        kinds = _by_kind(case.run, case.last)
        rows.append({"case": case.name, "least": float(least[-1]), **means, "by": kinds})
        series += [case.series("least", least), case.series("mean", case.run["relevant"])]
    law, levels = cases[0].parameters, {"1": 1.0}
    reason = (
        f"the least ends at {listed(column(rows, 'least'))}, the mean of all queries at "
        f"{listed(column(rows, 'relevant'))} ({', '.join(column(rows, 'case'))})"
    )
    if (top := limit(law)) is not None:
        levels = {"ceiling of the mean": top, **levels}
        reason = (
            f"{reason}, which cannot pass {top:.3g}: with alpha_# > 0 no training moves the mean "
            "log-odds of relevant against confusion tokens"
            if law.n_confusion
            else f"without confusion tokens {reason}"
        )
    chart = over_steps(TO_RELEVANT, series, levels)
    return conclude(measured(max(column(rows, "least")), chart), reason, table=rows)


def _least(case: Case, record: int) -> float:
    """The least attention to relevant tokens, over the queries that there are and all samples."""
    vectors, weights = case.problem.instance.vectors, case.attention(record)
    mass = np.where((vectors.labels > 0)[:, None], weights[:, 0], weights[:, 1])
    return float(mass[vectors.counts > 0].min())


@measures(
    "exponent in time of 1 - attention of relevant queries, last quarter of training", "<=", -1.0
)
def rate(system: System, protocol: Protocol, measured: Any) -> Finding:
    """How fast 1 minus the attention of relevant queries falls, before training ends.

    Parameters
    ----------
    system : System
    protocol : Protocol
    measured : callable
        As of `dynamics.experiments.measurement.measures`.
    """
    rows, series, cases = [], [], _long(system, protocol)
    for case in cases:
        law, time = case.parameters, case.run.time[: case.last + 1]
        left = 1 - case.run["relevant_by_relevant"][: case.last + 1]
        late = (time >= 0.75 * time[-1]) & (time > 0)
        if late.sum() < FEWEST:
            reason = (
                f"a line needs {FEWEST} records, and there are {late.sum()} in the last quarter"
            )
            raise Undecided(reason, parameters=asdict(law))
        if not (left[late] > 0).all():
            reason = "nothing is left: all attention is on relevant tokens"
            raise Undecided(reason, parameters=asdict(law))
        slope = _late_slope(time, left)
        rows.append({
            "alpha_confusion": law.alpha_confusion, "exponent": slope, "left": float(left[-1]),
            "steps": case.last, "why": _why(case, slope, left[-1]),
        })  # fmt: skip
        series.append(Series(rf"$\alpha_\# = {law.alpha_confusion:g}$", time[1:], left[1:]))
    slope = rows[0]["exponent"]
    _check_stability(cases[0], slope)
    reason = "; ".join(
        f"alpha_# = {r['alpha_confusion']:g}: falls as time to the power {r['exponent']:.2g}, "
        f"{r['left']:.2g} is left after {r['steps']} steps{r['why']}" for r in rows
    )  # fmt: skip
    measurement = measured(slope, Chart(TIME, "1 - attention of relevant queries", series))
    return conclude(measurement, reason, measurement.met, table=rows)


def _check_stability(case: Case, slope: float) -> None:
    """Undecided where training magnifies rounding, so that one exponent shows nothing."""
    runs = [case.perturbed(seed) for seed in range(PERTURBATIONS)]
    others = [_late_slope(run.time, 1 - run["relevant_by_relevant"]) for run in runs]
    if not all(abs(other - slope) <= SAME_SLOPE * max(1.0, abs(slope)) for other in others):
        slopes = ", ".join(f"{other:.3g}" for other in others)
        raise Undecided(
            f"training here is unstable: the exponent comes out as {slope:.3g} after {case.last} "
            f"steps, and as {slopes} from starts changed by {PERTURBATION:g} of themselves",
            parameters=asdict(case.parameters),
        )


def _late_slope(time: FloatArray, values: FloatArray) -> float:
    """Exponent in time between the medians of both halves of the last quarter.

    Medians, because steps can be unstable for a moment just before the loss is zero. NaN where one
    of the halves has no record, or nothing is left in it.
    """
    last = time >= 0.875 * time[-1]
    halves = (time >= 0.75 * time[-1]) & ~last, last
    if not all(half.any() for half in halves):
        return float("nan")
    first, second = ((np.median(time[half]), np.median(values[half])) for half in halves)
    if min(first[1], second[1]) <= 0:
        return float("nan")
    return float(np.log(second[1] / first[1]) / np.log(second[0] / first[0]))


def _why(case: Case, slope: float, left: float) -> str:
    """What holds the attention of relevant queries back, in words, where it is slow."""
    if slope <= -1:
        return ""
    if case.parameters.frozen == "attention":
        return ", attention is frozen"
    vectors, weights = case.problem.instance.vectors, case.attention(case.last)
    positive = vectors.labels > 0
    mass = np.where(positive, weights[:, 1, 0], weights[:, 0, 1])
    queries = np.where(positive, vectors.counts[:, 0], vectors.counts[:, 1]) * vectors.weights
    on_confusion = float(mass @ queries / queries.sum())
    return (
        f", {on_confusion:.2g} of it on confusion tokens" if on_confusion >= MOSTLY * left else ""
    )


def _long(system: System, protocol: Protocol) -> list[Case]:
    """The user's run; or a long one, and the same without confusion tokens."""
    if protocol.parameters is not None:
        return [trained(system, protocol.parameters, protocol.seed)]
    law = system.Parameters()
    law = replace(law, margin=LONG * sqrt(law.m))
    laws = (law, replace(law, alpha_confusion=0.0))
    return [trained(system, each, protocol.seed, FINE) for each in laws]


@measures("mean attention to label-relevant tokens at the end, the best margin", ">=", MEAN_CLOSE)
def figure_4(system: System, protocol: Protocol, measured: Any) -> Finding:
    """Mean attention to relevant tokens on noisy tokens, at both margins.

    Parameters
    ----------
    system : System
    protocol : Protocol
    measured : callable
        As of `dynamics.experiments.measurement.measures`.
    """
    law, series = protocol.parameters or system.Parameters(), []
    rows: list[dict[str, Any]] = []
    for each in [law] if protocol.parameters is not None else [law, proofs_margin(law)]:
        problem = system.FullEmpirical(each, SAMPLES, protocol.seed, test_samples=1)
        run = descend_to_rest(problem, ETA, STEPS, RECORD)
        rows.append({
            "case": margin_word(each), "start": float(run["relevant"][0]),
            "end": float(run["relevant"][-1]), "by": _by_kind(run, -1), "steps": int(run.steps[-1]),
        })  # fmt: skip
        series.append(Series(margin_word(each), run.steps, run["relevant"]))
    levels = {"close to 1": MEAN_CLOSE}
    reason = "; ".join(
        f"{r['case']}: from {r['start']:.3g} to {r['end']:.3g} in {r['steps']} steps (queries "
        f"relevant {r['by']['relevant']:.3g}, confusion {r['by']['confusion']:.3g}, others "
        f"{r['by']['other']:.3g})" for r in rows
    )  # fmt: skip
    if (top := limit(law)) is not None:
        levels |= {"ceiling": top}
        reason += f"; without noise at most {top:.3g}"
    chart = over_steps(TO_RELEVANT, series, levels)
    return conclude(measured(max(column(rows, "end")), chart), reason, table=rows)


@measures("largest difference of the attention at the end between numbers of patterns", "<=", APART)
def figures_7_and_8(system: System, protocol: Protocol, measured: Any) -> Finding:
    """Attention at the end, and the order of the sparsifiers, at several numbers of patterns.

    Parameters
    ----------
    system : System
    protocol : Protocol
    measured : callable
        As of `dynamics.experiments.measurement.measures`.
    """
    law = protocol.parameters or proofs_margin(system.Parameters(d=20))
    rows: list[dict[str, Any]] = []
    series: list[Series] = []
    for patterns in PATTERNS:
        sizes = {"M": patterns, "d": max(law.d, *PATTERNS)}
        case = trained(system, replace(law, **sizes), protocol.seed)
        user_law = protocol.parameters and case.parameters
        loss = mean_losses(system, protocol, user_law, **sizes)
        start = min(loss["none"], loss["random"])
        rows.append({
            "M": patterns, "end": float(case.run["relevant"][case.last]), "loss": loss,
            "irrelevant_helps": loss["irrelevant"] < start,
            "noisiest_helps": loss["noisiest"] < start,
        })  # fmt: skip
        steps = np.arange(case.last + 1)
        relevant = case.run["relevant"][: case.last + 1]
        series.append(Series(f"$M = {patterns}$", steps, relevant))
    ends = column(rows, "end")
    same = all(row["irrelevant_helps"] and row["noisiest_helps"] for row in rows)
    reason = (
        f"attention ends at {listed(ends)} for M = {listed(PATTERNS)}; test loss without and with "
        "tokens removed (random, irrelevant, noisiest first): "
        + "; ".join(listed(list(row["loss"].values()), 2) for row in rows)
    )
    measurement = measured(max(ends) - min(ends), over_steps(TO_RELEVANT, series))
    return conclude(measurement, reason, measurement.met and same, table=rows)
