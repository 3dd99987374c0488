"""Section 6 on real images: networks, patch association along training, and claims.

Three networks (`dynamics.images.networks`) are compared: two transformers that differ only in their
attention, which is vanilla or positional, and a convolutional control. Adam trains all three at one
learning rate, from several seeds, without augmentation, on original images and on images with
permuted blocks of s x s pixels (the paper's grid shuffle of size s).

Positions start as N(0, s_P^2) with the spread s_P. At the spread 0.02, vanilla attention must learn
positions before it can tell patches apart. At the spread 1, positions differ from the start and
hardly move. Association is measured at the spread 0.02; vanilla attention reaches its best accuracy
at the spread 1.

By default claims are measured on the digits for 500 steps; ``thorough`` selects the protocol of the
figure ``images``. A contradiction at one learning rate stays undecided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from dynamics.images import datasets, protocol
from dynamics.images.datasets import Images
from dynamics.images.networks import CONTROL, POSITIONAL, VANILLA, Convolution, Transformer
from dynamics.images.protocol import Estimate, Trained, Trial, estimate
from dynamics.training.progress import bar
from dynamics.validation import InvalidRequest
from dynamics.verdicts.cases import Case
from dynamics.verdicts.claim import Also, Picture, claim
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.images import ERRORS

PATCHES = {8: 1, 28: 4, 32: 4}
"""Side of an image -> default side of its patches, in pixels."""
EARLY = (0, 20, 50, 100, 200)
"""Steps at which association is measured, in addition to those at which runs end."""
WHICH = {"gram": "<p,p>", "scores": "A"}
"""Matrix whose association is measured -> symbol of the matrix in tables."""
STEPS, SPREADS, SEEDS = (500, 2000), (0.02, 1.0), 5
SMALL, LARGE = 0.02, 1.0
"""Spreads of the positions at the start; association is measured from the small one."""
LEVEL = 0.01
"""Patches count as associated if the Holm-corrected p-value of all seeds is below this."""
DEFICIT = 0.03
"""Maximum deficit in accuracy of a competitive network, the paper's deficit on ImageNet."""
QUICK_STEPS = (250, 500)
SHUFFLES = (1, 2, 4)
"""Sides of the permuted blocks of pixels; all divide the side of a digit."""
EXACT = 1e-4
"""Maximum relative change of outputs that counts as rounding."""
ONE = {"laws": None, "varies": ("step size",), "again": False}
P_VALUES = Picture("steps", "p-value of association, all seeds", {f"{LEVEL:g}": LEVEL})


@dataclass(frozen=True)
class Plan:
    """Settings of the runs for a figure or a claim.

    `data`: name as in `datasets.load`; `patch`, `shuffle`: sides in pixels of patches and permuted
    blocks, 0 for the default of `PATCHES` and for blocks of one patch; `steps`: lengths of the
    runs, ascending; `spreads`: standard deviations of the positions at the start; `pixels`: whether
    pixels are shuffled, False, True or both; `kinds`: kinds of networks; `samples`, `tests`:
    numbers of images, 0 for all up to a bound (`datasets.split`).
    """

    data: str = "digits"
    patch: int = 0
    shuffle: int = 0
    steps: tuple[int, ...] = STEPS
    spreads: tuple[float, ...] = SPREADS
    seeds: tuple[int, ...] = tuple(range(SEEDS))
    pixels: tuple[bool, ...] = (False, True)
    kinds: tuple[str, ...] = (VANILLA, POSITIONAL, CONTROL)
    samples: int = 0
    tests: int = 0

    @property
    def records(self) -> tuple[int, ...]:
        """Steps at which a network is recorded."""
        return tuple(sorted({*(n for n in EARLY if n < self.steps[-1]), *self.steps}))

    def networks(self, patch: int) -> dict[str, Transformer | Convolution]:
        """Networks of the plan by name."""
        kinds = [kind for kind in self.kinds if kind != CONTROL]
        found: dict[str, Transformer | Convolution] = {
            name_of(kind, spread): Transformer(kind, patch, spread=spread)
            for spread, kind in product(self.spreads, kinds)
        }
        return found | ({CONTROL: Convolution()} if CONTROL in self.kinds else {})


