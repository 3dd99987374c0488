"""Arrays of a model as functions of its real constants, found by calls with symbols.

The functions ``law``, ``sample``, ``held_out``, ``start`` and ``fixed`` are called once with SymPy
symbols for all real constants. Each returned array becomes a `Reading`, a sum of functions of the
constants times tables. A function of the model fails on symbols if it compares a constant, or if it
passes a constant to a function of floats; `Readings.unread` names the functions that failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from numbers import Real
from typing import Any

import numpy as np
import sympy

from dynamics.models.engine.problem import ModelProblem
from dynamics.models.engine.real_constants import Reading, plain, reading, symbol
from dynamics.models.engine.realization import Realization
from theory.law import ModelError

MOST_SAMPLES = 40_000
"""A law with more samples than this is not called with symbols."""
TOLERANCE = 1e-13
"""Maximum error of a reading, relative to the largest entry of the array returned by the model."""
UNREADABLE = (ModelError, TypeError, ValueError, AttributeError, ArithmeticError, IndexError)
ROLES = ("law", "sample", "held_out", "start", "fixed")
"""Functions of a model that can be called with symbols in place of real constants."""


@dataclass(frozen=True)
class Readings:
    """Arrays of a reduced problem as functions of the real constants.

    `inputs` has one reading for each array of the data and one for `Embedding.offset`; `start` has
    the scalars at step 0. `unread` names the functions of the model that fail on symbols; arrays
    that they return are read as numbers.
    """

    inputs: tuple[Reading, ...]
    start: Reading
    unread: tuple[str, ...]


def readings(
    problem: ModelProblem, draws: tuple[int, int] = (0, 0), roles: Sequence[str] = ROLES
) -> Readings:
    """Find the arrays of a reduced problem as functions of the real constants.

    `draws` has the number and the seed of the draws of a law that can only be sampled. Functions of
    the model outside `roles` are not called with symbols.
    """
    import jax

    made, unread = problem.realization, []
    data = problem.payload[0]
    parts: dict[str, Any] = {
        "weights": data.weights, "samples": data.samples, "fixed": data.fixed,
        "held_out": data.held_out, "start": made.flat_start,
    }  # fmt: skip
    for role in roles:
        if not any(name in made.reals for name in made.model.arguments.get(role, ())):
            continue
        try:
            symbolic = READERS[role](problem, draws)
            if any(_shapes(part) != _shapes(parts[name]) for name, part in symbolic.items()):
                raise ValueError("arrays of other shapes")
            parts |= symbolic
        except UNREADABLE:
            unread.append(role)
    flat = parts["start"]
    linear = problem.coordinates == "linear"
    moving = problem.closure.classes.labels >= 0
    offset = flat if linear else np.where(moving, 0, flat)
    first = problem.closure.classes.first
    start = np.zeros(len(problem.scalars)) if linear else flat[first]
    leaves = [parts["weights"], *jax.tree.leaves(parts["samples"], is_leaf=_is_leaf)]
    leaves += jax.tree.leaves((parts["fixed"], parts["held_out"]), is_leaf=_is_leaf)
    reals = [np.array(symbol(name), dtype=object) for name in sorted(made.reals)]
    return Readings(
        tuple(reading(np.asarray(leaf)) for leaf in [*leaves, *reals, offset]),
        reading(start),
        tuple(unread),
    )


def _is_leaf(part: Any) -> bool:
    """Whether a part of a sample counts as one array, as a list of numbers does in `theory.law`."""
    if isinstance(part, list):
        return all(isinstance(entry, Real | sympy.Basic) for entry in part)
    return isinstance(part, np.ndarray | sympy.Basic)


def _symbolic(made: Realization) -> dict[str, Any]:
    return {n: symbol(n) if n in made.reals else value for n, value in made.constants.items()}


def _shapes(part: Any) -> list[tuple[int, ...]]:
    """Shapes of the arrays of a part of the data."""
    import jax

    return [np.shape(leaf) for leaf in jax.tree.leaves(part, is_leaf=_is_leaf)]


def _start(problem: ModelProblem, draws: tuple[int, int]) -> dict[str, Any]:
    """All trained entries at step 0, as expressions in the real constants."""
    made = problem.realization
    arrays = made.model.call("start", constants=_symbolic(made))
    return {"start": np.concatenate([np.asarray(arrays[name]).reshape(-1) for name in made.shapes])}


def _fixed(problem: ModelProblem, draws: tuple[int, int]) -> dict[str, Any]:
    """Untrained arrays, as expressions in the real constants."""
    arrays = problem.realization.model.call("fixed", constants=_symbolic(problem.realization))
    return {"fixed": {name: np.asarray(array) for name, array in arrays.items()}}


def _law(problem: ModelProblem, draws: tuple[int, int]) -> dict[str, Any]:
    """Total weight and first sample of each sample class, as expressions in the real constants."""
    made, groups = problem.realization, problem.closure.sample_groups
    law = made.law
    assert law is not None
    pairs = _pairs(made, "law", law.size)
    labels = np.arange(law.size) if groups is None else groups.labels
    terms: list[Counter[Any]] = [Counter() for _ in range(int(labels.max()) + 1)]
    for label, (probability, _) in zip(labels, pairs, strict=True):
        terms[label][probability] += 1
    weights = [sympy.Add(*(n * value for value, n in term.items())) for term in terms]
    first = np.unique(labels, return_index=True)[1]
    return {
        "weights": np.array(weights, dtype=object),
        "samples": _stacked(pairs[k][1] for k in first),
    }


def _pairs(made: Realization, role: str, count: int) -> list[tuple[sympy.Expr, Any]]:
    """The `count` pairs (probability, sample) of a law in symbols; else raises ValueError."""
    if count > MOST_SAMPLES:
        raise ValueError("too many samples for symbols")
    positive = (
        (sympy.sympify(plain(p)), s) for p, s in made.model.call(role, constants=_symbolic(made))
        if not (isinstance(p, int | float | sympy.Number) and p == 0)
    )  # fmt: skip
    pairs = list(islice(positive, count + 1))
    if len(pairs) != count:
        raise ValueError("other samples have a probability")
    return pairs


def _held_out(problem: ModelProblem, draws: tuple[int, int]) -> dict[str, Any]:
    """Weights and samples of the held-out law, as expressions in the real constants."""
    made = problem.realization
    assert made.held_out is not None
    weights, samples = zip(*_pairs(made, "held_out", made.held_out.size), strict=True)
    return {"held_out": (np.array(weights, dtype=object), _stacked(samples))}


def _samples(problem: ModelProblem, draws: tuple[int, int]) -> dict[str, Any]:
    """Equally weighted drawn samples, as expressions in the real constants."""
    count, seed = draws
    generator, model = np.random.default_rng(seed), problem.realization.model
    constants = _symbolic(problem.realization)
    samples = [model.call("sample", generator, constants=constants) for _ in range(count)]
    return {"weights": np.full(count, 1 / count), "samples": _stacked(samples)}


READERS = {
    "law": _law, "sample": _samples, "held_out": _held_out, "start": _start, "fixed": _fixed,
}  # fmt: skip
"""Function of a model -> function that calls it on symbols and returns its arrays."""


def _stacked(samples: Iterable[Any]) -> Any:
    """Stack of samples of equal structure, as a tree of arrays."""
    import jax

    return jax.tree.map(
        lambda *leaves: np.stack(list(map(np.asarray, leaves))), *samples, is_leaf=_is_leaf
    )


def holds(read: Readings, problems: Sequence[ModelProblem]) -> bool:
    """Whether readings give the arrays of problems at other real constants, within `TOLERANCE`."""
    import jax

    for problem in problems:
        data, embedding = problem.payload
        arrays = [*jax.tree.leaves(data), embedding.offset, problem.initial_state]
        for own, leaf in zip([*read.inputs, read.start], arrays, strict=True):
            value, array = own.at(problem.realization.constants), np.asarray(leaf, dtype=float)
            size = float(np.abs(array).max(initial=0.0)) or 1.0
            if value.shape != array.shape:
                return False
            if np.abs(value - array).max(initial=0.0) > TOLERANCE * size:
                return False
    return True
