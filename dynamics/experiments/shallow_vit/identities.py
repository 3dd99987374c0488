r"""What is exact without noise, measured: closure, inner products, odds, collapse, conventions.

Runs on patterns are laid beside runs on tokens, beside the recursions of inner products and of the
16 scalars, and beside a loop written here that knows only the loss.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.analysis.comparison import compare
from dynamics.experiments.curves import curve
from dynamics.experiments.shallow_vit.runs import (
    ETA,
    TOUCH,
    margin_word,
    plot,
    proofs_margin,
    signs,
    sizes_of,
    undecided,
)
from dynamics.experiments.verify import Finding, Protocol
from dynamics.problem import FloatArray
from dynamics.systems.shallow_vit.full.population import placed
from dynamics.systems.shallow_vit.full.projection import PARTS, attention
from dynamics.systems.shallow_vit.reduced.collapse import collapse
from dynamics.systems.shallow_vit.reduced.inner_product_recursion import gram
from dynamics.training.gradient_descent import descend
from dynamics.validation import InvalidRequest

if TYPE_CHECKING:
    from dynamics.registry import System

ROUNDING = 1e-12
LIKE_A_TOUCH = 1e3
"""Differences up to so many times what a touch becomes may be rounding."""
STEPS = 300
SMALL = {"m": 60, "L": 20, "alpha_confusion": 0.1}
CASES: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    ({}, {}),
    ({"data": "fixed_disc"}, {"samples": 12, "batch": 4}),
    ({"data": "iid"}, {"samples": 10}),
    ({"data": "fixed_disc", "output_weights": "per_position"}, {"samples": 8}),
)
"""Laws and how they are trained: all data, with and without mini-batches, both output weights."""
SHARED = CASES[:3]
SYMMETRIC = {"m": 120, "L": 40, "sigma": 0.0, "delta": 0.0}
"""A law with as many tokens of every non-discriminative pattern."""
FEW = 20
"""Samples where the user's law is not that of two samples."""


def _cases(
    system: System, protocol: Protocol, usual: Any = CASES
) -> list[tuple[str, Any, dict[str, Any]]]:
    """Name, parameters and training of every case; the user's law instead where it is given."""
    given = protocol.parameters
    if given is not None:
        training = {} if given.data == "fixed" else {"samples": FEW}
        return [(given.data, given, training | {"seed": protocol.seed})]
    found = []
    for law, training in usual:
        words = [law.get("data", "fixed"), *(["batches"] if "batch" in training else [])]
        words += ["per position"] if "output_weights" in law else []
        parameters = system.Parameters(**(SMALL | law))
        found.append((", ".join(words), parameters, training | {"seed": protocol.seed}))
    return found


def magnified(problem: Any) -> float:
    """How far apart two runs come, one of them with a start that was touched.

    Where training is unstable, rounding grows as this does, and long runs tell nothing of whether
    their steps are equal.
    """
    state = problem.initial_state
    runs = [
        descend(problem, ETA, STEPS, record=1, initial=start).states
        for start in (state, state * (1.0 + TOUCH * signs(state.size)))
    ]
    common = min(map(len, runs))
    return float(np.abs(runs[0][:common] - runs[1][:common]).max())


def _equal(
    quantity: str, rows: list[dict[str, Any]], curves: list[Any], what: str, problems: list[Any]
) -> Finding:
    """A finding about differences that can only be rounding, one problem a row."""
    most = float(np.max([row["difference"] for row in rows]))
    apart = [pair for pair in zip(rows, problems, strict=True) if pair[0]["difference"] > ROUNDING]
    grown = [magnified(problem) for _, problem in apart]
    if grown and all(
        row["difference"] <= LIKE_A_TOUCH * far for (row, _), far in zip(apart, grown, strict=True)
    ):
        reason = (
            f"differs by {most:.1e} after {STEPS} steps, but training here is unstable: a start "
            f"changed by {TOUCH:g} of itself ends {max(grown):.1e} away"
        )
        return undecided(quantity, ROUNDING, reason)
    word = "equal to rounding" if most <= ROUNDING else "different"
    cases = "; ".join(f"{row['case']}: {row['difference']:.1e}" for row in rows)
    reason = f"{word} over {STEPS} steps ({cases})"
    drawn = plot("step", what, curves, {"rounding": ROUNDING}, ("log", "log"))
    evidence = {"table": rows, "plot": drawn}
    return Finding(most <= ROUNDING, quantity, most, ROUNDING, reason, evidence)


