"""Token noise and token sparsification: (P1), Remark 2, Figure 5.

In claims on sparsification, a fifth of the tokens have noise of standard deviation 1 per
coordinate. Training and test samples lose the same share of tokens by one of three rules: at
random, irrelevant first (no discriminative pattern), or noisiest first (farthest from its pattern).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np

from dynamics.problem import FloatArray
from dynamics.training.descent import descend
from dynamics.verdicts.cases import Case
from dynamics.verdicts.claim import Picture
from dynamics.verdicts.claim import claim as any_claim
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.shallow_vit import runs
from dynamics.verdicts.shallow_vit.runs import CLEARLY, LINEAR, claim_on_tokens, growth_row
from dynamics.verdicts.wording import listed
from theory.papers.shallow_vit.data_law import SPARSIFIERS, rounded

LAW: dict[str, Any] = {"alpha_star": 0.3, "alpha_confusion": 0.1, "m": 300, "data": "fixed_disc"}
FIGURE_5 = LAW | {"alpha_star": 0.6, "alpha_confusion": 0.05, "delta": 0.5}
"""Shares and delta of Figure 5, taken from memory of the paper, as is its number of samples."""
FEW, SAMPLES, FIGURE_5_SAMPLES = 10, 20, 80
PARTS_OF_TAU = (0.0, 0.5, 1.0)
NOISY: dict[str, Any] = {"noisy_share": 0.2, "noisy_std": 1.0}
ETA, FINE, STEPS = 0.2, 0.02, 400
REMOVED, ALL_REMOVED = (0.0, 0.2, 0.5), (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
SHARE = 0.2
"""Removed share of tokens at which the rules are compared; it is the share of noisy tokens."""
SEEDS, MORE_SEEDS, FEW_SEEDS = 5, 10, 3
WORDS = {"random": "at random", "irrelevant": "irrelevant first", "noisiest": "noisiest first"}


def _losses(
    case: Case, law: Any, rule: str, removed: Sequence[float], seeds: int, samples: int = SAMPLES
) -> FloatArray:
    at = case.rate(ETA), case.steps(STEPS)
    every = range(case.seed, case.seed + seeds)
    make: Any = case.system.FullEmpirical
    return np.array([[_loss(make, law, rule, x, samples, s, *at) for s in every] for x in removed])


@lru_cache(maxsize=512)
def _loss(
    make: Any, law: Any, rule: str, removed: float, samples: int, seed: int, eta: float, steps: int
) -> float:
    problem = make(law, samples, seed, sparsify=rule, removed=removed, **NOISY)
    return float(descend(problem, eta, steps, record=[steps])["test_loss"][-1])


def mean_losses(case: Case) -> dict[str, float]:
    """Mean test loss without removal (``"none"``), and with `SHARE` of the tokens removed."""
    law = case.system.Parameters(**LAW, M=case.parameters.M, d=case.parameters.d)
    rules = {"none": ("random", (0.0,))} | {rule: (rule, (SHARE,)) for rule in SPARSIFIERS}
    return {
        name: float(_losses(case, law, *rule, FEW_SEEDS).mean()) for name, rule in rules.items()
    }


def _removal(case: Case, samples: int) -> dict[str, Any]:
    """Test loss against the share of removed tokens, for each rule of removal."""
    law, shares = case.parameters, ALL_REMOVED if case.thorough else REMOVED
    seeds = MORE_SEEDS if case.thorough else SEEDS
    means = {rule: _losses(case, law, rule, shares, seeds, samples).mean(axis=1)
             for rule in SPARSIFIERS}  # fmt: skip
    start, end = means["random"][0], {rule: mean[-1] for rule, mean in means.items()}
    if start == 0:
        raise Undecided("the test loss is 0 with all tokens: removal cannot lower it")
    best = {rule: mean[1:].min() for rule, mean in means.items()}
    helps = all(best[rule] < min(start, best["random"]) for rule in ("irrelevant", "noisiest"))
    taken = [rounded(share, law.L) / law.L for share in shares]
    words = "; ".join(f"{WORDS[rule]}: {listed(mean, 2)}" for rule, mean in means.items())
    return {
        "value": end["irrelevant"] / start, "samples": samples, "losses": words,
        "holds": bool(helps and end["random"] >= end["irrelevant"]),
        "removed": ", ".join(f"{share:.0%}" for share in taken),
        "curves": {WORDS[rule]: (taken, mean) for rule, mean in means.items()},
    }  # fmt: skip


REMOVAL: dict[str, Any] = {
    "require": runs.all_trained, "varies": ("step size", "time"),
    "words": "N={samples}, test loss with {removed} removed, {losses}",
    "picture": Picture("share of tokens removed", "test loss, mean over seeds", scales=LINEAR),
}  # fmt: skip
RATIO = "test loss with irrelevant tokens removed, over that with none removed"


@claim_on_tokens("Remark 2", RATIO, "<", 1.0, laws=(LAW,), **REMOVAL)
def remark_2(case: Case) -> dict[str, Any]:
    """Test loss of models trained with tokens removed (last sentence of Remark 2)."""
    return _removal(case, SAMPLES)


@claim_on_tokens("Figure 5", RATIO, "<", 1.0, laws=(FIGURE_5,), **REMOVAL)
def figure_5(case: Case) -> dict[str, Any]:
    """Figure 5: test loss with tokens removed, for the law `FIGURE_5` and `FIGURE_5_SAMPLES`."""
    return _removal(case, FIGURE_5_SAMPLES)


def _along_noise(case: Case, measure: Callable[[Any, int], float]) -> dict[str, Any]:
    """Growth of a measurement with the token noise c_0, from 0 to Theorem 1's tau / sqrt(d)."""
    law, seeds = case.parameters, range(case.seed, case.seed + MORE_SEEDS)
    most = min(law.sigma, law.delta) / sqrt(law.d)
    levels = [round(part * most, 4) for part in PARTS_OF_TAU]
    laws = [replace(law, noise=level) for level in levels]
    return growth_row("c_0", levels, [[measure(each, seed) for seed in seeds] for each in laws])


