r"""How many samples: Theorem 1, Proposition 1, Remarks 1 to 3, Figures 1a, 1b and 3, equation (9).

N50 is the number of samples at which half of the trials succeed (`trial_rows`). Training is on
patterns, without noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from math import ceil, inf, isfinite
from typing import Any

import numpy as np

from dynamics.phase_diagrams.threshold import Threshold
from dynamics.results.power_law import exponent
from dynamics.training.descent import descend
from dynamics.verdicts.cases import Case
from dynamics.verdicts.claim import Also, Decorator, Growth, Picture, Row
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.shallow_vit import runs
from dynamics.verdicts.shallow_vit.iterations import STARTS
from dynamics.verdicts.shallow_vit.runs import FEWEST, all_trained, gaps, theorem_1
from dynamics.verdicts.shallow_vit.trial_rows import (
    COUNTS,
    ETA,
    MORE,
    SUCCESS,
    TRIALS,
    Trials,
    trials_of,
)
from dynamics.verdicts.wording import listed
from theory.papers.shallow_vit.conditions import least_batch

LAW: dict[str, Any] = {"m": 300, "L": 100, "data": "fixed_disc"}  # N50 depends on m no more
FIGURE_1B = LAW | {"L": 50, "alpha_star": 0.3, "alpha_confusion": 0.2}
AT = {"alpha_star": 0.1, "alpha_confusion": 0.02}
"""Shares at which Remark 3 is measured: there N50 is far from the least number of samples."""
GAPS = (0.06, 0.1, 0.14, 0.18, 0.24, 0.3)
"""Half of alpha_* - alpha_# over alpha_* + alpha_#, in the family of Figure 1a."""
SHARES = (0.05, 0.1, 0.15, 0.2, 0.3)
"""alpha_* where alpha_# is in proportion."""
SIGMAS = (0.0, 0.2, 0.4, 0.6)
BATCHED, BATCH_STEPS, BATCH_TRIALS = 48, 600, 10
claim = partial(runs.claim, varies=("step size",), shown=(*runs.SHOWN, "frozen"))
ACROSS: dict[str, Any] = {
    "laws": (LAW | {"alpha_star": 0.5, "alpha_confusion": 0.1},), "again": "thorough",
    "words": "N50={told}",
    "picture": Picture(r"$1/\alpha_*$", "samples $N_{50}$"),
}  # fmt: skip


def grows(source: str, quantity: str, relation: str, power: float, **data: Any) -> Decorator:
    """Decorate N50 of a law, whose growth along the column ``x`` has an exponent."""
    growth = Growth("x", power, upper=relation == "<=", errors="error")
    return claim(source, quantity, relation, power, growth=growth, **ACROSS | data)


def trials(case: Case, law: Any = None, **given: Any) -> Trials:
    """The trials of the case, or of another law."""
    many = TRIALS * (MORE if case.thorough else 1)
    given = {"trials": many, "eta": case.rate(ETA)} | given
    make: Any = case.system.ReducedPopulation
    return trials_of(make, law or case.parameters, case.seed, **given)


def as_trained(case: Case, frozen: str = "none") -> Trials:
    """The trials of the law of the case with all weights trained, or with some frozen."""
    return trials(case, replace(case.parameters, frozen=frozen))


def _row_of(n50: Threshold, x: float, **more: Any) -> Row:
    """N50 of a law as a point over x; no number, and no error, where there is only a bound."""
    curves = {"$N_{50}$": ([x], [n50.value])} if isfinite(n50.value) else {}
    return {"value": n50.value, "error": n50.error, "told": str(n50), "low": n50.low,
            "high": n50.high, "x": x, "holds": True, "curves": curves, **more}  # fmt: skip


def _enough(law: Any, points: Iterable[Any], require: Callable[[Any], None]) -> list[Any]:
    """The laws at (alpha_*, alpha_#), without noise; undecided where few have a majority."""
    require(law)
    laws = runs.possible(replace(law, noise=0.0), points)
    if len(laws) < FEWEST:
        raise Undecided(f"fewer than {FEWEST} alpha_* have whole numbers of tokens and a majority")
    for each in laws:
        require(each)
    return laws


