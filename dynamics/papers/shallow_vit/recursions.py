r"""Recursions of inner products and of the symmetric collapse, compared with a run on patterns.

*Inner products* of weights, values, keys, queries: :math:`H = W_O V`, :math:`B = K^\top Q`,
:math:`G_V = V^\top V`, :math:`G_K = K^\top K`, :math:`G_Q = Q^\top Q` and :math:`J = W_O W_O^\top`
follow a closed recursion of gradient descent, with terms in :math:`\eta^2`, derived by
`theory.papers.shallow_vit.recursion.gram`. Attention enters by three M x M matrices, for any d.

*Symmetric collapse*: from a start with the symmetries of `theory.papers.shallow_vit.symmetry`, B
keeps six distinct entries, :math:`G_K` and :math:`G_Q` keep five each. The symmetries need sigma =
delta = 0, W_K = W_Q, equal non-discriminative counts and neurons in whole orbits
(``start="symmetric"``). The step of these 16 scalars is derived by
`theory.papers.shallow_vit.recursion.collapse`; W_O and V are advanced neuron by neuron.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dynamics.loops import Updates
from dynamics.problem import FloatArray
from dynamics.validation import InvalidRequest, integer, real, refuse
from theory.papers.shallow_vit.attention import PARTS, attention
from theory.papers.shallow_vit.data_law import Law
from theory.papers.shallow_vit.notation import PAIRS
from theory.papers.shallow_vit.symmetry import (
    Weights,
    broken,
    class_means,
    conditions,
    pairs,
    scalars,
)

if TYPE_CHECKING:
    from dynamics.papers.shallow_vit.problems import ReducedPopulation

MATRICES = ("H", "B", "G_V", "G_K", "G_Q", "J")


class RecursionCheck(NamedTuple):
    """Deviations of a recursion from a run on patterns.

    `deviations` maps a name to the largest absolute difference of an entry at every step, shape
    (steps + 1,); `values` maps a name to the final value of the recursion.
    """

    deviations: Mapping[str, FloatArray]
    values: Mapping[str, Any]

    @property
    def largest(self) -> FloatArray:
        """Largest deviation over all names, at every step."""
        return np.asarray(np.max([*self.deviations.values()], axis=0))

    @property
    def deviation(self) -> float:
        """Largest deviation over all names and steps."""
        return float(self.largest.max())


def _inner_products(parts: tuple[FloatArray, ...]) -> dict[str, FloatArray]:
    """The six matrices of inner products of W_O, V, K, Q."""
    hidden, values, keys, queries = parts
    return {
        "H": hidden @ values,
        "B": keys.T @ queries,
        "G_V": values.T @ values,
        "G_K": keys.T @ keys,
        "G_Q": queries.T @ queries,
        "J": hidden @ hidden.T,
    }


def _parts_of(problem: ReducedPopulation, state: FloatArray) -> tuple[FloatArray, ...]:
    """W_O, V, K, Q of a flat state."""
    return tuple(problem.layout.part(state, name) for name in PARTS)


def gram(problem: ReducedPopulation, eta: float, steps: int) -> RecursionCheck:
    """Advance the six matrices of inner products, and compare them with a run of the problem.

    `problem` is a reduced problem with all weights trained, or with attention frozen; `eta` is the
    learning rate of all weights. Raises InvalidRequest if the values are frozen, because the
    recursion is derived for a trained V.
    """
    if problem.parameters.frozen == "values":
        refuse(
            "frozen", "values", "has no recursion of inner products", "none or attention", "none"
        )
    rate, many = real("eta", eta, above=0.0), integer("steps", steps, at_least=1, at_most=10**7)
    state = problem.initial_state
    result = _inner_products(_parts_of(problem, state))
    gaps: dict[str, list[float]] = {name: [0.0] for name in MATRICES}
    for reached, step in _stepping(problem, state, rate, many):
        by_response, by_score = slopes_of(problem, result["H"], result["B"], step)
        result = _matrix_step()(result, by_response, by_score, rate)
        for name, exact in _inner_products(_parts_of(problem, reached)).items():
            gaps[name].append(float(np.abs(result[name] - exact).max()))
    return RecursionCheck({name: np.array(gap) for name, gap in gaps.items()}, result)


def _stepping(
    problem: ReducedPopulation, state: FloatArray, eta: float, steps: int
) -> Iterator[tuple[FloatArray, int]]:
    """Yield the state of a run after every step, and the number of this step."""
    rates = np.full(state.size, eta)
    none = np.empty(0, dtype=np.int64), np.empty((0, state.size))
    rows = np.empty((1, len(problem.order_names)))
    for step in range(steps):
        problem.advance(state, Updates(rates), step, step + 1, (rows, *none))
        yield state, step


@cache
def _matrix_step() -> Callable[..., dict[str, FloatArray]]:
    """Compiled step of the six matrices of inner products, for orthonormal patterns."""
    import sympy

    from theory.papers.shallow_vit import recursion

    plain = recursion.gram()
    names = {str(matrix): matrix for matrix in plain}
    arguments = [*[names[name] for name in MATRICES], recursion.E, recursion.T, recursion.eta]
    steps = [
        plain[names[name]].subs(recursion.GAMMA, sympy.Identity(recursion.M)) for name in MATRICES
    ]
    compiled = sympy.lambdify(arguments, [step.doit() for step in steps], "numpy")

    def step(
        result: Mapping[str, FloatArray], by_response: FloatArray, by_score: FloatArray, eta: float
    ) -> dict[str, FloatArray]:
        values = compiled(*[result[name] for name in MATRICES], by_response, by_score, eta)
        return {name: np.asarray(value) for name, value in zip(MATRICES, values, strict=True)}

    return step


def objection(problem: ReducedPopulation) -> str:
    """Reason why the symmetric collapse does not hold, in one line; "" if it holds."""
    vectors, start = problem.vectors, problem.start
    if not problem.autonomous:
        return "the symmetric collapse needs: all samples in every step; there are mini-batches"
    law = Law(vectors.counts, vectors.labels.astype(np.int64), vectors.weights)
    hidden, values, keys, queries = _parts_of(problem, problem.initial_state)
    weights = Weights(hidden, values, keys, queries, start.a)
    return broken(conditions(weights, law)) or ""


def collapse(problem: ReducedPopulation, eta: float, steps: int) -> RecursionCheck:
    """Advance the 16 scalars of the collapse, W_O and V; compare them with a run of the problem.

    `eta` is the learning rate of all weights. The deviation of a scalar is the largest deviation of
    an entry of its class. Raises InvalidRequest with the first condition of the collapse that does
    not hold.
    """
    why = objection(problem)
    if why:
        raise InvalidRequest(why)
    rate, many = real("eta", eta, above=0.0), integer("steps", steps, at_least=1, at_most=10**7)
    state, size = problem.initial_state, problem.parameters.M
    trained = float(problem.parameters.frozen != "values")
    hidden, values = (part.copy() for part in _parts_of(problem, state)[:2])
    result = _read(_parts_of(problem, state), size)[0]
    names = (*result, "W_O", "V")
    gaps: dict[str, list[float]] = {name: [0.0] for name in names}
    for reached, _ in _stepping(problem, state, rate, many):
        by_response, by_score = slopes_of(problem, hidden @ values, _scores(result, size))
        result = _scalar_step(size)(result, class_means(by_score, pairs(size)[0]), rate)
        moved = hidden - rate * by_response @ values.T
        values = values - trained * rate * hidden.T @ by_response
        hidden = moved
        exact = _parts_of(problem, reached)
        for name, entries in _read(exact, size)[1].items():
            gaps[name].append(float(np.abs(entries - result[name]).max()))
        gaps["W_O"].append(float(np.abs(exact[0] - hidden).max()))
        gaps["V"].append(float(np.abs(exact[1] - values).max()))
    series = {name: np.array(gap) for name, gap in gaps.items()}
    return RecursionCheck(series, result | {"W_O": hidden, "V": values})


def _read(
    parts: tuple[FloatArray, ...], patterns: int
) -> tuple[dict[str, float], dict[str, FloatArray]]:
    """Scalars of W_O, V, K, Q as class means, and the entries of each class, by name."""
    matrices, entries = _inner_products(parts), {}
    for name in scalars(patterns):
        code, pair = name.rsplit("_", 1)
        entries[name] = matrices[code][_pair_positions(patterns, pair, code != "B")]
    return {name: float(values.mean()) for name, values in entries.items()}, entries


def _scores(result: Mapping[str, float], patterns: int) -> FloatArray:
    """Matrix of scores B = K^T Q from the 16 scalars of the collapse, shape (M, M)."""
    classes, names = pairs(patterns)
    return np.asarray(np.array([result[f"B_{name}"] for name in names])[classes.labels])


@cache
def _pair_positions(patterns: int, pair: str, even: bool) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of a class of pairs of patterns; with `even`, each unordered pair once."""
    positions = pairs(patterns)[1][pair]
    if even and pair == "1k":
        positions = np.concatenate([positions, positions[:, ::-1]])
    return positions[:, 0], positions[:, 1]


