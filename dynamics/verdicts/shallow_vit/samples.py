"""Sample complexity: Theorem 1, Proposition 1, Remarks 1 to 3, Figures 1a, 1b and 3, equation (9).

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

LAW: dict[str, Any] = {"m": 300, "L": 100, "data": "fixed_disc"}  # N50 is the same at larger m
FIGURE_1B = LAW | {"L": 50, "alpha_star": 0.3, "alpha_confusion": 0.2}
AT = {"alpha_star": 0.1, "alpha_confusion": 0.02}
"""Shares of tokens for Remark 3; with them N50 is far above the minimum of N."""
GAPS = (0.06, 0.1, 0.14, 0.18, 0.24, 0.3)
"""Values of (alpha_* - alpha_#) / (2 (alpha_* + alpha_#)), one for each law of Figure 1a."""
SHARES = (0.05, 0.1, 0.15, 0.2, 0.3)
"""Values of alpha_* for laws with alpha_# in proportion to alpha_*."""
SIGMAS = (0.0, 0.2, 0.4, 0.6)
BATCHED, BATCH_STEPS, BATCH_TRIALS = 48, 600, 10
claim = partial(runs.claim, varies=("step size",), shown=(*runs.SHOWN, "frozen"))
ACROSS: dict[str, Any] = {
    "laws": (LAW | {"alpha_star": 0.5, "alpha_confusion": 0.1},), "again": "thorough",
    "words": "N50={told}",
    "picture": Picture(r"$1/\alpha_*$", "samples $N_{50}$"),
}  # fmt: skip


def grows(source: str, quantity: str, relation: str, power: float, **data: Any) -> Decorator:
    """Decorate a claim on the exponent of N50 in the column ``x``."""
    growth = Growth("x", power, upper=relation == "<=", errors="error")
    return claim(source, quantity, relation, power, growth=growth, **ACROSS | data)


def trials(case: Case, law: Any = None, **given: Any) -> Trials:
    """Trials at growing N of the case's law, or of `law`."""
    many = TRIALS * (MORE if case.thorough else 1)
    given = {"trials": many, "eta": case.rate(ETA)} | given
    make: Any = case.system.ReducedPopulation
    return trials_of(make, law or case.parameters, case.seed, **given)


def as_trained(case: Case, frozen: str = "none") -> Trials:
    """Trials of the case's law with some weights frozen, by default none."""
    return trials(case, replace(case.parameters, frozen=frozen))


def _row_of(n50: Threshold, x: float, **more: Any) -> Row:
    """Row with N50 of a law at x; value and error are NaN if only a bound is known."""
    curves = {"$N_{50}$": ([x], [n50.value])} if isfinite(n50.value) else {}
    return {"value": n50.value, "error": n50.error, "told": str(n50), "low": n50.low,
            "high": n50.high, "x": x, "holds": True, "curves": curves, **more}  # fmt: skip


def _enough(law: Any, points: Iterable[Any], require: Callable[[Any], None]) -> list[Any]:
    """Noise-free laws at pairs (alpha_*, alpha_#); undecided if fewer than `FEWEST` exist."""
    require(law)
    laws = runs.possible(replace(law, noise=0.0), points)
    if len(laws) < FEWEST:
        raise Undecided(f"fewer than {FEWEST} alpha_* give whole numbers of tokens and a majority")
    for each in laws:
        require(each)
    return laws


def theorem_laws(law: Any, frozen: str = "none") -> list[Any]:
    """Noise-free laws at several alpha_*, all with the given law's alpha_# / alpha_*."""
    ratio = law.alpha_confusion / law.alpha_star
    points = ((a, round(a * ratio, 9)) for a in SHARES)
    laws = _enough(replace(law, frozen="none"), points, theorem_1)
    return [replace(each, frozen=frozen) for each in laws]


frozen_laws = partial(theorem_laws, frozen="attention")


def figure_laws(law: Any) -> list[Any]:
    """Noise-free laws at several alpha_*, all with the given law's alpha_* + alpha_#."""
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
    """Share of successful trials at the largest N that was run."""
    found = trials(case)
    shares, counts = (found.loss < SUCCESS).mean(axis=1), COUNTS[: len(found.loss)]
    return {"value": shares[-1], "trials": found.loss.shape[1], "most": counts[-1],
            "told": str(found.n50),
            "curves": {case.label or "share": (counts, shares)}}  # fmt: skip


def of_all_trials(rows: list[Row], finding: Finding) -> Finding:
    """Add a finding on the claim as worded: confidence limits of the probability of success."""
    from scipy.stats import binomtest

    known = [row for row in rows if "trials" in row]
    if not known:
        return finding
    least = min(known, key=lambda row: row["value"])
    share, many = least["value"], least["trials"]
    # The interval leaves 5 % on each side, so each of its limits has a confidence of 95 %.
    interval = binomtest(round(share * many), many).proportion_ci(0.9, "exact")
    claimed, low = finding.bound, float(interval.low)
    holds = True if low >= claimed else False if interval.high < claimed else None
    quantity = "least probability of success, with a confidence of 95 %"
    reason = f"{share:.0%} of {many} trials: the probability is at least {low:.3g}"
    literal = Finding(holds, quantity, low, claimed, reason, relation=">=", missing=("trials",))
    return replace(finding, literal=literal)


@grows("Theorem 1, samples", "exponent of N50 in 1/alpha_*", "<=", 2.0, family=theorem_laws)
def samples(case: Case) -> Row:
    """N50 of a law with all weights trained; the claim is on its exponent in 1/alpha_*."""
    return _row_of(trials(case).n50, 1 / case.parameters.alpha_star)


@grows(
    "Proposition 1", "exponent of N50 in 1/alpha_*, attention frozen", "<=", 4.0,
    family=frozen_laws, words="N50={told}, median steps {slower:.2g} times those with attention",
)  # fmt: skip
def proposition_1(case: Case) -> Row:
    """N50 with frozen attention, and ratio of the steps with frozen and with trained attention."""
    found, trained = trials(case), as_trained(case)
    x, slower = 1 / case.parameters.alpha_star, found.median / trained.median
    return _row_of(found.n50, x, slower=slower)


@grows(
    "Figure 3", "exponent of N50 in 1/alpha_*, W_K and W_Q not trained", "==", 4.0,
    family=frozen_laws, again=False, words="N50={told}, {more:.2g} times that with attention",
)  # fmt: skip
def figure_3(case: Case) -> Row:
    """N50 (samples at which half of the trials succeed): frozen against trained attention."""
    found, trained = trials(case).n50, as_trained(case).n50
    return _row_of(found, 1 / case.parameters.alpha_star, more=found.value / trained.value)


def _of_the_bounds(rows: list[Row], finding: Finding) -> Finding:
    """Add a finding on the claim as worded: ratio of bounds (13) and (10) at sigma = tau = 0."""
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
    """Ratio of N50 with frozen attention to N50 with trained attention, and its error."""
    one, two = trials(case).n50, as_trained(case, "attention").n50
    row = _row_of(two, 1 / case.parameters.alpha_star)
    value, error = two.value / one.value, float(np.hypot(one.error, two.error))
    return row | {"value": value, "error": error, "curves": {"ratio": ([row["x"]], [value])}}


def _of_both_variables(rows: list[Row], finding: Finding) -> Finding:
    """Add fits of N50 in alpha_* and alpha_* - alpha_#, and a finding on the claim as worded."""
    finite = [row for row in rows if isfinite(row["value"])]
    n50 = [row["value"] for row in finite]
    r2 = [runs.line([row[x] ** 2 for row in finite], n50)[2] for x in ("x", "gap")]
    by_gap = Growth("gap", 2.0, errors="error").of(rows).fit
    reason = (
        f"{finding.reason}; {by_gap} in 1/(alpha_* - alpha_#); R^2 of a line {r2[0]:.2f} over "
        f"alpha_*^-2 and {r2[1]:.3f} over (alpha_* - alpha_#)^-2"
    )
    most = max((row["same"] for row in rows), default=np.nan)
    words = "equal ratios in all samples give two distinct samples: no growth to fit"
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
    """N50 with drawn token ratios, with equal ones, and with a quarter of the step size."""
    law, quarter = case.parameters, "not run"
    same = trials(case, replace(law, data="fixed"), counts=COUNTS[:4], trials=TRIALS).n50
    if law.alpha_star in (0.28, 0.34):
        quarter = str(trials(case, trials=10, eta=case.rate(ETA) / 4).n50)
    gap = 1 / float(gaps([law])[0])
    least = same.bound if np.isnan(same.value) else same.value
    return _row_of(trials(case).n50, 1 / law.alpha_star, gap=gap, same=least, quarter=quarter)


def over_sigma(law: Any) -> list[Any]:
    """Noise-free laws at several errors sigma of the initial values."""
    return [replace(law, noise=0.0, sigma=sigma) for sigma in SIGMAS]


@grows(
    "Figure 1b", "exponent of N50 in 1/(1 - sigma)", "==", 2.0, family=over_sigma,
    require=all_trained, laws=(FIGURE_1B,), again=False,
    picture=Picture(r"$1/(1 - \sigma)$", "$N_{50}$"),
)  # fmt: skip
def figure_1b(case: Case) -> Row:
    """N50 at one error sigma of the initial values; the statement's Theta(1) is taken as 1."""
    return _row_of(trials(case).n50, 1 / (1 - case.parameters.sigma))


@claim(
    "Remark 3, samples", "growth of ln N50 with sigma or delta, the lesser, over its standard "
    "error", ">", runs.CLEARLY, require=theorem_1, **ACROSS
    | {"laws": (LAW | AT,), "words": "{told}",
       "picture": Picture(r"$\sigma$ or $\delta$", "samples $N_{50}$", scales=("linear", "log"))},
)  # fmt: skip
def remark_3_samples(case: Case) -> Row:
    """Growth of N50 with sigma (error of initial values) and delta (of keys and queries)."""
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
        raise Undecided(f"too few rows have an N50 between bounds: {', '.join(map(str, found))}")
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
    """N50 and steps of a law whose alpha_# is in proportion to alpha_*."""
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
    """Share of successful trials on mini-batches of the size in (9), if its constant is 1."""
    law, many = case.parameters, BATCH_TRIALS * (MORE if case.thorough else 1)
    least = least_batch(law.alpha_star, law.sigma, law.delta)
    if not isfinite(least):
        raise Undecided("equation (9) has no batch size: alpha_* is at most e^-delta sigma", "law")
    batch, rate, steps = ceil(least), case.rate(ETA), case.steps(BATCH_STEPS)
    count, losses = max(BATCHED, 2 * batch), []
    for seed in range(case.seed, case.seed + many):
        problem = case.system.ReducedPopulation(law, samples=count, seed=seed, batch=batch)
        run = descend(problem, rate, steps, record=[steps])
        losses.append(inf if run.outcome.failed else float(run["test_loss"][-1]))
    share = float(np.mean(np.array(losses) < SUCCESS))
    return {"value": share, "batch": batch, "samples": count, "trials": many,
            "curves": {"share": ([batch], [share])}}  # fmt: skip
