"""Where attention goes: Proposition 2, its rate, Figures 4 and 7."""

from __future__ import annotations

from dataclasses import asdict, replace
from math import sqrt
from typing import Any

import numpy as np

from dynamics.experiments.measurement import LINEAR, TIME, Study, Undecided, listed, measures
from dynamics.experiments.shallow_vit import runs
from dynamics.experiments.shallow_vit.sparsification import mean_losses
from dynamics.experiments.verify import Finding
from dynamics.problem import FloatArray
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
def proposition_2(study: Study) -> Finding:
    """The least attention to relevant tokens, over queries and samples, along training."""
    for case in runs.at_both_margins(study):
        least = np.array([_least(case, record) for record in range(case.last + 1)])
        means = {name: float(case.run[name][case.last]) for name in ("relevant", "odds")}
        study.row(means, case=case.name, least=float(least[-1]), by=_by_kind(case.run, case.last))
        case.add(study, "least", least)
        case.add(study, "mean", case.run["relevant"])
    law, levels = case.parameters, {"1": 1.0}
    reason = (
        f"the least ends at {study.listed('least')}, the mean of all queries at "
        f"{study.listed('relevant')} ({', '.join(study.column('case'))})"
    )
    if (top := limit(law)) is not None:
        levels = {"ceiling of the mean": top, **levels}
        reason = (
            f"{reason}, which cannot pass {top:.3g}: with alpha_# > 0 no training moves the mean "
            "log-odds of relevant against confusion tokens"
            if law.n_confusion
            else f"without confusion tokens {reason}"
        )
    study.draw("step", TO_RELEVANT, levels, *LINEAR)
    return study.conclude(max(study.column("least")), reason)


def _least(case: runs.Case, record: int) -> float:
    """The least attention to relevant tokens, over the queries that there are and all samples."""
    vectors, weights = case.problem.instance.vectors, case.attention(record)
    mass = np.where((vectors.labels > 0)[:, None], weights[:, 0], weights[:, 1])
    return float(mass[vectors.counts > 0].min())


@measures(
    "exponent in time of 1 - attention of relevant queries, last quarter of training", "<=", -1.0
)
def rate(study: Study) -> Finding:
    """How fast 1 minus the attention of relevant queries falls, before training ends."""
    cases = _long(study)
    for case in cases:
        law, time = case.parameters, case.run.time[: case.last + 1]
        left = 1 - case.run["relevant_by_relevant"][: case.last + 1]
        late = (time >= 0.75 * time[-1]) & (time > 0)
        if late.sum() < runs.FEWEST:
            reason = f"{late.sum()} records in the last quarter, a line needs {runs.FEWEST}"
            raise Undecided(reason, parameters=asdict(law))
        if not (left[late] > 0).all():
            reason = "nothing is left: all attention is on relevant tokens"
            raise Undecided(reason, parameters=asdict(law))
        slope, last = _late_slope(time, left), float(left[-1])
        numbers = {"alpha_confusion": law.alpha_confusion, "exponent": slope, "left": last}
        study.row(numbers, steps=case.last, why=_why(case, slope, last))
        study.curve(rf"$\alpha_\# = {law.alpha_confusion:g}$", time[1:], left[1:])
    slope = study.rows[0]["exponent"]
    _check_stability(cases[0], slope)
    reason = "; ".join(
        f"alpha_# = {r['alpha_confusion']:g}: falls as time to the power {r['exponent']:.2g}, "
        f"{r['left']:.2g} is left after {r['steps']} steps{r['why']}" for r in study.rows
    )  # fmt: skip
    study.draw(TIME, "1 - attention of relevant queries")
    return study.conclude(slope, reason, holds=study.met(slope))


