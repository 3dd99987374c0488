"""Unmasked patches of an area, the unavoidable loss, and correlations with positions alone.

The available text of the paper has the proofs of Lemmas A.6, A.7, A.9 and A.10 in words, without
formulas. As recalled here, the number h of unmasked patches among the C patches of an area is
hypergeometric with mean (1 - gamma) C. The lemmas are:

- A.6: |h - (1 - gamma) C| > (1 - gamma) C / 2 has at most the probability 2 exp(-(1 - gamma)^2 C /
  2), Hoeffding's bound, which holds for draws without replacement;
- A.7: h = 0 has at most the probability gamma^C = exp(-C ln(1/gamma)), a product of C shares;
- A.9: the infimum L*_p of the loss is at least L_p^low, the mean of z^2 / 2 over masks that hide
  all of p's area, and descent approaches L_p^low arbitrarily closely;
- A.10: l <= L_p - L_p^low <= l + U^2 b, where l is the loss over masks with |h - (1 - gamma) C| <=
  (1 - gamma) C / 2, b is the bound of A.6 and U^2 is the largest loss of an image.

Claims of Sections 3.1, 4 and 5.4 are on correlations with positions. They concern the minimum loss
with these correlations alone (`theory.papers.masked_image_modeling.positions_alone`), the attention
to masked patches, and the size of these correlations after training.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import comb, exp
from typing import Any

import numpy as np

from dynamics.training.descent import descend
from dynamics.verdicts.cases import Case
from dynamics.verdicts.claim import TIME, Also, Picture, Row
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.masked_image_modeling import grid
from dynamics.verdicts.masked_image_modeling.grid import ROUNDING, known_error
from dynamics.verdicts.masked_image_modeling.identities import (
    AT_RANDOM_Q,
    STEPS,
    at_random_q,
    enumerated,
)
from theory.papers.masked_image_modeling.averages import queries
from theory.papers.masked_image_modeling.model import fully_masked
from theory.papers.masked_image_modeling.positions_alone import least_by_positions, position_loss

HALF = Fraction(1, 2)
"""Relative deviation from the mean above which a number of unmasked patches is unlikely (A.6)."""
NEAR = 0.05
"""Maximum share of the initial loss above the floor at which the floor counts as reached."""
SIZES = (2, 4, 8, 12, 16, 24, 32, 48, 64)
"""Sizes of areas, in patches, along the axis of a picture."""
CHANCES: dict[str, Any] = {
    "laws": (*(
        {"P": P, "C_global": P // 2, "C_local": size, "masked": masked}
        for P in (64, 256, 1024) for size in (4, 16) for masked in (P // 4, P // 2, 3 * P // 4)
    ), grid.SMALL),
    "words": "at most {value:.3g} of the bound, for areas of C={sizes}, chances exact",
    "picture": Picture("patches of the area", "chance over its bound", {"bound": 1.0}),
}  # fmt: skip
ONE = {"P": 40, "C_global": 16, "C_local": 4, "masked": 20}
TWO = {"family": "two_cluster_grid", "b11": 8, "b10": 8, "C_local": 4, "T": 1, "masked": 20}
"""Two clusters whose local areas, all of equal size, cross like rows and columns."""
LEFT = 0.1
"""Minimum share of the initial loss above the floor at which attention counts as insufficient."""
NOTHING = 1e-6
"""Maximum share of the initial loss above the floor that counts as zero."""
MOST = 200
"""Maximum number of patches; above it, a convex program with a variable per patch is slow."""
STRONG = 30.0
"""Size of scores z Phi so large that attention by features is on the own area only."""
CLOSE = 1.1
"""Factor allowed in the bound |Ups| <= Phi_m / (C_s - 1) for a local patch with C_s - 1 mates."""
ALONE: dict[str, Any] = {
    "also": (
        Also("features", "<=", NOTHING, "largest share that features alone leave"),
        Also("off", "<=", 1e-9, "distance of the quadratic from the loss at the start, relative"),
    ),
    "words": "positions alone leave {each} of the first loss above the floor, features "
    "{features:.1e}",
    "picture": Picture("patch", "attention to it with the best\ncorrelations with positions",
                       {}, ("linear", "linear")),
}  # fmt: skip


def off_chance(P: int, masked: int, size: int) -> Fraction:
    """Probability that an area's number of unmasked patches is over 3/2 or below 1/2 its mean."""
    mean = Fraction(size * (P - masked), P)
    off = [h for h in range(size + 1) if abs(h - mean) > HALF * mean]
    ways = sum(comb(size, h) * comb(P - size, P - masked - h) for h in off if h <= P - masked)
    return Fraction(ways, comb(P, masked))


