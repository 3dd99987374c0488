"""Correlations with positions: the key observation of Section 5.1, and Section 5.4.

Image by image a rate of Ups is the share u_q / A of that of Phi where the key q is unmasked. Means
over images compare otherwise: a masked mate moves Ups by -u_q r, and rates of Phi cancel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics.verdicts import rules
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.masked_image_modeling import runs
from dynamics.verdicts.masked_image_modeling.averaged_claims import (
    CROSSED,
    attention,
    feature_rate,
    position_rates,
)
from dynamics.verdicts.masked_image_modeling.rounding_of_terms import (
    ROUNDING,
    SPREADS,
)
from dynamics.verdicts.study import TIME, Measurement, Study, measures
from dynamics.verdicts.wording import counted
from theory.papers.masked_image_modeling.images import sampled_images

CLOSE = 0.1
"""Relative distance up to which one number is near another."""
LOCAL_SIZES = tuple({"P": 4096, "C_global": 2048, "C_local": size} for size in (16, 32, 64))
PAIRS = {"P": 4096, "C_global": 2048, "C_local": 2}
"""Local areas of two patches: one mate."""
IMAGES = 200
"""Masked images at each spread of the entries of Q."""
MANY_MATES = runs.requires(large=True, many=True)
STEP = ("step size",)


def _latents_are_one(law: Any) -> None:
    """Screen for z = 1: |rate of Ups| is at most |rate of Phi| / z, as Phi moves by z r."""
    runs.requires()(law)
    if law.z != (1.0,):
        reason = (
            "rates of Ups and Phi are compared at z = 1: image by image the rate of Ups is at most "
            "1/z of that of Phi"
        )
        raise Undecided(reason, "law", parameters=runs.sizes_of(law))


@measures(
    "largest excess of a rate of Ups over that of Phi, image by image, over the largest rate",
    "<=", ROUNDING, _latents_are_one, single=("seed",), again=True,
)  # fmt: skip
def key_observation(study: Study) -> Finding:
    """Rates of Ups against those of Phi of the same area, at random rows of Q and along descent."""
    for law in study.laws(CROSSED, runs.SMALL, runs.POSITIVE):
        pairs = [_excess(law, spread, study.seed) for spread in SPREADS]
        excess, share = (float(max(values)) for values in zip(*pairs, strict=True))
        study.row(runs.sizes_of(law), excess=excess, share=share)
    most = max(study.column("excess"))
    study.literal = _literal(study)
    reason = (
        f"in {IMAGES * len(SPREADS)} masked images of each of "
        f"{counted(len(study.rows), 'law')} no rate of "
        f"Ups to an unmasked key exceeds that of Phi of its area, up to {max(most, 0.0):.1e} of "
        f"the largest: u_q / A is {max(study.column('share')):.3g} at most"
        if most <= ROUNDING
        else f"a rate of Ups exceeds that of Phi by {most:.2g} of the largest"
    )
    if study.curves:
        study.draw(TIME, r"rate of $\Upsilon$ over rate of $\Phi$, means", {"equal rates": 1.0})
    return study.conclude(most, reason)


def _excess(law: Any, spread: float, seed: int) -> tuple[float, float]:
    """|rate of Ups| - |rate of Phi| over the largest, and u/A, largest over images and keys.

    One random row of Q, its patch masked in all images that are used.
    """
    generator = np.random.default_rng(seed)
    images = sampled_images(law, IMAGES, generator)
    hidden = images.hidden
    p = int(images.masked[0, 0])
    excess, share, largest = 0.0, 0.0, 0.0
    for k, cluster in enumerate(law.area_ids):
        used = (images.cluster == k) & hidden[:, p]
        if not used.any():
            continue
        z, masked, m = images.latent[used], hidden[used], int(cluster[p])
        phi = spread * generator.normal(size=int(cluster.max()) + 1)
        u = attention(z, masked, phi[cluster], spread * generator.normal(size=law.P))
        inside = np.eye(phi.size)[cluster]
        A = np.where(masked, 0.0, u) @ inside
        latents = z[:, [int(np.argmax(cluster == a)) for a in range(phi.size)]]
        alpha = np.stack([feature_rate(latents, A, m, i) for i in range(phi.size)], axis=1)
        beta = u * position_rates(latents, A, m, cluster, masked)
        # Phi of an area moves by z times what its unmasked scores do.
        over = np.where(masked, -np.inf, np.abs(beta) - np.abs(alpha / latents)[:, cluster])
        excess, largest = max(excess, float(over.max())), max(largest, float(np.abs(alpha).max()))
        unmasked = ~masked & (A[:, cluster] > 0)
        share = max(share, float((u[unmasked] / A[:, cluster][unmasked]).max(initial=0.0)))
    return excess / largest if largest else 0.0, share


def _literal(study: Study) -> Finding | None:
    """Rates of Ups over those of Phi of the same area along descent: means over images.

    None where there are several clusters, whose rates the reduced problem has added up.
    """
    if study.parameters is not None and study.parameters.K > 1:
        return None
    rows = []
    for case in runs.cases_of(study, runs.POSITIVE, PAIRS, runs.SMALL):
        ratios, turning = _ratios_by_area(case)
        others = {name: float(r.max()) for name, r in ratios.items() if name != "own"}
        own = float(ratios["own"].max())
        above = [name for name, ratio in others.items() if ratio > 1]
        label = f"P={case.parameters.P}, $C_s = {case.parameters.C_local}$"
        study.curve(label, *case.in_time(ratios["own"]))
        rows.append(case.sizes | {"own": own, "above": above, "turning": turning})
    most = max(row["own"] for row in rows)
    words = ", ".join(f"{row['own']:.3g} (P={row['P']}, C_s={row['C_local']})" for row in rows)
    reason = f"in the own area the rate of Ups is up to {words} of that of Phi"
    if most > 1:
        reason += ", as a masked mate moves Ups by -u_q r, of either sign"
    above = sorted({name for row in rows for name in row["above"]})
    if above:
        reason += f"; it is above that of Phi in the areas called {', '.join(above)}"
        if all(set(row["above"]) <= set(row["turning"]) for row in rows):
            reason += ", where the rate of Phi passes 0"
    holds: bool | None = most <= 1 and not above
    single: tuple[str, ...] = STEP
    if not holds:
        law = study.laws(runs.SMALL)[0]
        again = [
            float(
                _ratios_by_area(runs.trained(study.system, law, runs.LONG, repeat))[0]["own"].max()
            )
            for repeat in rules.repeats(*STEP)
        ]
        holds, single = (False, ()) if above or min(again) > 1 else (None, STEP)
        reason += f"; at half and a quarter of the step size {again[0]:.3g}, {again[1]:.3g}"
        reason += f" at P={law.P}"
    quantity = "largest rate of Ups over that of Phi, own area of a local patch"
    table: dict[str, Any] = {"table": rows}
    return Finding(holds, quantity, most, 1.0, reason, table, relation="<=", single=single)


def _ratios_by_area(case: runs.Case) -> tuple[dict[str, Any], list[str]]:
    """|rate of Ups| / |rate of Phi| for every class of positions of the local row and its area.

    And the classes in whose area the rate of Phi changes its sign.
    """
    rows = case.problem.rows
    number = rows.names.index(case.row(local=True))
    kind, start = rows.types[number], rows.starts[number]
    rates = [f"d_{name}" for name in rows.scalars]
    ratios, turning = {}, []
    for area in kind.clusters[0]:
        phi = case.run[rates[start + len(kind.ups_names) + area.phi]]
        for ups, _ in area.cells:
            with np.errstate(divide="ignore"):
                ratios[kind.ups_names[ups]] = np.abs(case.run[rates[start + ups]]) / np.abs(phi)
            if phi.min() < 0 < phi.max():
                turning.append(kind.ups_names[ups])
    return ratios, turning


@measures(
    "largest |Ups| of a local patch over Phi_m at the end",
    "<=", runs.SMALL_SHARE, MANY_MATES, single=("step size", "time"), again=True,
)  # fmt: skip
def section_5_4(study: Study) -> Finding:
    """Largest correlation with a position against Phi_m at the end, for several local sizes."""
    for case in runs.cases_of(study, *LOCAL_SIZES):
        names = [name for name in case.others(local=True) if "_Ups_" in name]
        values, size = np.abs([case.run[name] for name in names]), case.parameters.C_local
        share = values.max(axis=0)[1:] / np.abs(case.run["Phi_m"][1:])
        largest = names[int(values[:, -1].argmax())]
        study.row(case.sizes, share=float(share[-1]), largest=largest, expected=1 / (size - 1))
        study.curve(f"$C_s = {size}$", case.run.time[1:], share)
    shares, sizes = study.column("share"), study.column("C_local")
    near = np.allclose(np.divide(shares, study.column("expected")), 1.0, rtol=0, atol=CLOSE)
    reason = (
        f"at the end it is {study.listed('share')} of Phi_m at C_s="
        f"{', '.join(map(str, sizes))}, {'near' if near else 'where'} "
        f"1/(C_s - 1) {'=' if near else 'is'} {study.listed('expected')}"
    )
    also, undecided = [], False
    if len(shares) > 1:
        growth = rules.growth(np.subtract(sizes, 1), shares, -1.0)
        undecided = growth.holds is None
        reason += f"; along C_s - 1 it goes with {growth}; in areas of less than {runs.MANY:g}"
        reason += f" patches a mate makes more than {runs.SMALL_SHARE:g} of Phi_m"
        name = "exponent of that share in C_s - 1"
        also = [Measurement(name, growth.fit.exponent, "<=", -1 + rules.SHARE)]
    study.draw(TIME, r"largest $|\Upsilon|$ over $\Phi_m$", {"nearly zero": runs.SMALL_SHARE})
    return study.conclude(max(shares), reason, *also, may_still_come=undecided, missing="size")
