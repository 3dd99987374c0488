r"""How many samples: Theorem 1, Proposition 1, Remarks 1 and 3, Figures 1a, 1b and 3.

N50 over alpha_* in two families: the other tokens a fixed half, so that :math:`\alpha_\# = 1/2 -
\alpha_*` (Figure 1a), and :math:`\alpha_\#` a fifth of :math:`\alpha_*`, as the theorem asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.problem import FloatArray
from dynamics.results.power_law import exponent
from dynamics.verdicts.findings import Check, Finding, Undecided
from dynamics.verdicts.rules import ERRORS, Growth, Repeat, growth
from dynamics.verdicts.shallow_vit import runs
from dynamics.verdicts.shallow_vit.complexity import (
    COUNTS,
    ETA,
    FIGURE_1B,
    LAW,
    TRIALS,
    Rows,
    trials_of,
)
from dynamics.verdicts.shallow_vit.hypothesis import all_trained, theorem_1, up_to_frozen
from dynamics.verdicts.study import Study, measures
from dynamics.verdicts.wording import listed

GAPS = (0.06, 0.1, 0.14, 0.18, 0.24, 0.3)
"""Half of alpha_* - alpha_# over alpha_* + alpha_#, in the family of Figure 1a."""
SHARES = (0.05, 0.1, 0.15, 0.2, 0.3)
"""alpha_* where alpha_# is in proportion."""
PROPORTION = 0.2
STARTS = ({"sigma": (0.0, 0.1, 0.2)}, {"delta": (0.0, 0.2, 0.4)})
"""Errors of the start of Remark 3, one at a time."""
AT = {"alpha_star": 0.1, "alpha_confusion": 0.02}
"""Shares at which Remark 3 is measured: there N50 is far from the least number of samples."""
SIGMAS = (0.0, 0.2, 0.4, 0.6)
FEW_TRIALS = 10
"""Of a look at another step size."""
FIRST = 4
"""Smallest numbers of samples of the law whose samples all have the same ratios."""
ALPHA = r"$1/\alpha_*$"
STEP_SIZE = ("step size",)


def figure_laws(study: Study) -> list[Any]:
    """Laws with a fixed share of non-discriminative tokens: a half, or the user's."""
    law = study.law(**LAW)
    total = 0.5 if study.parameters is None else law.alpha_star + law.alpha_confusion
    shares = [round(total * (0.5 + gap), 6) for gap in GAPS]
    return _enough(runs.possible(law, ((a, round(total - a, 6)) for a in shares)))


def theorem_laws(study: Study, **changed: Any) -> list[Any]:
    """Laws with alpha_# in proportion to alpha_*, a fifth of it or the user's, with changes."""
    law = study.law(**LAW)
    ratio = law.alpha_confusion / law.alpha_star if study.parameters else PROPORTION
    laws = runs.possible(replace(law, **changed), ((a, round(a * ratio, 9)) for a in SHARES))
    for each in laws:
        up_to_frozen(each)
    return laws


def _enough(laws: list[Any]) -> list[Any]:
    """The laws; undecided where samples are so short that few alpha_* have a majority."""
    if len(laws) < runs.FEWEST:
        reason = (
            f"fewer than {runs.FEWEST} of the alpha_* have whole numbers of tokens and a majority"
        )
        evidence: dict[str, Any] = {"parameters": asdict(laws[0])} if laws else {}
        raise Undecided(reason, **evidence)
    return laws


def _run(study: Study, laws: Sequence[Any]) -> Rows:
    trials = (3 if study.thorough else 1) * TRIALS
    return trials_of(study.system, laws, study.seed, trials, COUNTS, study.rate(ETA))


def _measurable(study: Study, laws: Sequence[Any]) -> Rows:
    """Trials; undecided where N50 is a number in too few rows."""
    rows = _run(study, laws)
    if np.isfinite(rows.values).sum() < runs.FEWEST:
        span = f"{rows.counts[0]} to {rows.counts[-1]}"
        reason = f"N50 lies inside N = {span} in too few rows: {rows}"
        raise Undecided(reason, parameters=asdict(laws[0]))
    return rows


def _growth(
    x: FloatArray, values: FloatArray, errors: FloatArray, claimed: float, upper: bool = False
) -> Growth:
    """How values grow along x, from its least to its largest, where they are measured."""
    order = np.argsort(x)
    order = order[np.isfinite(values[order]) & np.isfinite(errors[order])]
    return growth(x[order], values[order], claimed, errors[order], upper)


