r"""Statements that hold for every matrix Q, measured with the full problem at random Q.

The statements are Appendix A.1, Lemmas A.1, A.8, 5.1, 5.2, equations (3.2) and (5.1), and the key
observation of Section 5.1. The available text of the paper lacks the formulas of the lemmas; the
full problem, in a random basis, is compared with those of
`theory.papers.masked_image_modeling.averages`. Equation (3.2) is the attention of patch p to area a
of cluster k, where M are the masked patches, u_pq is the attention to q and D normalizes the
softmax:

.. math:: \sum_{q \in P_{k,a}} u_{pq} = \frac{1}{D} \Big( e^{z_a \Phi_a}
   \sum_{q \notin M} e^{\Upsilon_{p \to q}} + \sum_{q \in M} e^{\Upsilon_{p \to q}} \Big).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import floor, log2
from typing import Any

import numpy as np

from dynamics.papers.masked_image_modeling.sizes import population_seconds
from dynamics.training.descent import descend
from dynamics.validation import InvalidRequest
from dynamics.verdicts.cases import Case
from dynamics.verdicts.claim import TIME, Also, Experiment, Literal, Picture, Row
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.masked_image_modeling import grid
from dynamics.verdicts.masked_image_modeling.grid import ROUNDING, SPREADS, known_error, scale_of
from dynamics.verdicts.wording import counted
from theory.papers.masked_image_modeling.averages import (
    paper_values,
    queries,
    stated_gradient,
    token_images,
)
from theory.papers.masked_image_modeling.images import image_count, sampled_images
from theory.papers.masked_image_modeling.symmetry import feature_offsets

EXACT = 1e-17
"""Value drawn on a logarithmic axis in place of a difference 0."""
CROSSED = {"family": "custom", "areas": "0,0,0,0,1,1,2,2;0,0,1,1,0,2,0,2", "masked": 4}
"""Two clusters whose areas cross without symmetry; all masked images can be enumerated."""
LATENTS = CROSSED | {"masked": 3, "z": "0.7,1.3", "odds": "0.4,0.6"}
PAIRS = grid.POSITIVE | {"C_local": 2}
"""Law with local areas of two patches; the mate of a local patch is the other patch of its area."""
STEPS, ETA = 300, 2.0
MOST_SECONDS = 20.0
"""Maximum predicted seconds of a claim at one law (ten times as many with --thorough)."""
COUNTABLE = 10**9
"""Maximum number of masked images whose run time is predicted; `FullPopulation` refuses more."""
PER_AREA, PER_KEY = 2.5e-4, 5e-8
"""Seconds of `paper_values` per patch and feature (first), per key of a masked patch (second)."""
STEP = 1e-3
"""Length of the finite differences of the loss along a random unit direction."""
SLOPE = 1e-6
"""Maximum relative error of finite differences of the loss."""
IMAGES = 200
"""Number of masked images drawn at each spread of the entries of Q."""
AT_RANDOM_Q: dict[str, Any] = {
    "laws": (CROSSED, LATENTS, grid.SMALL), "varies": ("seed",), "words": "up to {value:.1e}",
    "picture": Picture("spread of the entries of Q", "relative difference", {"rounding": ROUNDING},
                       ("linear", "log")),
}  # fmt: skip


def enumerated(case: Case, gradients: int, statements: int = 0) -> Any:
    """Full problem; undecided if its gradients and calls of `paper_values` would take too long."""
    law, images = case.parameters, image_count(case.parameters)
    if images <= COUNTABLE:
        needed = gradients * population_seconds(law)
        stated = PER_AREA * law.P * law.features + PER_KEY * float(images * law.masked * law.P)
        needed += statements * stated
        if needed > MOST_SECONDS * (10 if case.thorough else 1):
            words = f"{images:,} masked images of P={law.P} patches would take about {needed:.0f} s"
            raise Undecided(f"{words}; use fewer masked patches or a smaller P")
    try:
        return case.system.FullPopulation(law)
    except InvalidRequest as refusal:
        raise Undecided(str(refusal)) from refusal


def at_random_q(case: Case, measure: Callable[[Any, Any, float], float], gradients: int = 1) -> Row:
    """Row with the largest ``measure(problem, generator, spread)`` over the spreads of Q."""
    problem = enumerated(case, gradients * len(SPREADS), len(SPREADS))
    generator = np.random.default_rng(case.seed)
    values = [float(measure(problem, generator, spread)) for spread in SPREADS]
    law = case.parameters
    label = f"P={law.P}, K={law.K}, {counted(len(law.z), 'value')} of z"
    return {"value": max(values), "curves": {label: (SPREADS, np.maximum(values, EXACT))}}


@grid.claim(
    "Appendix A.1",
    "largest gradient by v^T Q, or of a row by entries of another row, over the largest", "<=",
    ROUNDING, **AT_RANDOM_Q | {"laws": (CROSSED, grid.SMALL)},
)  # fmt: skip
def appendix_a_1(case: Case) -> Row:
    """Gradient of the rows v^T Q along features v, and effect of other rows on a row's gradient."""
    law, problem = case.parameters, enumerated(case, 2 * len(SPREADS) + STEPS)

    def leak(problem: Any, _: Any, spread: float) -> float:
        generator = np.random.default_rng(case.seed)
        state = spread * generator.normal(size=(law.d, law.d))
        slope = problem.gradient(state).reshape(state.shape)
        position = problem.positions[int(generator.integers(law.P))]
        # Every row of Q is drawn again except e_p^T Q, the row of patch p.
        fresh = spread * generator.normal(size=state.shape)
        other = fresh + np.outer(position, position @ (state - fresh))
        moved = position @ (problem.gradient(other).reshape(state.shape) - slope)
        most = max(np.abs(problem.features @ slope).max(), np.abs(moved).max())
        return float(most / scale_of(law, np.abs(slope).max(), 3))

    row, run = at_random_q(case, leak, 2), descend(problem, ETA, STEPS, record=STEPS)
    dead = float(run["dead"].max()) / _size_of(law, float(np.abs(run["Q"]).max()))
    return row | {"value": max(row["value"], dead), "dead": dead}


