r"""What is exact without noise: closure, inner products, odds, collapse, conventions.

Runs on patterns are compared with runs on tokens, with the recursions of inner products and of the
16 scalars, and with a loop written here that knows only the loss. These statements are of any step
size and any start: one run beyond rounding contradicts them, and is not made again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from math import sqrt
from typing import Any

import numpy as np

from dynamics.analysis.comparison import compare
from dynamics.problem import FloatArray
from dynamics.training.descent import descend
from dynamics.validation import InvalidRequest
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.rounding import PERTURBATION, perturbed
from dynamics.verdicts.shallow_vit import runs
from dynamics.verdicts.shallow_vit.recursions import collapse, gram
from dynamics.verdicts.study import LINEAR, Study, measures
from theory.papers.shallow_vit.attention import PARTS, attention

ROUNDING = 1e-12
LIKE_A_PERTURBATION = 1e3
"""Differences up to so many times what a perturbation becomes may be rounding."""
STEPS = 300
SMALL = {"m": 60, "L": 20, "alpha_confusion": 0.1}
CASES: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    ({}, {}),
    ({"data": "fixed_disc"}, {"samples": 12, "batch": 4}),
    ({"data": "iid"}, {"samples": 10}),
    ({"data": "fixed_disc", "output_weights": "per_position"}, {"samples": 8}),
)
"""Laws and how they are trained: all data, with and without mini-batches, both output weights."""
SYMMETRIC = {"m": 120, "L": 40, "sigma": 0.0, "delta": 0.0}
"""A law with as many tokens of every non-discriminative pattern."""
FEW = 20
"""Samples where the user's law is not that of two samples."""


def _cases(study: Study, default: Any = CASES) -> list[tuple[str, Any, dict[str, Any]]]:
    """Name, parameters and training of every case; the user's law alone where there is one."""
    law = study.parameters
    if law is not None:
        return [(law.data, law, _training(study, law))]
    cases = []
    for changed, training in default:
        words = [changed.get("data", "fixed"), *(["batches"] if "batch" in training else [])]
        words += ["per position"] if "output_weights" in changed else []
        parameters = study.system.Parameters(**(SMALL | changed))
        cases.append((", ".join(words), parameters, training | {"seed": study.seed}))
    return cases


def _training(study: Study, law: Any) -> dict[str, Any]:
    return {"seed": study.seed} | ({} if law.data == "fixed" else {"samples": FEW})


def _magnified(problem: Any) -> float:
    """How far apart two runs come, one of them from a perturbed start.

    Where training is unstable, rounding grows as this does, and long runs do not show whether their
    steps are equal.
    """
    state = problem.initial_state
    one, two = (
        descend(problem, runs.ETA, STEPS, record=1, initial=start).states
        for start in (state, perturbed(state))
    )
    common = min(len(one), len(two))
    return float(np.abs(one[:common] - two[:common]).max())


def _compared(study: Study, name: str, problem: Any, differences: FloatArray, **more: Any) -> None:
    """Add a case: its differences at every step, and what amplified rounding would explain."""
    most = float(differences.max())
    magnified = _magnified(problem) if most > ROUNDING else None
    study.row({"case": name, "difference": most, "magnified": magnified}, **more)
    # Differences below any rounding lie at its edge.
    study.curve(name, np.arange(1, len(differences)), np.maximum(differences[1:], 1e-17))


def _equal(study: Study, y_label: str) -> Finding:
    """A finding about differences that can only be rounding."""
    most = float(np.max(study.column("difference")))
    apart = [(r["difference"], r.pop("magnified")) for r in study.rows]
    apart = [(far, grown) for far, grown in apart if grown is not None]
    if apart and all(far <= LIKE_A_PERTURBATION * grown for far, grown in apart):
        raise Undecided(
            f"differs by {most:.1e} after {STEPS} steps, but training here is unstable: a start "
            f"changed by {PERTURBATION:g} of itself ends {max(g for _, g in apart):.1e} away",
            "precision",
        )
    word = "equal to rounding" if most <= ROUNDING else "different"
    study.draw("step", y_label, {"rounding": ROUNDING})
    reason = f"{word} over {STEPS} steps ({study.words('{case}: {difference:.1e}', '; ')})"
    if (law := study.parameters) is not None:
        reason += f"; at this one size, M={law.M}, L={law.L}, m={law.m}, d={law.d}"
    return study.conclude(most, reason, holds=study.met(most))