def _bound_of_a_6(gamma: float, size: int) -> float:
    return 2 * exp(-((1 - gamma) ** 2) * size / 2)


@grid.claim(
    "Lemma A.6", "largest chance of the complement of the event, over 2 exp(-c C)", "<=", 1.0,
    **CHANCES,
)  # fmt: skip
def lemma_a_6(case: Case) -> Row:
    """Probability of an unlikely number of unmasked patches in an area, divided by its bound."""
    return _chances(case, off_chance, _bound_of_a_6)


@grid.claim(
    "Lemma A.7", "largest chance that an area is masked as a whole, over exp(-c C)", "<=", 1.0,
    **CHANCES,
)  # fmt: skip
def lemma_a_7(case: Case) -> Row:
    """Probability that an area is masked as a whole, divided by the bound of the lemma."""
    return _chances(case, fully_masked, lambda gamma, size: gamma**size)


def _chances(case: Case, chance: Callable[..., Any], bound: Callable[..., float]) -> Row:
    """Row with the largest ratio of ``chance`` to ``bound`` over the areas of a law."""
    law = case.parameters
    sizes = sorted({int(n) for areas in law.area_ids for n in np.bincount(areas)})
    exact = [float(chance(law.P, law.masked, n)) for n in sizes]
    ratios = [share / bound(law.gamma, n) for share, n in zip(exact, sizes, strict=True)]
    shown = [n for n in SIZES if n < law.P] if law.C_local != 16 else []
    drawn = [float(chance(law.P, law.masked, n)) / bound(law.gamma, n) or np.nan for n in shown]
    curve = {rf"$P={law.P}$, $\gamma = {law.gamma:.2g}$": (shown, drawn)} if shown else {}
    return {"value": max(ratios), "sizes": ", ".join(map(str, sizes)), "curves": curve}


@grid.claim(
    "Lemma A.9", "least loss of a patch over the unavoidable error, along descent", ">=",
    1.0 - ROUNDING, laws=(grid.SMALL,), run=grid.descended, varies=("step size", "time"),
    also=(
        Also("full", ">=", 1.0 - ROUNDING, "the same of every entry of Q"),
        Also("left", "<=", NEAR, "share of the first distance from the floor left"),
    ),
    words="the floors are {floors}, and {left:.2g} of the first distance is left; masked keys hold "
    "{hidden:.2f} of the attention",
    picture=Picture(TIME, "loss over the unavoidable error", {"unavoidable": 1.0}),
)  # fmt: skip
def lemma_a_9(case: Case) -> Row:
    """Loss of local and global patches divided by the unavoidable error, along descent."""
    law, run, rows = case.parameters, case.run, case.problem.rows
    least, full, left, curves = [], [], [], {}
    floors = {n: float(f) for n, f in zip(rows.names, rows.floors, strict=True) if f > 0}
    if not floors:
        raise Undecided("no mask hides a whole area, so the bound is 0", "law")
    try:
        every = descend(enumerated(case, 3 * STEPS), case.rate(1.0), case.steps(STEPS))
    except Undecided:  # too many masked images for the full problem
        every = run
    for name, floor in floors.items():
        gap, rounding = run[f"{name}_gap"], known_error(law) * law.gamma * law.U**2
        least.append(1.0 if 0 < -gap.min() <= rounding else 1 + gap.min() / floor)
        full.append(1 + every[f"{name}_gap"].min() / floor)
        left.append(gap[-1] / gap[0])
        curves[f"{name}, over its floor"] = (run.time[1:], 1 + gap[1:] / floor)
    row: Row = {"value": min(least), "full": min(full), "left": max(left), "curves": curves}
    row |= {"floors": ", ".join(f"{floor:.4g}" for floor in floors.values())}
    row |= {"hidden": float(run[f"{next(iter(floors))}_masked"][-1])}
    return row | ({"open": "time"} if min(*least, *full) >= 1 - ROUNDING else {})