def _size_of(law: Any, entry: float) -> float:
    """Scale of a difference: rounding error at `entry` divided by `ROUNDING`, but at least 1."""
    return max(1.0, known_error(law, entry) * entry / ROUNDING)


def _of(what: str) -> str:
    return f"largest difference of the {what} from the statement, relative, at random Q"


def _against_paper(source: str, what: str, power: int) -> Experiment:
    """Claim that a value of the full problem (`what`) equals the paper's formula."""

    def measure(problem: Any, generator: np.random.Generator, spread: float) -> float:
        law, positions, features = problem.parameters, problem.positions, problem.features
        phi = spread * generator.normal(size=(law.P, law.features))
        ups = spread * generator.normal(size=(law.P, law.P))
        paper, state = paper_values(law, phi, ups), positions.T @ (ups @ positions + phi @ features)
        rates = -positions @ problem.gradient(state).reshape(state.shape)
        own, stated, scale = {
            "population loss": (problem.risk(state), paper.loss.sum(), paper.loss.sum()),
            "rate of Phi": (rates @ features.T, paper.alpha, paper.alpha),
            "rate of Ups": (rates @ positions.T, paper.beta.sum(axis=0), paper.beta),
        }[what]
        return float(np.abs(own - stated).max() / scale_of(law, np.abs(scale).max(), power))

    return grid.claim(source, _of(what), "<=", ROUNDING, **AT_RANDOM_Q)(
        lambda case: at_random_q(case, measure)
    )


lemma_a_8 = _against_paper("Lemma A.8", "population loss", 2)
lemma_5_1 = _against_paper("Lemma 5.1", "rate of Phi", 3)
lemma_5_2 = _against_paper("Lemma 5.2", "rate of Ups", 2)