def _table(laws: Sequence[Any], rows: Rows) -> list[dict[str, Any]]:
    return [
        {
            "alpha_star": law.alpha_star, "alpha_confusion": law.alpha_confusion,
            "sigma": law.sigma, "delta": law.delta, "N50": n50.value, "low": n50.low,
            "high": n50.high, "shares": n50.shares.tolist(), "N": n50.levels.tolist(),
            "steps": float(steps),
        }
        for law, n50, steps in zip(laws, rows.thresholds, rows.medians, strict=True)
    ]  # fmt: skip


def _conclude(
    study: Study, value: float, reason: str, holds: bool | None, laws: Sequence[Any], x_label: str,
    x: FloatArray, tables: Mapping[str, tuple[Rows, float]],
) -> Finding:  # fmt: skip
    """A finding with N50 of every table over x, and the claimed power of each in the picture."""
    for name, (rows, claimed) in tables.items():
        finite = np.isfinite(rows.values)
        study.curve(name, x[finite], rows.values[finite])
        if finite.any():
            law = x[finite] ** claimed
            level = np.exp(np.mean(np.log(rows.values[finite] / law)))
            study.curve(f"claimed: power {claimed:g}", x[finite], level * law)
    study.draw(x_label, "samples $N_{50}$")
    table = {name: _table(laws, rows) for name, (rows, _) in tables.items()}
    parameters = asdict(laws[0])
    return study.conclude(value, reason, holds=holds, parameters=parameters, table=table)


@measures(
    "least share of successful trials at the most samples of a row", ">=", 0.99, theorem_1,
    STEP_SIZE, again=True,
)  # fmt: skip
def generalization(study: Study) -> Finding:
    """Whether enough samples make every trial succeed."""
    laws = theorem_laws(study) if study.parameters is None else [study.parameters]
    rows = _run(study, laws)
    shares = [share[~np.isnan(share)] for share in rows.share]
    least = float(min(share[-1] for share in shares))
    most = [int(rows.counts[len(share) - 1]) for share in shares]
    reason = (
        f"{least:.0%} of {rows.loss.shape[2]} trials reach a test loss below 1e-3 with N = "
        f"{listed(most)} (alpha_* = {listed(runs.alphas(laws))}); N50 = {rows}"
    )
    for law, share in zip(laws, shares, strict=True):
        study.curve(rf"$\alpha_* = {law.alpha_star:g}$", rows.counts[: len(share)], share)
    study.draw("samples $N$", "share of successful trials", y_scale="linear")
    table = _table(laws, rows)
    study.literal = of_all_trials(least, rows.loss.shape[2], study.bound)
    return study.conclude(least, reason, parameters=asdict(laws[0]), table=table)


def of_all_trials(share: float, trials: int, claimed: float) -> Finding:
    """What a share of successful trials says of the probability of success.

    Parameters
    ----------
    share : float
    trials : int
    claimed : float
        The probability that is claimed at least.
    """
    from scipy.stats import binomtest

    # 5 % on either side: each limit by itself holds with 95 %.
    interval = binomtest(round(share * trials), trials).proportion_ci(0.9, "exact")
    holds = True if interval.low >= claimed else False if interval.high < claimed else None
    reason = (
        f"{share:.0%} of {trials} trials: with a confidence of 95 % the probability is at least "
        f"{interval.low:.3g}"
    )
    return Finding(
        holds, "least probability of success, with a confidence of 95 %", float(interval.low),
        claimed, reason, relation=">=", missing=("trials",),
    )  # fmt: skip


def _exponent_check(claimed: float, frozen: str = "none") -> Check:
    """A check that N50 grows with 1/alpha_* at most as a power, at alpha_# in proportion."""
    name = "trained" if frozen == "none" else "attention frozen"
    suffix = "" if frozen == "none" else f", {name}"

    @measures(
        "exponent of N50 in 1/alpha_*" + suffix, "<=", claimed, up_to_frozen, STEP_SIZE,
        again="thorough",
    )  # fmt: skip
    def check(study: Study) -> Finding:
        laws = _enough(theorem_laws(study, frozen=frozen))
        rows = _measurable(study, laws)
        x = 1 / runs.alphas(laws)
        fit = _growth(x, rows.values, rows.errors, claimed, upper=True)
        reason = f"N50 = {rows} at alpha_* = {listed(runs.alphas(laws))}: {fit}"
        if fit.holds:
            reason += f"; the bound allows {claimed:g}, and fewer samples do not contradict it"
        if frozen != "none":
            trained = _run(study, theorem_laws(study, frozen="none"))
            ratios = listed(rows.medians / trained.medians, 2)
            reason += f"; steps over those with attention {ratios}"
        tables = {name: (rows, claimed)}
        return _conclude(study, fit.fit.exponent, reason, fit.holds, laws, ALPHA, x, tables)

    return check