@grid.claim(
    "Lemma A.10",
    "largest of L_p - L_p^low, less the loss over likely masks, over its bound, at random Q", "<=",
    1.0, **AT_RANDOM_Q | {"words": "{least:.2g} at least, {value:.2g} of U^2 2 exp(-c C) at most"},
    also=(Also("least", ">=", -ROUNDING, "least of that difference"),),
)  # fmt: skip
def lemma_a_10(case: Case) -> Row:
    """Loss above the unavoidable error without the part of likely masks, over the lemma's bound."""
    law, least = case.parameters, []

    def measure(problem: Any, generator: np.random.Generator, spread: float) -> float:
        phi = spread * generator.normal(size=(law.P, law.features))
        ups = spread * generator.normal(size=(law.P, law.P))
        above, bound = np.zeros(law.P), np.zeros(law.P)
        for query in queries(law, phi, ups):
            own, p = query.areas == query.own, query.patch
            size, unmasked = int(own.sum()), (~query.masked & own).sum(axis=1)
            mean = size * (1 - law.gamma)
            low = np.where(unmasked == 0, query.z[:, query.own] ** 2 / 2, 0.0)
            unlikely = np.where(np.abs(unmasked - mean) <= mean / 2, 0.0, query.loss)
            above[p] += query.weight @ (unlikely - low)
            bound[p] += law.U**2 * _bound_of_a_6(law.gamma, size) / law.K
        least.append(above.min() / max(1.0, known_error(law) / ROUNDING * law.U**2))
        return float((above / bound).max())

    return at_random_q(case, measure, 0) | {"least": min(least)}


def _few_patches(law: Any) -> None:
    if law.P > MOST:
        words = f"a convex program in P={law.P} variables is slow; at most {MOST} are allowed"
        raise Undecided(words)


def _one_cluster(law: Any) -> None:
    """Raise Undecided unless there is one cluster, with few patches."""
    _few_patches(law)
    if law.K > 1:
        raise Undecided("the claim is about one cluster", "law")


def _patterns_differ(law: Any) -> None:
    """Raise Undecided if every patch has a mate that shares its area in all clusters."""
    _few_patches(law)
    areas = law.area_ids
    mates = (areas[:, :, None] == areas[:, None, :]).all(axis=0).sum(axis=1) - 1
    if law.K < 2 or mates.min() > 0:
        words = "one cluster" if law.K < 2 else "every patch has a mate common to all clusters"
        raise Undecided(f"patterns must differ between clusters; here: {words}", "law")


def _shares(case: Case) -> Row:
    """Share of the initial loss above the floor that is left with positions or features alone."""
    law, problem = case.parameters, case.system.ReducedPopulation(case.parameters)
    rows, first = problem.rows, problem.observables(problem.initial_state)
    strong, size = np.zeros(problem.layout.size), STRONG / law.L
    for kind, start, end in zip(rows.types, rows.starts, rows.starts[1:], strict=False):
        phi = start + len(kind.ups_names)
        strong[phi:end] = -size
        strong[[phi + areas[0].phi for areas in kind.clusters]] = size
    found, curves, after = {}, {}, problem.observables(strong)
    for name, kind, floor in zip(rows.names, rows.types, map(float, rows.floors), strict=True):
        p, start = int(kind.patches[0]), float(first[f"{name}_gap"])
        if start > ROUNDING:
            least, uniform = least_by_positions(law, p), np.full(law.P, 1 / law.P)
            off = abs((position_loss(law, p).value(uniform) - floor) / start - 1)
            hidden = least.attention[p] + (1 - least.attention[p]) * (law.masked - 1) / (law.P - 1)
            shares = ((bound - floor) / start for bound in (least.lower, least.upper))
            found[name] = (*shares, after[f"{name}_gap"] / start, off, hidden)
            curves[name.replace("_", " ")] = (np.arange(law.P), least.attention)
    most = dict(zip(("value", "at_most", "features", "off", "hidden"),
                    map(max, zip(*found.values(), strict=True)), strict=True))  # fmt: skip
    each = ", ".join(f"{max(shares[0], 0.0):.2g} ({name})" for name, shares in found.items())
    return most | {"each": each, "curves": curves}