@grid.claim(
    "Equation (5.1)", "largest |Ups - sum_k Ups^(k)|, or |sum_q Ups^(k)|, along descent", "<=",
    ROUNDING, laws=(CROSSED,), varies=("step size",),
    words="Ups is the sum of its parts up to {split:.1e}, each sums to zero over q up to {sum:.1e}",
    picture=Picture(TIME, "size", {"rounding": ROUNDING}),
)  # fmt: skip
def equation_5_1(case: Case) -> Row:
    """Difference of Ups and the sum of its clusters' parts, along descent on the full problem."""
    law, steps = case.parameters, STEPS if case.thorough else STEPS // 5
    problem, eta = enumerated(case, 3 * steps, steps), case.rate(ETA)
    run = descend(problem, eta, steps, record=1)
    parts, sizes = np.zeros((law.K, law.P, law.P)), []
    for state in run["Q"]:
        row = problem.positions @ state
        ups = row @ problem.positions.T
        found = ups - parts.sum(axis=0), parts.sum(axis=2), parts
        sizes.append([float(np.abs(each).max()) for each in found])
        parts += eta * paper_values(law, row @ problem.features.T, ups).beta
    most, names = np.max(sizes, axis=0), ("difference", "sum over q", "largest part")
    curves = dict(zip(names, ((run.time[1:], s) for s in np.transpose(sizes[1:])), strict=True))
    value = most[:2].max() / _size_of(law, most[2])
    return {"value": value, "split": most[0], "sum": most[1], "curves": curves}


@grid.claim(
    "Section 2.3, nonconvex", "largest loss half way from Q to 3 Q over the mean of both, less 1",
    ">", ROUNDING, **AT_RANDOM_Q,
)  # fmt: skip
def nonconvex(case: Case) -> Row:
    """Loss at 2 Q divided by the mean of the losses at Q and 3 Q, minus 1."""
    law = case.parameters

    def measure(problem: Any, generator: np.random.Generator, spread: float) -> float:
        Q = spread * generator.normal(size=(law.d, law.d))
        return 2 * problem.risk(2 * Q) / (problem.risk(Q) + problem.risk(3 * Q)) - 1

    return at_random_q(case, measure, gradients=3)


@grid.claim(
    "Lemma A.1", _of("gradient"), "<=", ROUNDING, **AT_RANDOM_Q | {
        "words": "up to {value:.1e}; the statement is within {slope:.1e} of differences of the loss"
    },
    also=(Also("slope", "<=", SLOPE, "largest difference of the statement from the slope of the "
               "loss, over its norm"),),
)  # fmt: skip
def lemma_a_1(case: Case) -> Row:
    """Difference of the lemma's gradient from the full problem's, and from finite differences."""
    law, slopes = case.parameters, []

    def measure(problem: Any, generator: np.random.Generator, spread: float) -> float:
        state = spread * generator.normal(size=(law.d, law.d))
        stated = stated_gradient(law, problem.positions, problem.features, state)
        off = np.abs(problem.gradient(state).reshape(state.shape) - stated).max()
        way = generator.normal(size=state.shape)
        way /= np.linalg.norm(way)
        # Scores move as z Phi, so the step is divided by a power of two near the largest latent.
        step = STEP / 2.0 ** max(0, floor(log2(law.U)))
        near, far = (
            problem.risk(state + h * way) - problem.risk(state - h * way) for h in (step, 2 * step)
        )
        slope = (8 * near - far) / (12 * step) - float((stated * way).sum())
        slopes.append(abs(slope) / scale_of(law, float(np.linalg.norm(stated)), 3))
        return float(off / scale_of(law, np.abs(stated).max(), 3))

    return at_random_q(case, measure, gradients=5) | {"slope": max(slopes)}


