r"""Statements that hold at every Q or fail at once, measured on every entry of Q.

Appendix A.1 and Lemmas A.8, 5.1, 5.2 at random Q, in a random basis, against the full problem;
equation (5.1) along its descent. Where all masked images would take too long, descent has fewer
steps, or nothing is decided.

What the lemmas state is averaged over masked images with their chances: nothing is differentiated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import sympy

from dynamics.problem import FloatArray
from dynamics.training.descent import descend
from dynamics.validation import InvalidRequest
from dynamics.verdicts.findings import Check, Finding, Undecided
from dynamics.verdicts.masked_image_modeling.rounding_of_terms import (
    ROUNDING,
    SPREADS,
    known_error,
    scale_of,
)
from dynamics.verdicts.masked_image_modeling.runs import SMALL, at_size, sizes_of
from dynamics.verdicts.study import TIME, Study, measures
from theory.papers.masked_image_modeling import lemmas
from theory.papers.masked_image_modeling.images import all_images, image_count
from theory.papers.masked_image_modeling.recursion import MASKED, OTHER, OWN

EXACT = 1e-17
"""Where a picture shows differences that are zero."""
CROSSED = {"family": "custom", "areas": "0,0,0,0,1,1,2,2;0,0,1,1,0,2,0,2", "masked": 4}
"""Two clusters that cross without symmetry, small enough to enumerate."""
LATENTS = CROSSED | {"masked": 3, "z": "0.7,1.3", "odds": "0.4,0.6"}
STEPS = 300
LEAST_STEPS = 10
ETA = 2.0
MOST_SECONDS = 20.0
"""Predicted time that a check may take at one law; ten times that where it is thorough."""
COUNTABLE = 10**9
"""Masked images from which on nothing needs to be predicted: the full problem refuses them."""
PER_AREA = 2.5e-4
"""Seconds of `paper_values` for each patch and feature, on one core."""
PER_KEY = 5e-8
"""The same for each key of each masked patch of an image."""


@dataclass(frozen=True)
class PaperValues:
    """The paper's expectations at numbers.

    Attributes
    ----------
    loss : float array, shape (P,)
        L_p, Lemma A.8.
    alpha : float array, shape (P, features)
        Rates of Phi, Lemma 5.1.
    beta : float array, shape (K, P, P)
        Rates of Ups, cluster by cluster, Lemma 5.2.
    """

    loss: FloatArray
    alpha: FloatArray
    beta: FloatArray


def paper_values(parameters: Any, phi: FloatArray, ups: FloatArray) -> PaperValues:
    """What Lemmas A.8, 5.1 and 5.2 state at correlations of any values.

    Parameters
    ----------
    parameters : Parameters
        Small enough to enumerate.
    phi : float array, shape (P, features)
        Features cluster by cluster, area by area.
    ups : float array, shape (P, P)
    """
    images, areas = all_images(parameters), parameters.area_ids
    offsets = np.concatenate([[0], np.cumsum(areas.max(axis=1) + 1)])
    values = PaperValues(np.zeros(len(ups)), np.zeros_like(phi), np.zeros((len(areas), *ups.shape)))
    hidden = images.hidden
    for k, cluster in enumerate(areas):
        features = slice(int(offsets[k]), int(offsets[k + 1]))
        inside = np.eye(offsets[k + 1] - offsets[k])[cluster]
        first = [int(np.argmax(cluster == a)) for a in range(inside.shape[1])]
        loss = _loss(inside.shape[1])
        for p in range(len(ups)):
            used = (images.cluster == k) & hidden[:, p]
            z, masked, weight = images.latent[used], hidden[used], images.weight[used]
            u = attention(z, masked, phi[p, features][cluster], ups[p])
            A = np.where(masked, 0.0, u) @ inside
            latents, m = z[:, first], int(cluster[p])
            values.loss[p] += weight @ loss(latents, A, m)  # Lemma A.8
            for i in range(A.shape[1]):  # Lemma 5.1
                values.alpha[p, features.start + i] += weight @ feature_rate(latents, A, m, i)
            rates = position_rates(latents, A, m, cluster, masked)  # Lemma 5.2
            values.beta[k, p] += weight @ (u * rates)
    return values


def attention(z: FloatArray, masked: Any, phi: FloatArray, ups: FloatArray) -> FloatArray:
    """Attention of a masked patch to every key of every image, shape (images, P).

    Parameters
    ----------
    z : float array, shape (images, P)
        Latent of the area of each patch.
    masked : bool array, shape (images, P)
    phi, ups : float array, shape (P,)
        Its correlations with the features of the areas of all patches, and with their positions.
    """
    scores = ups + np.where(masked, 0.0, z * phi)
    u = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(u / u.sum(axis=1, keepdims=True))


def predicted_seconds(parameters: Any) -> float:
    """Predicted time of `paper_values`."""
    keys = float(image_count(parameters) * parameters.masked * parameters.P)
    return PER_AREA * parameters.P * parameters.features + PER_KEY * keys


@cache
def _loss(areas: int) -> Callable[[FloatArray, FloatArray, int], FloatArray]:
    """Lemma A.8 as a function of latents and attention, shape (images, areas), and of m."""
    z, A = sympy.symbols(f"z:{areas}"), sympy.symbols(f"A:{areas}")
    by_area = [
        sympy.lambdify([z, A], lemmas.paper_loss(z, dict(enumerate(A)), m), "numpy")
        for m in range(areas)
    ]
    return lambda latents, shares, m: by_area[m](tuple(latents.T), tuple(shares.T))


def feature_rate(z: FloatArray, A: FloatArray, m: int, i: int) -> FloatArray:
    """Lemma 5.1 for every image.

    Parameters
    ----------
    z, A : float array, shape (images, areas)
        Latents of areas, and attention to their unmasked patches.
    m, i : int
        Areas of p and of the feature.
    """
    squares = z**2 * A**2
    rest = squares.sum(axis=1) - squares[:, m] - (squares[:, i] if i != m else 0.0)
    return np.asarray(lemmas.paper_feature_rate(tuple(z.T), dict(enumerate(A.T)), m, i, rest))


def position_rates(z: FloatArray, A: FloatArray, m: int, cluster: Any, masked: Any) -> FloatArray:
    """Lemma 5.2 for every image and key, over the attention to the key.

    Parameters
    ----------
    z, A : float array, shape (images, areas)
        Latents of areas, and attention to their unmasked patches.
    m : int
        Area of p.
    cluster : int array, shape (P,)
        Area of every patch.
    masked : bool array, shape (images, P)
    """
    r = z[:, m] ** 2 * A[:, m] - (z**2 * A**2).sum(axis=1)
    rates = np.empty(masked.shape)
    for q, area in enumerate(cluster):
        symbols = z[:, area], A[:, area], r
        unmasked = lemmas.paper_position_rate(OWN if area == m else OTHER, *symbols)
        rates[:, q] = np.where(masked[:, q], lemmas.paper_position_rate(MASKED, *symbols), unmasked)
    return rates


@measures(
    "largest gradient by v^T Q, or of a row by entries of another row, over the largest",
    "<=", ROUNDING, single=("seed",), again=True,
)  # fmt: skip
def appendix_a_1(study: Study) -> Finding:
    """Rows of Q along features in the gradient, and rows of patches when other rows change."""
    for law in study.laws(CROSSED, SMALL):
        problem, left = enumerated(study, law, 2 * len(SPREADS) + LEAST_STEPS)
        leaks = [_leak(problem, spread, study.seed) for spread in SPREADS]
        steps = min(STEPS, LEAST_STEPS + left)
        run = descend(problem, ETA, steps, record=steps)
        dead = float(run["dead"].max()) / _size_of(law, float(np.abs(run["Q"]).max()))
        study.row(
            sizes_of(law), spreads=list(SPREADS), leaks=leaks, steps=steps, after_descent=dead
        )
        study.curve(label_of(law), SPREADS, leaks)
    moved = max(study.column("after_descent"))
    most = max(moved, *map(max, study.column("leaks")))
    reason = f"other entries move by {most:.2e} of the largest rate"
    if most <= ROUNDING:
        reason = (
            f"at random Q nothing but the row e_p^T Q moves by the loss of p, up to {most:.1e}; "
            f"after {min(study.column('steps'))} steps from 0 entries v^T Q are {moved:.1e}"
        )
    draw_spreads(study, "share of other rows")
    return study.conclude(most, reason + at_size(study))


def _size_of(law: Any, entry: float) -> float:
    """1, or where it is more what rounding makes of entries of that size, over `ROUNDING`."""
    return max(1.0, known_error(law, entry) * entry / ROUNDING)


def _leak(problem: Any, spread: float, seed: int) -> float:
    """What a random Q shows of gradients where there should be none, over the largest."""
    generator = np.random.default_rng(seed)
    depth = problem.parameters.d
    state = spread * generator.normal(size=(depth, depth))
    slope = problem.gradient(state).reshape(depth, depth)
    position = problem.positions[int(generator.integers(problem.parameters.P))]
    # Every row but that of one patch is random again: its own row e_p^T Q stays what it was.
    fresh = spread * generator.normal(size=state.shape)
    other = np.outer(position, position @ state) + fresh - np.outer(position, position @ fresh)
    again = problem.gradient(other).reshape(depth, depth)
    by_features = np.abs(problem.features @ slope).max()
    moved = max(by_features, np.abs(position @ (again - slope)).max())
    return float(moved / scale_of(problem.parameters, np.abs(slope).max(), 3))


def _against_paper(what: str, distance: Callable[..., tuple[float, float]], power: int) -> Check:
    """A check of the full problem against the paper, at random Q in a random basis.

    ``distance(problem, paper, state)`` is a difference and the largest value; for the power see
    `scale_of`.
    """

    @measures(
        f"largest difference of the {what} from the statement, relative, at random Q",
        "<=", ROUNDING, single=("seed",), again=True,
    )  # fmt: skip
    def check(study: Study) -> Finding:
        laws = study.laws(CROSSED, LATENTS, SMALL)
        for law in laws:
            problem, _ = enumerated(study, law, len(SPREADS), len(SPREADS))
            generator, differences = np.random.default_rng(study.seed), []
            for spread in SPREADS:
                phi = spread * generator.normal(size=(law.P, law.features))
                ups = spread * generator.normal(size=(law.P, law.P))
                state = problem.positions.T @ (ups @ problem.positions + phi @ problem.features)
                off, scale = distance(problem, paper_values(law, phi, ups), state)
                differences.append(float(off / scale_of(law, scale, power)))
            study.row(sizes_of(law), spreads=list(SPREADS), differences=differences)
            study.curve(label_of(law), SPREADS, np.maximum(differences, EXACT))
        most = max(map(max, study.column("differences")))
        word = "equal to rounding" if most <= ROUNDING else "different"
        count = f"{len(laws)} law{'s' * (len(laws) > 1)}"
        reason = f"{word}, {most:.1e}: {count}, entries of Q of size up to {SPREADS[-1]:g}"
        draw_spreads(study, "relative difference")
        return study.conclude(most, reason + at_size(study))

    return check


def _loss_distance(problem: Any, paper: PaperValues, state: FloatArray) -> tuple[float, float]:
    return abs(problem.risk(state) - paper.loss.sum()), abs(paper.loss.sum())


def _feature_distance(problem: Any, paper: PaperValues, state: FloatArray) -> tuple[float, float]:
    rates = -_row_gradient(problem, state) @ problem.features.T
    return np.abs(rates - paper.alpha).max(), np.abs(paper.alpha).max()


def _position_distance(problem: Any, paper: PaperValues, state: FloatArray) -> tuple[float, float]:
    rates = -_row_gradient(problem, state) @ problem.positions.T
    return np.abs(rates - paper.beta.sum(axis=0)).max(), np.abs(paper.beta).max()


def _row_gradient(problem: Any, state: FloatArray) -> Any:
    """Gradient of the rows e_p^T Q."""
    return problem.positions @ problem.gradient(state).reshape(state.shape)


lemma_a_8 = _against_paper("population loss", _loss_distance, 2)
lemma_5_1 = _against_paper("rate of Phi", _feature_distance, 3)
lemma_5_2 = _against_paper("rate of Ups", _position_distance, 2)


@measures(
    "largest |Ups - sum_k Ups^(k)|, or |sum_q Ups^(k)|, along descent",
    "<=", ROUNDING, single=("step size",), again=True,
)  # fmt: skip
def equation_5_1(study: Study) -> Finding:
    """Ups against the sum of its parts, each moved by one cluster, along full descent."""
    law = study.law(**CROSSED)
    problem, left = enumerated(study, law, 3 * LEAST_STEPS, LEAST_STEPS)
    # A step with its record takes about three gradients, and the paper's values as much.
    steps = min(STEPS if study.thorough else STEPS // 5, LEAST_STEPS + left // 6)
    eta = study.rate(ETA)
    run = descend(problem, eta, steps, record=1)
    parts = np.zeros((law.K, law.P, law.P))
    splits, sums, sizes = [], [], []
    for state in run["Q"]:
        row = problem.positions @ state
        ups = row @ problem.positions.T
        splits.append(float(np.abs(ups - parts.sum(axis=0)).max()))
        sums.append(float(np.abs(parts.sum(axis=2)).max()))
        sizes.append(float(np.abs(parts).max()))
        parts += eta * paper_values(law, row @ problem.features.T, ups).beta
    reason = (
        f"Ups of {steps} steps is the sum of its parts up to {max(splits):.1e}, and each part sums "
        f"to zero over q up to {max(sums):.1e}, while parts reach {sizes[-1]:.3g}"
    )
    study.curve("largest part", run.time[1:], sizes[1:])
    study.curve("difference from the sum", run.time[1:], splits[1:])
    study.curve("sum over q", run.time[1:], sums[1:])
    study.draw(TIME, "size", {"rounding": ROUNDING})
    most = max(*splits, *sums) / _size_of(law, max(sizes))
    return study.conclude(most, reason + at_size(study), parameters=sizes_of(law))


def enumerated(study: Study, law: Any, gradients: int, statements: int = 0) -> tuple[Any, int]:
    """The full problem, and how many gradients there is time for beside those that are needed.

    Parameters
    ----------
    study : Study
    law : Parameters
    gradients, statements : int
        How many gradients, and `paper_values`, are needed.

    Raises
    ------
    Undecided
        If the problem refuses the parameters, or its gradients and `paper_values` take too long.
    """
    images = image_count(law)
    most = MOST_SECONDS * (10 if study.thorough else 1)
    left = 0
    if images <= COUNTABLE:
        each = float(study.system.cost_model(law, "population", {}))
        needed = gradients * each + statements * predicted_seconds(law)
        left = int((most - needed) / each)
        if needed > most:
            reason = (
                f"{images:,} masked images of P={law.P} patches would take about {needed:.0f} s, "
                f"more than {most:g} s; fewer masked patches or a smaller P do not"
            )
            raise Undecided(reason, parameters=sizes_of(law))
    try:
        return study.system.FullPopulation(law), left
    except InvalidRequest as refusal:
        raise Undecided(str(refusal), parameters=sizes_of(law)) from refusal


def label_of(law: Any) -> str:
    """A law in a legend."""
    return f"P={law.P}, K={law.K}, {len(law.z)} value{'s' * (len(law.z) > 1)} of z"


def draw_spreads(study: Study, y_label: str) -> None:
    """Make the picture of differences along the spread of the entries of Q.

    Parameters
    ----------
    study : Study
    y_label : str
    """
    study.draw("spread of the entries of Q", y_label, {"rounding": ROUNDING}, x_scale="linear")
