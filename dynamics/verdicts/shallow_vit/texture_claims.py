"""What Section 4.2 says of images on textures, measured on digits by a small network.

By default with two numbers of images; thorough is the protocol of the figure ``textures``. One
learning rate is one case: what it contradicts is not decided.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynamics.images.protocol import estimate
from dynamics.problem import FloatArray
from dynamics.verdicts.findings import Finding
from dynamics.verdicts.images import ERRORS, measured_on_images
from dynamics.verdicts.shallow_vit import textured_images
from dynamics.verdicts.shallow_vit.textured_images import (
    GROUPS,
    SAMPLES,
    SEEDS,
    SUCCESS,
    Trials,
)
from dynamics.verdicts.study import Measurement, Study, measures
from dynamics.verdicts.wording import counted

LEVEL = 0.05
"""P-value from which on a difference between shares of trials may be chance."""


def _trials(study: Study) -> Trials:
    samples = SAMPLES if study.thorough else SAMPLES[1::2]
    seeds = tuple(study.seeds(SEEDS, 10))
    return measured_on_images(study, textured_images.train_once, samples, seeds)


def _made(trials: Trials) -> str:
    return f"{counted(len(trials.seeds), 'seed')}, {trials.scene.steps} steps"


@measures(
    "least rise of the accuracy with alpha_*, in standard errors", ">", ERRORS,
    single=("step size",),
)  # fmt: skip
def figure_6a(study: Study) -> Finding:
    """Accuracy without background against that with all of it, and along N."""
    trials = _trials(study)
    rises = [trials.rise(trials.classes[:, n]) for n in range(len(trials.samples))]
    growth = [estimate(row[-1] - row[0]) for row in trials.classes]
    for a, share in enumerate(trials.shares):
        means = trials.classes[a].mean(axis=1)
        study.curve(f"alpha_* = {share:.2g}", trials.samples, 100 * means)
        study.row({"alpha_*": round(share, 2)}, accuracy=means.tolist(), growth=growth[a].mean,
                  growth_error=growth[a].error)  # fmt: skip
    study.draw("N", "test accuracy (%)", {"77.5": 100 * SUCCESS}, y_scale="linear")
    words = "; ".join(f"{r} at N={n}" for n, r in zip(trials.samples, rises, strict=True))
    least = min(each.errors for each in growth)
    reason = (
        f"from alpha_* = {trials.shares[0]:.2g} to 1 the accuracy rises by {words}; with N it "
        f"rises by at least {min(each.mean for each in growth):.3f} ({_made(trials)})"
    )
    also = Measurement("least rise of the accuracy with N, in standard errors", least, ">", ERRORS)
    return study.conclude(min(rise.errors for rise in rises), reason, also)


@measures(
    "N at the least alpha_* over N at 1, for half of the trials to succeed", ">", 1.0,
    single=("step size",),
)  # fmt: skip
def figure_6b(study: Study) -> Finding:
    """The least N at which half of the trials reach the accuracy of the paper."""
    trials = _trials(study)
    needed, shares = trials.needed(), trials.successes()
    for a, share in enumerate(trials.shares):
        study.curve(f"alpha_* = {share:.2g}", trials.samples, 100 * shares[a])
        study.row({"alpha_*": round(share, 2)}, needed=needed[a], successes=shares[a].tolist())
    study.draw("N", "trials that succeed (%)", {"half": 50.0}, y_scale="linear")
    last = trials.samples[-1]
    words = ", ".join(
        f"{n:g} at alpha_* = {share:.2g}" if np.isfinite(n) else f"above {last} at {share:.2g}"
        for share, n in zip(trials.shares, needed, strict=True)
    )
    reason = f"of N = {', '.join(map(str, trials.samples))}, half succeed at {words}"
    if not np.isfinite(needed[-1]):
        return study.conclude(np.nan, f"{reason}: none is large enough", holds=None)
    ratio = needed[0] / needed[-1]
    if ratio == 1.0:
        return study.conclude(ratio, f"{reason}: too coarse to tell them apart", holds=None)
    level = min(needed[0], needed[-1])
    pair = shares[[0, -1], trials.samples.index(int(level))]
    chance = chance_of_difference(pair, len(trials.seeds))
    reason += (
        f"; at N={level:g} {pair[0]:.0%} and {pair[1]:.0%} of {len(trials.seeds)} trials succeed, "
        f"which differ by chance with p = {chance:.2g} ({_made(trials)})"
    )
    if chance >= LEVEL:
        return study.conclude(ratio, reason, holds=None, missing="trials")
    return study.conclude(ratio, reason)


def chance_of_difference(shares: FloatArray, trials: int) -> float:
    """P-value of two shares of successes where both chances are equal, by Fisher's exact test.

    Parameters
    ----------
    shares : float array, shape (2,)
    trials : int
        Of each.
    """
    from scipy.stats import fisher_exact

    successes = np.rint(shares * trials)
    return float(fisher_exact(np.stack([successes, trials - successes])).pvalue)


@measures(
    "rise of the accuracy with alpha_* under a spurious background, in standard errors",
    ">", ERRORS, single=("step size",),
)  # fmt: skip
def figure_6c(study: Study) -> Finding:
    """Accuracy with a 90/10 background against the share of background that is dropped."""
    trials = _trials(study)
    for k, group in enumerate(GROUPS):
        study.curve(group, trials.shares, 100 * trials.spurious[:, :, k].mean(axis=1))
    for a, share in enumerate(trials.shares):
        means: Mapping[str, float] = dict(
            zip(GROUPS, trials.spurious[a].mean(axis=0).tolist(), strict=True)
        )
        study.row({"alpha_*": round(share, 2)}, **means)
    study.draw("alpha_*", "test accuracy (%)", {"half": 50.0}, x_scale="linear", y_scale="linear")
    rises = [trials.rise(trials.spurious[:, :, k]) for k in range(len(GROUPS))]
    words = "; ".join(f"{group} {rise}" for group, rise in zip(GROUPS, rises, strict=True))
    reason = f"rise of the accuracy from alpha_* = {trials.shares[0]:.2g} to 1: {words}"
    return study.conclude(rises[0].errors, f"{reason} ({_made(trials)})")
