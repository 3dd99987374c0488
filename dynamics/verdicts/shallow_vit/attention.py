"""Claims on attention in the shallow ViT (Proposition 2, Figures 4, 7, 8), and on equation (1)."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np

from dynamics.results.trajectory import Trajectory
from dynamics.verdicts.cases import Case
from dynamics.verdicts.claim import Picture, Row
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.shallow_vit import runs
from dynamics.verdicts.shallow_vit.runs import LINEAR, MARGINS, ONCE, claim, theorem_1, to_rest
from dynamics.verdicts.shallow_vit.tokens import mean_losses
from theory.papers.shallow_vit.attention_limits import ceiling_of_samples

CLOSE, MEAN_CLOSE = 0.95, 0.9
"""Minimum attention that is close to 1: of each query (first), mean over queries (second)."""
LONG = 10.0
"""Margin, divided by sqrt(m), of the run that measures the rate; large margins prolong training."""
FINE = 0.02
"""Learning rate at the margin `LONG`; larger steps break the symmetry of the patterns."""
APART = 0.05
"""Maximum difference of final attention at which runs with 10, 15 and 20 patterns agree."""
STEPS, RECORD = 640, 10
PATTERNS = (10, 15, 20)
"""Numbers M of patterns in Figures 7 and 8."""
LONGER = 2.0
"""Ratio of steps above which two readings of equation (1) count as different."""
TO_RELEVANT = "attention to relevant tokens"
KINDS = ("relevant", "confusion", "other")
PER_POSITION = {"output_weights": "per_position"}
QUERIES = "queries relevant {relevant:.3g}, confusion {confusion:.3g}, others {other:.3g}"


def limit(law: Any, samples: Any) -> float | None:
    """Upper limit, without noise, of the attention to relevant tokens, averaged over all queries.

    The limit assumes n_* relevant and n_# confusion tokens in every sample, so it is None for
    ``"iid"`` data. `samples`: count vectors, as `sampling.Vectors`.
    """
    if law.data == "iid":
        return None
    queries = samples.counts * (samples.weights / samples.weights.sum() / law.L)[:, None]
    sides = (queries[sign * samples.labels > 0].sum(axis=0).tolist() for sign in (1, -1))
    return ceiling_of_samples(law.n_star, law.n_confusion, *sides)


def _by_kind(run: Trajectory, record: int = -1) -> dict[str, float]:
    return {kind: float(run[f"relevant_by_{kind}"][record]) for kind in KINDS}


def _excluded(rows: list[Row], finding: Finding) -> Finding:
    """Let a contradiction stand without repetition if the proved limit excludes the claim."""
    single = () if any(row.get("proved") for row in rows) else finding.single
    return replace(finding, single=single)


@claim(
    "Proposition 2", "least attention of a query to label-relevant tokens, at the end", ">=", CLOSE,
    laws=(*MARGINS, PER_POSITION), run=to_rest(), require=theorem_1, exists=True, varies=ONCE,
    near_limit=True, conclude=_excluded, words="the least ends at {value:.3g}, the mean of all "
    "queries at {mean:.3g}; without noise no training passes {most:.3g} and {ceiling:.3g}",
    picture=Picture("step", TO_RELEVANT, {"1": 1.0}, LINEAR),
)  # fmt: skip
def proposition_2(case: Case) -> dict[str, Any]:
    """Minimum, over queries and samples, of the attention to relevant tokens, along training."""
    law, vectors = case.parameters, case.problem.vectors
    positive, there = (vectors.labels > 0)[:, None], vectors.counts > 0
    every = (runs.attention_of(case, record) for record in range(len(case.run.time)))
    least = np.array([np.where(positive, P[:, 0], P[:, 1])[there].min() for P in every])
    top = limit(law, vectors) if positive.any() and not positive.all() else None
    most = 1.0 if top is None else law.n_star / (law.n_star + law.n_confusion)
    rises = {"open": "time"} if most >= CLOSE and least[-1] > least[0] else {}
    return rises | {"value": least[-1], "mean": case.run["relevant"][-1], "most": most,
                    "ceiling": 1.0 if top is None else top, "proved": most < CLOSE,
                    "curves": {f"least {case.label}": (np.arange(len(least)), least)}}  # fmt: skip


@claim(
    "Proposition 2, rate", "exponent in time of 1 - attention of relevant queries, last quarter of "
    "training", "<=", -1.0, laws=tuple({"margin": LONG * sqrt(1000), **more}
                                       for more in ({}, {"alpha_confusion": 0.0})),
    run=lambda case: to_rest(FINE if case.parameters.margin > LONG / 2 * sqrt(case.parameters.m)
                             else runs.ETA)(case),
    require=theorem_1, varies=(*ONCE, "time"), near_limit=True,
    words="falls as time to the power {value:.2g}, {left:.2g} is left after {steps} steps, where "
    "training ends, {on_confusion:.2g} on confusion tokens",
    picture=Picture("time", "1 - attention of relevant queries"),
)  # fmt: skip
def rate(case: Case) -> dict[str, Any]:
    """Late exponent in time of 1 minus the attention of relevant queries to relevant tokens.

    With confusion tokens the row is undecided, because 1 - attention then has a positive limit.
    """
    time, left = case.run.time, 1 - case.run["relevant_by_relevant"]
    late = (time >= 0.75 * time[-1]) & (time > 0)
    if late.sum() < runs.FEWEST:
        raise Undecided(f"only {late.sum()} records in the last quarter of training", "time")
    if not (left[late] > 0).all():
        raise Undecided("all attention is on relevant tokens, up to rounding", "precision")
    # Medians of the quarter's halves are used, as steps can be unstable before the loss is zero.
    halves = late & (time < 0.875 * time[-1]), time >= 0.875 * time[-1]
    (t0, y0), (t1, y1) = ((np.median(time[half]), np.median(left[half])) for half in halves)
    slope = float(np.log(y1 / y0) / np.log(t1 / t0))
    vectors, P = case.problem.vectors, runs.attention_of(case, -1)
    positive = vectors.labels > 0
    queries = np.where(positive, *vectors.counts[:, :2].T) * vectors.weights
    mass = np.where(positive, P[:, 1, 0], P[:, 0, 1])
    row = {"value": slope, "left": left[-1], "steps": int(case.run.steps[-1]),
           "on_confusion": mass @ queries / queries.sum(),
           "curves": {case.label or "left": (time[1:], left[1:])}}  # fmt: skip
    if case.parameters.n_confusion:
        return row | {"holds": None, "missing": "law"}
    return row | ({"open": "time"} if slope < 0 else {})


def noisy_run(case: Case) -> tuple[Any, Trajectory]:
    """Descent on noisy tokens, to the first of several step counts at which it has stopped."""
    problem = case.system.FullEmpirical(case.parameters, runs.SAMPLES, case.seed, test_samples=1)
    parts = [case.steps(STEPS) // part for part in (8, 4, 2, 1)[case.parameters.margin > 1 :]]
    return problem, runs.descend_in_parts(problem, case.rate(runs.ETA), parts, RECORD)


@runs.claim_on_tokens(
    "Figure 4", "mean attention to label-relevant tokens at the end, the best margin", ">=",
    MEAN_CLOSE, laws=MARGINS, run=noisy_run, require=runs.all_trained, exists=True, varies=ONCE,
    near_limit=True, words="from {start:.3g} to {value:.3g} in {steps} steps (" + QUERIES +
    "), without noise at most {ceiling:.3g}",
    picture=Picture("step", TO_RELEVANT, {"close to 1": MEAN_CLOSE}, LINEAR),
)  # fmt: skip
def figure_4(case: Case) -> dict[str, Any]:
    """Mean attention to relevant tokens at the end of training on noisy tokens."""
    relevant, top = case.run["relevant"], limit(case.parameters, case.problem.reader)
    return {
        "value": relevant[-1], "start": relevant[0], "ceiling": 1.0 if top is None else top,
        "steps": runs.step_of_rest(case.problem, case.run) or int(case.run.steps[-1]),
        **_by_kind(case.run), "curves": {case.label or "mean": (case.run.steps, relevant)},
    }  # fmt: skip


def of_patterns(law: Any) -> list[Any]:
    """Laws without noise, one for each number of patterns in Figures 7 and 8."""
    depth = max(law.d, *PATTERNS)
    return [replace(law, noise=0.0, M=M, d=depth) for M in PATTERNS]


def _same_trend(rows: list[Row], finding: Finding) -> Finding:
    """Measure the largest difference of final attention between runs with different M."""
    if finding.holds is None:
        return finding
    ends = [row["value"] for row in rows]
    apart = max(ends) - min(ends)
    return replace(finding, measured=apart, holds=bool(finding.holds and apart <= APART))


@claim(
    "Figures 7 and 8", "largest difference of the attention at the end between numbers of patterns",
    "<=", APART, laws=({"d": 20, **runs.ROOT},), family=of_patterns, run=to_rest(),
    require=runs.all_trained, varies=ONCE, near_limit=True, conclude=_same_trend,
    words="attention rises by {rise:.3g} to {value:.3g}; test loss {none:.2g}, with tokens removed "
    "at random {random:.2g}, irrelevant first {irrelevant:.2g}, noisiest first {noisiest:.2g}",
    picture=Picture("step", TO_RELEVANT, scales=LINEAR),
)  # fmt: skip
def figures_7_and_8(case: Case) -> dict[str, Any]:
    """Final attention, and order of the sparsifiers by test loss, at one number of patterns."""
    relevant, loss = case.run["relevant"], mean_losses(case)
    rise, worse = float(relevant[-1] - relevant[0]), max(loss["irrelevant"], loss["noisiest"])
    holds = rise > 0 and worse < min(loss["none"], loss["random"])
    curve = np.arange(len(relevant)), relevant
    return {"value": relevant[-1], "rise": rise, "holds": bool(holds), **loss,
            "curves": {case.label: curve}}  # fmt: skip


def in_both_readings(law: Any) -> list[Any]:
    """Two laws: an output weight for each neuron; an output weight for each neuron and position."""
    return [replace(law, noise=0.0, output_weights=each) for each in ("shared", "per_position")]


def _compared(rows: list[Row], finding: Finding) -> Finding:
    """Measure steps with output weights per neuron and position over steps with one per neuron."""
    if any(row["holds"] is None for row in rows):
        return finding
    ratio = rows[1]["value"] / rows[0]["value"]
    return replace(finding, measured=ratio, holds=bool(ratio > LONGER))


@claim(
    "Equation (1)", "steps to zero training loss with one output weight per neuron and position, "
    "over those with one per neuron", ">", LONGER, family=in_both_readings, run=to_rest(),
    require=theorem_1, varies=ONCE, conclude=_compared,
    words="zero training loss after {value} steps, attention to relevant tokens {mean:.3g} (" +
    QUERIES + ")", picture=Picture("step", TO_RELEVANT, scales=LINEAR),
)  # fmt: skip
def equation_1(case: Case) -> dict[str, Any]:
    """Steps to zero training loss, and final attention, for one kind of output weights."""
    step = runs.step_of_rest(case.problem, case.run)
    if step is None:
        raise Undecided("zero training loss is not reached", "time")
    relevant = case.run["relevant"]
    return {"value": step, "holds": True, "mean": relevant[-1], **_by_kind(case.run),
            "curves": {case.label: (case.run.steps, relevant)}}  # fmt: skip


@claim(
    "Proof sketch, output", "R^2 of a line through y F against the steps", ">=", 0.99,
    laws=(*MARGINS, PER_POSITION), run=to_rest(), require=theorem_1, varies=ONCE,
    words="R^2 {value:.3f}, exponent in the steps {power:.2g} in the last half",
    picture=Picture("step", "mean of $y F$ over the margin"),
)  # fmt: skip
def linear_output(case: Case) -> dict[str, Any]:
    """Fit of a line to the mean output y F against steps, until samples pass the margin."""
    steps = case.run.steps
    output = 1 - case.run["risk"]  # while all samples are active, the hinge is gamma - y F
    active = np.flatnonzero(case.run["active"] >= 1)
    steps, output = steps[active], output[active]
    late = steps >= steps[-1] / 2
    if late.sum() < runs.FEWEST or not (output[late] > 0).all():
        raise Undecided("too few steps before samples pass the margin", "time")
    power = np.polyfit(np.log(steps[late]), np.log(output[late]), 1)[0]
    return {"value": runs.line(steps, output)[2], "power": power,
            "curves": {case.label or "y F": (steps[1:], output[1:])}}  # fmt: skip
