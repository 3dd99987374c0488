"""Correlations with positions: Sections 3.1, 4 and 5.4.

The least loss that they alone can reach (`theory.papers.masked_image_modeling.positions_alone`),
what they see of masked patches, and how large they become.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics.verdicts.claim import TIME, Also, Case, Picture, Row
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.masked_image_modeling import grid
from dynamics.verdicts.masked_image_modeling.rounding_of_terms import ROUNDING
from theory.papers.masked_image_modeling.positions_alone import least_by_positions, position_loss

ONE = {"P": 40, "C_global": 16, "C_local": 4, "masked": 20}
TWO = {"family": "two_cluster_grid", "b11": 8, "b10": 8, "C_local": 4, "T": 1, "masked": 20}
"""As many patches in one cluster, and in two in which local areas cross like rows and columns."""
LEFT = 0.1
"""Share of the first loss above the floor from which on attention is insufficient."""
NOTHING = 1e-6
"""The same share where nothing is left."""
MOST = 200
"""Patches from which on a convex program with a variable for each takes long."""
STRONG = 30.0
"""Size of the scores, z Phi, with which features alone attend to the own area."""
CLOSE = 1.1
"""Factor up to which one number is near another."""
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


def _few_patches(law: Any) -> None:
    """Screen for sizes at which the convex program is quick."""
    if law.P > MOST:
        words = f"a convex program in P={law.P} variables takes long; at most {MOST} do not"
        raise Undecided(words)


def _one_cluster(law: Any) -> None:
    """Screen for a single cluster, whose patterns do not differ."""
    _few_patches(law)
    if law.K > 1:
        raise Undecided("the claim is about one cluster", "law")


def _patterns_differ(law: Any) -> None:
    """Screen for clusters in which some patch has no mate that is one in all of them."""
    _few_patches(law)
    areas = law.area_ids
    mates = (areas[:, :, None] == areas[:, None, :]).all(axis=0).sum(axis=1) - 1
    if law.K < 2 or mates.min() > 0:
        words = "one cluster" if law.K < 2 else "every patch has a mate that is one in all clusters"
        raise Undecided(f"patterns have to differ between clusters, here {words}", "law")


def _shares(case: Case) -> Row:
    """Shares of the first loss above the floor that positions and features alone leave."""
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
    """Loss that positions alone, and features alone, leave where clusters cross."""
    return _shares(case)


@grid.claim(
    "Section 3.1, one cluster",
    "largest share of the first loss above the floor that positions alone leave to a patch", "<=",
    NOTHING, laws=(ONE | {"masked": 1},), require=_one_cluster, **ALONE,
)  # fmt: skip
def one_cluster(case: Case) -> Row:
    """Loss that positions alone leave in one cluster, with p alone masked."""
    row = _shares(case)
    # With more masked patches those of the own area draw attention: the claim below.
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
    """Attention to masked patches in one cluster, where positions need not differ."""
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
    """Largest correlation with a position against Phi_m at the end, for several local sizes."""
    law, run, (_, own, others) = case.parameters, case.run, case.problem.rows.roles(local=True)
    sizes = np.abs([run[name] for name in others if "_Ups_" in name]).max(axis=0)
    share = sizes[1:] / np.abs(run[own][1:])
    row: Row = {"value": float(share[-1]), "mates": float(share[-1]) * (law.C_local - 1)}
    row |= {"curves": {f"$C_s = {law.C_local}$": (run.time[1:], share)}}
    return row | ({"open": "size"} if not case.label else {})
