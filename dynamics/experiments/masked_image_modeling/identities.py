"""Statements that hold at every Q or fail at once, measured on every entry of Q.

Appendix A.1 and Lemmas A.8, 5.1, 5.2 at random Q, in a random basis, against the full problem;
equation (5.1) along its descent; the infimum of Lemma A.9 against what descent reaches. Where all
masked images would take too long, descent has fewer steps, or nothing is decided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.experiments.criteria import listed
from dynamics.experiments.curves import curve, over_time
from dynamics.experiments.masked_image_modeling.paper_formulas import Stated, seconds, stated
from dynamics.experiments.masked_image_modeling.runs import CROSSED, SMALL, sizes_of, trained
from dynamics.experiments.verify import Finding, Protocol
from dynamics.problem import FloatArray
from dynamics.systems.masked_image_modeling.empirical import sampling
from dynamics.training.gradient_descent import descend
from dynamics.validation import InvalidRequest

if TYPE_CHECKING:
    from dynamics.registry import System

ROUNDING = 1e-12
EXACT = 1e-17
"""Where a picture shows differences that are zero."""
SPREADS = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Standard deviations of the entries of a random Q."""
LATENTS = CROSSED | {"masked": 3, "z": "0.7,1.3", "odds": "0.4,0.6"}
STEPS = 300
LEAST_STEPS = 10
ETA = 2.0
MOST_SECONDS = 20.0
"""Predicted time that a check may take at one law; ten times that where it is thorough."""
COUNTABLE = 10**9
"""Masked images from which on nothing needs to be predicted: the full problem refuses them."""


def appendix_a_1(system: System, protocol: Protocol) -> Finding:
    """Rows of Q along features in the gradient, and rows of patches when other rows change."""
    quantity = "largest gradient by v^T Q, or of a row by entries of another row, over the largest"
    rows, curves = [], []
    for parameters in _cases(system, protocol, CROSSED, SMALL):
        try:
            problem, left = _full(system, protocol, parameters, 2 * len(SPREADS) + LEAST_STEPS)
        except InvalidRequest as refusal:
            return _refused(refusal, quantity, ROUNDING, parameters)
        leaks = [_leak(problem, spread, protocol.seed) for spread in SPREADS]
        steps = min(STEPS, LEAST_STEPS + left)
        run = descend(problem, ETA, steps, record=steps)
        rows.append({
            **sizes_of(parameters), "spreads": list(SPREADS), "leaks": leaks, "steps": steps,
            "after_descent": float(run["dead"].max()),
        })  # fmt: skip
        curves.append(curve(f"P={parameters.P}, K={parameters.K}", SPREADS, leaks))
    most = max(max(*row["leaks"], row["after_descent"]) for row in rows)
    fewest, moved = min(row["steps"] for row in rows), max(row["after_descent"] for row in rows)
    reason = (
        f"at random Q nothing but the row e_p^T Q moves by the loss of p, up to {most:.1e}; after "
        f"{fewest} steps from 0 entries v^T Q are {moved:.1e}"
        if most <= ROUNDING
        else f"other entries move by {most:.2e} of the largest rate"
    )
    plot = _plot("spread of the entries of Q", "share of other rows", curves)
    evidence = {"table": rows, "plot": plot}
    return Finding(most <= ROUNDING, quantity, most, ROUNDING, reason, evidence)


def _leak(problem: Any, spread: float, seed: int) -> float:
    """What a random Q shows of gradients where there should be none, over the largest."""
    generator = np.random.default_rng(seed)
    depth = problem.parameters.d
    state = spread * generator.normal(size=(depth, depth))
    slope = problem.gradient(state).reshape(depth, depth)
    p = int(generator.integers(problem.parameters.P))
    place = problem.positions[p]
    # Every row but that of p is drawn anew: e_p^T Q stays what it was.
    drawn = spread * generator.normal(size=state.shape)
    other = np.outer(place, place @ state) + drawn - np.outer(place, place @ drawn)
    again = problem.gradient(other).reshape(depth, depth)
    scale = np.abs(slope).max()
    dead = np.abs(problem.features @ slope).max()
    return float(max(dead, np.abs(place @ (again - slope)).max()) / scale)


def lemma_a_8(system: System, protocol: Protocol) -> Finding:
    """The population loss against the stated form."""

    def distance(problem: Any, said: Stated, state: FloatArray) -> tuple[float, float]:
        return abs(problem.risk(state) - said.loss.sum()), abs(said.loss.sum())

    return _against(system, protocol, "population loss", distance)