def name_of(kind: str, spread: float) -> str:
    """Name of a transformer whose positions start with the standard deviation `spread`.

    Examples
    --------
    >>> name_of("vanilla", 0.02)
    'vanilla, start 0.02'
    """
    return f"{kind}, start {spread:g}"


@dataclass(frozen=True)
class Trials:
    """All runs of a plan.

    `patch`, `shuffle`: sides in pixels of patches and of permuted blocks; `runs`: (network, whether
    pixels are shuffled) -> one run for each seed.
    """

    plan: Plan
    patch: int
    shuffle: int
    images: Images
    runs: Mapping[tuple[str, bool], Sequence[Trained]]

    @property
    def names(self) -> list[str]:
        """Names of the networks."""
        return list(dict.fromkeys(name for name, _ in self.runs))

    @property
    def views(self) -> list[tuple[str, bool, str, bool]]:
        """Measured associations: (network, pixels shuffled, matrix, neighbours shown or original).

        The matrix is the positions' Gram matrix; positional attention also has its scores. Patches
        are neighbours in the shuffled images (shown), or in the original ones.
        """
        return [
            (name, moved, which, shown)
            for name, moved in self.runs if name != CONTROL
            for which in list(WHICH)[: 1 + name.startswith(POSITIONAL)]
            for shown in (False, True)[: 1 + moved]
        ]  # fmt: skip

    def accuracies(self, name: str, moved: bool, steps: int) -> list[float]:
        """Accuracy of every seed after a number of steps."""
        at = self.plan.records.index(steps)
        return [float(run.accuracy[at]) for run in self.runs[name, moved]]

    def difference(self, first: tuple[str, bool], second: tuple[str, bool], steps: int) -> Estimate:
        """Accuracy of the first runs minus that of the second, paired by seed."""
        one, other = (np.array(self.accuracies(*each, steps)) for each in (first, second))
        return estimate(one - other)

    def p_value(self, name: str, moved: bool, which: str, shown: bool, steps: int) -> float:
        """P-value of association, combined over all seeds; for scores the test is two-sided."""
        at, kind = self.plan.records.index(steps), "p_value" if which == "gram" else "either"
        found = [run.association(which, at, shown) for run in self.runs[name, moved]]
        return protocol.combined_p_value([getattr(each, kind) for each in found])

    @cached_property
    def corrected(self) -> Mapping[tuple[Any, ...], float]:
        """`p_value` by (*view, steps), Holm-corrected over views at step 0 and each run's end."""
        keys = [(*view, steps) for view in self.views for steps in (0, *self.plan.steps)]
        values = protocol.holm([self.p_value(*key) for key in keys])
        return dict(zip(keys, values.tolist(), strict=True))


def train_all(plan: Plan, folder: Path | None = None) -> Trials:
    """Train all networks of a plan; runs with a checkpoint in `folder` are resumed."""
    images = datasets.load(plan.data)
    patch = plan.patch or PATCHES.get(images.side, 1)
    shuffle = plan.shuffle or patch
    protocol.check_shuffle(images, Transformer(patch=patch), shuffle)
    networks = plan.networks(patch)
    total = len(networks) * len(plan.pixels) * len(plan.seeds) * plan.steps[-1]
    runs: dict[tuple[str, bool], list[Trained]] = {}
    with bar(f"networks on {Path(images.name).name}", total) as progress:
        # Runs are grouped by seed, so that an interrupted protocol has complete seeds.
        for seed, (name, network), moved in product(plan.seeds, networks.items(), plan.pixels):
            more = plan.records, plan.samples, plan.tests
            trial = Trial(network, seed, shuffle if moved else 0, *more)
            run = protocol.train_trial(images, trial, folder, progress.update)
            runs.setdefault((name, moved), []).append(run)
    return Trials(plan, patch, shuffle, images, runs)


