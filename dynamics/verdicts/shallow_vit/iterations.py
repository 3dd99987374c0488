r"""Numbers of iterations in Theorem 1, Remark 3 and Figure 2.

An iteration is a step of gradient descent. Steps to zero training loss are measured on the law of
two samples, against alpha_*, in families that determine :math:`\alpha_\#`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import pi
from typing import Any, NamedTuple

import numpy as np

from dynamics.problem import FloatArray
from dynamics.results.expression import Expression
from dynamics.results.power_law import exponent
from dynamics.verdicts.cases import Case
from dynamics.verdicts.claim import Literal, Picture, Row
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.rules import SHARE, growth
from dynamics.verdicts.shallow_vit import runs
from dynamics.verdicts.shallow_vit.runs import FEWEST, all_trained, alphas, claim, gaps, theorem_1
from dynamics.verdicts.wording import listed

ETA, STEPS = 0.05, 20_000
HORIZONS = (250, 1000, 5000, STEPS)
SEEDS, MORE_SEEDS = 3, 60
RATES, SIGMAS = (0.025, 0.05, 0.1), (0.0, 0.1, 0.2, 0.3)
STARTS = {"sigma": (0.0, 0.1, 0.2), "delta": (0.0, 0.2, 0.4)}
"""Tested errors of the initial values (sigma), and of the initial keys and queries (delta)."""
STRAIGHT = 0.99
"""Minimum R^2 at which points count as a straight line."""
OVER_ALPHA = Picture(r"$1/\alpha_*$", "steps to zero training loss")
LONG: dict[str, Any] = {"laws": ({"L": 100},), "varies": ("step size",)}


class Family(NamedTuple):
    """Family of laws along alpha_*: label, formula of alpha_#, and the alpha_* of Figure 2."""

    label: str
    confusion: str
    alphas: tuple[float, ...]

    def at(self, alpha: float) -> tuple[float, float]:
        """Shares (alpha_*, alpha_#) of the family's member with alpha_* = `alpha`."""
        formula = Expression(self.confusion, "alpha_confusion")
        return alpha, round(float(formula.value({"alpha_star": alpha})), 9)


FAMILIES = {
    "rest": Family(r"$\alpha_\# = 1/2 - \alpha_*$", "0.5 - alpha_star",
                   (0.27, 0.28, 0.3, 0.32, 0.35, 0.4, 0.45)),
    "constant": Family(r"$\alpha_\# = 0.05$", "0.05", (0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8)),
    "proportion": Family(r"$\alpha_\# = \alpha_* / 5$", "alpha_star / 5",
                         (0.05, 0.1, 0.2, 0.4, 0.8)),
    "none": Family(r"$\alpha_\# = 0$", "0", (0.05, 0.1, 0.2, 0.4, 0.8)),
}  # fmt: skip


def law_at(law: Any, family: str, alpha: float) -> Any:
    """Copy of a law with alpha_* = `alpha` and the alpha_# that the family assigns to it."""
    share, confusion = FAMILIES[family].at(alpha)
    return replace(law, alpha_star=share, alpha_confusion=confusion)


def laws_of(law: Any, family: str) -> list[Any]:
    """Laws of a family at those alpha_* that samples of L tokens can realize."""
    return runs.possible(law, map(FAMILIES[family].at, FAMILIES[family].alphas))


@lru_cache(maxsize=1024)
def steps_to_zero(make: Any, law: Any, seed: int, eta: float) -> float:
    """Steps to zero training loss; NaN if the loss does not reach zero."""
    run = runs.descend_in_parts(make(law, seed=seed), eta, HORIZONS)
    step = run.events["t_zero"].step
    return np.nan if step is None else float(step)


def steps_of(
    case: Case, laws: Sequence[Any], eta: float = ETA, few: int | None = None
) -> FloatArray:
    """Steps to zero training loss, shape (laws, seeds); undecided if a run does not reach it."""
    many = (few or SEEDS) * (3 if case.thorough else 1)
    make: Any = case.system.ReducedPopulation
    seeds, eta = range(case.seed, case.seed + many), case.rate(eta)
    steps = np.array([[steps_to_zero(make, law, seed, eta) for seed in seeds] for law in laws])
    if not np.isfinite(steps).all():
        raise Undecided(f"zero training loss is not reached in {STEPS} steps", "time")
    return steps


def line_words(family: str, laws: Sequence[Any], steps: FloatArray) -> tuple[str, float, float]:
    """Text on fits of steps: R^2 of a line in 1/alpha_*, exponent in 1/(alpha_* - alpha_#)."""
    r2 = runs.line(1 / alphas(laws), steps)[2]
    slope, level, r2_by_gap = runs.line(1 / gaps(laws), steps)
    power = -exponent(gaps(laws), steps)
    told = (
        f"alpha_# = {FAMILIES[family].confusion}: R^2 {r2:.3f} over 1/alpha_*, {r2_by_gap:.4f} "
        f"over x = 1/(alpha_* - alpha_#), T = {slope:.1f} x {level:+.1f}, log slope {power:.2f}"
    )
    return told, r2, power


def lines(case: Case, *families: str) -> tuple[list[Row], Row]:
    """A row for each family with its steps, and a row with the least R^2 in 1/alpha_*."""
    rows: list[Row] = []
    for family in families:
        laws = laws_of(case.parameters, family)
        if len(laws) < FEWEST:
            continue
        steps = steps_of(case, laws).mean(axis=1)
        told, r2, power = line_words(family, laws, steps)
        rows.append({"r2": r2, "power": power, "laws": laws, "steps": steps, "told": told,
                     "label": FAMILIES[family].label})  # fmt: skip
    if not rows:
        few = f"fewer than {FEWEST} values of alpha_* in every family"
        raise Undecided(f"samples of L={case.parameters.L} tokens have {few}")
    curves = {row["label"]: (1 / alphas(row["laws"]), row["steps"]) for row in rows}
    told = "; ".join(row["told"] for row in rows)
    return rows, {"value": min(row["r2"] for row in rows), "told": told, "curves": curves}


