"""Where attention goes: Proposition 2, its rate, Figures 4 and 7."""

from __future__ import annotations

from dataclasses import asdict, replace
from math import sqrt
from typing import Any

import numpy as np

from dynamics.problem import FloatArray
from dynamics.results.trajectory import Trajectory
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.rounding import without_rounding
from dynamics.verdicts.shallow_vit import runs
from dynamics.verdicts.shallow_vit.hypothesis import all_trained, theorem_1
from dynamics.verdicts.shallow_vit.sparsification import mean_losses
from dynamics.verdicts.study import LINEAR, TIME, Measurement, Study, measures
from dynamics.verdicts.wording import listed
from theory.papers.shallow_vit.attention_limits import ceiling_of_samples

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
ONCE = ("step size", "seed")
APART = 0.05
"""By how much the attention at the end may differ between numbers of patterns."""
STEPS = 640
RECORD = 10
TO_RELEVANT = "attention to relevant tokens"
KINDS = ("relevant", "confusion", "other")


def limit(parameters: Any, samples: Any) -> float | None:
    """Ceiling of the mean attention to relevant tokens over all queries of samples, without noise.

    None for ``"iid"``: it is of samples that all have n_* and n_# such tokens.

    Parameters
    ----------
    parameters : Parameters
    samples : object
        With ``counts``, ``labels`` and ``weights``, as `sampling.Vectors`.
    """
    if parameters.data == "iid":
        return None
    queries = samples.counts * (samples.weights / samples.weights.sum() / parameters.L)[:, None]
    sides = (queries[sign * samples.labels > 0].sum(axis=0).tolist() for sign in (1, -1))
    return ceiling_of_samples(parameters.n_star, parameters.n_confusion, *sides)


def _by_kind(run: Trajectory, record: int) -> dict[str, float]:
    """Attention to relevant tokens of the queries of every kind."""
    return {kind: float(run[f"relevant_by_{kind}"][record]) for kind in KINDS}


@without_rounding
@measures(
    "least attention of a query to label-relevant tokens, at the end", ">=", CLOSE, theorem_1, ONCE,
    again=True,
)  # fmt: skip
def proposition_2(study: Study) -> Finding:
    """The least attention to relevant tokens, over queries and samples, along training."""
    for case in runs.at_both_margins(study):
        least = np.array([_least(case, record) for record in range(case.last + 1)])
        means = {name: float(case.run[name][case.last]) for name in ("relevant", "odds")}
        study.row(means, case=case.name, least=float(least[-1]), rises=bool(least[-1] > least[0]),
                  by=_by_kind(case.run, case.last))  # fmt: skip
        case.add(study, "least", least)
        case.add(study, "mean", case.run["relevant"])
    law, levels = case.parameters, {"1": 1.0}
    reason = (
        f"the least ends at {study.listed('least')}, the mean of all queries at "
        f"{study.listed('relevant')} ({', '.join(study.column('case'))})"
    )
    vectors = case.problem.vectors
    both = bool((vectors.labels > 0).any() and (vectors.labels < 0).any())
    if (top := limit(law, vectors)) is not None and both:
        levels = {"ceiling of the mean": top, **levels}
        least = law.n_star / (law.n_star + law.n_confusion)
        reason = (
            f"{reason}, which cannot pass {least:.3g} and {top:.3g} at any eta, seed or time: "
            "with alpha_# > 0 no training moves the mean log-odds of relevant against confusion "
            "tokens"
            if law.n_confusion
            else f"without confusion tokens {reason}"
        )
        if least < CLOSE:
            study.single = ()
    value, holds = max(study.column("least")), None
    if study.met(value) or not study.single or not any(study.column("rises")):
        holds = study.met(value)
    else:
        reason += "; it rises, and training ends before it is close to 1"
    study.draw("step", TO_RELEVANT, levels, *LINEAR)
    return study.conclude(value, reason, holds=holds, missing="time")


def _least(case: runs.Case, record: int) -> float:
    """The least attention to relevant tokens, over the queries that there are and all samples."""
    vectors, weights = case.problem.vectors, case.attention(record)
    mass = np.where((vectors.labels > 0)[:, None], weights[:, 0], weights[:, 1])
    return float(mass[vectors.counts > 0].min())