def lemma_5_1(system: System, protocol: Protocol) -> Finding:
    """Rates of Phi in the full problem against the stated ones."""

    def distance(problem: Any, said: Stated, state: FloatArray) -> tuple[float, float]:
        rates = -_queries(problem, state) @ problem.features.T
        return float(np.abs(rates - said.alpha).max()), float(np.abs(said.alpha).max())

    return _against(system, protocol, "rate of Phi", distance)


def lemma_5_2(system: System, protocol: Protocol) -> Finding:
    """Rates of Ups in the full problem against the sum of the stated ones."""

    def distance(problem: Any, said: Stated, state: FloatArray) -> tuple[float, float]:
        rates, total = -_queries(problem, state) @ problem.positions.T, said.beta.sum(axis=0)
        return float(np.abs(rates - total).max()), float(np.abs(said.beta).max())

    return _against(system, protocol, "rate of Ups", distance)


def _queries(problem: Any, state: FloatArray) -> FloatArray:
    """Gradient of the rows e_p^T Q."""
    found: FloatArray = problem.positions @ problem.gradient(state).reshape(state.shape)
    return found


def _against(system: System, protocol: Protocol, what: str, distance: Any) -> Finding:
    """The full problem against a statement, at random Q in a random basis."""
    quantity = f"largest difference of the {what} from the statement, relative, at random Q"
    rows, curves = [], []
    for parameters in _cases(system, protocol, CROSSED, LATENTS, SMALL):
        try:
            problem, _ = _full(system, protocol, parameters, len(SPREADS), len(SPREADS))
        except InvalidRequest as refusal:
            return _refused(refusal, quantity, ROUNDING, parameters)
        generator, found = np.random.default_rng(protocol.seed), []
        for spread in SPREADS:
            phi = spread * generator.normal(size=(parameters.P, parameters.features))
            ups = spread * generator.normal(size=(parameters.P, parameters.P))
            state = problem.positions.T @ (ups @ problem.positions + phi @ problem.features)
            off, scale = distance(problem, stated(parameters, phi, ups), state)
            found.append(float(off / scale))
        rows.append(sizes_of(parameters) | {"spreads": list(SPREADS), "differences": found})
        many = len(parameters.z)
        label = f"P={parameters.P}, K={parameters.K}, {many} value{'s' * (many > 1)} of z"
        curves.append(curve(label, SPREADS, np.maximum(found, EXACT)))
    most = max(max(row["differences"]) for row in rows)
    word = "equal to rounding" if most <= ROUNDING else "different"
    laws = "1 law" if len(rows) == 1 else f"{len(rows)} laws"
    reason = f"{word}, {most:.1e}: {laws}, entries of Q of size up to {SPREADS[-1]:g}"
    plot = _plot("spread of the entries of Q", "relative difference", curves)
    evidence = {"table": rows, "plot": plot}
    return Finding(most <= ROUNDING, quantity, most, ROUNDING, reason, evidence)