samples = _exponent_check(2.0)
proposition_1 = _exponent_check(4.0, "attention")


@measures(
    "exponent in 1/alpha_* of N50 without over N50 with trained attention", "==", 2.0,
    up_to_frozen, STEP_SIZE, again="thorough",
)  # fmt: skip
def remark_1(study: Study) -> Finding:
    """N50 without over N50 with trained attention, along alpha_*."""
    laws = _enough(theorem_laws(study, frozen="none"))
    trained = _run(study, laws)
    frozen = _run(study, theorem_laws(study, frozen="attention"))
    ratio, errors = frozen.values / trained.values, np.hypot(trained.errors, frozen.errors)
    finite = np.isfinite(ratio)
    if finite.sum() < runs.FEWEST:
        reason = f"N50 is a number in too few rows: {trained}; frozen {frozen}"
        raise Undecided(reason, parameters=asdict(laws[0]))
    x = 1 / runs.alphas(laws)
    fit = _growth(x, ratio, errors, 2.0)
    reason = (
        f"frozen attention needs {listed(ratio[finite], 2)} times as many samples at alpha_* = "
        f"{listed(runs.alphas(laws)[finite])}: {fit}"
    )
    of_bounds = exponent(x, (x**2) ** 2 / x**2)
    study.literal = Finding(
        bool(np.isclose(of_bounds, 2.0)), "exponent in 1/alpha_* of the bound (13) over (10)",
        of_bounds, 2.0, "of the two bounds, sigma = tau = 0 and zeta = 1", relation="==",
    )  # fmt: skip
    tables = {"trained": (trained, 2.0), "attention frozen": (frozen, 4.0)}
    return _conclude(study, fit.fit.exponent, reason, fit.holds, laws, ALPHA, x, tables)


@measures("exponent of N50 in 1/alpha_*, W_K and W_Q not trained", "==", 4.0, None, STEP_SIZE)
def figure_3_check(study: Study) -> Finding:
    """N50 without trained attention against alpha_*^-4, and beside N50 with it."""
    laws = _enough(theorem_laws(study, frozen="attention"))
    rows, trained = _measurable(study, laws), _run(study, theorem_laws(study, frozen="none"))
    x = 1 / runs.alphas(laws)
    fit = _growth(x, rows.values, rows.errors, 4.0)
    reason = (
        f"without trained attention {listed(rows.values / trained.values, 2)} times as many "
        f"samples are needed at alpha_* = {listed(runs.alphas(laws))}; N50 = {rows}: {fit}"
    )
    tables = {"attention frozen": (rows, 4.0), "trained": (trained, 2.0)}
    return _conclude(study, fit.fit.exponent, reason, fit.holds, laws, r"$1/\alpha_*$", x, tables)


@measures(
    "exponent of N50 in 1/alpha_*, the other tokens a fixed share", "==", 2.0, all_trained,
    STEP_SIZE, again="thorough",
)  # fmt: skip
def figure_1a_check(study: Study) -> Finding:
    """N50 against alpha_*^-2 and against (alpha_* - alpha_#)^-2."""
    laws = figure_laws(study)
    rows = _measurable(study, laws)
    inverse = 1 / runs.alphas(laws), 1 / runs.gaps(laws)
    by_alpha = _growth(inverse[0], rows.values, rows.errors, 2.0)
    finite = np.isfinite(rows.values)
    r2_alpha, r2_gap = (runs.line(x[finite] ** 2, rows.values[finite]).r2 for x in inverse)
    reason = (
        f"N50 = {rows} at alpha_* = {listed(runs.alphas(laws))}: {by_alpha} in 1/alpha_*, "
        f"{rows.growth(inverse[1])} in 1/(alpha_* - alpha_#); R^2 of a line {r2_alpha:.2f} over "
        f"alpha_*^-2 and {r2_gap:.3f} over (alpha_* - alpha_#)^-2"
    )
    if study.repeat == Repeat():
        study.literal = _same_ratios(study, laws)
        reason += _at_a_quarter(study, laws)
    tables, value = {"trained": (rows, 2.0)}, by_alpha.fit.exponent
    return _conclude(study, value, reason, by_alpha.holds, laws, ALPHA, inverse[0], tables)