def theorem_laws(law: Any, frozen: str = "none") -> list[Any]:
    """Laws along alpha_* with alpha_# in the proportion of the law, without noise."""
    ratio = law.alpha_confusion / law.alpha_star
    points = ((a, round(a * ratio, 9)) for a in SHARES)
    laws = _enough(replace(law, frozen="none"), points, theorem_1)
    return [replace(each, frozen=frozen) for each in laws]


frozen_laws = partial(theorem_laws, frozen="attention")


def figure_laws(law: Any) -> list[Any]:
    """Laws along alpha_* with the share of non-discriminative tokens of the law, without noise."""
    total = law.alpha_star + law.alpha_confusion
    shares = [round(total * (0.5 + gap), 6) for gap in GAPS]
    return _enough(law, ((a, round(total - a, 6)) for a in shares), all_trained)


@claim(
    "Theorem 1, generalization", "least share of successful trials at the most samples of a row",
    ">=", 0.99, laws=[LAW | {"alpha_star": a, "alpha_confusion": a / 5} for a in SHARES],
    require=theorem_1, conclude=lambda rows, finding: of_all_trials(rows, finding),
    words="{value:.0%} of {trials} trials reach a test loss below 1e-3 with N={most}; N50={told}",
    picture=Picture("samples $N$", "share of successful trials", scales=("log", "linear")),
)  # fmt: skip
def generalization(case: Case) -> Row:
    """Whether enough samples make every trial succeed."""
    found = trials(case)
    shares, counts = (found.loss < SUCCESS).mean(axis=1), COUNTS[: len(found.loss)]
    return {"value": shares[-1], "trials": found.loss.shape[1], "most": counts[-1],
            "told": str(found.n50),
            "curves": {case.label or "share": (counts, shares)}}  # fmt: skip


def of_all_trials(rows: list[Row], finding: Finding) -> Finding:
    """Literal words about a probability: trials give its confidence limit."""
    from scipy.stats import binomtest

    known = [row for row in rows if "trials" in row]
    if not known:
        return finding
    least = min(known, key=lambda row: row["value"])
    share, many = least["value"], least["trials"]
    # 5 % on either side: each limit by itself holds with 95 %.
    interval = binomtest(round(share * many), many).proportion_ci(0.9, "exact")
    claimed, low = finding.bound, float(interval.low)
    holds = True if low >= claimed else False if interval.high < claimed else None
    quantity = "least probability of success, with a confidence of 95 %"
    reason = f"{share:.0%} of {many} trials: the probability is at least {low:.3g}"
    literal = Finding(holds, quantity, low, claimed, reason, relation=">=", missing=("trials",))
    return replace(finding, literal=literal)


@grows("Theorem 1, samples", "exponent of N50 in 1/alpha_*", "<=", 2.0, family=theorem_laws)
def samples(case: Case) -> Row:
    """N50 along alpha_*, all weights trained."""
    return _row_of(trials(case).n50, 1 / case.parameters.alpha_star)


@grows(
    "Proposition 1", "exponent of N50 in 1/alpha_*, attention frozen", "<=", 4.0,
    family=frozen_laws, words="N50={told}, median steps {slower:.2g} times those with attention",
)  # fmt: skip
def proposition_1(case: Case) -> Row:
    """N50 along alpha_* with frozen attention, and the steps that training it saves."""
    found, trained = trials(case), as_trained(case)
    x, slower = 1 / case.parameters.alpha_star, found.median / trained.median
    return _row_of(found.n50, x, slower=slower)


@grows(
    "Figure 3", "exponent of N50 in 1/alpha_*, W_K and W_Q not trained", "==", 4.0,
    family=frozen_laws, again=False, words="N50={told}, {more:.2g} times that with attention",
)  # fmt: skip
def figure_3(case: Case) -> Row:
    """N50 without trained attention along alpha_*, beside N50 with it."""
    found, trained = trials(case).n50, as_trained(case).n50
    return _row_of(found, 1 / case.parameters.alpha_star, more=found.value / trained.value)


