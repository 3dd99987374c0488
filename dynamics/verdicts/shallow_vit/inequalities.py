"""Lemma 1, and the batches of equations (9) and (70)."""

from __future__ import annotations

from dataclasses import asdict, replace
from math import ceil, inf, isfinite
from typing import Any

import numpy as np

from dynamics.problem import FloatArray
from dynamics.training.descent import descend
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.rules import growth
from dynamics.verdicts.shallow_vit.complexity import ETA, LAW, SUCCESS
from dynamics.verdicts.shallow_vit.hypothesis import theorem_1
from dynamics.verdicts.shallow_vit.samples import of_all_trials
from dynamics.verdicts.study import Study, measures
from dynamics.verdicts.wording import listed
from theory.papers.shallow_vit.conditions import (
    derived_batch,
    least_batch,
    least_share,
    pole,
)
from theory.papers.shallow_vit.subgaussian import hoeffding_constant, norm_of_rare_signs

CHANCES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.001)
"""Of the variables of Lemma 1 not to be 0."""
NUMBERS = (1, 2, 4, 16, 64, 256)
SMALLEST = 1e-250
"""Tail from which on nothing is computed."""
SHARES = (0.5, 0.3, 0.2)
"""alpha_* of equation (9), alpha_# a fifth."""
SAMPLES, STEPS, TRIALS = 48, 600, 10
DISTANCES = (0.1, 0.01, 0.001, 0.0001)
"""Of alpha_* from where the left side of (70) is infinite, relative to that."""


def tail_of_signs(chance: float, number: int) -> FloatArray:
    """P(sum >= t), t = 0, ..., n, of n independent variables, +-1 with a chance in all and else 0.

    Parameters
    ----------
    chance : float
    number : int
        n.
    """
    one, law = np.array([chance / 2, 1 - chance, chance / 2]), np.ones(1)
    for _ in range(number):
        law = np.convolve(law, one)
    return np.asarray(np.cumsum(law[::-1])[::-1][number:])


def largest_constant(tail: FloatArray, norm: float, number: int) -> float:
    """The largest c for which e exp(-c t^2 / (K^2 n)) is at least the tail, at every t > 0.

    Parameters
    ----------
    tail : float array, shape (n + 1,)
        P(sum >= t), t = 0, ..., n.
    norm : float
        K.
    number : int
        n.
    """
    t = np.flatnonzero(tail > SMALLEST)[1:]
    return float(((1 - np.log(tail[t])) * norm**2 * number / t**2).min())


@measures("largest c that exact tails allow, the least over laws and numbers of variables", ">=")
def lemma_1(study: Study) -> Finding:
    """Exact tails of sums against the inequality with the constant that is proved for it."""
    study.bound = hoeffding_constant()
    for chance in CHANCES:
        norm = norm_of_rare_signs(chance)
        constants = [largest_constant(tail_of_signs(chance, n), norm, n) for n in NUMBERS]
        study.row({"chance": chance, "K": norm}, constants=constants)
        study.curve(f"+-1 with the chance {chance:g}, else 0", NUMBERS, constants)
    least = min(min(row["constants"]) for row in study.rows)
    reason = (
        f"sums of {listed(NUMBERS)} variables, +-1 with the chances {listed(CHANCES)} and else 0, "
        f"allow any c up to {least:.3g}; c = {study.bound:.3g} follows from the moments"
    )
    study.draw("number of variables", "largest $c$", {"proved": study.bound}, y_scale="linear")
    return study.conclude(least, reason)


@measures(
    "least share of successful trials with batches of (9)", ">=", 0.99, theorem_1,
    ("step size", "time"), again=True,
)  # fmt: skip
def equation_9(study: Study) -> Finding:
    """Training on mini-batches as large as (9) asks, with the constant 1."""
    law = study.law(**LAW)
    laws = [law]
    if study.parameters is None:
        laws = [replace(law, alpha_star=a, alpha_confusion=a / 5) for a in SHARES]
    rate, steps = study.rate(ETA), study.horizon(STEPS)
    for each in laws:
        theorem_1(each)
        batch = _batch(each)
        samples = max(SAMPLES, 2 * batch)
        losses = [_test_loss(study.system, each, samples, batch, seed, rate, steps)
                  for seed in study.seeds(TRIALS, 3 * TRIALS)]  # fmt: skip
        share = float(np.mean(np.array(losses) < SUCCESS))
        study.row({"alpha_star": each.alpha_star, "batch": batch, "samples": samples}, share=share)
    shares = study.column("share")
    successes = listed(round(share * len(losses)) for share in shares)
    least = min(shares)
    reason = (
        f"B = {study.listed('batch')} of N = {study.listed('samples')} at alpha_* = "
        f"{study.listed('alpha_star')}: {successes} of {len(losses)} trials reach "
        f"a test loss below 1e-3 in {steps} steps"
    )
    study.curve("share of successful trials", study.column("batch"), study.column("share"))
    study.draw("batch $B$", "share of successful trials", y_scale="linear")
    study.literal = of_all_trials(least, len(losses), study.bound)
    return study.conclude(least, reason, parameters=asdict(law))


def _batch(law: Any) -> int:
    least = least_batch(law.alpha_star, law.sigma, law.delta)
    if not isfinite(least):
        reason = "(9) has no batch: alpha_* is at most e^-delta sigma"
        raise Undecided(reason, "law", parameters=asdict(law))
    return ceil(least)


def _test_loss(
    system: Any, law: Any, samples: int, batch: int, seed: int, eta: float, steps: int
) -> float:
    problem = system.ReducedPopulation(law, samples=samples, seed=seed, batch=batch)
    run = descend(problem, eta, steps, record=[steps])
    return inf if run.outcome.failed else float(run["test_loss"][-1])


@measures("exponent of left over right side, as alpha_* nears the pole of the left", "==", 0.0)
def equation_70(study: Study) -> Finding:
    """Both sides of (70) where they differ most within the hypothesis of Theorem 1."""
    law = study.law()
    infinite = pole(law.sigma)
    edge = max(infinite, least_share(law.alpha_confusion, law.sigma, law.delta)) or SHARES[-1]
    if edge * (1 + DISTANCES[0]) > 1:
        raise Undecided(f"needs alpha_* above {edge:.3g}", "law", parameters=asdict(law))
    shares = [edge * (1 + distance) for distance in DISTANCES]
    sides = np.array([[side(a, law.sigma, law.delta) for side in (derived_batch, least_batch)]
                      for a in shares])  # fmt: skip
    ratio = sides[:, 0] / sides[:, 1]
    fit = growth(1 / np.array(DISTANCES), ratio, 0.0)
    reason = f"the ratio of both sides is {listed(ratio)} at alpha_* = {listed(shares, 4)}"
    if fit.holds is False:
        reason += (
            f": no constant bounds it, as the left side is infinite at alpha_* = 2 (sigma + tau) / "
            f"(1 - sigma - tau) = {infinite:.3g} and the right is {sides[-1, 1]:.3g}; with "
            "constants inside of the bracket, as (10) has, both have one form"
        )
    for name, column in zip(("left side", "right side"), sides.T, strict=True):
        study.curve(name, DISTANCES, column)
    study.draw(r"$\alpha_*$ over its value at the pole, minus 1", "batch $B$")
    return study.conclude(fit.fit.exponent, reason, holds=fit.holds, parameters=asdict(law))