def _at_a_quarter(study: Study, laws: Sequence[Any]) -> str:
    """N50 of two laws at a quarter of the step size, in words: long steps overshoot the margin."""
    two = [laws[0], laws[len(laws) // 2]]
    rows = trials_of(study.system, two, study.seed, FEW_TRIALS, COUNTS, study.rate(ETA) / 4)
    at = runs.alphas(two)
    exponent = np.diff(np.log(rows.values)) / -np.diff(np.log(at))
    return (
        f"; at a quarter of the step size N50 = {rows} at alpha_* = {listed(at)}, the exponent "
        f"{listed(exponent)}"
    )


def _same_ratios(study: Study, laws: Sequence[Any]) -> Finding:
    """What the literal protocol gives: the ratios of all patterns the same in all samples."""
    same = [replace(law, data="fixed") for law in laws]
    counts = COUNTS[:FIRST]
    rows = trials_of(study.system, same, study.seed, TRIALS, counts, study.rate(ETA))
    values = [n50.bound if np.isnan(n50.value) else n50.value for n50 in rows.thresholds]
    reason = f"with two distinct samples N50 = {rows}: there is no growth to fit"
    quantity = "largest N50 over alpha_*, the same ratios in all samples"
    return Finding(None, quantity, max(values), counts[0], reason, relation=">")


@measures("exponent of N50 in 1/(1 - sigma)", "==", 2.0, all_trained, STEP_SIZE)
def figure_1b_check(study: Study) -> Finding:
    """N50 over the error sigma of the initial values."""
    law = study.law(**FIGURE_1B)
    laws = [replace(law, sigma=sigma) for sigma in SIGMAS]
    rows = _measurable(study, laws)
    x = 1 / (1 - np.array(SIGMAS))
    fit = _growth(x, rows.values, rows.errors, 2.0)
    reason = (
        f"N50 = {rows} at sigma = {listed(SIGMAS)}: {fit}, with 1 for the Theta(1) of the statement"
    )
    tables = {"trained": (rows, 2.0)}
    label = r"$1/(1 - \sigma)$"
    return _conclude(study, fit.fit.exponent, reason, fit.holds, laws, label, x, tables)


@measures(
    "growth of ln N50 with sigma or delta, the lesser, over its standard error", ">", 2.0,
    theorem_1, STEP_SIZE, again="thorough",
)  # fmt: skip
def remark_3_samples(study: Study) -> Finding:
    """N50 over the error of the initial values, and of the initial keys and queries."""
    law, words, weakest = study.law(**LAW, **AT), [], np.inf
    for variable in STARTS:
        ((name, values),) = variable.items()
        laws = [replace(law, **{name: value}) for value in values]
        for each in laws:
            theorem_1(each)
        rows = _run(study, laws)
        slope, error = _slope(values, rows)
        words.append(
            f"N50 = {rows} at {name} = {listed(values)}: d ln N50 / d {name} = {slope:.2g} +- "
            f"{error:.2g}"
        )
        weakest = min(weakest, slope / error)
        study.curve(name, values, rows.values)
        study.row({"error": name, "table": _table(laws, rows)}, slope=slope, standard_error=error)
    study.draw(r"$\sigma$ or $\delta$", "samples $N_{50}$", x_scale="linear")
    holds = True if weakest > study.bound else False if weakest < -ERRORS else None
    reason = "; ".join(words)
    if holds is None:
        reason = f"no growth is seen beyond the errors of N50: {reason}"
    return study.conclude(float(weakest), reason, holds=holds, parameters=asdict(law))


def _slope(x: ArrayLike, rows: Rows) -> tuple[float, float]:
    """Slope of ln N50 by weighted least squares, and its standard error; NaN without N50."""
    weights = rows.errors**-2
    used = weights > 0
    if used.sum() < runs.FEWEST:
        raise Undecided(f"N50 is a number in too few rows: {rows}")
    x, y, w = np.asarray(x)[used], np.log(rows.values[used]), weights[used]
    centred = x - np.average(x, weights=w)
    squares = float((w * centred**2).sum())
    return float((w * centred * y).sum() / squares), squares**-0.5
