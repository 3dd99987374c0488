"""Claims of Section 4.2 of images on textures, measured on digits by a small network.

One learning rate is one case: it contradicts nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dynamics.images.protocol import Estimate, estimate
from dynamics.problem import FloatArray
from dynamics.validation import InvalidRequest
from dynamics.verdicts.claim import Also, Case, Picture, Row, claim
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.images import ERRORS
from dynamics.verdicts.shallow_vit import textured_images
from dynamics.verdicts.shallow_vit.texture_pictures import SUCCESS
from dynamics.verdicts.shallow_vit.textured_images import ENDS, GROUPS, SAMPLES, Trials

TWO = SAMPLES[1::2]
"""N of Figure 6a; its whole protocol is that of Figure 6b and of the figure ``textures``."""
LEVEL = 0.05
"""P-value from which on a difference between shares of trials may be chance."""
SEEDS, MORE_SEEDS = 5, 10
OF_IMAGES: dict[str, Any] = {"laws": None, "varies": ("step size",), "again": False}
ACCURACY = "test accuracy (%)"


def _trained(case: Case, measure: Callable[[Sequence[int]], Trials]) -> Trials:
    """Networks of the seeds of a claim; undecided where packages are missing."""
    many = MORE_SEEDS if case.thorough else SEEDS
    try:
        return measure(range(case.seed, case.seed + many))
    except InvalidRequest as refusal:
        raise Undecided(str(refusal), "measurement") from refusal


def growth(values: FloatArray) -> Estimate:
    """Last minus first along the first axis, in pairs of one seed."""
    return estimate(values[-1] - values[0])


@claim(
    "Figure 6a", "least rise of the accuracy with alpha_*, in standard errors", ">", ERRORS,
    **OF_IMAGES, also=(
        Also("with_N", ">", ERRORS, "least rise of the accuracy with N, in standard errors"),),
    words="from alpha_* = {least:.2g} to 1 the accuracy rises by {rises}; with N it rises by at "
    "least {growth:.3f} ({seeds} seeds)",
    picture=Picture("N", ACCURACY, {"77.5": 100 * SUCCESS}, ("log", "linear")),
)  # fmt: skip
def figure_6a(case: Case) -> Row:
    """Accuracy without background against that with all of it, and along N."""
    found = _trained(case, lambda seeds: textured_images.classes(TWO, seeds, ENDS))
    rises = [growth(found.values[:, n]) for n in range(len(TWO))]
    along = [growth(row) for row in found.values]
    told = "; ".join(f"{rise} at N={n}" for n, rise in zip(TWO, rises, strict=True))
    return {
        "value": min(rise.errors for rise in rises), "least": found.shares[0], "rises": told,
        "with_N": min(each.errors for each in along), "growth": min(each.mean for each in along),
        "seeds": found.values.shape[-1],
        "curves": {f"alpha_* = {share:.2g}": (TWO, 100 * row.mean(axis=1))
                   for share, row in zip(found.shares, found.values, strict=True)},
    }  # fmt: skip


@claim(
    "Figure 6b", "N at the least alpha_* over N at 1, for half of the trials to succeed", ">", 1.0,
    **OF_IMAGES, words="of N = {counts}, half of {seeds} trials succeed at {needed}{chance}",
    picture=Picture("N", "trials that succeed (%)", {"half": 50.0}, ("log", "linear")),
)  # fmt: skip
def figure_6b(case: Case) -> Row:
    """The least N at which half of the trials reach the accuracy of the paper."""
    found = _trained(case, lambda seeds: textured_images.classes(SAMPLES, seeds, ENDS))
    needed, shares, many = found.needed(), found.successes(), found.values.shape[-1]
    told = ", ".join(
        f"{n:g} at alpha_* = {share:.2g}"
        if np.isfinite(n)
        else f"above {SAMPLES[-1]} at {share:.2g}"
        for share, n in zip(found.shares, needed, strict=True)
    )
    row: Row = {"value": np.nan, "counts": ", ".join(map(str, SAMPLES)), "needed": told,
                "seeds": many, "chance": "", "holds": None, "missing": "size",
                "curves": {f"alpha_* = {share:.2g}": (SAMPLES, 100 * part)
                           for share, part in zip(found.shares, shares, strict=True)}}  # fmt: skip
    if not np.isfinite(needed[-1]):
        return row
    level = min(needed[0], needed[-1])
    pair = shares[[0, -1], SAMPLES.index(int(level))]
    p = chance_of_difference(pair, many)
    row |= {"value": needed[0] / needed[-1], "chance": f"; at N={level:g} {pair[0]:.0%} and "
            f"{pair[1]:.0%} succeed, p = {p:.2g}"}  # fmt: skip
    if row["value"] == 1.0 or p >= LEVEL:
        return row | {"missing": "size" if row["value"] == 1.0 else "trials"}
    return row | {"holds": bool(row["value"] > 1)}


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


@claim(
    "Figure 6c", "rise of the accuracy with alpha_* under a spurious background, in standard "
    "errors", ">", ERRORS, **OF_IMAGES,
    words="rise of the accuracy from alpha_* = {least:.2g} to 1: {rises} ({seeds} seeds)",
    picture=Picture("alpha_*", ACCURACY, {"half": 50.0}, ("linear", "linear")),
)  # fmt: skip
def figure_6c(case: Case) -> Row:
    """Accuracy with a 90/10 background against the share of background that is dropped."""
    found = _trained(case, lambda seeds: textured_images.spurious(seeds, ENDS))
    rises = [growth(found.values[:, k]) for k in range(len(GROUPS))]
    told = "; ".join(f"{group} {rise}" for group, rise in zip(GROUPS, rises, strict=True))
    return {
        "value": rises[0].errors, "least": found.shares[0], "rises": told,
        "seeds": found.values.shape[-1],
        "curves": {group: (found.shares, 100 * found.values[:, k].mean(axis=1))
                   for k, group in enumerate(GROUPS)},
    }  # fmt: skip


@claim(
    "Figure 6c, initial model", "accuracy from the better initial model minus that from the other, "
    "the least over alpha_*, in standard errors", ">", ERRORS, **OF_IMAGES,
    words="from a network that was trained on {more} images of the other classes the accuracy is "
    "higher by {rises} than from one of {fewer} ({seeds} seeds)",
    picture=Picture("alpha_*", ACCURACY, {"half": 50.0}, ("linear", "linear")),
)  # fmt: skip
def better_start(case: Case) -> Row:
    """Accuracy with a 90/10 background from two networks that other classes trained."""
    found = _trained(case, textured_images.from_other_classes)
    fewer, more = found.samples
    gains = [estimate(row[1] - row[0]) for row in found.values]
    told = ", ".join(f"{gain} at alpha_* = {share:.2g}"
                     for share, gain in zip(found.shares, gains, strict=True))  # fmt: skip
    return {
        "value": min(gain.errors for gain in gains), "rises": told, "fewer": fewer, "more": more,
        "seeds": found.values.shape[-1],
        "curves": {f"{n} images before": (found.shares, 100 * found.values[:, k].mean(axis=1))
                   for k, n in enumerate(found.samples)},
    }  # fmt: skip
