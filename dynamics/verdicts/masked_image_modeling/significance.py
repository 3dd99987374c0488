r"""Section 3.1: what correlations with positions alone can do, and those with features alone.

Where Phi = 0 the weights of a patch p do not depend on the image: :math:`u_q = w_q / D` is any
point of the simplex, and :math:`A_a` is linear in it, so that the loss is a convex quadratic

.. math:: L_p(u) = \frac{\gamma}{2 K} \sum_k E\Big[z_m^2 (1 - A_m)^2 + \sum_{a \neq m} z_a^2 A_a^2
   \,\Big|\, p \in M\Big].

Its least value over the simplex is what all Ups together can reach. It is bounded from below by the
duality gap, so that nothing rests on the accuracy of the minimizer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dynamics.problem import FloatArray
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.masked_image_modeling.rounding_of_terms import ROUNDING
from dynamics.verdicts.masked_image_modeling.runs import sizes_of
from dynamics.verdicts.study import Measurement, Study, measures
from theory.papers.masked_image_modeling.model import latent_moment, unavoidable_error

ONE = {"P": 40, "C_global": 16, "C_local": 4}
TWO = {"family": "two_cluster_grid", "b11": 8, "b10": 8, "C_local": 4, "T": 1}
"""As many patches in one cluster, and in two in which local areas cross like rows and columns."""
LEFT = 0.1
"""Share of the first loss above the floor from which on attention is insufficient."""
NOTHING = 1e-6
"""The same share where nothing is left."""
MOST = 200
"""Patches from which on a convex program with a variable for each takes long."""
SHOWN = 8
"""Numbers of masked patches in the picture."""
STRONG = 30.0
"""Size of the scores, z Phi, with which features alone attend to the own area."""


class Quadratic(NamedTuple):
    """The loss c - b u + u H u / 2 of a patch whose attention is u wherever it looks.

    Attributes
    ----------
    constant : float
    linear : float array, shape (P,)
    square : float array, shape (P, P)
        Rows and columns of p itself, which is masked, are zero.
    """

    constant: float
    linear: FloatArray
    square: FloatArray

    def value(self, u: FloatArray) -> float:
        """The loss at an attention."""
        return float(self.constant - self.linear @ u + u @ self.square @ u / 2)

    def slope(self, u: FloatArray) -> FloatArray:
        """Its gradient."""
        return np.asarray(self.square @ u - self.linear)


def position_loss(law: Any, p: int) -> Quadratic:
    """The loss of patch p as a function of attention that is the same in all images.

    Parameters
    ----------
    law : Parameters
    p : int
    """
    unmasked = (law.P - law.masked) / (law.P - 1)
    both = unmasked * (law.P - law.masked - 1) / max(law.P - 2, 1)
    second = latent_moment(law.z, law.odds, 2)
    scale, others = law.gamma * second, np.arange(law.P) != p
    linear, square = np.zeros(law.P), np.zeros((law.P, law.P))
    for areas in law.area_ids:
        together = (areas[:, None] == areas) & others[:, None] & others
        linear += scale / law.K * unmasked * (others & (areas == areas[p]))
        square += scale / law.K * both * together
    square += scale * (unmasked - both) * np.diag(others)
    return Quadratic(scale / 2, linear, square)


def least_by_positions(law: Any, p: int) -> tuple[float, float]:
    """Least loss of patch p with attention that is the same in all images: bounds on both sides.

    Parameters
    ----------
    law : Parameters
    p : int

    Returns
    -------
    lower, upper : float
        From the duality gap, and at the attention of the minimizer.
    """
    from scipy.optimize import minimize

    loss = position_loss(law, p)
    result = minimize(
        loss.value, np.full(law.P, 1 / law.P), jac=loss.slope, method="SLSQP",
        bounds=[(0.0, 1.0)] * law.P, options={"ftol": 1e-14, "maxiter": 500},
        constraints={"type": "eq", "fun": lambda u: u.sum() - 1, "jac": np.ones_like},
    )  # fmt: skip
    u = np.maximum(result.x, 0.0) / np.maximum(result.x, 0.0).sum()
    value, slope = loss.value(u), loss.slope(u)
    return value - float(slope @ u - slope.min()), value


def _left_by_features(problem: Any, number: int) -> float:
    """Loss above its floor of a row type at large scores of its own areas and Ups = 0."""
    rows, state = problem.rows, np.zeros(problem.layout.size)
    kind, strong = rows.types[number], STRONG / rows.parameters.L
    start = rows.starts[number] + len(kind.ups_names)
    state[start : rows.starts[number + 1]] = -strong
    for areas in kind.clusters:
        state[start + areas[0].phi] = strong
    return float(problem.observables(state)[f"{rows.names[number]}_gap"])


def _patterns_differ(law: Any) -> None:
    """Screen for clusters in which some patch has no mate that is one in all of them."""
    if law.P > MOST:
        words = f"a convex program in P={law.P} variables takes long; at most {MOST} do not"
        raise Undecided(words, parameters=sizes_of(law))
    areas = law.area_ids
    mates = (areas[:, :, None] == areas[:, None, :]).all(axis=0).sum(axis=1) - 1
    if law.K < 2 or mates.min() > 0:
        words = "one cluster" if law.K < 2 else "every patch has a mate that is one in all clusters"
        raise Undecided(
            f"the claim is about patterns that differ between clusters, here {words}",
            "law",
            parameters=sizes_of(law),
        )


def _shares(study: Study, law: Any) -> None:
    """Add to the table what is left of the first loss above the floor, for every row type."""
    problem = study.system.ReducedPopulation(law)
    rows, first = problem.rows, problem.observables(problem.initial_state)
    for number, (name, floor) in enumerate(zip(rows.names, rows.floors, strict=True)):
        p, start = int(rows.types[number].patches[0]), float(first[f"{name}_gap"])
        if start <= ROUNDING:
            continue
        uniform = position_loss(law, p).value(np.full(law.P, 1 / law.P)) - float(floor)
        lower, upper = least_by_positions(law, p)
        study.row(
            {"K": law.K, "masked": law.masked, "row": name}, off=abs(uniform / start - 1),
            positions=(lower - float(floor)) / start, at_most=(upper - float(floor)) / start,
            features=_left_by_features(problem, number) / start,
        )  # fmt: skip


def _draw_along_masks(study: Study, law: Any) -> None:
    """What positions alone leave to a patch of every row type, along the number of masked ones."""
    rows = study.system.ReducedPopulation(law).rows
    counts = sorted({1, law.masked, *np.linspace(1, law.P - 2, SHOWN).round().astype(int).tolist()})
    for name, kind in zip(rows.names, rows.types, strict=True):
        p, left = int(kind.patches[0]), []
        for count in counts:
            other = replace(law, masked=count)
            sizes = [int((row == row[p]).sum()) for row in law.area_ids]
            second = latent_moment(law.z, law.odds, 2)
            floor = float(unavoidable_error(law.P, count, sizes)) * second
            start = position_loss(other, p).value(np.full(law.P, 1 / law.P)) - floor
            left.append((least_by_positions(other, p)[1] - floor) / start)
        study.curve(f"K={law.K}, {name.replace('_', ' ')}", counts, left)


@measures(
    "largest share of the first loss above the floor that positions alone leave to a patch",
    ">=", LEFT, _patterns_differ,
)  # fmt: skip
def section_3_1(study: Study) -> Finding:
    """What positions alone, and features alone, leave of the loss where clusters cross."""
    laws = study.laws(TWO | {"masked": 1}, TWO | {"masked": 20})
    if study.parameters is None:
        laws = [study.system.Parameters(**ONE, masked=count) for count in (1, 20)] + laws
    for law in laws:
        _shares(study, law)
    several = [row for row in study.rows if row["K"] > 1]
    features = max(row["features"] for row in study.rows)
    words = []
    for law in laws:
        part = [r for r in study.rows if (r["K"], r["masked"]) == (law.K, law.masked)]
        each = ", ".join(f"{max(r['positions'], 0.0):.2g} ({r['row']})" for r in part)
        words.append(f"{law.K} cluster{'s' * (law.K > 1)}, {law.masked} masked: {each}")
    reason = (
        f"positions alone leave, of the first loss above the floor, {'; '.join(words)}; features "
        f"alone leave {features:.1e}"
    )
    also = [
        Measurement("largest share that features alone leave", features, "<=", NOTHING),
        Measurement(
            "largest relative distance of the quadratic from the loss at the start",
            max(study.column("off")), "<=", 1e-9,
        ),
    ]  # fmt: skip
    if study.parameters is None:
        alone = max(r["at_most"] for r in study.rows if (r["K"], r["masked"]) == (1, 1))
        name = "share that positions alone leave in one cluster, p alone masked"
        also.append(Measurement(name, alone, "<=", NOTHING))
    for law in {law.K: law for law in laws}.values():
        _draw_along_masks(study, law)
    study.draw(
        "masked patches", "share of the first loss above\nthe floor that positions leave",
        {"insufficient": LEFT}, "linear", "linear",
    )  # fmt: skip
    return study.conclude(max(row["positions"] for row in several), reason, *also)