train_once = lru_cache(maxsize=16)(train_all)
"""Cached `train_all`, for runs that claims share."""


def _trials(case: Case, kind: str, moved: bool, spread: float = SMALL, s: int = 0) -> Trials:
    """Cached runs of one network on one kind of pixels; undecided if packages are missing."""
    plan = Plan(
        steps=STEPS if case.thorough else QUICK_STEPS, spreads=(spread,), shuffle=s,
        seeds=tuple(range(case.seed, case.seed + SEEDS)), pixels=(moved,),
        kinds=(kind,),
    )  # fmt: skip
    try:
        return train_once(plan)
    except InvalidRequest as refusal:
        raise Undecided(str(refusal), "measurement") from refusal


def _gaps(*pair: Trials) -> list[Estimate]:
    """Accuracy of the first trials minus that of the second, by length of run, paired by seed."""
    first, second = (
        [np.array(each.accuracies(each.names[0], each.plan.pixels[0], n)) for n in each.plan.steps]
        for each in pair
    )
    return [estimate(one - other) for one, other in zip(first, second, strict=True)]


def _p_values(case: Case, moved: bool) -> dict[str, Any]:
    """Row with p-values along training from the small spread, and with Holm-corrected ones."""
    series, curves = {}, {}
    for kind, shown in product((VANILLA, POSITIONAL), (False, True)[: 1 + moved]):
        trials = _trials(case, kind, moved)
        plan, name = trials.plan, name_of(kind, SMALL)
        found = {n: trials.p_value(name, moved, "gram", shown, n) for n in plan.records}
        curves[kind + ", as shown" * shown] = (plan.records[1:], [*found.values()][1:])
        series[kind, shown] = [found[n] for n in (0, *plan.steps)]
    corrected = dict(zip(series, protocol.holm(list(series.values())).tolist(), strict=True))
    row: dict[str, Any] = {"curves": curves, "seeds": len(plan.seeds), "steps": plan.steps[-1]}
    for kind in (VANILLA, POSITIONAL):
        row |= {kind: corrected[kind, False][-1], f"{kind}_before": corrected[kind, False][0]}
    row["value"] = max(row[VANILLA], row[POSITIONAL])
    row["shown"] = min((p[-1] for (_, shown), p in corrected.items() if shown), default=1.0)
    return row


@claim(
    "Figure 1a", "largest p-value that neighbours have more similar positions", "<", LEVEL, **ONE,
    words="p-values over {seeds} seeds, {steps:,} steps, digits: vanilla {vanilla:.2g}, positional "
    "{positional:.2g}; before training {vanilla_before:.2g} and {positional_before:.2g}",
    picture=P_VALUES,
)  # fmt: skip
def figure_1a(case: Case) -> dict[str, Any]:
    """P-value that neighbours have more similar positions than other pairs, after training."""
    return _p_values(case, moved=False) | {"open": "trials"}


@claim(
    "Figure 5c", "largest p-value that original neighbours are associated", "<", LEVEL, **ONE,
    also=(Also("shown", ">=", LEVEL, "least p-value that shown neighbours are associated"),),
    words="p-values over {seeds} seeds, {steps:,} steps, shuffled digits: neighbours of the "
    "original image vanilla {vanilla:.2g}, positional {positional:.2g}, of that shown at least "
    "{shown:.2g}",
    picture=P_VALUES,
)  # fmt: skip
def figure_5c(case: Case) -> dict[str, Any]:
    """P-values for original and for shuffled neighbours, after training on shuffled images."""
    row = _p_values(case, moved=True)
    # A large p-value does not exclude an association.
    return row | ({"open": "trials"} if row["shown"] >= LEVEL else {})


