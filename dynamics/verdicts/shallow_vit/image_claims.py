"""Claims of Section 4.2 on images with textures, measured on digits with a small network.

Training uses one learning rate, so a contradiction stays undecided.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dynamics.images.protocol import Estimate, estimate
from dynamics.problem import FloatArray
from dynamics.validation import InvalidRequest
from dynamics.verdicts.cases import Case
from dynamics.verdicts.claim import Also, Decorator, Picture, Row, claim
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.images import ERRORS
from dynamics.verdicts.shallow_vit import textured_images as images
from dynamics.verdicts.shallow_vit.textured_images import ENDS, GROUPS, SAMPLES, SUCCESS, Trials

TWO = SAMPLES[1::2]
"""Numbers of samples N in Figure 6a: every second one of those in Figure 6b."""
LEVEL = 0.05
"""P-value above which a difference between two shares of trials may be chance."""
SEEDS, MORE_SEEDS = 5, 10
ACCURACY = "test accuracy (%)"
SPURIOUS = Picture("alpha_*", ACCURACY, {"half": 50.0}, ("linear", "linear"))


def on_images(source: str, quantity: str, bound: float, train: Any, **data: Any) -> Decorator:
    """Decorate a claim, without Parameters, on networks that ``train(seeds)`` trains on images."""

    def run(case: Case) -> tuple[None, Trials]:
        many = MORE_SEEDS if case.thorough else SEEDS
        try:
            return None, train(range(case.seed, case.seed + many))
        except InvalidRequest as refusal:  # a package is not installed
            raise Undecided(str(refusal), "measurement") from refusal

    once = {"laws": None, "varies": ("step size",), "again": False}
    return claim(source, quantity, ">", bound, run=run, **once | data)


def growth(values: FloatArray) -> Estimate:
    """Last minus first value along the first axis; the differences are paired by seed."""
    return estimate(values[-1] - values[0])


def row_of(found: Trials, x: Sequence[Any], curves: dict[str, FloatArray], **more: Any) -> Row:
    """Row with `curves` against `x`, as percentages, and with the number of seeds in `found`."""
    drawn = {label: (x, 100 * shares) for label, shares in curves.items()}
    return {**more, "seeds": found.values.shape[-1], "curves": drawn}


@on_images(
    "Figure 6a", "least rise of the accuracy with alpha_*, in standard errors", ERRORS,
    lambda seeds: images.classes(TWO, seeds, ENDS), also=(
        Also("with_N", ">", ERRORS, "least rise of the accuracy with N, in standard errors"),),
    words="from alpha_* = {least:.2g} to 1 the accuracy rises by {rises}; with N it rises by at "
    "least {growth:.3f} ({seeds} seeds)",
    picture=Picture("N", ACCURACY, {"77.5": 100 * SUCCESS}, ("log", "linear")),
)  # fmt: skip
def figure_6a(case: Case) -> Row:
    """Rise of the test accuracy if all background patches are dropped, and if N grows."""
    found: Trials = case.run
    rises = [growth(found.values[:, n]) for n in range(len(TWO))]
    along = [growth(row) for row in found.values]
    means = found.values.mean(axis=2)
    return row_of(
        found, TWO, {f"alpha_* = {s:.2g}": row for s, row in zip(found.shares, means, strict=True)},
        value=min(rise.errors for rise in rises), with_N=min(each.errors for each in along),
        rises="; ".join(f"{rise} at N={n}" for n, rise in zip(TWO, rises, strict=True)),
        growth=min(each.mean for each in along), least=found.shares[0],
    )  # fmt: skip


@on_images(
    "Figure 6b", "N at the least alpha_* over N at 1, for half of the trials to succeed", 1.0,
    lambda seeds: images.classes(SAMPLES, seeds, ENDS),
    words="of N = {counts}, half of {seeds} trials succeed at {needed}{chance}",
    picture=Picture("N", "trials that succeed (%)", {"half": 50.0}, ("log", "linear")),
)  # fmt: skip
def figure_6b(case: Case) -> Row:
    """Minimum N at which half of the trials reach the paper's test accuracy."""
    from scipy.stats import fisher_exact

    found: Trials = case.run
    needed, shares, many = found.needed(), found.successes(), found.values.shape[-1]
    told = ", ".join(
        f"{n:g} at alpha_* = {share:.2g}"
        if np.isfinite(n)
        else f"above {SAMPLES[-1]} at {share:.2g}"
        for share, n in zip(found.shares, needed, strict=True)
    )
    curves = {f"alpha_* = {s:.2g}": part for s, part in zip(found.shares, shares, strict=True)}
    row = row_of(found, SAMPLES, curves, value=np.nan, counts=", ".join(map(str, SAMPLES)),
                 needed=told, chance="", holds=None, missing="size")  # fmt: skip
    if not np.isfinite(needed[-1]):
        return row
    level, ratio = min(needed[0], needed[-1]), needed[0] / needed[-1]
    pair = shares[[0, -1], SAMPLES.index(int(level))]
    succeed = np.rint(pair * many)
    p = float(fisher_exact(np.stack([succeed, many - succeed])).pvalue)  # if chances are equal
    told = f"; at N={level:g} {pair[0]:.0%} and {pair[1]:.0%} succeed, p = {p:.2g}"
    row |= {"value": ratio, "chance": told}
    if ratio == 1.0 or p >= LEVEL:
        return row | {"missing": "size" if ratio == 1.0 else "trials"}
    return row | {"holds": bool(ratio > 1)}


@on_images(
    "Figure 6c", "rise of the accuracy with alpha_* under a spurious background, in standard "
    "errors", ERRORS, lambda seeds: images.spurious(seeds, ENDS), picture=SPURIOUS,
    words="rise of the accuracy from alpha_* = {least:.2g} to 1: {rises} ({seeds} seeds)",
)  # fmt: skip
def figure_6c(case: Case) -> Row:
    """Test accuracy with a spurious background (90 % of one class, 10 % of the other)."""
    found: Trials = case.run
    rises = [growth(found.values[:, k]) for k in range(len(GROUPS))]
    told = "; ".join(f"{group} {rise}" for group, rise in zip(GROUPS, rises, strict=True))
    curves = dict(zip(GROUPS, found.values.mean(axis=2).T, strict=True))
    least, value = found.shares[0], rises[0].errors
    return row_of(found, found.shares, curves, value=value, least=least, rises=told)


@on_images(
    "Figure 6c, initial model", "accuracy from the better initial model minus that from the other, "
    "the least over alpha_*, in standard errors", ERRORS,
    lambda seeds: images.from_other_classes(seeds), picture=SPURIOUS,
    words="from a network that was trained on {more} images of the other classes the accuracy is "
    "higher by {rises} than from one of {fewer} ({seeds} seeds)",
)  # fmt: skip
def better_start(case: Case) -> Row:
    """Test accuracy with a spurious background, after pretraining on few and on many images."""
    found: Trials = case.run
    gains = [estimate(row[1] - row[0]) for row in found.values]
    pairs = zip(found.shares, gains, strict=True)
    told = ", ".join(f"{gain} at alpha_* = {share:.2g}" for share, gain in pairs)
    labels, (fewer, more) = [f"{n} images before" for n in found.samples], found.samples
    curves = dict(zip(labels, found.values.mean(axis=2).T, strict=True))
    return row_of(found, found.shares, curves, value=min(gain.errors for gain in gains),
                  rises=told, fewer=fewer, more=more)  # fmt: skip