@without_rounding
@measures(
    "exponent in time of 1 - attention of relevant queries, last quarter of training", "<=", -1.0,
    theorem_1, (*ONCE, "time"), again=True,
)  # fmt: skip
def rate(study: Study) -> Finding:
    """How fast 1 minus the attention of relevant queries falls, before training ends.

    Nothing is decided with confusion tokens: the limit that the rate is of is not reached then.
    """
    for case in _long(study):
        law, time = case.parameters, case.run.time[: case.last + 1]
        left = 1 - case.run["relevant_by_relevant"][: case.last + 1]
        late = (time >= 0.75 * time[-1]) & (time > 0)
        if late.sum() < runs.FEWEST:
            reason = f"{late.sum()} records in the last quarter, a line needs {runs.FEWEST}"
            raise Undecided(reason, "time", parameters=asdict(law))
        if not (left[late] > 0).all():
            reason = "nothing is left: all attention is on relevant tokens"
            raise Undecided(reason, "precision", parameters=asdict(law))
        slope, last = _late_slope(time, left), float(left[-1])
        numbers = {"alpha_confusion": law.alpha_confusion, "exponent": slope, "left": last}
        steps = int(case.run.steps[case.last])
        study.row(numbers, steps=steps, why=_why(case, slope, last), confusion=law.n_confusion > 0)
        study.curve(rf"$\alpha_\# = {law.alpha_confusion:g}$", time[1:], left[1:])
    slope = study.rows[0]["exponent"]
    template = (
        "alpha_# = {alpha_confusion:g}: falls as time to the power {exponent:.2g}, {left:.2g} is "
        "left after {steps} steps, where training ends{why}"
    )
    reason = study.words(template, "; ")
    study.draw(TIME, "1 - attention of relevant queries")
    if study.rows[0]["confusion"]:
        reason = (
            "with confusion tokens the limit itself is not reached (odds identity), and a rate "
            f"towards it is not defined; {reason}"
        )
        return study.conclude(slope, reason, holds=None, missing="law")
    if study.met(slope) or not slope < 0:
        return study.conclude(slope, reason, holds=study.met(slope))
    reason = f"what is left falls, and training ends before t is large; {reason}"
    return study.conclude(slope, reason, holds=None, missing="time")


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
    vectors, weights = case.problem.vectors, case.attention(case.last)
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
        return [runs.run_of(study, study.parameters)]
    law = study.system.Parameters()
    law = replace(law, margin=LONG * sqrt(law.m))
    laws = (law, replace(law, alpha_confusion=0.0))
    return [runs.run_of(study, each, eta=FINE) for each in laws]


@without_rounding
@measures(
    "mean attention to label-relevant tokens at the end, the best margin", ">=", MEAN_CLOSE,
    all_trained, ONCE, again=True,
)  # fmt: skip
def figure_4(study: Study) -> Finding:
    """Mean attention to relevant tokens on noisy tokens, at both margins."""
    for law in runs.both_margins(study):
        problem = study.system.FullEmpirical(law, runs.SAMPLES, study.seed, test_samples=1)
        parts = [study.horizon(STEPS) // part for part in (4, 2, 1)]
        run = runs.descend_in_parts(problem, study.rate(runs.ETA), parts, RECORD)
        relevant = run["relevant"]
        study.row(
            {"case": runs.margin_word(law), "start": float(relevant[0])},
            end=float(relevant[-1]), by=_by_kind(run, -1),
            steps=runs.step_of_rest(problem, run) or int(run.steps[-1]),
        )  # fmt: skip
        study.curve(runs.margin_word(law), run.steps, relevant)
    levels = {"close to 1": MEAN_CLOSE}
    template = (
        "{case}: from {start:.3g} to {end:.3g} in {steps} steps (queries relevant "
        "{by[relevant]:.3g}, confusion {by[confusion]:.3g}, others {by[other]:.3g})"
    )
    reason = study.words(template, "; ")
    if (top := limit(law, problem.reader)) is not None:
        levels |= {"ceiling": top}
        reason += f"; {'without noise ' * (law.noise > 0)}at most {top:.3g}"
    study.draw("step", TO_RELEVANT, levels, *LINEAR)
    return study.conclude(max(study.column("end")), reason)


@without_rounding
@measures(
    "largest difference of the attention at the end between numbers of patterns", "<=", APART,
    all_trained, ONCE,
)  # fmt: skip
def figures_7_and_8(study: Study) -> Finding:
    """Attention at the end, and the order of the sparsifiers, at several numbers of patterns."""
    law = study.parameters or runs.proofs_margin(study.system.Parameters(d=20))
    for patterns in runs.PATTERNS:
        sizes = {"M": patterns, "d": max(law.d, *runs.PATTERNS)}
        case = runs.run_of(study, replace(law, **sizes))
        loss = mean_losses(study, study.parameters and case.parameters, **sizes)
        best = min(loss["none"], loss["random"])
        helps = {f"{rule}_helps": loss[rule] < best for rule in ("irrelevant", "noisiest")}
        relevant = case.run["relevant"][: case.last + 1]
        rise = float(relevant[-1] - relevant[0])
        study.row({"M": patterns, "end": float(relevant[-1]), "rise": rise, "loss": loss}, **helps)
        study.curve(f"$M = {patterns}$", np.arange(case.last + 1), relevant)
    ends = study.column("end")
    same = all(study.column("irrelevant_helps") + study.column("noisiest_helps"))
    reason = (
        f"attention rises by {study.listed('rise')} and ends at {listed(ends)} for M = "
        f"{listed(runs.PATTERNS)}; test loss without and with tokens removed (random, irrelevant, "
        "noisiest first): " + "; ".join(listed(loss.values(), 2) for loss in study.column("loss"))
    )
    study.draw("step", TO_RELEVANT, None, *LINEAR)
    apart, least = max(ends) - min(ends), min(study.column("rise"))
    if not same:
        return study.conclude(apart, reason, holds=False)
    rises = Measurement("least rise of the attention during training", least, ">", 0.0)
    return study.conclude(apart, reason, rises)