def equation_5_1(system: System, protocol: Protocol) -> Finding:
    """Ups against the sum of its parts, each moved by one cluster, along full descent."""
    quantity = "largest |Ups - sum_k Ups^(k)|, or |sum_q Ups^(k)|, along descent"
    (parameters,) = _cases(system, protocol, CROSSED)
    try:
        problem, left = _full(system, protocol, parameters, 3 * LEAST_STEPS, LEAST_STEPS)
    except InvalidRequest as refusal:
        return _refused(refusal, quantity, ROUNDING, parameters)
    # A step with its record takes about three gradients, and a statement as much.
    wanted = STEPS if protocol.thorough else STEPS // 5
    steps = min(wanted, LEAST_STEPS + left // 6)
    run = descend(problem, ETA, steps, record=1)
    parts = np.zeros((parameters.K, parameters.P, parameters.P))
    splits, sums, sizes = [], [], []
    for state in run["Q"]:
        row = problem.positions @ state
        ups = row @ problem.positions.T
        splits.append(float(np.abs(ups - parts.sum(axis=0)).max()))
        sums.append(float(np.abs(parts.sum(axis=2)).max()))
        sizes.append(float(np.abs(parts).max()))
        parts += ETA * stated(parameters, row @ problem.features.T, ups).beta
    most = max(*splits, *sums)
    reason = (
        f"Ups of {steps} steps is the sum of its parts up to {max(splits):.1e}, and each part sums "
        f"to zero over q up to {max(sums):.1e}, while parts reach {sizes[-1]:.3g}"
    )
    plot = over_time(
        "size", [
            curve("largest part", run.time[1:], sizes[1:]),
            curve("difference from the sum", run.time[1:], splits[1:]),
            curve("sum over q", run.time[1:], sums[1:]),
        ], [{"label": "rounding", "y": ROUNDING}],
    )  # fmt: skip
    evidence = {"parameters": sizes_of(parameters), "plot": plot}
    return Finding(most <= ROUNDING, quantity, most, ROUNDING, reason, evidence)


def lemma_a_9(system: System, protocol: Protocol) -> Finding:
    """The loss of a local patch against the stated infimum, along full and reduced descent."""
    quantity = "least loss of a local patch over the infimum as stated"
    (parameters,) = _cases(system, protocol, SMALL)
    case = trained(system, parameters)
    row = case.row(local=True)
    rows = case.problem.rows
    floor = float(rows.floors[rows.names.index(row)])
    areas = np.array([int(cluster.max()) + 1 for cluster in parameters.area_ids])
    if floor == 0.0 or (areas < 2).any():
        reason = "no mask hides a whole area, or there is only one: both infima are the same"
        evidence = {"parameters": sizes_of(parameters)}
        return Finding(None, quantity, float("nan"), 1.0, reason, evidence)
    hidden = rows.hidden[rows.names.index(row)]
    stated_floor = floor * (1 + float((hidden / (areas - 1)).sum() / hidden.sum()))
    loss = case.run[f"{row}_gap"] + floor
    least = float(loss.min() / stated_floor)
    holds = False if least < 1 else None
    reason = (
        f"descent reaches {loss[-1]:.6g}, below the {stated_floor:.6g} of the statement: masked "
        f"keys hold {case.run[f'{row}_masked'][-1]:.2f} of the attention, so that the unmasked "
        f"need not sum to 1; the infimum is {floor:.6g}"
        if least < 1
        else f"descent has come to {loss[-1]:.4g}, still above both {stated_floor:.4g} as stated "
        f"and {floor:.4g} without the Cauchy-Schwarz term"
    )
    try:
        problem, _ = _full(system, protocol, parameters, 3 * STEPS)
        full = descend(problem, ETA / 2, STEPS)
        label = f"every entry of Q, {listed([full[f'{row}_gap'][-1] + floor])} at the end"
        more = [curve(label, full.time[1:], full[f"{row}_gap"][1:] + floor)]
    except InvalidRequest:
        more = []
    plot = over_time(
        "loss of a local patch", [curve("reduced", case.run.time[1:], loss[1:]), *more],
        [{"label": "infimum as stated", "y": stated_floor}, {"label": "infimum", "y": floor}],
    )  # fmt: skip
    found: dict[str, Any] = {
        "parameters": sizes_of(parameters), "floor": floor, "stated": stated_floor, "plot": plot,
    }  # fmt: skip
    return Finding(holds, quantity, least, 1.0, reason, found)


def _cases(system: System, protocol: Protocol, *usual: Any) -> list[Any]:
    """The user's parameters, or those of the check."""
    if protocol.parameters is not None:
        return [protocol.parameters]
    return [system.Parameters(**case) for case in usual]


def _full(
    system: System, protocol: Protocol, parameters: Any, gradients: int, statements: int = 0
) -> tuple[Any, int]:
    """The full problem, and how many gradients beside those that are needed there is time for.

    Raises
    ------
    InvalidRequest
        If the problem refuses the parameters, or its gradients and the statements take too long.
    """
    images = sampling.number(parameters)
    most = MOST_SECONDS * (10 if protocol.thorough else 1)
    left = 0
    if images <= COUNTABLE:
        each = float(system.seconds(parameters, "population", {}))
        needed = gradients * each + statements * seconds(parameters)
        if needed > most:
            raise InvalidRequest(
                f"{images:,} masked images of P={parameters.P} patches would take about "
                f"{needed:.0f} s, more than {most:g} s; fewer masked patches or a smaller P do not"
            )
        left = int((most - needed) / each)
    return system.FullPopulation(parameters), left


def _refused(refusal: Exception, quantity: str, bound: float, parameters: Any) -> Finding:
    evidence = {"parameters": sizes_of(parameters)}
    return Finding(None, quantity, float("nan"), bound, str(refusal), evidence)


def _plot(x_label: str, y_label: str, curves: list[Any]) -> dict[str, Any]:
    return {
        "x_label": x_label, "y_label": y_label, "x_scale": "linear", "y_scale": "log",
        "curves": curves, "lines": [{"label": "rounding", "y": ROUNDING}],
    }  # fmt: skip