def _curve(label: str, series: FloatArray) -> dict[str, Any]:
    """Differences over steps, those below any rounding drawn at its edge."""
    return curve(label, np.arange(1, len(series)), np.maximum(series[1:], 1e-17))


def pattern_closure(system: System, protocol: Protocol) -> Finding:
    """Training of every weight on tokens beside training on patterns."""
    quantity, curves = "largest difference of an entry of W_O, V, K, Q", []
    rows: list[dict[str, Any]] = []
    problems: list[Any] = []
    for name, law, training in _cases(system, protocol):
        reduced = system.ReducedPopulation(law, **training)
        full = system.FullPopulation(law, **training)
        found = compare(reduced, full, ETA, STEPS, record=1)
        series = np.max(list(found.deviations.values()), axis=0)
        rows.append({"case": name, "difference": float(series.max()), **found.deviation})
        curves.append(_curve(name, series))
        problems.append(reduced)
    return _equal(quantity, rows, curves, "largest difference from the full run", problems)


def gram_form(system: System, protocol: Protocol) -> Finding:
    """The recursion of inner products beside training on patterns."""
    quantity, curves = "largest difference of an entry of H, B, G_V, G_K, G_Q, J", []
    rows: list[dict[str, Any]] = []
    problems: list[Any] = []
    for name, law, training in _cases(system, protocol):
        problems.append(system.ReducedPopulation(law, **training))
        try:
            found = gram(problems[-1], ETA, STEPS)
        except InvalidRequest as refusal:
            return undecided(quantity, ROUNDING, str(refusal), law)
        series = np.max(list(found.deviations.values()), axis=0)
        rows.append({"case": name, "difference": found.deviation})
        curves.append(_curve(name, series))
    return _equal(quantity, rows, curves, "largest difference from the run", problems)


def odds_identity(system: System, protocol: Protocol) -> Finding:
    """The product of the odds over every pair of training samples of both labels, at every step.

    Of the attention of a full run, whose softmax is over the tokens of a sample.
    """
    quantity = "largest relative change of the product of the odds"
    law = protocol.parameters or system.Parameters(**SMALL)
    if law.n_confusion == 0 or law.data == "iid":
        reason = "needs confusion tokens, as many in every sample"
        return undecided(quantity, ROUNDING, reason, law)
    curves: list[Any] = []
    rows: list[dict[str, Any]] = []
    problems: list[Any] = []
    training = {"seed": protocol.seed} | ({} if law.data == "fixed" else {"samples": FEW})
    for each in [law] if protocol.parameters is not None else [law, proofs_margin(law)]:
        problem = system.FullPopulation(each, **training)
        problems.append(problem)
        run = descend(problem, ETA, STEPS, record=1)
        positive = problem.instance.vectors.labels > 0
        twice, series = 2 * np.log(each.n_star / each.n_confusion), []
        for keys, queries in zip(run["W_K"], run["W_Q"], strict=True):
            logs = _log_odds(problem, keys, queries)
            total = logs[positive][:, None] - logs[~positive][None]
            series.append(float(np.abs(np.expm1(total - twice)).max()))
        rows.append({"case": margin_word(each), "difference": float(np.max(series))})
        curves.append(_curve(margin_word(each), np.array(series)))
    return _equal(quantity, rows, curves, "largest relative change", problems)


def _log_odds(problem: Any, keys: FloatArray, queries: FloatArray) -> FloatArray:
    """Log odds of tokens of pattern 1 against 2, samples by query patterns, shape (S, M)."""
    patterns, places = np.eye(problem.parameters.d), placed(problem.instance.vectors)
    tokens, asked = patterns[places], patterns[: problem.parameters.M]
    with np.errstate(all="ignore"):
        scores = (tokens @ keys.T) @ (asked @ queries.T).T
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        seen = powers / powers.sum(axis=1, keepdims=True)
        one, two = (np.where((places == k)[:, :, None], seen, 0.0).sum(axis=1) for k in (0, 1))
        return np.asarray(np.log(one) - np.log(two))


def symmetric_collapse(system: System, protocol: Protocol) -> Finding:
    """The 16 scalars beside training from a symmetric start."""
    quantity = "largest difference of an entry from the scalar of its class"
    law = protocol.parameters or system.Parameters(**SYMMETRIC)
    try:
        problem = system.ReducedPopulation(law, seed=protocol.seed, start="symmetric")
        found = collapse(problem, ETA, STEPS)
    except InvalidRequest as refusal:
        return undecided(quantity, ROUNDING, str(refusal), law)
    rows = [{"case": f"M={law.M}", "difference": found.deviation}]
    series = np.max(list(found.deviations.values()), axis=0)
    curves = [_curve("scalars, W_O, V", series)]
    return _equal(quantity, rows, curves, "largest difference", [problem])


