"""Section 6 on real images, measured on the digits by small networks.

By default 500 steps; thorough is the protocol of the figure ``images``. One learning rate is one
case: what it contradicts is not decided. Standard errors over seeds are those of splits and starts
on one data set.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from dynamics.images import datasets
from dynamics.images.networks import CONTROL, POSITIONAL, VANILLA, Transformer
from dynamics.images.protocol import Estimate, combined_p_value, estimate, holm
from dynamics.validation import InvalidRequest
from dynamics.verdicts.claim import Also, Case, Picture, claim
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.images import ERRORS
from dynamics.verdicts.positional_attention import real_images
from dynamics.verdicts.positional_attention.real_images import Plan, Trials, name_of

SMALL, LARGE = 0.02, 1.0
"""Spreads of the positions at the start; from the small one association is looked for."""
LEVEL = 0.01
"""P-value over all seeds, by Holm's correction, below which there is association."""
DEFICIT = 0.03
"""Accuracy by which positional attention is worse on ImageNet, which the paper calls competing."""
QUICK_STEPS = (250, 500)
SHUFFLES = (1, 2, 4)
"""Sides of the blocks of pixels that are moved: all that divide a digit."""
EXACT = 1e-4
"""Change of outputs that is rounding."""
ONE = {"laws": None, "varies": ("step size",), "again": False}
P_VALUES = Picture("steps", "p-value of association, all seeds", {f"{LEVEL:g}": LEVEL})


def _trials(case: Case, kind: str, moved: bool, spread: float = SMALL, s: int = 0) -> Trials:
    """Runs of one network on one kind of pixels, shared by claims; undecided without packages."""
    plan = Plan(
        steps=real_images.STEPS if case.thorough else QUICK_STEPS, spreads=(spread,), shuffle=s,
        seeds=tuple(range(case.seed, case.seed + real_images.SEEDS)), pixels=(moved,),
        kinds=(kind,),
    )  # fmt: skip
    try:
        return real_images.train_once(plan)
    except InvalidRequest as refusal:
        raise Undecided(str(refusal), "measurement") from refusal


def _gaps(*pair: Trials) -> list[Estimate]:
    """Accuracy of the first runs minus that of the second ones at each length, in pairs."""
    first, second = (
        [np.array(each.accuracies(each.names[0], each.plan.pixels[0], n)) for n in each.plan.steps]
        for each in pair
    )
    return [estimate(one - other) for one, other in zip(first, second, strict=True)]


def _p_values(case: Case, moved: bool) -> dict[str, Any]:
    """P-values over all seeds from the small start, along training, and by Holm's correction.

    Corrected are those at the start and at each length, of both kinds and all neighbours.
    """
    series, row = {}, dict[str, Any](curves={})
    for kind in (VANILLA, POSITIONAL):
        trials = _trials(case, kind, moved)
        of_seeds, plan = partial(trials.p_values, name_of(kind, SMALL), moved, "gram"), trials.plan
        for shown in (False, True) if moved else (False,):
            found = [combined_p_value(of_seeds(n, shown)) for n in range(len(plan.records))]
            row["curves"][kind + ", as shown" * shown] = (plan.records[1:], found[1:])
            series[kind, shown] = [found[plan.records.index(n)] for n in (0, *plan.steps)]
    corrected = dict(zip(series, holm(list(series.values())).tolist(), strict=True))
    for kind in (VANILLA, POSITIONAL):
        row |= {kind: corrected[kind, False][-1], f"{kind}_before": corrected[kind, False][0]}
    row["shown"] = min((p[-1] for (_, shown), p in corrected.items() if shown), default=1.0)
    return row | {"seeds": len(plan.seeds), "steps": plan.steps[-1]}


@claim(
    "Figure 1a", "largest p-value that neighbours have more similar positions", "<", LEVEL, **ONE,
    words="p-values over {seeds} seeds, {steps:,} steps, digits: vanilla {vanilla:.2g}, positional "
    "{positional:.2g}; before training {vanilla_before:.2g} and {positional_before:.2g}",
    picture=P_VALUES,
)  # fmt: skip
def figure_1a(case: Case) -> dict[str, Any]:
    """Neighbours against others in the Gram matrix of learned positions."""
    row = _p_values(case, moved=False)
    return row | {"value": max(row[VANILLA], row[POSITIONAL]), "open": "trials"}


@claim(
    "Figure 5c", "largest p-value that original neighbours are associated", "<", LEVEL, **ONE,
    also=(Also("shown", ">=", LEVEL, "least p-value that shown neighbours are associated"),),
    words="p-values over {seeds} seeds, {steps:,} steps, shuffled digits: neighbours of the "
    "original image vanilla {vanilla:.2g}, positional {positional:.2g}, of that shown at least "
    "{shown:.2g}",
    picture=P_VALUES,
)  # fmt: skip
def figure_5c(case: Case) -> dict[str, Any]:
    """Neighbours of the original image and of the shuffled one, in networks on shuffled pixels."""
    row = _p_values(case, moved=True)
    few = {"open": "trials"} if row["shown"] >= LEVEL else {}  # what is not seen is not denied
    return row | {"value": max(row[VANILLA], row[POSITIONAL])} | few


def change_by_shuffling(kind: str, seed: int, side: int = 8) -> float:
    """Relative change of outputs where pixels are shuffled and the positions moved with them.

    Parameters
    ----------
    kind : str
        Of attention.
    seed : int
    side : int
        Of images.
    """
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
    """Accuracy on original minus that on shuffled pixels, at all s; transformers by symmetry."""
    original = _trials(case, CONTROL, False)
    plan, drops = original.plan, {}
    for side in SHUFFLES:
        drops[side] = _gaps(original, _trials(case, CONTROL, True, s=side * (side > 1)))[-1]
    others = {
        kind: _gaps(_trials(case, kind, False), _trials(case, kind, True))[-1]
        for kind in (VANILLA, POSITIONAL)
    }
    curve = [[100 * getattr(each, name) for each in drops.values()] for name in ("mean", "error")]
    return {
        "value": drops[1].errors, "less": drops[1].mean - drops[SHUFFLES[-1]].mean,
        "change": max(change_by_shuffling(kind, case.seed) for kind in others),
        "drops": "; ".join(f"{s}: {drop}" for s, drop in drops.items()), "steps": plan.steps[-1],
        "others": ", ".join(f"{drop} ({kind})" for kind, drop in others.items()),
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
    """The gap between both attentions on original pixels, in pairs of one seed."""
    gaps = {
        spread: _gaps(*(_trials(case, kind, False, spread) for kind in (VANILLA, POSITIONAL)))
        for spread in (SMALL, LARGE)
    }
    plan = _trials(case, VANILLA, False).plan
    ends = {spread: along[-1] for spread, along in gaps.items()}
    low, high = (max(getattr(gap, side) for gap in ends.values()) for side in ("lower", "upper"))
    row = {
        "value": max(gap.mean for gap in ends.values()), "low": low, "high": high,
        "gaps": "; ".join(f"start {spread:g}: {gap}" for spread, gap in ends.items()),
        "seeds": len(plan.seeds), "steps": plan.steps[-1],
        "curves": {
            f"start {spread:g}": (plan.steps, [100 * gap.mean for gap in along],
                                  [100 * gap.error for gap in along])
            for spread, along in gaps.items()
        },
    }  # fmt: skip
    return row | ({"holds": None, "missing": "trials"} if low <= DEFICIT < high else {})
