r"""The symmetric collapse: attention as 16 scalars, beside a pattern run.

Where the symmetries of `theory.systems.shallow_vit.symmetry` hold at the start (sigma = delta = 0,
W_K = W_Q, equal non-discriminative counts, neurons in whole orbits: ``start="symmetric"``), B has
six distinct entries and :math:`G_K`, :math:`G_Q` five each, for ever. Their step is the one that
`theory.systems.shallow_vit.recursion.collapse` derives, in the class means t of T; W_O and V go on
beside them as neurons do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from dynamics.problem import FloatArray
from dynamics.systems.shallow_vit.full.projection import pairs
from dynamics.systems.shallow_vit.reduced.inner_product_recursion import (
    Beside,
    inner_products,
    parts_of,
    stepping,
)
from dynamics.systems.shallow_vit.reduced.population import ReducedPopulation
from dynamics.systems.shallow_vit.reduced.slopes import Slopes
from dynamics.validation import InvalidRequest, integer, real
from theory.systems.shallow_vit.data_law import Law
from theory.systems.shallow_vit.notation import PAIRS
from theory.systems.shallow_vit.symmetry import Weights, broken, class_means, conditions, scalars


def objection(problem: ReducedPopulation) -> str:
    """Why the collapse does not hold, in one line; empty where it does."""
    found, start = problem.instance, problem.instance.start
    if found.batch is not None:
        return "the symmetric collapse needs: all samples in every step; there are mini-batches"
    vectors = found.vectors
    law = Law(vectors.counts, vectors.labels.astype(np.int64), vectors.weights)
    hidden, values, keys, queries = parts_of(problem, problem.initial_state)
    weights = Weights(hidden, values, keys, queries, start.a)
    return broken(conditions(weights, law)) or ""


def collapse(problem: ReducedPopulation, eta: float, steps: int) -> Beside:
    """Advance the 16 scalars with W_O and V, and the problem beside them.

    Parameters
    ----------
    problem : ReducedPopulation
    eta : float
        Learning rate of all weights.
    steps : int

    Returns
    -------
    Beside
        Of the scalars, of W_O and of V. The distance of a scalar is the largest one of an entry of
        its class.

    Raises
    ------
    InvalidRequest
        With the first condition that does not hold.
    """
    why = objection(problem)
    if why:
        raise InvalidRequest(why)
    slopes = Slopes(problem.instance)
    rate, many = real("eta", eta, above=0.0), integer("steps", steps, at_least=1, at_most=10**7)
    state, size = problem.initial_state, problem.parameters.M
    trained = float(problem.parameters.frozen != "values")
    hidden, values = (part.copy() for part in parts_of(problem, state)[:2])
    found = read(parts_of(problem, state), size)[0]
    names = (*found, "W_O", "V")
    gaps: dict[str, list[float]] = {name: [0.0] for name in names}
    for reached, _ in stepping(problem, state, rate, many):
        by_response, by_score = slopes.of(hidden @ values, scores(found, size))
        found = _step(size)(found, class_means(by_score, pairs(size)[0]), rate)
        moved = hidden - rate * by_response @ values.T
        values = values - trained * rate * hidden.T @ by_response
        hidden = moved
        exact = parts_of(problem, reached)
        for name, entries in read(exact, size)[1].items():
            gaps[name].append(float(np.abs(entries - found[name]).max()))
        gaps["W_O"].append(float(np.abs(exact[0] - hidden).max()))
        gaps["V"].append(float(np.abs(exact[1] - values).max()))
    series = {name: np.array(gap) for name, gap in gaps.items()}
    return Beside(series, found | {"W_O": hidden, "V": values})


def read(
    parts: tuple[FloatArray, ...], patterns: int
) -> tuple[dict[str, float], dict[str, FloatArray]]:
    """The scalars of W_O, V, K, Q as means, and the entries that each stands for."""
    matrices, entries = inner_products(parts), {}
    for name in scalars(patterns):
        code, pair = name.rsplit("_", 1)
        entries[name] = matrices[code][_places(patterns, pair, code != "B")]
    return {name: float(values.mean()) for name, values in entries.items()}, entries


def scores(found: Mapping[str, float], patterns: int) -> FloatArray:
    """B of the scalars, shape (M, M)."""
    classes, names = pairs(patterns)
    return np.asarray(np.array([found[f"B_{name}"] for name in names])[classes.labels])


@cache
def _places(patterns: int, pair: str, even: bool) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of a class; of unordered pairs where it is even."""
    places = pairs(patterns)[1][pair]
    if even and pair == "1k":
        places = np.concatenate([places, places[:, ::-1]])
    return places[:, 0], places[:, 1]


@cache
def _step(patterns: int) -> Callable[..., dict[str, float]]:
    """One step of the scalars, compiled from the derivation."""
    import sympy

    from theory.systems.shallow_vit import recursion

    plain = {str(name): step for name, step in recursion.collapse().items()}
    kept, classes = scalars(patterns), tuple(pairs(patterns)[1])
    every = [f"{code}_{pair}" for code in ("B", "G_K", "G_Q", "t") for pair in PAIRS]
    letters = {s.name: s for step in plain.values() for s in step.free_symbols}
    given = [letters.get(name, sympy.Dummy(name)) for name in every]
    steps = [plain[name].subs(recursion.M, patterns) for name in kept]
    compiled = sympy.lambdify([*given, recursion.eta], steps, "math")

    def step(found: Mapping[str, float], means: FloatArray, eta: float) -> dict[str, float]:
        slope = dict(zip((f"t_{name}" for name in classes), means.tolist(), strict=True))
        known = dict(found) | slope
        values = compiled(*[known.get(name, 0.0) for name in every], eta)
        return dict(zip(kept, values, strict=True))

    return step
