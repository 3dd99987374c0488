"""Exact statements on training without noise, such as the closure on patterns.

Runs on patterns are compared with runs on tokens and with recursions. The statements hold at any
step size and start, so one difference beyond rounding contradicts a statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.analysis.comparison import compare
from dynamics.papers.shallow_vit.recursions import collapse, gram, slopes_of
from dynamics.problem import FloatArray
from dynamics.training.descent import descend
from dynamics.verdicts.cases import Case
from dynamics.verdicts.claim import Decorator, Picture
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.rounding import PERTURBATION, perturbed
from dynamics.verdicts.shallow_vit.runs import ETA, LINEAR, claim, claim_on_tokens
from theory.papers.shallow_vit.attention import PARTS

ROUNDING = 1e-12
LIKE_A_PERTURBATION = 1e3
"""Rounding may explain a difference up to this factor times the effect of a perturbed start."""
STEPS = 300
SMALL: dict[str, Any] = {"m": 60, "L": 20, "alpha_confusion": 0.1}
TRAINING: Mapping[str, dict[str, int]] = {
    "fixed": {}, "fixed_disc": {"samples": 12, "batch": 4}, "iid": {"samples": 10},
}  # fmt: skip
"""Kind of data -> arguments of the problem; ``fixed`` data always have two distinct samples."""
EACH = (
    SMALL, SMALL | {"data": "fixed_disc"}, SMALL | {"data": "iid"},
    SMALL | {"data": "fixed_disc", "output_weights": "per_position"},
)  # fmt: skip


def exactly(source: str, quantity: str, laws: Sequence[Mapping[str, Any]] = EACH) -> Decorator:
    """Decorate a claim that two ways to train agree up to rounding."""
    picture = Picture("step", "largest difference", {"rounding": ROUNDING})
    words = "{value:.1e} over {steps} steps"
    return claim(source, quantity, "<=", ROUNDING, laws=laws, words=words, picture=picture)


def _made(case: Case, view: str = "ReducedPopulation", **changed: Any) -> Any:
    law = case.parameters
    training = TRAINING[law.data] if law.output_weights == "shared" else {"samples": 8}
    return getattr(case.system, view)(replace(law, **changed), seed=case.seed, **training)


def _equal(case: Case, problem: Any, differences: ArrayLike) -> dict[str, Any]:
    """Row with the largest difference; undecided if training amplifies rounding to that size."""
    series = np.asarray(differences)
    most = float(series.max())
    curve = np.arange(1, len(series)), np.maximum(series[1:], 1e-17)
    row = {"value": most, "steps": STEPS, "curves": {case.label or "largest": curve}}
    if most <= ROUNDING:
        return row
    starts = problem.initial_state, perturbed(problem.initial_state)
    one, two = (descend(problem, ETA, STEPS, record=1, initial=s).states for s in starts)
    common = min(len(one), len(two))
    apart = float(np.abs(one[:common] - two[:common]).max())
    if most <= LIKE_A_PERTURBATION * apart:
        reason = f"a start changed by a relative {PERTURBATION:g} ends {apart:.1e} away"
        so = f"differs by {most:.1e} after {STEPS} steps, but training here is unstable: {reason}"
        raise Undecided(so, "precision")
    return row | {"text": f"differs by {most:.1e} over {STEPS} steps"}


@exactly("Pattern closure", "largest difference of an entry of W_O, V, K, Q")
def pattern_closure(case: Case) -> dict[str, Any]:
    """Differences of all weights between training on tokens and training on patterns."""
    reduced = _made(case)
    result = compare(reduced, _made(case, "FullPopulation"), ETA, STEPS, record=1)
    return _equal(case, reduced, np.max([*result.deviations.values()], axis=0))


@exactly("Gram form", "largest difference of an entry of H, B, G_V, G_K, G_Q, J")
def gram_form(case: Case) -> dict[str, Any]:
    """Differences between the recursion of inner products and training on patterns."""
    problem = _made(case)
    return _equal(case, problem, gram(problem, ETA, STEPS).largest)


@exactly("Symmetric collapse", "largest difference of an entry from the scalar of its class",
         laws=({"m": 120, "L": 40, "sigma": 0.0, "delta": 0.0},))  # fmt: skip
def symmetric_collapse(case: Case) -> dict[str, Any]:
    """Differences of a recursion in 16 scalars from training on patterns from a symmetric start."""
    problem = case.system.ReducedPopulation(case.parameters, seed=case.seed, start="symmetric")
    return _equal(case, problem, collapse(problem, ETA, STEPS).largest)


@exactly("Odds identity", "largest relative change of the product of the odds",
         laws=(SMALL, SMALL | {"margin": sqrt(SMALL["m"])}))  # fmt: skip
def odds_identity(case: Case) -> dict[str, Any]:
    """Change, at every step, of the product of odds over pairs of samples with opposite labels."""
    law = case.parameters
    if law.n_confusion == 0 or law.data == "iid":
        raise Undecided("the claim assumes equally many confusion tokens in every sample", "law")
    problem = _made(case, "FullPopulation")
    run, positive = descend(problem, ETA, STEPS, record=1), problem.vectors.labels > 0
    twice, series = 2 * np.log(law.n_star / law.n_confusion), []
    for keys, queries in zip(run["W_K"], run["W_Q"], strict=True):
        logs = log_odds(problem, keys, queries)
        total = logs[positive][:, None] - logs[~positive][None]
        series.append(float(np.abs(np.expm1(total - twice)).max()))
    return _equal(case, problem, series)


def log_odds(problem: Any, keys: FloatArray, queries: FloatArray) -> FloatArray:
    """Log odds of pattern 1 against pattern 2 in the attention, shape (samples, queries)."""
    order = problem.tokens.patterns
    with np.errstate(all="ignore"):
        scores = (keys.T[order] @ queries)[:, :, : problem.parameters.M]
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        one, two = (np.where((order == k)[:, :, None], powers, 0.0).sum(axis=1) for k in (0, 1))
        return np.asarray(np.log(one) - np.log(two))


@exactly("Margin and output weights", "largest difference of an entry of W_O, V, K, Q",
         laws=(EACH[0], EACH[2]))  # fmt: skip
def margin_and_weights(case: Case) -> dict[str, Any]:
    """Differences between weights 1/m with margin 1 and weights 1/sqrt(m) with margin sqrt(m)."""
    law = case.parameters
    if law.output_weights != "shared" or law.frozen != "none":
        raise Undecided("the claim assumes all weights trained, an output weight per neuron", "law")
    root = sqrt(law.m)
    problem = _made(case, margin=root * law.margin)
    run, series = descend(problem, ETA, STEPS, record=1), [0.0]
    W, V, K, Q = weights = [run[part][0] for part in PARTS]
    for step in range(len(run.time) - 1):
        E, T = slopes_of(problem, W @ V, K.T @ Q, step, 1 / root)
        slopes = E @ V.T, W.T @ E, Q @ T.T, K @ T
        W, V, K, Q = weights = [w - root * ETA * s for w, s in zip(weights, slopes, strict=True)]
        pairs = zip(PARTS, weights, strict=True)
        series.append(max(float(np.abs(run[part][step + 1] - w).max()) for part, w in pairs))
    return _equal(case, problem, series)


@claim_on_tokens(
    "Section 4.1, initialization", "least distance of a key W_K mu_j from orthonormal q_j, printed "
    "start", "<=", words="keys of length {keys:.4g} are {value:.4g} from every orthonormal frame, "
    "{bound:g} is allowed, values {values_off:.4g}, {sigma:g} is allowed; from there attention to "
    "relevant tokens moves from {start:.4f} by {moved:.2g} in {steps} steps",
    picture=Picture("step", "attention to relevant tokens", scales=LINEAR),
)  # fmt: skip
def initialization(case: Case) -> dict[str, Any]:
    """Distance of the printed initial weights from orthonormal columns, and a run from them."""
    law = case.parameters
    if law.noise == 0:
        raise Undecided("without noise the printed scales are infinite", "law")
    problem = case.system.ReducedPopulation(law, seed=case.seed)
    state, keys = problem.initial_state, law.delta**2 / law.noise**2
    K, Q, V = (problem.layout.part(state, name) for name in "KQV")
    K[...] = Q[...] = keys * np.eye(law.d)[:, : law.M]
    V[...] = law.sigma**2 / law.noise**2 * problem.start.p
    off = distance(K), distance(V)
    run = descend(problem, ETA, STEPS, initial=state)
    relevant = run["relevant"]
    return {
        "value": off[0], "bound": law.delta, "values_off": off[1], "keys": keys,
        "holds": bool(off[0] <= law.delta and off[1] <= law.sigma), "start": relevant[0],
        "moved": np.abs(relevant - relevant[0]).max(), "steps": STEPS,
        "curves": {"printed start": (run.time / ETA, relevant)},
    }  # fmt: skip


def distance(columns: FloatArray) -> float:
    """Largest distance between a column and its counterpart in the nearest orthonormal frame."""
    left, _, right = np.linalg.svd(columns, full_matrices=False)
    return float(np.linalg.norm(columns - left @ right, axis=0).max())
