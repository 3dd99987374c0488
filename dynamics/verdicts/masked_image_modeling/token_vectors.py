r"""Lemma A.1 and equation (3.2), from the vectors: tokens, dense scores and a softmax, no symmetry.

The text at hand has lost both formulas. For one image with p masked, F_p the output,

.. math:: -\nabla_Q \ell = \sum_q u_{pq}
   \langle X_p - F_p,\; 1\{q \notin M\} X_q - F_p \rangle\, \tilde X_p \tilde X_q^\top,

and the attention to an area is what its unmasked and what its masked patches have of it,

.. math:: \sum_{q \in P_{k,a}} u_{pq} = \frac{1}{D} \Big( e^{z_a \Phi_a}
   \sum_{q \notin M} e^{\Upsilon_{p \to q}} + \sum_{q \in M} e^{\Upsilon_{p \to q}} \Big).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import floor, log2
from typing import Any

import numpy as np

from dynamics.problem import FloatArray
from dynamics.verdicts.findings import Finding
from dynamics.verdicts.masked_image_modeling.averaged_claims import (
    CROSSED,
    EXACT,
    LATENTS,
    draw_spreads,
    enumerated,
    label_of,
)
from dynamics.verdicts.masked_image_modeling.rounding_of_terms import (
    ROUNDING,
    SPREADS,
    known_error,
    scale_of,
)
from dynamics.verdicts.masked_image_modeling.runs import SMALL, at_size, sizes_of
from dynamics.verdicts.study import Measurement, Study, measures
from dynamics.verdicts.wording import counted
from theory.papers.masked_image_modeling.images import all_images

STEP = 1e-3
"""Of the differences of the loss, in units of a random direction of length 1."""
SLOPE = 1e-6
"""Relative error that differences of the loss may have."""


def _seen(problem: Any, state: FloatArray) -> Iterator[tuple[float, int, Any, Any, Any, Any]]:
    """Chance, cluster, masked patches, contents, tokens and attention of every masked image.

    Contents are those of unmasked patches; attention is that of the masked ones, shape (M, P).
    """
    law = problem.parameters
    images, areas = all_images(law), law.area_ids
    first = np.concatenate([[0], np.cumsum(areas.max(axis=1) + 1)])[:-1]
    for k, z, masked, weight in zip(*images, strict=True):
        contents = z[:, None] * problem.features[areas[k] + first[k]]
        visible = contents.copy()
        visible[masked] = 0.0
        tokens = visible + problem.positions
        scores = tokens[masked] @ state @ tokens.T
        u = np.exp(scores - scores.max(axis=1, keepdims=True))
        yield float(weight), int(k), masked, contents, visible, u / u.sum(axis=1, keepdims=True)


def stated_gradient(problem: Any, state: FloatArray) -> FloatArray:
    """Lemma A.1 averaged over masked images, shape (d, d).

    Parameters
    ----------
    problem : FullPopulation
    state : float array, shape (d, d)
        Any Q.
    """
    total = np.zeros_like(state)
    for weight, _, masked, contents, visible, u in _seen(problem, state):
        output = u @ visible
        missing = contents[masked] - output
        along = missing @ visible.T - (missing * output).sum(axis=1, keepdims=True)
        tokens = visible + problem.positions
        total -= weight * tokens[masked].T @ (u * along) @ tokens
    return total


@measures(
    "largest difference of the gradient from the statement, relative, at random Q",
    "<=", ROUNDING, single=("seed",), again=True,
)  # fmt: skip
def lemma_a_1(study: Study) -> Finding:
    """Every entry of the gradient against the statement, and that against slopes of the loss."""
    for law in study.laws(CROSSED, LATENTS, SMALL):
        problem, _ = enumerated(study, law, 5 * len(SPREADS), len(SPREADS))
        generator, differences, slopes = np.random.default_rng(study.seed), [], []
        for spread in SPREADS:
            state = spread * generator.normal(size=(law.d, law.d))
            stated = stated_gradient(problem, state)
            off = np.abs(problem.gradient(state).reshape(state.shape) - stated).max()
            differences.append(float(off / scale_of(law, np.abs(stated).max(), 3)))
            way = generator.normal(size=state.shape)
            way /= np.linalg.norm(way)
            slope = _slope(problem, state, way)
            norm = scale_of(law, float(np.linalg.norm(stated)), 3)
            slopes.append(abs(slope - float((stated * way).sum())) / norm)
        study.row(sizes_of(law), differences=differences, slopes=slopes)
        study.curve(label_of(law), SPREADS, np.maximum(differences, EXACT))
    most, slope = (max(map(max, study.column(name))) for name in ("differences", "slopes"))
    reason = (
        f"all entries of the gradient are within {most:.1e} of the sum over keys that is stated, "
        f"and that within {slope:.1e} of differences of the loss: {counted(len(study.rows), 'law')}"
    )
    draw_spreads(study, "relative difference")
    name = "largest difference of the statement from the slope of the loss, over its norm"
    also = Measurement(name, slope, "<=", SLOPE)
    return study.conclude(most, reason + at_size(study), also)


def _slope(problem: Any, state: FloatArray, way: FloatArray) -> float:
    """Derivative of the loss along a direction, by differences of fourth order."""

    def risk(step: float) -> float:
        return float(problem.risk(state + step * way))

    # Scores move as z Phi. A power of two, so that a step of latents near 1 is STEP.
    step = STEP / 2.0 ** max(0, floor(log2(problem.parameters.U)))
    near, far = risk(step) - risk(-step), risk(2 * step) - risk(-2 * step)
    return (8 * near - far) / (12 * step)


@measures(
    "largest difference of the attention to an area from the statement, at random Q",
    "<=", ROUNDING, single=("seed",), again=True,
)  # fmt: skip
def equation_3_2(study: Study) -> Finding:
    """Attention to every area from the vectors, against its unmasked and its masked part."""
    for law in study.laws(CROSSED, LATENTS, SMALL):
        problem, _ = enumerated(study, law, len(SPREADS), len(SPREADS))
        generator, differences = np.random.default_rng(study.seed), []
        for spread in SPREADS:
            state = spread * generator.normal(size=(law.d, law.d))
            differences.append(_off_area_attention(problem, state))
        study.row(sizes_of(law), differences=differences)
        study.curve(label_of(law), SPREADS, np.maximum(differences, EXACT))
    most = max(map(max, study.column("differences")))
    reason = (
        f"equal up to {most:.1e} for every area, mask and masked patch of "
        f"{counted(len(study.rows), 'law')}, "
        "the first term being e^(z Phi) times what it is at Phi = 0, with the same denominator"
    )
    draw_spreads(study, "difference")
    return study.conclude(most, reason + at_size(study))


def _off_area_attention(problem: Any, state: FloatArray) -> float:
    """Largest difference of (3.2) from the sum of the attention to the patches of an area."""
    law, most = problem.parameters, 0.0
    areas = law.area_ids
    first = np.concatenate([[0], np.cumsum(areas.max(axis=1) + 1)])
    rows = problem.positions @ state
    ups, phi = rows @ problem.positions.T, rows @ problem.features.T
    for _, k, masked, contents, _, u in _seen(problem, state):
        inside = np.eye(areas[k].max() + 1)[areas[k]]
        hidden = np.isin(np.arange(law.P), masked)
        latent = np.linalg.norm(contents, axis=1) @ inside / inside.sum(axis=0)
        own = phi[masked, first[k] : first[k + 1]]
        opened = ups[masked] + (latent * own)[:, areas[k]]
        level = np.where(hidden, ups[masked], opened).max(axis=1)
        # The first term is e^(z Phi) times a sum of e^Ups; as one power it does not overflow.
        weights = np.exp(np.where(hidden, ups[masked], opened) - level[:, None])
        unmasked, rest = (weights * ~hidden) @ inside, (weights * hidden) @ inside
        total = (unmasked + rest).sum(axis=1, keepdims=True)
        most = max(most, float(np.abs((unmasked + rest) / total - u @ inside).max()))
    return most / max(1.0, known_error(law) / ROUNDING)