def margin_and_weights(system: System, protocol: Protocol) -> Finding:
    """A loop with weights 1/m and margin 1 beside training with 1/sqrt(m) and margin sqrt(m)."""
    quantity, curves = "largest difference of an entry of W_O, V, K, Q", []
    rows: list[dict[str, Any]] = []
    problems: list[Any] = []
    for name, law, training in _cases(system, protocol, SHARED[::2]):
        if law.output_weights != "shared" or law.frozen != "none":
            return undecided(quantity, ROUNDING, "needs shared weights, all trained", law)
        problem = system.ReducedPopulation(proofs_margin(law), **training)
        problems.append(problem)
        run, root = descend(problem, ETA, STEPS, record=1), sqrt(law.m)
        parts = tuple(run[part][0].copy() for part in PARTS)
        series = [0.0]
        for record in range(1, len(run.time)):
            slopes = _slopes(problem, parts, problem.instance.start.a / root, law)
            parts = tuple(p - root * ETA * s for p, s in zip(parts, slopes, strict=True))
            reached = (run[part][record] for part in PARTS)
            pairs = zip(reached, parts, strict=True)
            series.append(max(float(np.abs(one - two).max()) for one, two in pairs))
        rows.append({"case": name, "difference": max(series)})
        curves.append(_curve(name, np.array(series)))
    return _equal(quantity, rows, curves, "largest difference of the two runs", problems)


def _slopes(
    problem: Any, parts: tuple[FloatArray, ...], a: FloatArray, law: Any
) -> tuple[FloatArray, ...]:
    """Derivatives of the mean loss by W_O, V, K, Q, sample by sample."""
    hidden, values, keys, queries = parts
    response, scores, found = hidden @ values, keys.T @ queries, problem.instance.vectors
    by_response, by_score = np.zeros_like(response), np.zeros_like(scores)
    for c, y, weight in zip(found.counts, found.labels, found.weights, strict=True):
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


def initialization(system: System, protocol: Protocol) -> Finding:
    """The printed initial weights against Assumption 1, and training from them."""
    quantity = "least distance of a key W_K mu_j from orthonormal q_j, printed start"
    law = protocol.parameters or system.Parameters()
    if law.noise == 0:
        return undecided(quantity, law.delta, "without noise the printed scales are infinite", law)
    problem = system.ReducedPopulation(law, seed=protocol.seed)
    state = problem.initial_state
    square = np.eye(law.d)[:, : law.M]
    scales = {"keys": law.delta**2 / law.noise**2, "values": law.sigma**2 / law.noise**2}
    for name in ("K", "Q"):
        problem.layout.part(state, name)[...] = scales["keys"] * square
    problem.layout.part(state, "V")[...] = scales["values"] * problem.instance.start.p
    far = {
        "keys": _distance(problem.layout.part(state, "K")),
        "values": _distance(problem.layout.part(state, "V")),
    }
    run = descend(problem, ETA, STEPS, initial=state)
    moved = float(np.abs(run["relevant"] - run["relevant"][0]).max())
    holds = bool(far["keys"] <= law.delta and far["values"] <= law.sigma)
    reason = (
        f"keys of length {scales['keys']:.4g} are {far['keys']:.4g} from every orthonormal frame, "
        f"{law.delta:g} is allowed, values {far['values']:.4g}, {law.sigma:g} is allowed; from "
        f"there attention to relevant tokens moves from {run['relevant'][0]:.4f} by {moved:.2g} "
        f"in {STEPS} steps"
    )
    evidence = {
        "parameters": sizes_of(law), "distances": far,
        "plot": plot(
            "step", "attention to relevant tokens",
            [curve("printed start", run.time / ETA, run["relevant"])],
        ),
    }  # fmt: skip
    return Finding(holds, quantity, far["keys"], law.delta, reason, evidence)


def _distance(columns: FloatArray) -> float:
    """Largest distance of a column from its like in the nearest orthonormal frame."""
    left, _, right = np.linalg.svd(columns, full_matrices=False)
    return float(np.linalg.norm(columns - left @ right, axis=0).max())