def _of_the_bounds(rows: list[Row], finding: Finding) -> Finding:
    """The literal words compare the bounds (13) and (10), at sigma = tau = 0 and zeta = 1."""
    x = np.array([row["x"] for row in rows])
    power = exponent(x, x**4 / x**2)
    literal = Finding(
        bool(np.isclose(power, 2.0)), "exponent in 1/alpha_* of the bound (13) over (10)", power,
        2.0, "of the two bounds", relation="==",
    )  # fmt: skip
    return replace(finding, literal=literal)


@grows(
    "Remark 1", "exponent in 1/alpha_* of N50 without over N50 with trained attention", "==", 2.0,
    family=theorem_laws, conclude=_of_the_bounds,
    words="frozen attention needs {value:.2g} times as many samples",
)  # fmt: skip
def remark_1(case: Case) -> Row:
    """N50 without over N50 with trained attention, along alpha_*."""
    one, two = trials(case).n50, as_trained(case, "attention").n50
    row = _row_of(two, 1 / case.parameters.alpha_star)
    value, error = two.value / one.value, float(np.hypot(one.error, two.error))
    return row | {"value": value, "error": error, "curves": {"ratio": ([row["x"]], [value])}}


def _of_both_variables(rows: list[Row], finding: Finding) -> Finding:
    """Lines over both variables; the literal protocol has two distinct samples, and no growth."""
    finite = [row for row in rows if isfinite(row["value"])]
    n50 = [row["value"] for row in finite]
    r2 = [runs.line([row[x] ** 2 for row in finite], n50)[2] for x in ("x", "gap")]
    by_gap = Growth("gap", 2.0, errors="error").of(rows).fit
    reason = (
        f"{finding.reason}; {by_gap} in 1/(alpha_* - alpha_#); R^2 of a line {r2[0]:.2f} over "
        f"alpha_*^-2 and {r2[1]:.3f} over (alpha_* - alpha_#)^-2"
    )
    most = max((row["same"] for row in rows), default=np.nan)
    words = "the same ratios in all samples are two distinct samples: there is no growth to fit"
    quantity = "largest N50 over alpha_*, the same ratios in all samples"
    literal = Finding(None, quantity, most, COUNTS[0], words, relation=">")
    return replace(finding, reason=reason, literal=literal)


@grows(
    "Figure 1a", "exponent of N50 in 1/alpha_*, the other tokens a fixed share", "==", 2.0,
    family=figure_laws, conclude=_of_both_variables,
    laws=(LAW | {"alpha_star": 0.4, "alpha_confusion": 0.1},),
    words="N50={told}, at a quarter of the step size {quarter}",
)  # fmt: skip
def figure_1a(case: Case) -> Row:
    """N50 along alpha_*: of drawn ratios, of the same ratios, and at a quarter of the step size."""
    law, quarter = case.parameters, "not run"
    same = trials(case, replace(law, data="fixed"), counts=COUNTS[:4], trials=TRIALS).n50
    if law.alpha_star in (0.28, 0.34):
        quarter = str(trials(case, trials=10, eta=case.rate(ETA) / 4).n50)
    gap = 1 / float(gaps([law])[0])
    least = same.bound if np.isnan(same.value) else same.value
    return _row_of(trials(case).n50, 1 / law.alpha_star, gap=gap, same=least, quarter=quarter)


def over_sigma(law: Any) -> list[Any]:
    """The law at errors of the initial values, without noise."""
    return [replace(law, noise=0.0, sigma=sigma) for sigma in SIGMAS]


@grows(
    "Figure 1b", "exponent of N50 in 1/(1 - sigma)", "==", 2.0, family=over_sigma,
    require=all_trained, laws=(FIGURE_1B,), again=False,
    picture=Picture(r"$1/(1 - \sigma)$", "$N_{50}$"),
)  # fmt: skip
def figure_1b(case: Case) -> Row:
    """N50 over the error sigma of the initial values, with 1 for the Theta(1) of the statement."""
    return _row_of(trials(case).n50, 1 / (1 - case.parameters.sigma))