NOISE: dict[str, Any] = {
    "require": runs.theorem_1, "varies": ("step size",), "words": "{told}",
    "shown": [name for name in runs.SHOWN if name != "noise"],
}  # fmt: skip


@any_claim(
    "(P1), token noise", "growth of the steps with the token noise, over its standard error", ">",
    CLEARLY, laws=({"m": 200, "L": 20, "data": "fixed_disc"},), **NOISE,
    picture=Picture("token noise $c_0$", "steps to zero training loss", scales=LINEAR),
)  # fmt: skip
def steps_with_noise(case: Case) -> dict[str, Any]:
    """Growth of the steps to zero training loss with the token noise."""
    horizons = [case.steps(500), case.steps(2000)]

    def steps(law: Any, seed: int) -> float:
        problem = case.system.FullEmpirical(law, SAMPLES, seed, test_samples=1)
        step = runs.descend_in_parts(problem, case.rate(FINE), horizons).events["t_zero"].step
        if step is None:
            raise Undecided("zero training loss is not reached", "time")
        return float(step)

    return _along_noise(case, steps)


@any_claim(
    "Remark 2, noise", "growth of the test loss with the token noise, over its standard error", ">",
    CLEARLY, laws=(LAW | {"alpha_confusion": 0.06},), **NOISE,
    picture=Picture("token noise $c_0$", "test loss", scales=LINEAR),
)  # fmt: skip
def loss_with_noise(case: Case) -> dict[str, Any]:
    """Growth of the test loss with the token noise of training and test samples."""
    steps = case.steps(STEPS)

    def loss(law: Any, seed: int) -> float:
        run = descend(
            case.system.FullEmpirical(law, FEW, seed), case.rate(ETA), steps, record=[steps]
        )
        return float(run["test_loss"][-1])

    return _along_noise(case, loss)