@grid.claim(
    "Equation (3.2)",
    "largest difference of the attention to an area from the statement, at random Q", "<=",
    ROUNDING, **AT_RANDOM_Q,
)  # fmt: skip
def equation_3_2(case: Case) -> Row:
    """Difference of the softmax's attention to every area and the sum of both parts of (3.2)."""
    law, first = case.parameters, feature_offsets(case.parameters.area_ids)

    def measure(problem: Any, generator: np.random.Generator, spread: float) -> float:
        most, state = 0.0, spread * generator.normal(size=(law.d, law.d))
        ups, phi = (problem.positions @ state @ x.T for x in (problem.positions, problem.features))
        for image in token_images(law, problem.positions, problem.features, state):
            k, masked, areas = image.cluster, image.masked, law.area_ids[image.cluster]
            inside = np.eye(first[k + 1] - first[k])[areas]
            latent = np.linalg.norm(image.contents, axis=1) @ inside / inside.sum(axis=0)
            opened = (latent * phi[masked, first[k] : first[k + 1]])[:, areas]
            hidden = np.isin(np.arange(law.P), masked)
            scores = ups[masked] + np.where(hidden, 0.0, opened)
            # One exponential of z Phi + Ups avoids the overflow of e^(z Phi) in the first term.
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            stated = (weights * ~hidden) @ inside + (weights * hidden) @ inside
            stated /= stated.sum(axis=1, keepdims=True)
            most = max(most, float(np.abs(stated - image.u @ inside).max()))
        return most / max(1.0, known_error(law) / ROUNDING)

    return at_random_q(case, measure)


def _latents_are_one(law: Any) -> None:
    grid.requires()(law)
    if law.z != (1.0,):
        words = "image by image the rate of Ups is at most 1/z of that of Phi"
        raise Undecided(f"the rates are compared at z = 1: {words}", "law")


@grid.claim(
    "Section 5.1, key observation",
    "largest excess of a rate of Ups over that of Phi, image by image, over the largest rate", "<=",
    ROUNDING, laws=(CROSSED, grid.SMALL, grid.POSITIVE, PAIRS), require=_latents_are_one,
    varies=("seed",), words="u_q / A is {share:.3g} at most",
    literal=Literal(
        "means", "<=", 1.0, "largest rate of Ups over that of Phi, own area of a local patch",
        "{means:.3g} along descent, {at_first:.3g} at Q = 0 (P={P}, C_s={C_local})",
    ),
    picture=Picture(TIME, r"rate of $\Upsilon$ over rate of $\Phi$, means", {"equal rates": 1.0}),
)  # fmt: skip
def key_observation(case: Case) -> Row:
    """Rate of Ups over that of Phi: in single images at random Q, and averaged in descent."""
    law, found = case.parameters, [_excess(case.parameters, s, case.seed) for s in SPREADS]
    row: Row = dict(zip(("value", "share"), map(float, np.max(found, axis=0)), strict=True))
    if law.K > 1:  # the reduced problem sums rates over clusters
        return row
    problem, run = grid.descended(case)
    name, own, _ = problem.rows.roles(local=True)
    ratios = np.abs(run[f"d_{name}_Ups_own"] / run[f"d_{own}"])
    curve = {f"$P={law.P}$, $C_s = {law.C_local}$": (run.time[1:], ratios[1:])}
    row |= {"trained": replace(case, problem=problem, run=run).trained, "curves": curve}
    return row | {"means": float(ratios.max()), "at_first": float(ratios[0])}


def _excess(law: Any, spread: float, seed: int) -> tuple[float, float]:
    """Largest relative excess of |rate of Ups| over |rate of Phi|, and largest share of a key.

    Both maxima are over images and keys, for one random row of Q, whose patch is always masked. The
    share of a key is its part of the attention to its area.
    """
    generator = np.random.default_rng(seed)
    images = sampled_images(law, IMAGES, generator)
    p, excess, share, largest = int(images.masked[0, 0]), 0.0, 0.0, 0.0
    phi, ups = ({p: spread * generator.normal(size=size)} for size in (law.features, law.P))
    for query in queries(law, phi, ups, images, [p]):
        # In one image, Phi of an area moves by z times the change of the area's unmasked scores.
        over = np.abs(query.beta) - np.abs(query.alpha / query.z)[:, query.areas]
        excess = max(excess, float(over.max(where=~query.masked, initial=0.0)))
        largest = max(largest, float(np.abs(query.alpha).max(initial=0.0)))
        own = query.A[:, query.areas]
        unmasked = ~query.masked & (own > 0)
        share = max(share, float((query.u[unmasked] / own[unmasked]).max(initial=0.0)))
    return excess / largest if largest else 0.0, share