@measures("largest difference of an entry of W_O, V, K, Q", "<=", ROUNDING)
def pattern_closure(study: Study) -> Finding:
    """Training of every weight on tokens against training on patterns."""
    for name, law, training in _cases(study):
        reduced = study.system.ReducedPopulation(law, **training)
        full = study.system.FullPopulation(law, **training)
        result = compare(reduced, full, runs.ETA, STEPS, record=1)
        series = np.max(list(result.deviations.values()), axis=0)
        _compared(study, name, reduced, series, **result.deviation)
    return _equal(study, "largest difference from the full run")


@measures("largest difference of an entry of H, B, G_V, G_K, G_Q, J", "<=", ROUNDING)
def gram_form(study: Study) -> Finding:
    """The recursion of inner products against training on patterns."""
    for name, law, training in _cases(study):
        problem = study.system.ReducedPopulation(law, **training)
        _compared(study, name, problem, _deviations(gram, problem, law))
    return _equal(study, "largest difference from the run")


def _deviations(recursion: Callable[..., Any], problem: Any, law: Any) -> FloatArray:
    """Largest deviation of a recursion from the run of the problem, at every step."""
    try:
        result = recursion(problem, runs.ETA, STEPS)
    except InvalidRequest as refusal:
        raise Undecided(str(refusal), parameters=asdict(law)) from refusal
    return np.asarray(np.max(list(result.deviations.values()), axis=0))


@measures("largest difference of an entry from the scalar of its class", "<=", ROUNDING)
def symmetric_collapse(study: Study) -> Finding:
    """The 16 scalars against training from a symmetric start."""
    law = study.law(**SYMMETRIC)
    try:
        problem = study.system.ReducedPopulation(law, seed=study.seed, start="symmetric")
    except InvalidRequest as refusal:
        raise Undecided(str(refusal), parameters=asdict(law)) from refusal
    differences = _deviations(collapse, problem, law)
    _compared(study, "scalars, W_O, V", problem, differences, case=f"M={law.M}")
    return _equal(study, "largest difference")


@measures("largest relative change of the product of the odds", "<=", ROUNDING)
def odds_identity(study: Study) -> Finding:
    """The product of the odds over every pair of training samples of both labels, at every step.

    Of the attention of a full run, whose softmax is over the tokens of a sample.
    """
    laws = runs.both_margins(study, **SMALL)
    if laws[0].n_confusion == 0 or laws[0].data == "iid":
        reason = "needs confusion tokens, as many in every sample"
        raise Undecided(reason, "law", parameters=asdict(laws[0]))
    for law in laws:
        problem = study.system.FullPopulation(law, **_training(study, law))
        run = descend(problem, runs.ETA, STEPS, record=1)
        positive = problem.vectors.labels > 0
        twice, series = 2 * np.log(law.n_star / law.n_confusion), []
        for keys, queries in zip(run["W_K"], run["W_Q"], strict=True):
            logs = _log_odds(problem, keys, queries)
            total = logs[positive][:, None] - logs[~positive][None]
            series.append(float(np.abs(np.expm1(total - twice)).max()))
        _compared(study, runs.margin_word(law), problem, np.array(series))
    return _equal(study, "largest relative change")


def _log_odds(problem: Any, keys: FloatArray, queries: FloatArray) -> FloatArray:
    """Log odds of tokens of pattern 1 against 2, samples by query patterns, shape (S, M)."""
    patterns, order = np.eye(problem.parameters.d), problem.tokens.patterns
    with np.errstate(all="ignore"):
        asking = patterns[: problem.parameters.M] @ queries.T
        scores = (patterns[order] @ keys.T) @ asking.T
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights = powers / powers.sum(axis=1, keepdims=True)
        one, two = (np.where((order == k)[:, :, None], weights, 0.0).sum(axis=1) for k in (0, 1))
        return np.asarray(np.log(one) - np.log(two))