FIGURE_2: dict[str, Any] = LONG | {
    "require": all_trained, "words": "{told}", "picture": OVER_ALPHA,
}  # fmt: skip
R2 = "least R^2 of a line through steps against 1/alpha_*, over the families"


@claim("Figure 2, in proportion", R2, ">=", STRAIGHT, **FIGURE_2)
def in_proportion(case: Case) -> Row:
    """Line fits for alpha_# proportional to alpha_*, or 0; undecided if the exponent is not 1."""
    rows, row = lines(case, "proportion", "none")
    far = max(abs(each["power"] - 1) for each in rows)
    if row["value"] >= STRAIGHT and not far <= SHARE:
        row |= {"holds": None, "missing": "size"}
        row["told"] += f"; a power differs from 1 by {far:.2g}: not proportional yet"
    return row


@claim("Figure 2, other shares", R2, ">=", STRAIGHT, **FIGURE_2)
def not_in_proportion(case: Case) -> Row:
    """Line fits to all points, and to those that meet (8), for families that violate (8) in part.

    The row is undecided, because the paper does not give the shares in its figure.
    """
    rows, row = lines(case, "rest", "constant")
    within = []
    for one in rows:
        meets = np.array([not outside(law) for law in one["laws"]])
        within.append(runs.line(1 / alphas(one["laws"])[meets], one["steps"][meets])[2])
        row["told"] += f"; (8) is met at {meets.sum()} of {meets.size} alpha_* of {one['label']}"
    least = min((r2 for r2 in within if np.isfinite(r2)), default=np.nan)
    row["told"] += f", R^2 there {least:.3f}; the shares of the figure are not given"
    return row | {"holds": None, "missing": "model", "meeting_8": least}


def outside(law: Any) -> bool:
    """Whether a law is outside the hypothesis of Theorem 1."""
    try:
        theorem_1(law)
    except Undecided:
        return True
    return False


def _up_to_constants(rows: list[Row], finding: Finding) -> Finding:
    """Leave the claim as worded undecided if steps differ only by a factor that Theta may hide."""
    if finding.literal is None:
        return finding
    return replace(finding, literal=replace(finding.literal, holds=rows[0]["as_factor"]))


@claim(
    "Theorem 1, iterations", "exponent of the steps in 1/alpha_*, and in 1/eta", "==", 1.0,
    laws=({"L": 100},), require=theorem_1, picture=OVER_ALPHA, words="in 1/alpha_* with alpha_# in "
    "proportion {by_alpha}; in 1/eta {by_eta}: T is 1/(eta alpha_*) times {constants}, least and "
    "most over sigma", literal=Literal("factor", "==", 1.0, "exponent of the steps in "
    "1/(1 - sigma M / pi)", "{by_factor}: the factor grows to {most:.3g}, which a Theta hides"),
    conclude=_up_to_constants,
)  # fmt: skip
def iterations(case: Case) -> Row:
    """Exponents of the number of steps in 1/alpha_*, in 1/eta and in 1/(1 - sigma M / pi)."""
    law = case.parameters
    laws = laws_of(law, "proportion")
    if len(laws) < FEWEST:
        raise Undecided(f"samples of L={law.L} tokens have fewer than {FEWEST} values of alpha_*")
    along = steps_of(case, laws).mean(axis=1)
    rates = [steps_of(case, [law], eta).mean() for eta in RATES]
    # Values of alpha_* that whole tokens realize.
    shares = np.array([e.alpha_star if e.data == "iid" else e.n_star / e.L for e in laws])
    fits = [growth(1 / shares[::-1], along[::-1], 1.0),
            growth(1 / np.array(RATES[::-1]), rates[::-1], 1.0)]  # fmt: skip
    far = max((fit.fit.exponent for fit in fits), key=lambda power: abs(power - 1))
    both = [fit.holds for fit in fits]
    steps = steps_of(case, runs.laws_along(case, "sigma", SIGMAS)).mean(axis=1)
    factor = 1 / (1 - np.array(SIGMAS) * law.M / pi)
    by_factor, constants = growth(factor, steps, 1.0), steps * case.rate(ETA) * law.alpha_star
    return {
        "value": far, "holds": False if False in both else None if None in both else True,
        "missing": "size", "by_alpha": str(fits[0]), "by_eta": str(fits[1]),
        "constants": listed([constants.min(), constants.max()]), "factor": by_factor.fit.exponent,
        "as_factor": by_factor.holds or None, "by_factor": str(by_factor), "most": factor[-1],
        "curves": {"in proportion": (1 / shares, along)},
    }  # fmt: skip


@claim(
    "Remark 3, convergence", "growth of ln T with sigma or delta, the lesser, over its standard "
    "error", ">", runs.CLEARLY, require=theorem_1, words="ln T {told}", **LONG,
    picture=Picture(r"$\sigma$ or $\delta$", "ln T", scales=runs.LINEAR),
)  # fmt: skip
def remark_3(case: Case) -> Row:
    """Growth of ln steps with the error of initial values (sigma), of keys and queries (delta)."""
    rows = []
    for name, values in STARTS.items():
        steps = steps_of(case, runs.laws_along(case, name, values), few=MORE_SEEDS)
        rows.append(runs.growth_row(name, values, np.log(steps)))
    least = min(rows, key=lambda row: row["value"])
    curves = {name: curve for row in rows for name, curve in row["curves"].items()}
    return least | {"told": "; ".join(row["told"] for row in rows), "curves": curves}