@claim(
    "Remark 3, samples", "growth of ln N50 with sigma or delta, the lesser, over its standard "
    "error", ">", runs.CLEARLY, require=theorem_1, **ACROSS
    | {"laws": (LAW | AT,), "words": "{told}",
       "picture": Picture(r"$\sigma$ or $\delta$", "samples $N_{50}$", scales=("linear", "log"))},
)  # fmt: skip
def remark_3_samples(case: Case) -> Row:
    """N50 over the error of the initial values, and of the initial keys and queries."""
    words, least, curves = [], inf, {}
    for name, values in STARTS.items():
        laws = runs.laws_along(case, name, values)
        found = [trials(case, law).n50 for law in laws]
        slope, error = _weighted_slope(values, found)
        told = f"N50={', '.join(map(str, found))} at {name} = {listed(values)}"
        words.append(f"{told}: slope of ln N50 {slope:.2g} +- {error:.2g}")
        least, curves[name] = min(least, slope / error), (values, [n50.value for n50 in found])
    return {"value": least, "holds": runs.significant(least), "missing": "size",
            "told": "; ".join(words), "curves": curves}  # fmt: skip


def _weighted_slope(x: Sequence[float], found: Sequence[Threshold]) -> tuple[float, float]:
    """Slope of ln N50 by weighted least squares, and its standard error."""
    known = [(at, n50.value, n50.error) for at, n50 in zip(x, found, strict=True)
             if isfinite(n50.error)]  # fmt: skip
    if len(known) < FEWEST:
        raise Undecided(f"N50 is a number in too few rows: {', '.join(map(str, found))}")
    at, n50, errors = np.transpose(known)
    fit, covariance = np.polyfit(at, np.log(n50), 1, w=1 / errors, cov="unscaled")
    return float(fit[0]), float(covariance[0, 0] ** 0.5)


@claim(
    "Remark 2, shares", "largest ratio of N50 at one alpha_* and at that before", "<", 1.0,
    **ACROSS | {"words": "N50={told}, steps {steps} at alpha_* = {at}",
                "picture": Picture(r"$\alpha_*$", "samples $N_{50}$, and steps")},
    require=theorem_1, also=(Also("slower", "<", 1.0, "largest ratio of the steps"),),
)  # fmt: skip
def remark_2_shares(case: Case) -> Row:
    """Samples and steps as alpha_* grows, alpha_# in proportion."""
    laws = theorem_laws(case.parameters)
    rows, x = [trials(case, law) for law in laws], [law.alpha_star for law in laws]
    n50, steps = np.array([(row.n50.value, row.median) for row in rows]).T
    return {
        "value": np.max(n50[1:] / n50[:-1]), "slower": np.max(steps[1:] / steps[:-1]),
        "told": ", ".join(str(row.n50) for row in rows), "steps": listed(steps), "at": listed(x),
        "curves": {"$N_{50}$": (x, n50), "steps": (x, steps)},
    }  # fmt: skip


@claim(
    "Equation (9)", "least share of successful trials with batches of (9)", ">=", 0.99,
    laws=[LAW | {"alpha_star": a, "alpha_confusion": a / 5} for a in (0.5, 0.3, 0.2)],
    require=theorem_1, varies=("step size", "time"), conclude=of_all_trials,
    words="B={batch} of N={samples}: {value:.0%} of {trials} trials reach a test loss below 1e-3",
    picture=Picture("batch $B$", "share of successful trials", scales=("log", "linear")),
)  # fmt: skip
def equation_9(case: Case) -> Row:
    """Training on mini-batches as large as (9) asks, with the constant 1."""
    law, many = case.parameters, BATCH_TRIALS * (MORE if case.thorough else 1)
    least = least_batch(law.alpha_star, law.sigma, law.delta)
    if not isfinite(least):
        raise Undecided("(9) has no batch: alpha_* is at most e^-delta sigma", "law")
    batch, rate, steps = ceil(least), case.rate(ETA), case.steps(BATCH_STEPS)
    count, losses = max(BATCHED, 2 * batch), []
    for seed in range(case.seed, case.seed + many):
        problem = case.system.ReducedPopulation(law, samples=count, seed=seed, batch=batch)
        run = descend(problem, rate, steps, record=[steps])
        losses.append(inf if run.outcome.failed else float(run["test_loss"][-1]))
    share = float(np.mean(np.array(losses) < SUCCESS))
    return {"value": share, "batch": batch, "samples": count, "trials": many,
            "curves": {"share": ([batch], [share])}}  # fmt: skip