def change_by_shuffling(kind: str, seed: int, side: int = 8) -> float:
    """Relative change of a transformer's outputs if pixels and positions are permuted alike."""
    network, random = Transformer(kind), np.random.default_rng(seed)
    theta = network.start(side, 1, 10, seed) | {"head": random.normal(size=(network.width, 10))}
    pixels = random.normal(size=(8, side, side, 1)).astype(np.float32)
    order = random.permutation(side**2)
    moved = {**theta, "position": theta["position"][order]}
    outputs = np.asarray(network.outputs(theta, pixels))
    there = np.asarray(network.outputs(moved, datasets.shuffled(pixels, order, 1)))
    return float(np.abs(there - outputs).max() / np.abs(outputs).max())


@claim(
    "Figure 5a", "drop of the convolution by shuffling single pixels, in standard errors", ">",
    ERRORS, **ONE,
    also=(
        Also("change", "<", EXACT, "change of a transformer's outputs where its positions are "
             "moved with the pixels"),
        Also("less", ">", 0.0, "drop of the convolution at the least s less that at the largest"),
    ),
    words="drop of the convolution at s = {drops}, {seeds} seeds, {steps:,} steps, digits; the "
    "outputs of both transformers are the same to {change:.0e} where the positions are moved with "
    "the pixels, and their starts are draws of one law: exactly the same accuracies in law, at "
    "every s; as trained, drops of {others}",
    picture=Picture("side of the blocks $s$", "drop of accuracy (points ± s.e.)", {"0": 0.0},
                    ("log", "linear")),
)  # fmt: skip
def figure_5a(case: Case) -> dict[str, Any]:
    """Drop of accuracy if s x s blocks of pixels are shuffled; 0 for transformers, by symmetry."""

    def drop(kind: str, side: int = 1) -> Estimate:
        moved = _trials(case, kind, True, s=side * (side > 1))
        return _gaps(_trials(case, kind, False), moved)[-1]

    plan = _trials(case, CONTROL, False).plan
    drops = {side: drop(CONTROL, side) for side in SHUFFLES}
    others = {kind: drop(kind) for kind in (VANILLA, POSITIONAL)}
    curve = [[100 * getattr(each, name) for each in drops.values()] for name in ("mean", "error")]
    return {
        "value": drops[1].errors, "less": drops[1].mean - drops[SHUFFLES[-1]].mean,
        "change": max(change_by_shuffling(kind, case.seed) for kind in others),
        "drops": "; ".join(f"{s}: {each}" for s, each in drops.items()), "steps": plan.steps[-1],
        "others": ", ".join(f"{each} ({kind})" for kind, each in others.items()),
        "seeds": len(plan.seeds), "curves": {CONTROL: (SHUFFLES, *curve)},
    }  # fmt: skip


@claim(
    "Figure 7", "largest accuracy of vanilla minus positional attention", "<=", DEFICIT, **ONE,
    words="vanilla minus positional over {seeds} seeds, {steps:,} steps, digits: {gaps}; between "
    "{low:.3f} and {high:.3f} (95 % each)",
    picture=Picture("steps", "vanilla - positional, accuracy (points ± s.e.)",
                    {"3 points": 100 * DEFICIT}, ("log", "linear")),
)  # fmt: skip
def figure_7(case: Case) -> dict[str, Any]:
    """Accuracy of vanilla minus positional attention on original pixels, paired by seed."""
    plan, ends, curves = _trials(case, VANILLA, False).plan, {}, {}
    for spread in (SMALL, LARGE):
        gaps = _gaps(*(_trials(case, kind, False, spread) for kind in (VANILLA, POSITIONAL)))
        means, errors = ([100 * getattr(g, name) for g in gaps] for name in ("mean", "error"))
        curves[f"start {spread:g}"] = (plan.steps, means, errors)
        ends[f"start {spread:g}"] = gaps[-1]
    low, high = (max(getattr(gap, side) for gap in ends.values()) for side in ("lower", "upper"))
    row = {
        "value": max(gap.mean for gap in ends.values()), "low": low, "high": high,
        "gaps": "; ".join(f"{start}: {gap}" for start, gap in ends.items()),
        "seeds": len(plan.seeds), "steps": plan.steps[-1], "curves": curves,
    }  # fmt: skip
    return row | ({"holds": None, "missing": "trials"} if low <= DEFICIT < high else {})