def _check_stability(case: runs.Case, slope: float) -> None:
    """Undecided where training magnifies rounding, so that one exponent shows nothing."""
    perturbed = [case.perturbed(seed) for seed in range(PERTURBATIONS)]
    others = [_late_slope(run.time, 1 - run["relevant_by_relevant"]) for run in perturbed]
    if not all(abs(other - slope) <= SAME_SLOPE * max(1.0, abs(slope)) for other in others):
        slopes = ", ".join(f"{other:.3g}" for other in others)
        raise Undecided(
            f"training here is unstable: the exponent comes out as {slope:.3g} after {case.last} "
            f"steps, and as {slopes} from starts changed by {runs.PERTURBATION:g} of themselves",
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


def _why(case: runs.Case, slope: float, left: float) -> str:
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


def _long(study: Study) -> list[runs.Case]:
    """The user's run; or a long one, and the same without confusion tokens."""
    if study.parameters is not None:
        return [runs.trained(study.system, study.parameters, study.seed)]
    law = study.system.Parameters()
    law = replace(law, margin=LONG * sqrt(law.m))
    laws = (law, replace(law, alpha_confusion=0.0))
    return [runs.trained(study.system, each, study.seed, FINE) for each in laws]


@measures("mean attention to label-relevant tokens at the end, the best margin", ">=", MEAN_CLOSE)
def figure_4(study: Study) -> Finding:
    """Mean attention to relevant tokens on noisy tokens, at both margins."""
    for law in runs.both_margins(study):
        problem = study.system.FullEmpirical(law, runs.SAMPLES, study.seed, test_samples=1)
        run = runs.descend_to_rest(problem, runs.ETA, STEPS, RECORD)
        relevant = run["relevant"]
        study.row(
            {"case": runs.margin_word(law), "start": float(relevant[0])},
            end=float(relevant[-1]), by=_by_kind(run, -1), steps=int(run.steps[-1]),
        )  # fmt: skip
        study.curve(runs.margin_word(law), run.steps, relevant)
    levels = {"close to 1": MEAN_CLOSE}
    reason = "; ".join(
        f"{r['case']}: from {r['start']:.3g} to {r['end']:.3g} in {r['steps']} steps (queries "
        f"relevant {r['by']['relevant']:.3g}, confusion {r['by']['confusion']:.3g}, others "
        f"{r['by']['other']:.3g})" for r in study.rows
    )  # fmt: skip
    if (top := limit(law)) is not None:
        levels |= {"ceiling": top}
        reason += f"; without noise at most {top:.3g}"
    study.draw("step", TO_RELEVANT, levels, *LINEAR)
    return study.conclude(max(study.column("end")), reason)


@measures("largest difference of the attention at the end between numbers of patterns", "<=", APART)
def figures_7_and_8(study: Study) -> Finding:
    """Attention at the end, and the order of the sparsifiers, at several numbers of patterns."""
    law = study.parameters or runs.proofs_margin(study.system.Parameters(d=20))
    for patterns in runs.PATTERNS:
        sizes = {"M": patterns, "d": max(law.d, *runs.PATTERNS)}
        case = runs.trained(study.system, replace(law, **sizes), study.seed)
        loss = mean_losses(study, study.parameters and case.parameters, **sizes)
        best = min(loss["none"], loss["random"])
        helps = {f"{rule}_helps": loss[rule] < best for rule in ("irrelevant", "noisiest")}
        relevant = case.run["relevant"][: case.last + 1]
        study.row({"M": patterns, "end": float(relevant[-1]), "loss": loss}, **helps)
        study.curve(f"$M = {patterns}$", np.arange(case.last + 1), relevant)
    ends = study.column("end")
    same = all(study.column("irrelevant_helps") + study.column("noisiest_helps"))
    reason = (
        f"attention ends at {listed(ends)} for M = {listed(runs.PATTERNS)}; test loss without and "
        "with tokens removed (random, irrelevant, noisiest first): "
        + "; ".join(listed(loss.values(), 2) for loss in study.column("loss"))
    )
    study.draw("step", TO_RELEVANT, None, *LINEAR)
    apart = max(ends) - min(ends)
    return study.conclude(apart, reason, holds=study.met(apart) and same)