@measures("largest difference of an entry of W_O, V, K, Q", "<=", ROUNDING)
def margin_and_weights(study: Study) -> Finding:
    """A loop with weights 1/m and margin 1 against training with 1/sqrt(m) and margin sqrt(m)."""
    for name, law, training in _cases(study, (CASES[0], CASES[2])):
        if law.output_weights != "shared" or law.frozen != "none":
            raise Undecided("needs shared weights, all trained", "law", parameters=asdict(law))
        problem = study.system.ReducedPopulation(runs.proofs_margin(law), **training)
        run, root = descend(problem, runs.ETA, STEPS, record=1), sqrt(law.m)
        parts, series = tuple(run[part][0].copy() for part in PARTS), [0.0]
        for record in range(1, len(run.time)):
            slopes = _slopes(problem, parts, problem.start.a / root, law)
            parts = tuple(p - root * runs.ETA * s for p, s in zip(parts, slopes, strict=True))
            pairs = zip((run[part][record] for part in PARTS), parts, strict=True)
            series.append(max(float(np.abs(one - two).max()) for one, two in pairs))
        _compared(study, name, problem, np.array(series))
    return _equal(study, "largest difference of the two runs")


def _slopes(
    problem: Any, parts: tuple[FloatArray, ...], a: FloatArray, law: Any
) -> tuple[FloatArray, ...]:
    """Derivatives of the mean loss by W_O, V, K, Q, sample by sample."""
    hidden, values, keys, queries = parts
    response, scores, vectors = hidden @ values, keys.T @ queries, problem.vectors
    by_response, by_score = np.zeros_like(response), np.zeros_like(scores)
    for c, y, weight in zip(vectors.counts, vectors.labels, vectors.weights, strict=True):
        P = attention(scores, c[None])[0]
        U = response @ P
        below = law.loss == "linear" or y * float(a @ np.maximum(U, 0.0) @ c) / law.L < law.margin
        if below:
            D = -y * np.outer(a, c) / law.L * (U > 0)
            rho = response.T @ D
            by_response += weight * D @ P.T
            by_score += weight * P * (rho - (P * rho).sum(axis=0))
    by_keys, by_queries = queries @ by_score.T, keys @ by_score
    return by_response @ values.T, hidden.T @ by_response, by_keys, by_queries


@measures("least distance of a key W_K mu_j from orthonormal q_j, printed start", "<=")
def initialization(study: Study) -> Finding:
    """The printed initial weights against Assumption 1, and training from them."""
    law = study.law()
    study.bound = law.delta
    if law.noise == 0:
        reason = "without noise the printed scales are infinite"
        raise Undecided(reason, "law", parameters=asdict(law))
    problem = study.system.ReducedPopulation(law, seed=study.seed)
    state = problem.initial_state
    parts = {name: problem.layout.part(state, name) for name in ("K", "Q", "V")}
    scales = {"keys": law.delta**2 / law.noise**2, "values": law.sigma**2 / law.noise**2}
    for name in ("K", "Q"):
        parts[name][...] = scales["keys"] * np.eye(law.d)[:, : law.M]
    parts["V"][...] = scales["values"] * problem.start.p
    far = {"keys": _distance(parts["K"]), "values": _distance(parts["V"])}
    run = descend(problem, runs.ETA, STEPS, initial=state)
    relevant = run["relevant"]
    moved = float(np.abs(relevant - relevant[0]).max())
    reason = (
        f"keys of length {scales['keys']:.4g} are {far['keys']:.4g} from every orthonormal frame, "
        f"{law.delta:g} is allowed, values {far['values']:.4g}, {law.sigma:g} is allowed; from "
        f"there attention to relevant tokens moves from {relevant[0]:.4f} by {moved:.2g} "
        f"in {STEPS} steps"
    )
    study.curve("printed start", run.time / runs.ETA, relevant)
    study.draw("step", "attention to relevant tokens", None, *LINEAR)
    holds = bool(far["keys"] <= law.delta and far["values"] <= law.sigma)
    return study.conclude(far["keys"], reason, holds=holds, parameters=asdict(law), distances=far)


def _distance(columns: FloatArray) -> float:
    """Largest distance of a column from its like in the nearest orthonormal frame."""
    left, _, right = np.linalg.svd(columns, full_matrices=False)
    return float(np.linalg.norm(columns - left @ right, axis=0).max())