@cache
def _scalar_step(patterns: int) -> Callable[..., dict[str, float]]:
    """Compiled step of the 16 scalars of the symmetric collapse."""
    import sympy

    from theory.papers.shallow_vit import recursion

    plain = {str(name): step for name, step in recursion.collapse().items()}
    names_of_step, classes = scalars(patterns), tuple(pairs(patterns)[1])
    every = [f"{code}_{pair}" for code in ("B", "G_K", "G_Q", "t") for pair in PAIRS]
    letters = {s.name: s for step in plain.values() for s in step.free_symbols}
    inputs = [letters.get(name, sympy.Dummy(name)) for name in every]
    steps = [plain[name].subs(recursion.M, patterns) for name in names_of_step]
    compiled = sympy.lambdify([*inputs, recursion.eta], steps, "math")

    def step(result: Mapping[str, float], means: FloatArray, eta: float) -> dict[str, float]:
        slope = dict(zip((f"t_{name}" for name in classes), means.tolist(), strict=True))
        values_of = dict(result) | slope
        values = compiled(*[values_of.get(name, 0.0) for name in every], eta)
        return dict(zip(names_of_step, values, strict=True))

    return step


def slopes_of(
    problem: ReducedPopulation, responses: FloatArray, scores: FloatArray,
    step: int | None = None, scale: float = 1.0,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Derivatives of the loss by the responses, shape (m, M), and by the scores, shape (M, M).

    `responses` is H = W_O V, and `scores` is B = K^T Q. `step` selects the batch of a step, None
    all samples. `scale` multiplies output weights and margin, to change their convention. The
    derivative by the scores is 0 if attention is frozen.
    """
    parameters, tokens = problem.parameters, problem.tokens
    a = scale * (problem.start.a if tokens.output is None else tokens.output)
    weights = (tokens.times[:, :, None] * a / parameters.L).transpose(0, 2, 1)
    mass = attention(scores, problem.vectors.counts)
    before = responses @ mass
    reached = tokens.labels * (weights * np.maximum(before, 0.0)).sum(axis=(1, 2))
    pushed = -tokens.labels * problem.weights_of(step)
    if parameters.loss == "hinge":
        pushed = pushed * (reached < scale * parameters.margin)
    back = pushed[:, None, None] * weights * (before > 0.0)
    by_response = np.asarray((back @ mass.transpose(0, 2, 1)).sum(axis=0))
    if parameters.frozen == "attention":
        return by_response, np.zeros_like(scores)
    pulled = responses.T @ back
    mean = (mass * pulled).sum(axis=1, keepdims=True)
    return by_response, np.asarray((mass * (pulled - mean)).sum(axis=0))
