"""Unmasked patches of an area, and the losses that masks leave: Lemmas A.6, A.7, A.9 and A.10.

Their formulas are lost in the text at hand, which has their proofs in words. As recalled here h,
the number of unmasked patches among the C of an area, is hypergeometric of mean (1 - gamma) C, and

- A.6: |h - (1 - gamma) C| > (1 - gamma) C / 2 has at most the chance 2 exp(-(1 - gamma)^2 C / 2),
  Hoeffding's bound, which holds for draws without replacement;
- A.7: h = 0 has at most the chance gamma^C = exp(-C ln(1/gamma)), a product of C shares;
- A.9: L*_p is no smaller than L_p^low, the mean of z^2 / 2 over masks that hide all of p's area,
  and descent comes as near to it as one likes;
- A.10: with the loss over the masks of A.6 alone for the middle one, that loss <= L_p - L_p^low <=
  that loss + the greatest loss of an image, U^2, times the bound of A.6.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb, exp
from typing import Any

import numpy as np

from dynamics.problem import FloatArray
from dynamics.training.descent import descend
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.masked_image_modeling.averaged_claims import (
    CROSSED,
    ETA,
    LATENTS,
    STEPS,
    attention,
    enumerated,
    label_of,
)
from dynamics.verdicts.masked_image_modeling.rounding_of_terms import (
    ROUNDING,
    SPREADS,
    known_error,
)
from dynamics.verdicts.masked_image_modeling.runs import LONG, SMALL, at_size, sizes_of, trained
from dynamics.verdicts.study import TIME, Measurement, Study, measures
from dynamics.verdicts.wording import counted
from theory.papers.masked_image_modeling.images import all_images
from theory.papers.masked_image_modeling.model import fully_masked

HALF = Fraction(1, 2)
"""Share of its mean by which the number of unmasked patches of an area may be off."""
LADDER = tuple(
    {"P": P, "C_global": P // 2, "C_local": size, "masked": masked}
    for P in (64, 256, 1024)
    for size in (4, 16)
    for masked in (P // 4, P // 2, 3 * P // 4)
)
"""Laws at which chances are computed as fractions."""
NEAR = 0.05
"""Share of the first loss above the floor that may be left where the floor is reached."""
SHOWN = (2, 4, 8, 12, 16, 24, 32, 48, 64)
"""Sizes of areas in a picture."""
FEW = 16
"""Patches up to which chances are also counted over all masks."""


def off_chance(P: int, masked: int, size: int) -> Fraction:
    """Chance that the unmasked patches of an area are off their mean by more than half of it.

    Parameters
    ----------
    P, masked, size : int
        Patches, how many are masked, patches of the area.
    """
    mean = Fraction(size * (P - masked), P)
    off = [h for h in range(size + 1) if abs(h - mean) > HALF * mean]
    ways = sum(comb(size, h) * comb(P - size, P - masked - h) for h in off if h <= P - masked)
    return Fraction(ways, comb(P, masked))


def bound_of_a_6(gamma: float, size: int) -> float:
    """2 exp(-(1 - gamma)^2 C / 2).

    Parameters
    ----------
    gamma : float
    size : int
        C.
    """
    return 2 * exp(-((1 - gamma) ** 2) * size / 2)


@measures("largest chance of the complement of the event, over 2 exp(-c C)", "<=", 1.0)
def lemma_a_6(study: Study) -> Finding:
    """Chance that the unmasked patches of an area are far from their mean, against the bound."""
    _chances(study, off_chance, bound_of_a_6, lambda h, mean: abs(h - mean) > mean / 2)
    return _of_chances(study, "2 exp(-c C), c = (1 - gamma)^2 / 2")


@measures("largest chance that an area is masked as a whole, over exp(-c C)", "<=", 1.0)
def lemma_a_7(study: Study) -> Finding:
    """Chance that no patch of an area is unmasked, against the bound."""
    _chances(study, fully_masked, lambda gamma, size: gamma**size, lambda h, _: h == 0)
    return _of_chances(study, "exp(-c C), c = ln(1/gamma)")


def _chances(study: Study, chance: Any, bound: Any, event: Any) -> None:
    """Chances of an event and their bounds, in the table and the picture of a study."""
    for law in study.laws(*LADDER, SMALL):
        for size in _area_sizes(law):
            exact = float(chance(law.P, law.masked, size))
            counted = _counted(law, size, event) if law.P <= FEW else exact
            study.row({"P": law.P, "masked": law.masked, "C": size}, chance=exact,
                      ratio=exact / bound(law.gamma, size), counted=counted)  # fmt: skip
    _draw_chances(study, chance, bound)


def _area_sizes(law: Any) -> list[int]:
    """Sizes of the areas of a law, each once."""
    return sorted({int(size) for row in law.area_ids for size in np.bincount(row)})


def _counted(law: Any, size: int, meant: Any) -> float:
    """The same chance by counting masks: an area of that size, all masks of the law."""
    images, chance = all_images(law), 0.0
    k, area = next(
        (k, a)
        for k, row in enumerate(law.area_ids)
        for a, n in enumerate(np.bincount(row))
        if n == size
    )
    inside = law.area_ids[k] == area
    mean = size * (1 - law.gamma)
    for count, weight in zip((~images.hidden & inside).sum(axis=1), images.weight, strict=True):
        chance += weight * bool(meant(int(count), mean))
    return float(chance)


def _draw_chances(study: Study, chance: Any, bound: Any) -> None:
    """Chances and their bounds along the size of the area, at the largest P of the table."""
    most = max(row["P"] for row in study.rows)
    for masked in sorted({row["masked"] for row in study.rows if row["P"] == most}):
        share, sizes = masked / most, [n for n in SHOWN if n < most]
        chances = [float(chance(most, masked, n)) or np.nan for n in sizes]
        study.curve(f"$\\gamma = {share:.2g}$", sizes, chances)
        study.curve(f"its bound, $\\gamma = {share:.2g}$", sizes, [bound(share, n) for n in sizes])
    study.draw(f"patches of the area, $P = {most}$", "chance", x_scale="linear")


def _of_chances(study: Study, bound: str) -> Finding:
    ratios, rows = study.column("ratio"), study.rows
    off = max(abs(row["counted"] - row["chance"]) for row in rows)
    worst = rows[int(np.argmax(ratios))]
    sizes = ", ".join(map(str, sorted({row["C"] for row in rows})))
    reason = (
        f"at most {max(ratios):.3g} of {bound}, at P={worst['P']}, {worst['masked']} masked, "
        f"C={worst['C']}; {counted(len(rows), 'area')} of C={sizes} patches, chances exact"
    )
    name = "largest difference from the chance counted over all masks"
    return study.conclude(max(ratios), reason, Measurement(name, off, "<=", ROUNDING))


@measures(
    "least loss of a patch over the unavoidable error, along descent",
    ">=", 1.0 - ROUNDING, single=("step size", "time"), again=True,
)  # fmt: skip
def lemma_a_9(study: Study) -> Finding:
    """The loss of local and global patches against the unavoidable error, along descent."""
    law = study.law(**SMALL)
    case = trained(study.system, law, LONG, study.repeat)
    rows, least, left = case.problem.rows, [], []
    for name, floor in zip(rows.names, rows.floors, strict=True):
        if floor > 0:
            loss = case.run[f"{name}_gap"] + floor
            short = float(floor - loss.min())
            rounding = known_error(law) * law.gamma * law.U**2
            least.append(1.0 if 0 < short <= rounding else float(loss.min() / floor))
            left.append(float((loss[-1] - floor) / (loss[0] - floor)))
            study.row({"row": name}, floor=float(floor), loss=float(loss[-1]), left=left[-1])
            study.curve(f"{name}, over its floor", case.run.time[1:], loss[1:] / floor)
    if not least:
        reason = "no mask hides a whole area: 0 is the bound"
        raise Undecided(reason, "law", parameters=sizes_of(law))
    reason = (
        f"the loss stays above the mean of z^2/2 over masks that hide the own area, "
        f"{study.listed('floor', 4)}, and descends to {study.listed('loss', 4)}, with "
        f"{study.listed('left', 2)} of the first distance left"
    )
    stated = _with_unmasked_sum(rows, case.row(local=True))
    local = [row["loss"] for row in study.rows if row["row"] == case.row(local=True)]
    if local and local[0] < stated:
        masked = float(case.run[f"{case.row(local=True)}_masked"][-1])
        reason += (
            f"; the step by Cauchy-Schwarz is lost in the text and not judged: sum A_a^2 >= 1/(N "
            f"- 1), if it were that, would ask for {stated:.4g}, but masked keys hold {masked:.2f} "
            "of the attention and the unmasked need not sum to 1"
        )
    also = [Measurement("share of the first distance from the floor left", max(left), "<=", NEAR)]
    try:
        problem, _ = enumerated(study, law, 3 * STEPS)
        full = descend(problem, study.rate(ETA / 2), study.horizon(STEPS))
        ratios = [1 + full[f"{row['row']}_gap"] / row["floor"] for row in study.rows]
        lowest = float(min(values.min() for values in ratios))
        also.append(Measurement("the same of every entry of Q", lowest, ">=", 1 - ROUNDING))
        study.curve("every entry of Q", full.time[1:], ratios[0][1:])
    except Undecided:
        pass
    study.draw(TIME, "loss over the unavoidable error", {"unavoidable": 1.0})
    slow = min(least) >= 1 - ROUNDING
    return study.conclude(
        min(least),
        reason,
        *also,
        parameters=sizes_of(law),
        may_still_come=slow and max(left) > NEAR,
    )


def _with_unmasked_sum(rows: Any, row: str) -> float:
    """What the floor would be if the attention to unmasked patches always summed to 1."""
    number = rows.names.index(row)
    areas = np.array([int(cluster.max()) + 1 for cluster in rows.parameters.area_ids])
    floor, hidden = float(rows.floors[number]), rows.hidden[number]
    if (areas < 2).any() or floor == 0.0:
        return 0.0
    return floor * (1 + float((hidden / (areas - 1)).sum() / hidden.sum()))


@measures(
    "largest of L_p - L_p^low, less the loss over likely masks, over its bound, at random Q",
    "<=", 1.0, single=("seed",), again=True,
)  # fmt: skip
def lemma_a_10(study: Study) -> Finding:
    """The loss above the unavoidable error between that over likely masks, and a little more."""
    scales = []
    for law in study.laws(CROSSED, LATENTS, SMALL):
        # What is enumerated is what `paper_values` goes through; no gradient is needed.
        enumerated(study, law, 0, len(SPREADS))
        generator, values = np.random.default_rng(study.seed), []
        for spread in SPREADS:
            phi = spread * generator.normal(size=(law.P, law.features))
            ups = spread * generator.normal(size=(law.P, law.P))
            values.append(_above_likely(law, phi, ups))
        above, bound = (np.array(part) for part in zip(*values, strict=True))
        scales.append(max(1.0, known_error(law) / ROUNDING * law.U**2))
        study.row(sizes_of(law), least=float(above.min()), ratio=float((above / bound).max()))
        study.curve(label_of(law), SPREADS, above.max(axis=1))
    most, least = max(study.column("ratio")), min(study.column("least"))
    reason = (
        f"L_p - L_p^low exceeds the loss over masks that leave about (1 - gamma) C of the own area "
        f"by {least:.2g} at least and by {most:.2g} of U^2 2 exp(-c C) at most: every patch of "
        f"{counted(len(study.rows), 'law')}, entries of Q of size up to {SPREADS[-1]:g}"
    )
    study.draw("spread of the entries of Q", "difference", x_scale="linear", y_scale="linear")
    lower = Measurement("least of that difference", least, ">=", -ROUNDING * max(scales))
    return study.conclude(most, reason + at_size(study), lower)


def _above_likely(law: Any, phi: FloatArray, ups: FloatArray) -> tuple[FloatArray, FloatArray]:
    """L_p - L_p^low less the loss over likely masks, and the most that it may be, for every p."""
    images, areas = all_images(law), law.area_ids
    offsets = np.concatenate([[0], np.cumsum(areas.max(axis=1) + 1)])
    hidden = images.hidden
    above, bound = np.zeros(law.P), np.zeros(law.P)
    for k, cluster in enumerate(areas):
        inside = np.eye(offsets[k + 1] - offsets[k])[cluster]
        for p in range(law.P):
            used = (images.cluster == k) & hidden[:, p]
            z, masked, weight = images.latent[used], hidden[used], images.weight[used]
            u = np.where(masked, 0.0, attention(z, masked, phi[p, offsets[k] :][cluster], ups[p]))
            A, own = u @ inside, cluster == cluster[p]
            latents = np.where(inside.T[None] > 0, z[:, None, :], 0.0).max(axis=2)
            along = latents * A
            along[:, cluster[p]] -= z[:, p]
            mean = float(own.sum() * (1 - law.gamma))
            unmasked = (~masked & own).sum(axis=1)
            likely = np.abs(unmasked - mean) <= mean / 2
            low = np.where(unmasked == 0, z[:, p] ** 2 / 2, 0.0)
            above[p] += weight @ (np.where(likely, 0.0, (along**2).sum(axis=1) / 2) - low)
            bound[p] += law.U**2 * bound_of_a_6(law.gamma, int(own.sum())) / law.K
    return above, bound