@grid.claim(
    "Section 3.1",
    "largest share of the first loss above the floor that positions alone leave to a patch", ">=",
    LEFT, laws=(TWO,), thorough=(TWO | {"masked": 1},), require=_patterns_differ, **ALONE,
)  # fmt: skip
def section_3_1(case: Case) -> Row:
    """Minimum loss with positions alone, and loss with features alone, if patterns differ."""
    return _shares(case)


@grid.claim(
    "Section 3.1, one cluster",
    "largest share of the first loss above the floor that positions alone leave to a patch", "<=",
    NOTHING, laws=(ONE | {"masked": 1},), require=_one_cluster, **ALONE,
)  # fmt: skip
def one_cluster(case: Case) -> Row:
    """Minimum loss with positions alone in one cluster, where only patch p is masked."""
    row = _shares(case)
    # If more patches of the own area are masked, they draw attention (see `masked_patches`).
    return row | {"value": row["at_most"]} | ({"open": "law"} if case.parameters.masked > 1 else {})


@grid.claim(
    "Section 4, masked patches",
    "attention to masked patches with positions alone over that with all correlations", ">", 1.0,
    laws=(ONE,), run=grid.descended, require=_one_cluster, varies=("time",),
    also=(Also("left", ">=", LEFT, "share of the first loss above the floor that they leave"),),
    words="masked patches hold {hidden:.2g} of the attention with the best correlations with "
    "positions alone, which leave {left:.2g} of the loss, and {after:.2g} after training",
    picture=Picture(TIME, "attention to masked patches"),
)  # fmt: skip
def masked_patches(case: Case) -> Row:
    """Attention to masked patches in one cluster, with positions alone and after training."""
    row, run = _shares(case), case.run
    series = {name: run[f"{name}_masked"] for name in case.problem.rows.names}
    after = max(float(values[-1]) for values in series.values())
    curves = {f"{n}, all correlations": (run.time[1:], s[1:]) for n, s in series.items()}
    curves["positions alone"] = (run.time[1:], np.full(run.time.size - 1, row["hidden"]))
    found = {"hidden": row["hidden"], "left": row["value"], "after": after, "curves": curves}
    return found | {"value": row["hidden"] / after}


@grid.claim(
    "Section 5.4, PP", "largest |Ups| of a local patch over Phi_m at the end", "<=",
    grid.SMALL_SHARE, laws=[grid.POSITIVE | {"C_local": size} for size in (16, 32, 64)],
    run=grid.descended, require=grid.requires(large=True, many=True), varies=("step size", "time"),
    also=(Also("mates", "<=", CLOSE, "that share times C_s - 1"),),
    words="{value:.3g} of Phi_m, {mates:.3g} times 1/(C_s - 1)",
    picture=Picture(TIME, r"largest $|\Upsilon|$ over $\Phi_m$", {"nearly zero": grid.SMALL_SHARE}),
)  # fmt: skip
def section_5_4(case: Case) -> Row:
    """Largest final correlation of a local patch with a position, divided by Phi_m."""
    law, run, (_, own, others) = case.parameters, case.run, case.problem.rows.roles(local=True)
    sizes = np.abs([run[name] for name in others if "_Ups_" in name]).max(axis=0)
    share = sizes[1:] / np.abs(run[own][1:])
    row: Row = {"value": float(share[-1]), "mates": float(share[-1]) * (law.C_local - 1)}
    row |= {"curves": {f"$C_s = {law.C_local}$": (run.time[1:], share)}}
    return row | ({"open": "size"} if not case.label else {})
